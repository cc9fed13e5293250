"""Measure what this machine can do: memory, processes, graphs, text, compressors.

Every prediction uses these figures. They are measured once, in at most 30 seconds, and kept in the
user's cache folder; a plan that needs a figure that is missing measures it first. Figures are
measured again by themselves if the processor or a package changes, or if predictions were wrong by
more than 30% three times in a row.
"""

import argparse
import time
from typing import TYPE_CHECKING, Any

from talka.cli.options import add_format
from talka.cli.tables import print_json, print_table, print_text

if TYPE_CHECKING:
    from talka.profile import Profile


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
    rows = _rows(profile, {name: trial.what for name, trial in trials.items()})
    if args.format == "json":
        print_json({"file": str(profile.path), "figures": rows})
        return 0
    print_table([_cells(row) for row in rows], right=("value",), prose=("description",))
    print()
    print_text(f"kept in {profile.path}")
    return 0


def _rows(profile: "Profile", descriptions: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "trial": name,
            "figure": figure,
            "value": value,
            "measured_at_s": kept.measured_at_s,
            "what": descriptions[name],
        }
        for name, kept in profile.known().items()
        if name in descriptions
        for figure, value in kept.figures.items()
    ]


def _cells(row: dict[str, Any]) -> dict[str, str]:
    return {
        "trial": row["trial"],
        "figure": row["figure"],
        "value": f"{row['value']:.3g}",
        "measured": time.strftime("%Y-%m-%d", time.localtime(row["measured_at_s"])),
        "description": row["what"],
    }
