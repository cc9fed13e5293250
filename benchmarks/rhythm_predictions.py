"""How close are predicted bytes and seconds of rhythms to measured ones?

    python -m benchmarks.rhythm_predictions --preset smoke    # some seconds; needs root or user namespaces
    python -m benchmarks.rhythm_predictions --preset full --json FILE --markdown FILE    # about 10 minutes

Hosts in a lab on this machine, one rank each. For each rhythm, compressor and link rate: the price of a
step, as `talka explain train --rhythm` shows it, beside steps of a training loop in the steady state. The
price is computed from the links that `probe` measures, and from the computing time and codec rates that all
ranks measure at the same time, since they share the cores of this machine as they do in training. Seconds
need a quiet machine: what others compute meanwhile is in no price.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import arguments, publish
from talka.errors import TalkaError
from talka.lab import Lab, LabConfig, LabRunOptions

ADAPTIVE = ("qsgd:7", "topk:0.01+ef")
"""Compressors whose payloads depend on the values."""
PRESETS = {
    "smoke": {
        "hosts": 2,
        "rates": [1e9],
        "model": "cnn",
        "rhythms": ["every-step", "local-sgd:4"],
        "compressors": ["fp16"],
        "seconds": 0.05,
    },
    "full": {
        "hosts": 4,
        "rates": [1e8, 1e9],
        "model": "mlp",
        "rhythms": ["every-step", "delayed:1", "local-sgd:8"],
        "compressors": [
            *("none", "onebit+ef", "uniform:3/max/512+ef", "qsgd:7", "topk:0.01+ef"),
            "powersgd:4",
        ],
        "seconds": 2.0,
    },
}
TIMEOUT_S = 900


def run(lab, settings):
    """Return the cells that were measured at one rate, and the error that ended the run early."""
    with tempfile.TemporaryDirectory() as folder:
        out, problem = Path(folder) / "cells.jsonl", None
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.rhythm_predictions_rank"]
        command += ["--model", settings["model"], "--seconds", str(settings["seconds"])]
        command += ["--out", str(out), "--compressors", *settings["compressors"]]
        command += ["--rhythms", *settings["rhythms"]]
        try:
            lab.run(command, LabRunOptions(timeout_s=TIMEOUT_S))
        except TalkaError as error:
            problem = str(error).splitlines()[0][:80]
        lines = out.read_text().splitlines() if out.exists() else []
        return [json.loads(line) for line in lines], problem


def row_of(cell, rate):
    """Return a row of the table, ratios first."""
    return {
        "Mbit/s": f"{rate / 1e6:.0f}",
        "rhythm": cell["rhythm"],
        "compressor": cell["compressor"],
        "bytes measured/predicted": f"{cell['measured_bytes'] / cell['predicted_bytes']:.3f}",
        "s measured/predicted": f"{cell['measured_s'] / cell['predicted_s']:.2f}",
        "predicted kB": f"{cell['predicted_bytes'] / 1e3:.1f}",
        "measured kB": f"{cell['measured_bytes'] / 1e3:.1f}",
        "predicted ms": f"{1000 * cell['predicted_s']:.1f}",
        "measured ms": f"{1000 * cell['measured_s']:.1f}",
        "computing ms": f"{1000 * cell['compute_s']:.1f}",
        "codec ms": f"{1000 * cell['codec_s']:.1f}",
        "network ms": f"{1000 * cell['network_s']:.1f}",
    }


def summary(cells):
    """Return the median and the worst of the errors, as shares of what was predicted."""
    groups = {
        "bytes": [cell for cell in cells if cell["compressor"] not in ADAPTIVE],
        "bytes, adaptive compressors": [cell for cell in cells if cell["compressor"] in ADAPTIVE],
        "seconds": cells,
    }
    for rhythm in dict.fromkeys(cell["rhythm"] for cell in cells):
        groups[f"seconds, {rhythm}"] = [cell for cell in cells if cell["rhythm"] == rhythm]
    rows = []
    for what, chosen in groups.items():
        key = what.split(",")[0].replace("seconds", "s")
        errors = [abs(cell[f"measured_{key}"] / cell[f"predicted_{key}"] - 1) for cell in chosen]
        if errors:
            rows.append(
                {
                    "error of": what,
                    "median": f"{statistics.median(errors):.1%}",
                    "worst": f"{max(errors):.1%}",
                    "cells": len(errors),
                }
            )
    return rows


def main():
    args = arguments(__doc__, PRESETS)
    settings = PRESETS[args.preset]
    rows, cells, problems = [], [], []
    config = LabConfig(num_hosts=settings["hosts"], rate_bits_per_s=settings["rates"][0])
    with Lab(config) as lab:
        for rate in settings["rates"]:
            lab.set_rate(rate)
            measured, problem = run(lab, settings)
            cells += measured
            rows += [row_of(cell, rate) for cell in measured]
            if problem is not None:
                problems.append({"Mbit/s": f"{rate / 1e6:.0f}", "ended early": problem})
            print(f"{rate / 1e6:.0f} Mbit/s: done", file=sys.stderr)
    title = f"Steps of {settings['model']}, {settings['hosts']} hosts; bytes are those of all hosts"
    tables = {title: rows, "Errors of predictions": summary(cells)}
    if problems:
        tables["Problems"] = problems
    publish(args, __doc__.splitlines()[0], tables)


if __name__ == "__main__":
    main()
