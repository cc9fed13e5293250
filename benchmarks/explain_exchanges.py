"""How close are predicted bytes and seconds of training exchanges to measured ones?

    python -m benchmarks.explain_exchanges --preset smoke     # some seconds; needs root or user namespaces
    python -m benchmarks.explain_exchanges --preset full --json FILE --markdown FILE    # up to 15 minutes

Hosts in a lab on this machine, one rank each. For each compressor, number of hosts and link rate: the price of the
exchange that `attach` opens, as `explain train` shows it, beside averages of real gradients. Seconds are
the exchange's own (encode, wait, decode): means of the ranks, medians of the averages. The ranks share the cores of this
machine, so the measured seconds of encoding are multiplied by the ranks per core; rates and latencies of the links are
those that `probe` measures: `--rate 100mbit` of a lab counts headers, of which 95.6 reach the payload.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import arguments, publish
from talka.errors import TalkaError
from talka.lab import Lab, LabConfig, LabRunOptions

ADAPTIVE = ("qsgd:7", "topk:0.01+ef", "threshold:auto+ef")
"""Compressors whose payloads depend on the values."""
PRESETS = {
    "smoke": {
        "hosts": [2],
        "rates": [1e9],
        "model": "cnn",
        "compressors": ["none", "topk:0.01+ef"],
        "seconds": 0.05,
    },
    "full": {
        "hosts": [2, 3, 4],
        "rates": [1e8, 3e8, 1e9],
        "model": "mlp",
        "compressors": [
            *("none", "fp16", "onebit+ef", "qsgd:7", "topk:0.01+ef", "threshold:auto+ef"),
            "powersgd:4",
        ],
        "seconds": 2.0,
    },
}
TIMEOUT_S = 120


def run(lab, compressors, settings):
    """Return the cells that were measured, and the error that ended the run early, if any."""
    with tempfile.TemporaryDirectory() as folder:
        out, problem = Path(folder) / "cells.jsonl", None
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.explain_exchanges_rank"]
        command += ["--model", settings["model"], "--seconds", str(settings["seconds"])]
        command += ["--out", str(out), "--compressors", *compressors]
        try:
            lab.run(command, LabRunOptions(timeout_s=TIMEOUT_S))
        except TalkaError as error:
            problem = f"failed: {str(error).splitlines()[0][:80]}"
        lines = out.read_text().splitlines() if out.exists() else []
        return [json.loads(line) for line in lines], problem


def cells_of(lab, settings):
    """Yield a cell per compressor; one that fails has an `error`, and those after it still run."""
    left = list(settings["compressors"])
    while left:
        cells, problem = run(lab, left, settings)
        yield from cells
        left = left[len(cells) :]
        if problem is not None and left:
            yield {"compressor": left.pop(0), "exchange": "", "error": problem}


def row_of(cell, hosts, rate):
    """Return a row of the table, ratios first."""
    where = {
        "hosts": hosts,
        "Mbit/s": f"{rate / 1e6:.0f}",
        "compressor": cell["compressor"],
        "exchange": cell["exchange"],
    }
    if "error" in cell:
        blank = dict.fromkeys(COLUMNS, "")
        return {**where, **blank, "bytes measured/predicted": cell["error"]}
    values = (
        f"{cell['measured_bytes'] / cell['predicted_bytes']:.3f}",
        f"{cell['measured_s'] / cell['predicted_s']:.2f}",
        f"{cell['predicted_bytes'] / 1e6:.3f}",
        f"{cell['measured_bytes'] / 1e6:.3f}",
        f"{1000 * cell['predicted_s']:.1f}",
        f"{1000 * cell['measured_s']:.1f}",
        f"{1000 * cell['predicted_network_s']:.1f}",
        *(f"{1000 * cell[key]:.1f}" for key in ("encode_s", "wait_s", "decode_s")),
    )
    return {**where, **dict(zip(COLUMNS, values, strict=True))}


COLUMNS = (
    *("bytes measured/predicted", "s measured/predicted"),
    *("predicted MB", "measured MB", "predicted ms", "measured ms", "predicted network ms"),
    *("encode ms", "wait ms", "decode ms"),
)


def summary(cells):
    """Return the median and the 90th percentile of the errors, as shares of what was predicted."""
    measured = [cell for cell in cells if "error" not in cell]
    dense = [cell for cell in measured if cell["compressor"] not in ADAPTIVE]
    adaptive = [cell for cell in measured if cell["compressor"] in ADAPTIVE]
    rows = []
    for what, key, chosen in (
        ("bytes, dense exchanges", "bytes", dense),
        ("bytes, adaptive compressors", "bytes", adaptive),
        ("seconds", "s", measured),
    ):
        errors = sorted(
            abs(cell[f"measured_{key}"] / cell[f"predicted_{key}"] - 1) for cell in chosen
        )
        if errors:
            rows.append(
                {
                    "error of": what,
                    "median": f"{statistics.median(errors):.1%}",
                    "90th percentile": f"{errors[-(-9 * len(errors) // 10) - 1]:.1%}",
                    "largest": f"{errors[-1]:.1%}",
                    "cells": len(errors),
                }
            )
    failed = len(cells) - len(measured)
    return [*rows, {**dict.fromkeys(rows[0] if rows else ("error of", "cells"), ""),
                    "error of": "(failed)", "cells": failed}]  # fmt: skip


def main():
    args = arguments(__doc__, PRESETS)
    settings = PRESETS[args.preset]
    rows, cells = [], []
    for num_hosts in settings["hosts"]:
        config = LabConfig(num_hosts=num_hosts, rate_bits_per_s=settings["rates"][0])
        with Lab(config) as lab:
            for rate in settings["rates"]:
                lab.set_rate(rate)
                for cell in cells_of(lab, settings):
                    cells.append(cell)
                    rows.append(row_of(cell, num_hosts, rate))
                print(f"{num_hosts} hosts, {rate / 1e6:.0f} Mbit/s: done", file=sys.stderr)
    title = f"Exchanges of the gradients of {settings['model']}"
    publish(args, __doc__.splitlines()[0], {title: rows, "Errors of predictions": summary(cells)})


if __name__ == "__main__":
    main()
