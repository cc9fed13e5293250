"""Measure what this machine can do: memory, processes, graphs, text, compressors.

Every prediction uses these figures. They are measured once, in at most 30 seconds, and kept in the
user's cache folder; a plan that needs a figure that is missing measures it first. Figures are
measured again by themselves if the processor or a package changes, or if predictions were wrong by
more than 30% three times in a row.
"""

import argparse
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from talka.cli.options import add_format
from talka.cli.tables import print_json, print_table, print_text

if TYPE_CHECKING:
    from talka.profile import Trial
    from talka.profile.profile import Kept


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--again", action="store_true", help="measure figures that are known, too")
    add_format(parser)


def run(args: argparse.Namespace) -> int:
    from talka.events import Stream, progress_in_terminal
    from talka.jobs.profiling import all_trials
    from talka.profile import this_machine

    profile, events = this_machine(), Stream()
    trials = {trial.name: trial for trial in all_trials()}
    with progress_in_terminal(events):
        for trial in trials.values():
            if args.again:
                profile.measure(trial, events)
            else:
                profile.figures(trial, events)
    known = profile.known()
    if args.format == "json":
        rows = [
            {"trial": name, "what": trials[name].what, **asdict(known[name])} for name in trials
        ]
        print_json({"file": str(profile.path), "trials": rows})
        return 0
    rows = [_cells(trial, known[name]) for name, trial in trials.items()]
    print_table(rows, prose=("figures",))
    print()
    print_text(f"kept in {profile.path}")
    return 0


def _cells(trial: "Trial", kept: "Kept") -> dict[str, str]:
    figures = [_as_text(name, value) for name, value in kept.figures.items() if value]
    return {
        "trial": trial.name,
        "measured": time.strftime("%Y-%m-%d", time.localtime(kept.measured_at_s)),
        "figures": ", ".join(figures),
    }


def _as_text(name: str, value: float) -> str:
    """Format a figure by the unit at the end of its name.

    >>> _as_text("copy_bytes_per_s", 5e9), _as_text("encode_s", 4e-10)
    ('copy 5.00 GB/s', 'encode 0.4 ns')
    """
    from talka.units import format_bytes, format_count, format_seconds

    words = name.removesuffix("_s").removesuffix("_per").replace("_", " ")
    if name.endswith("_bytes_per_s"):
        return f"{words.removesuffix(' bytes')} {format_bytes(value)}/s"
    if name.endswith("_per_s"):
        return f"{words} {format_count(value)}/s"
    return f"{words} {format_seconds(value) if value >= 1e-5 else f'{1e9 * value:.3g} ns'}"
