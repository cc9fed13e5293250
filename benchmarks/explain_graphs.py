"""How close are the predicted bytes and seconds of graph jobs to the measured ones?

    python -m benchmarks.explain_graphs --preset smoke          # some seconds
    python -m benchmarks.explain_graphs --preset full --json FILE --markdown FILE     # 5 minutes

PageRank, BFS and components on three shapes of graphs (a network of hubs, a grid with long paths, a
random graph) with one and four partitions. Each command runs once before it is measured, so that
kernels are compiled. Ratios are measured over predicted, medians of several runs. Single seconds
below 50 ms are not judged: they are mostly the noise of the machine.
"""

import itertools
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from benchmarks.harness import arguments, publish
from benchmarks.rmat import rmat
from talka.events import read_run

PRESETS = {
    "smoke": {"scale": 8, "side": 20, "vertices": 500, "runs": 1, "partitions": [2], "jobs": 1},
    "full": {
        "scale": 17,
        "side": 500,
        "vertices": 300_000,
        "runs": 5,
        "partitions": [1, 4],
        "jobs": 99,
    },
}
ALGORITHMS = ("pagerank", "bfs", "components")
MIN_JUDGED_S = 0.05


def shapes(preset):
    """Return (sources, targets) by name of the shape."""
    ids = np.arange(preset["side"] ** 2).reshape(preset["side"], -1)
    right, down = (ids[:, :-1], ids[:, 1:]), (ids[:-1], ids[1:])
    random = np.random.default_rng(0)
    return {
        "hubs": rmat(preset["scale"]),
        "grid": tuple(
            np.concatenate([first.ravel(), second.ravel()])
            for first, second in zip(right, down, strict=True)
        ),
        "random": tuple(random.integers(0, preset["vertices"], (2, 4 * preset["vertices"]))),
    }


def costs_of(folder, path, algorithm, num_partitions, source):
    """Run a job; return {cost id: (predicted, measured)} of the costs that have both."""
    command = ["graph", algorithm, path, "--undirected", "--partitions", num_partitions]
    command += ["--source", source] if algorithm == "bfs" else []
    command += ["--out", folder / "answer.parquet", "--force", "--format", "parquet"]
    runs = folder / "runs"
    command = [sys.executable, "-m", "talka", *map(str, command), "--runs", str(runs)]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    run = max(runs.iterdir())
    return {
        cost.cost_id: (cost.predicted, cost.measured)
        for cost in read_run(run).comparisons()
        if cost.predicted and cost.measured
    }


def judged(runs):
    """Return {what: ratio}: bytes of supersteps, and seconds of the job and its longer parts."""
    ratios = {}
    for cost_id in runs[0]:
        pairs = [run[cost_id] for run in runs]
        if cost_id == "graph/supersteps":
            before, after = pairs[0][0].sent_bytes, pairs[0][1].sent_bytes
            if before and after:
                ratios["bytes"] = after / before
        is_judged = not re.match(r"graph/(superstep/|start)", cost_id)  # a start predicts itself
        if not is_judged or pairs[0][0].seconds is None:
            continue
        before = statistics.median(pair[0].seconds for pair in pairs)
        after = statistics.median(pair[1].seconds for pair in pairs)
        if max(before, after) >= MIN_JUDGED_S:
            ratios[cost_id] = after / before
    return ratios


def rows_of(preset, folder):
    paths, sources = {}, {}
    for shape, (heads, tails) in shapes(preset).items():
        paths[shape], sources[shape] = folder / f"{shape}.txt", heads[0]
        options = pa.csv.WriteOptions(include_header=False, delimiter=" ")
        pa.csv.write_csv(pa.table({"source": heads, "target": tails}), paths[shape], options)
    jobs = itertools.product(paths, ALGORITHMS, preset["partitions"])
    rows = []
    for shape, algorithm, num_partitions in itertools.islice(jobs, preset["jobs"]):
        job = (folder, paths[shape], algorithm, num_partitions, sources[shape])
        runs = [costs_of(*job) for _ in range(1 + preset["runs"])][1:]  # the first one compiles
        where = {"shape": shape, "algorithm": algorithm, "partitions": num_partitions}
        rows.append({**where, **judged(runs)})
    return rows


def summary_rows(rows):
    """Return median and worst errors, as factors above 1."""
    frontier = [row for row in rows if row["algorithm"] != "pagerank"]
    whole = [row for row in rows if row["algorithm"] == "pagerank"]
    seconds = [
        ratio
        for row in rows
        for name, ratio in row.items()
        if name.startswith("graph/") or (name == "graph" and isinstance(ratio, float))
    ]
    groups = {
        "bytes, every vertex active": [row["bytes"] for row in whole if "bytes" in row],
        "bytes, frontier programs": [row["bytes"] for row in frontier if "bytes" in row],
        "seconds": seconds,
    }
    return [
        {
            "what": name,
            "median factor": f"{statistics.median(map(factor, ratios)):.2f}",
            "nine of ten below": f"{np.quantile(list(map(factor, ratios)), 0.9):.2f}",
            "worst": f"{max(map(factor, ratios)):.2f}",
            "count": len(ratios),
        }
        for name, ratios in groups.items()
        if ratios
    ]


def factor(ratio):
    return max(ratio, 1 / ratio)


def table_rows(rows):
    names = ["graph", "bytes", "graph/read", "graph/build", "graph/supersteps"]
    titles = {"graph": "whole job", "bytes": "bytes sent"}
    return [
        {
            "shape": row["shape"],
            "algorithm": row["algorithm"],
            "partitions": row["partitions"],
            **{titles.get(name, name): f"{row[name]:.2f}" if name in row else "" for name in names},
        }
        for row in rows
    ]


def tables(preset):
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_of(preset, Path(folder))
    return {
        "Graphs: errors of predictions, as factors": summary_rows(rows),
        "Graphs: measured over predicted": table_rows(rows),
    }


def main():
    args = arguments(__doc__, PRESETS)
    publish(args, __doc__.splitlines()[0], tables(PRESETS[args.preset]))


if __name__ == "__main__":
    main()
