"""Is this working tree slower than another commit?

    make bench-compare BASE=HEAD~1
    python -m benchmarks.compare HEAD~1 --only graph --json FILE

Runs the cases of `benchmarks/cases.py` (each commit uses its own version of this file, if it has
one) in both trees: nine pairs of fresh processes, which take turns case by case within a pair. Each
pair gives one ratio, seconds of this tree over seconds of the other; the table shows the median of
the nine and its 95% bootstrap interval. An interval entirely above 1.03 is a regression, and the
exit code is 1. Measure on an otherwise idle machine.
"""

import argparse
import importlib
import io
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import environment, markdown_table

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "build" / "compare"
NUM_PAIRS, NUM_TURNS = 9, 3
TURN_S = 0.1  # a turn repeats its case until it takes about this long
REGRESSION = 1.03
NUM_RESAMPLES = 4000
NUM_KEPT = 4  # trees of other commits
SERVE = "--serve"  # how this file calls itself inside one of the trees


class Interval(NamedTuple):
    low: float
    high: float


class Tree:
    """A process that runs cases with the talka of one source tree."""

    def __init__(self, root):
        variables = {
            "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)]),
            "XDG_CACHE_HOME": str(root / "build" / "cache"),  # kernels of graph programs
        }
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "benchmarks.compare", SERVE],
            cwd=root,
            env={**os.environ, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, case, *, repeats=1):
        """Return the seconds of this many runs of the case, or a string with the problem."""
        print(repeats, case, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        return json.loads(answer) if answer else f"ended with {self._process.wait()}"

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=60)


def serve():
    """Answer "REPEATS CASE" on standard input with seconds, one JSON value per line."""
    cases = importlib.import_module("benchmarks.cases").CASES
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print does not mix with answers
    ready = {}
    for line in sys.stdin:
        repeats, _, name = line.strip().partition(" ")
        try:
            if name not in ready:
                ready[name] = cases[name].prepare()
                ready[name]()  # compiles kernels, fills caches
            answer = sum(seconds_of(ready[name], cases[name].clock) for _ in range(int(repeats)))
        except Exception as error:  # noqa: BLE001  # an older commit may lack what the case calls
            answer = f"{type(error).__name__}: {error}"
        print(json.dumps(answer), file=answers, flush=True)


def seconds_of(run, clock):
    """Return the seconds of a run; a run may also measure and return them itself."""
    now = cpu_seconds if clock == "cpu" else time.perf_counter
    start = now()
    measured = run()
    taken = now() - start
    return measured if isinstance(measured, float) else taken


def cpu_seconds():
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def unpack(commit):
    """Check out the files of a commit; they are kept, with compiled kernels, for later comparisons.

    Files of the benchmark are added if the commit does not have them.
    """
    root = KEPT / commit
    if not root.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(
            ["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True
        )
        with (
            tempfile.TemporaryDirectory(dir=KEPT) as folder,
            tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files,
        ):
            files.extractall(folder, filter="data")
            Path(folder).rename(root)
            Path(folder).mkdir()
    os.utime(root)
    for old in sorted(KEPT.iterdir(), key=os.path.getmtime)[:-NUM_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    for name in ("cases.py", "compare.py"):
        target = root / "benchmarks" / name
        if not target.exists():
            target.write_bytes((ROOT / "benchmarks" / name).read_bytes())
    return root


def measure(trees, cases, *, num_pairs):
    """Return a list of (base seconds, this seconds) per case, or a string with a problem."""
    found = {case: [] for case in cases}
    for number in range(num_pairs):
        open_trees = [Tree(root) for root in trees]
        try:
            for case in cases:
                if isinstance(found[case], str):
                    continue
                pair = run_pair(open_trees, case, swapped=number % 2 == 1)
                found[case] = pair if isinstance(pair, str) else [*found[case], pair]
        finally:
            for tree in open_trees:
                tree.close()
        print(f"pair {number + 1} of {num_pairs}: done", file=sys.stderr, flush=True)
    return found


def run_pair(trees, case, *, swapped):
    """Return the fastest of a few turns of each tree: disturbances only add seconds."""
    seconds, repeats = [[], []], 1
    order = (1, 0) if swapped else (0, 1)
    for turn in range(NUM_TURNS + 1):
        for side in order:
            answer = trees[side].ask(case, repeats=repeats)
            if isinstance(answer, str):
                return f"{('base', 'this tree')[side]}: {answer}"
            seconds[side].append(answer / repeats)
        if turn == 0:  # only determines the number of repeats
            repeats = max(1, round(TURN_S / min(*seconds[0], *seconds[1])))
            seconds = [[], []]
    return min(seconds[0]), min(seconds[1])


def median_interval(ratios):
    """Return the 95% bootstrap interval of the median."""
    generator = random.Random(0)
    medians = sorted(
        statistics.median(generator.choices(ratios, k=len(ratios))) for _ in range(NUM_RESAMPLES)
    )
    return Interval(medians[NUM_RESAMPLES // 40], medians[-NUM_RESAMPLES // 40 - 1])


def row_of(case, pairs, clock):
    """Return one row of the table."""
    if isinstance(pairs, str):
        unknown = dict.fromkeys(("ratio", "interval", "base ms", "this ms"), "")
        return {"case": case, **unknown, "clock": clock, "verdict": f"not compared ({pairs})"}
    ratios = [this / base for base, this in pairs]
    low, high = median_interval(ratios)
    verdict = "regression" if low > REGRESSION else "faster" if high < 1 / REGRESSION else "same"
    return {
        "case": case,
        "ratio": f"{statistics.median(ratios):.3f}",
        "interval": f"{low:.3f} to {high:.3f}",
        "base ms": f"{1000 * statistics.median(base for base, _ in pairs):.1f}",
        "this ms": f"{1000 * statistics.median(this for _, this in pairs):.1f}",
        "clock": clock,
        "verdict": verdict,
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", metavar="BASE", help="the commit to compare with")
    parser.add_argument("--only", default="", help="cases with this in their name")
    parser.add_argument("--pairs", type=int, default=NUM_PAIRS, help="default: %(default)s")
    parser.add_argument("--json", type=Path, help="also write rows and environment to this file")
    args = parser.parse_args()
    known = importlib.import_module("benchmarks.cases").CASES
    cases = [case for case in known if args.only in case]
    if not cases or args.pairs < 1:
        parser.error(f"give at least 1 pair and a part of a case's name: {', '.join(known)}")
    commit = ["git", "rev-parse", "--verify", "--quiet", f"{args.base}^{{commit}}"]
    found = subprocess.run(commit, cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        parser.error(f"{args.base!r} is not a commit of this repository")
    trees = [unpack(found.stdout.strip()), ROOT]
    pairs = measure(trees, cases, num_pairs=args.pairs)
    rows = [row_of(case, pairs[case], known[case].clock) for case in cases]
    print(markdown_table(rows))
    if args.json:
        facts = {"environment": environment(), "base": found.stdout.strip(), "rows": rows}
        args.json.write_text(json.dumps(facts, indent=2))
    slower = [row["case"] for row in rows if row["verdict"] == "regression"]
    if slower:
        sys.exit(f"slower than {args.base}: {', '.join(slower)}")


if __name__ == "__main__":
    if sys.argv[1:] == [SERVE]:
        serve()
    else:
        main()
