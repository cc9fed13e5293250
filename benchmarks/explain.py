"""Is what a plan says before a job what is measured after it?

    python -m benchmarks.explain --preset smoke          # some seconds
    python -m benchmarks.explain --preset full --json FILE --markdown FILE     # 3 minutes

`talka embed` over the text of `benchmarks.embeddings`, several times. Each run samples its corpus,
predicts, works and measures. Ratios are measured over predicted. The last column is how much the same
work differed from run to run: no prediction made before can be nearer than that.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.embeddings import text_of
from benchmarks.harness import arguments, publish
from talka.events import read_run

PRESETS = {
    "smoke": {"bytes": 400_000, "runs": 1, "epochs": 1},
    "full": {"bytes": 10**9, "runs": 7, "epochs": 3},
}


def embed(path, out, epochs, *more):
    command = [sys.executable, "-m", "talka", "embed", path, "--out", out, "--runs", f"{out}-runs"]
    command += ["--tokenizer", "letters", "--epochs", epochs, "--threads", 2, "--format", "json"]
    done = subprocess.run([*map(str, command), *more], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def seconds_by_part(out):
    """(predicted, measured) of the parts of a run that have both."""
    [run] = Path(f"{out}-runs").iterdir()
    return {
        one.part: (one.predicted.seconds, one.measured.seconds)
        for one in read_run(run).comparisons()
        if one.predicted and one.measured
    }


def ratio_rows(runs):
    rows = []
    for part in runs[0]:
        predicted, measured = zip(*(run[part] for run in runs), strict=True)
        ratios = [after / before for before, after in zip(predicted, measured, strict=True)]
        rows.append(
            {
                "part": part,
                "measured/predicted": f"{statistics.median(ratios):.2f}",
                "of runs": f"{min(ratios):.2f} to {max(ratios):.2f}",
                "predicted s": f"{statistics.median(predicted):.2f}",
                "measured s": f"{statistics.median(measured):.2f}",
                "measured worst/best": f"{max(measured) / min(measured):.2f}",
            }
        )
    return rows


def count_row(what, predicted, measured):
    return {
        "what": what,
        "measured/predicted": f"{measured / predicted:.2f}",
        "predicted": f"{predicted:,.0f}",
        "measured": f"{measured:,}",
    }


def main():
    args = arguments(__doc__, PRESETS)
    preset = PRESETS[args.preset]
    with tempfile.TemporaryDirectory() as name:
        path, runs = Path(name) / "corpus.txt", []
        path.write_bytes(text_of(preset["bytes"]))
        expected = embed(path, Path(name) / "out", preset["epochs"], "--explain")["expected"]
        for number in range(preset["runs"]):
            out = Path(name) / f"out-{number}"
            result = embed(path, out, preset["epochs"])
            runs.append(seconds_by_part(out))
    tables = {
        f"Seconds, {len(runs)} runs, {preset['epochs']} epochs": ratio_rows(runs),
        "Counts and memory": [
            count_row("words kept", expected["num_words"], result["num_words"]),
            count_row("pairs", expected["num_pairs"], result["num_pairs"]),
            count_row("peak bytes", expected["memory_bytes"], result["peak_memory_bytes"]),
        ],
    }
    publish(args, __doc__.splitlines()[0], tables)


if __name__ == "__main__":
    main()
