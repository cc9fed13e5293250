"""A trial: a measurement whose result the profile keeps."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trial:
    """A measurement of what this machine can do. It should take at most a few seconds."""

    name: str
    """Id in the profile, such as `graph/build`."""
    what: str
    """One-line description for tables."""
    figures: tuple[str, ...]
    """Names of its figures, each with a unit, such as `start_s`."""
    measure: Callable[[], Mapping[str, float]]
    """Runs the trial and returns its figures by name."""
    packages: tuple[str, ...] = ()
    """Packages whose version the figures depend on, besides talka itself."""


def figures_of_process(module: str, *arguments: str, **environment: str) -> dict[str, float]:
    """Run `python -m module` and return the figures that it writes with `write_figures`.

    A trial in a fresh process includes what a process loads at its first use.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        check=True,
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def write_figures(figures: Mapping[str, float]) -> None:
    """Write the figures of a trial to standard output, for `figures_of_process`."""
    sys.stdout.write(json.dumps(figures))


def median_seconds(
    work: Callable[[], object], *, repeats: int = 5, before: Callable[[], object] | None = None
) -> float:
    """Return the median seconds of several calls, after one that is not timed.

    The first call loads or compiles kernels and touches fresh memory.

    before
        Called before each call, and not timed.
    """
    seconds = []
    for number in range(1 + repeats):
        if before is not None:
            before()
        start = time.perf_counter()
        work()
        if number:
            seconds.append(time.perf_counter() - start)
    return max(statistics.median(seconds), 1e-9)
