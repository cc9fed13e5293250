"""Common parts of all benchmarks: presets, environment, timing, output as tables and JSON."""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import statistics
import time
from pathlib import Path

PEERS = (
    *("talka", "numpy", "pyarrow", "torch", "numba", "ray", "dask", "gensim"),
    *("networkit", "igraph", "scipy"),
)


def arguments(doc, presets, more=None):
    """Parse the options of a benchmark; `more` maps its additional options to their help."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", choices=presets, default="smoke")
    parser.add_argument("--json", type=Path, help="also write rows and environment to this file")
    parser.add_argument("--markdown", type=Path, help="also write the tables to this file")
    for option, help_text in (more or {}).items():
        parser.add_argument(option, help=help_text)
    return parser.parse_args()


def environment():
    versions = {}
    for package in PEERS:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {
        "time": time.strftime("%Y-%m-%d %H:%M"),
        "processor": model[1] if model else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9),
        "python": platform.python_version(),
        "versions": versions,
    }


def peer(package, run):
    """Return `run`, or None if the package is not installed (`make bench` installs all)."""
    return run if importlib.util.find_spec(package) else None


def measurable(candidates):
    """Return the candidates that are installed."""
    return {name: run for name, run in candidates.items() if run is not None}


def with_missing(rows, candidates, column):
    """Return the rows, and one for each candidate that is not installed.

    `column` has the names of candidates; columns before it are the same in all rows.
    """
    columns = list(rows[0])
    at = columns.index(column)
    blank = {name: rows[0][name] if place < at else "" for place, name in enumerate(columns)}
    missing = [
        {**blank, column: name, columns[at + 1]: "not installed"}
        for name, run in candidates.items()
        if run is None
    ]
    return rows + missing


def interleaved(candidates, *, repeats):
    """Run every candidate `repeats` times, in turns; return {name: [seconds]}.

    Taking turns spreads disturbances of the machine over all candidates. A candidate may return its
    own time as a float. Candidates that are not installed are left out.
    """
    candidates = measurable(candidates)
    seconds = {name: [] for name in candidates}
    for _ in range(repeats):
        for name, run in candidates.items():
            start = time.perf_counter()
            measured = run()
            taken = time.perf_counter() - start
            seconds[name].append(measured if isinstance(measured, float) else taken)
    return seconds


def spread(values):
    """Return the median, and the ratio of the largest to the smallest value."""
    return statistics.median(values), max(values) / min(values)


def markdown_table(rows):
    columns = list(rows[0])
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(str(row[column]) for column in columns)} |" for row in rows]
    return "\n".join(lines)


def publish(args, question, tables):
    """Print tables of rows, and write them to the files named in the options."""
    text = "\n\n".join(f"**{title}**\n\n{markdown_table(rows)}" for title, rows in tables.items())
    print(text)
    where = environment()
    if args.json:
        args.json.write_text(json.dumps({"environment": where, "tables": tables}, indent=2))
    if args.markdown:
        machine = f"{where['processor']}, {where['cores']} cores, {where['memory_gb']} GB"
        versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
        head = f"# {question}\n\n{where['time']}, {machine}, Python {where['python']}; {versions}."
        args.markdown.write_text(f"{head}\n\n{text}\n")
