"""Is what a plan predicts before a job what is measured after it, and how long does the plan take?

    python -m benchmarks.explain --preset smoke          # some seconds
    python -m benchmarks.explain --preset full --json FILE --markdown FILE     # 4 minutes

Runs `talka embed` on the text of `benchmarks.embeddings` several times. Each run samples its corpus,
predicts, works and measures. Ratios are measured over predicted. The last column shows how much the
same work varied between runs: no prediction can be more accurate than that.

Then tiny jobs: the total that `--explain` predicts and the seconds of the whole command, which are
mostly start-up. Finally the time that `--explain` itself takes, for small and large inputs. Kernels
are compiled first: each command runs once without being measured.
"""

import itertools
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from benchmarks.embeddings import text_of
from benchmarks.harness import arguments, publish
from benchmarks.rmat import rmat
from talka.events import read_run

PRESETS = {
    "smoke": {"bytes": 400_000, "runs": 1, "epochs": 1, "jobs": 1, "scale": None, "times": 1},
    "full": {"bytes": 10**9, "runs": 7, "epochs": 3, "jobs": 5, "scale": 21, "times": 5},
}
TINY_TEXT_BYTES = 100_000
TINY_JOBS = {
    "graph pagerank": ["graph", "pagerank", "tiny.txt"],
    "graph bfs, 2 partitions": ["graph", "bfs", "tiny.txt", "--source", "1", "--partitions", "2"],
    "graph sssp": ["graph", "sssp", "tiny.txt", "--source", "1"],
    "embed": ["embed", "tiny-text.txt", "--out", "vectors", "--force"],
    "embed, 2 processes": [
        "embed", "tiny-text.txt", "--out", "slices", "--parallel", "dimensions", "--epochs", "2", "--force",
    ],
}  # fmt: skip


def embed(path, out, epochs, *more):
    command = [sys.executable, "-m", "talka", "embed", path, "--out", out, "--runs", f"{out}-runs"]
    command += ["--tokenizer", "letters", "--epochs", epochs, "--threads", 2, "--format", "json"]
    done = subprocess.run([*map(str, command), *more], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def seconds_by_cost(out):
    """Return (predicted, measured) for the costs of a run that have both."""
    [run] = Path(f"{out}-runs").iterdir()
    return {
        one.cost_id: (one.predicted.seconds, one.measured.seconds)
        for one in read_run(run).comparisons()
        if one.predicted and one.measured
    }


def ratio_rows(runs):
    rows = []
    for cost_id in runs[0]:
        predicted, measured = zip(*(run[cost_id] for run in runs), strict=True)
        ratios = [after / before for before, after in zip(predicted, measured, strict=True)]
        rows.append(
            {
                "cost": cost_id,
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


def seconds_of(folder, command):
    """Run `talka`; return what it printed and the seconds of the whole command."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "talka", *command, "--format", "json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout), time.perf_counter() - start


def tiny_rows(folder, jobs, num_times):
    """Compare the predicted total of tiny jobs with the seconds of their commands."""
    (folder / "tiny.txt").write_text("".join(f"{v} {(7 * v + 1) % 40}\n" for v in range(40)))
    (folder / "tiny-text.txt").write_bytes(text_of(TINY_TEXT_BYTES))
    rows = []
    for name, command in jobs.items():
        seconds_of(folder, command)
        predicted, measured = [], []
        for _ in range(num_times):
            predicted.append(seconds_of(folder, [*command, "--explain"])[0]["total_s"])
            measured.append(seconds_of(folder, command)[1])
        before, after = statistics.median(predicted), statistics.median(measured)
        rows.append(
            {
                "job": name,
                "measured/predicted": f"{after / before:.2f}",
                "predicted s": f"{before:.2f}",
                "measured s": f"{after:.2f}",
            }
        )
    return rows


def explain_rows(folder, jobs, corpus, preset):
    """Measure how long `--explain` takes."""
    commands = {name: [*command, "--explain"] for name, command in jobs.items()}
    if preset["scale"] is not None:
        commands |= large_plans(folder, corpus, preset["scale"])
    rows = []
    for name, command in commands.items():
        command = list(map(str, command))
        seconds_of(folder, command)
        seconds = [seconds_of(folder, command)[1] for _ in range(preset["times"])]
        rows.append({"plan of": name, "s": f"{statistics.median(seconds):.2f}"})
    return rows


def large_plans(folder, corpus, scale):
    """Return commands that explain jobs with large inputs, or without any."""
    edges = folder / "edges.txt"
    _write_edges(edges, *rmat(scale))
    text, size = (f"{path.stat().st_size / 1e6:.0f} MB" for path in (corpus, edges))
    return {
        f"embed, {text} of text": ["embed", corpus, "--out", "large", "--explain"],
        f"embed in 2 processes, {text} of text": [
            "embed", corpus, "--out", "large", "--parallel", "dimensions", "--explain",
        ],
        f"graph pagerank, 4 partitions, {size} of edges": [
            "graph", "pagerank", edges, "--partitions", "4", "--explain",
        ],
        "demo": ["demo", "--explain"],
        "train": [
            "explain", "train", "--parameters", "2.9M", "--workers", "4", "--rate", "100mbit",
        ],
        "collectives": ["explain", "collectives"],
    }  # fmt: skip


def _write_edges(path, sources, targets):
    options = pa.csv.WriteOptions(include_header=False, delimiter=" ")
    pa.csv.write_csv(pa.table({"source": sources, "target": targets}), path, options)


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
            runs.append(seconds_by_cost(out))
            shutil.rmtree(out)
        jobs = dict(itertools.islice(TINY_JOBS.items(), preset["jobs"]))
        tiny = tiny_rows(Path(name), jobs, preset["times"])
        plans = explain_rows(Path(name), jobs, path, preset)
    tables = {
        f"Seconds, {len(runs)} runs, {preset['epochs']} epochs": ratio_rows(runs),
        "Counts and memory": [
            count_row("words kept", expected["num_words"], result["num_words"]),
            count_row("pairs", expected["num_pairs"], result["num_pairs"]),
            count_row("peak bytes", expected["memory_bytes"], result["peak_memory_bytes"]),
        ],
        "Tiny jobs, seconds of the whole command": tiny,
        "Seconds until the plan is printed": plans,
    }
    publish(args, __doc__.splitlines()[0], tables)


if __name__ == "__main__":
    main()
