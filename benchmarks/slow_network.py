"""How much faster does compressed training step over slow links than PyTorch's own DDP?

    python -m benchmarks.slow_network --preset smoke          # some seconds; needs root or user namespaces
    python -m benchmarks.slow_network --preset full --json FILE --markdown FILE

Four hosts in a lab on this machine, one rank each, links limited in both directions. All modes run in
turns in the same processes. Seconds per step are medians; bytes are counted at the interfaces. Four
ranks share the cores of this machine, so "no communication" is the time of computing alone, and no
mode can be faster. "next to nothing" is a step that exchanges 29 values: the cost of waiting for each
other, without that of bytes. Predictions are that, plus encoding and decoding, plus the network.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import arguments, publish
from benchmarks.slow_network_rank import PEERS, POWERSGD
from talka.errors import GangError
from talka.lab import Lab, LabConfig, LabRunOptions

PRESETS = {
    "smoke": {
        "rates": [1e9],
        "models": ["cnn"],
        "hosts": 2,
        "specs": ["onebit+ef"],
        "repeats": 1,
        "seconds": 0.1,
    },
    "full": {
        "rates": [1e8, 1e9],
        "models": ["mlp", "cnn"],
        "specs": [
            *("onebit+ef", "topk:0.01+ef", "uniform:3/max/512+ef", "qsgd:7", "threshold:auto+ef"),
            *("randomk:0.01+ef", "powersgd:4"),
        ],
        "hosts": 4,
        "repeats": 5,
        "seconds": 1.0,
    },
}


def run(lab, model, modes, settings, timeout_s=1500):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.slow_network_rank"]
        command += ["--model", model, "--repeats", str(settings["repeats"])]
        command += ["--seconds", str(settings["seconds"]), "--out", str(out), "--modes", *modes]
        lab.run(command, LabRunOptions(timeout_s=timeout_s))
        return json.loads(out.read_text())


def median(rows, key):
    return statistics.median(row[key] for row in rows)


def step_rows(answer):
    """Return rows with the ratios to DDP and to its fp16 hook first."""
    rows = answer["rows"]
    seconds = {name: median(rows[name], "seconds") for name in rows}
    table = []
    for name, measured in rows.items():
        times = [row["seconds"] for row in measured]
        payload = median(measured, "sent_bytes")
        counted = median(measured, "interface_bytes")
        row = {
            "mode": name,
            "x DDP": f"{seconds['ddp'] / seconds[name]:.2f}",
            "x fp16 hook": f"{seconds['ddp fp16 hook'] / seconds[name]:.2f}",
            "s a step": f"{seconds[name]:.4f}",
            "worst/best": f"{max(times) / min(times):.2f}",
            "MB a host": f"{counted / answer['num_workers'] / 1e6:.3f}",
            "payload MB": "",
            "interface/payload": "",
            "payload/predicted": "",
            "predicted s": "",
            "s/predicted": "",
            "encode ms": "",
            "wait ms": "",
            "decode ms": "",
        }
        if payload:
            row["payload MB"] = f"{payload / answer['num_workers'] / 1e6:.3f}"
            row["interface/payload"] = f"{counted / payload:.3f}"
            row["payload/predicted"] = f"{payload / answer['predicted_bytes'][name]:.3f}"
            for key in ("encode", "exchange", "decode"):
                shown = "wait ms" if key == "exchange" else f"{key} ms"
                row[shown] = f"{1000 * median(measured, f'{key}_s'):.1f}"
        if name in answer["predicted_s"]:
            row["predicted s"] = f"{answer['predicted_s'][name]:.4f}"
            row["s/predicted"] = f"{seconds[name] / answer['predicted_s'][name]:.2f}"
        table.append(row)
    return table


def main():
    args = arguments(__doc__, PRESETS)
    settings = PRESETS[args.preset]
    tables = {}
    config = LabConfig(num_hosts=settings["hosts"], rate_bits_per_s=settings["rates"][0])
    with Lab(config) as lab:
        for rate in settings["rates"]:
            lab.set_rate(rate)
            for model in settings["models"]:
                answer = run(lab, model, [*PEERS, *settings["specs"]], settings)
                title = f"{model}, {answer['parameters']:,} parameters, {rate / 1e6:.0f} Mbit/s"
                tables[title] = step_rows(answer)
                if args.preset == "full" and rate == max(settings["rates"]):
                    tables[title] += powersgd_rows(lab, model, settings)
                print(f"{title}: done", file=sys.stderr)
    publish(args, __doc__.splitlines()[0], tables)


def powersgd_rows(lab, model, settings):
    """Measure PyTorch's PowerSGD hook in separate processes: it may crash or hang on gloo."""
    try:
        answer = run(lab, model, ["ddp", "ddp fp16 hook", POWERSGD], settings, timeout_s=75)
    except GangError as error:
        blank = dict.fromkeys(step_rows_columns(), "")
        return [{**blank, "mode": f"{POWERSGD}: {error.how.partition(' (log')[0]}"}]
    return [row for row in step_rows(answer) if row["mode"] == POWERSGD]


def step_rows_columns():
    return (
        *("mode", "x DDP", "x fp16 hook", "s a step", "worst/best", "MB a host", "payload MB"),
        *("interface/payload", "payload/predicted", "predicted s", "s/predicted"),
        *("encode ms", "wait ms", "decode ms"),
    )


if __name__ == "__main__":
    main()
