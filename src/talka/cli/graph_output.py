"""Output of `talka graph`: a progress line per superstep, then the answer and its cost.

JSON and CSV hold the complete answer; a table shows the ten rows that matter most.
"""

import json
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from talka.cli.tables import print_json, print_table, print_text
from talka.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from talka.events import Event
    from talka.graph.events import SuperstepDone
    from talka.jobs.base import Finished

NUM_SHOWN: Final = 10
LATER_SUPERSTEPS: Final = re.compile(r"graph/superstep/[1-9]\d*")
"""Cost ids left out of tables: one superstep is enough there, the HTML report shows all."""
_GROUPS: Final = ("components", "strong-components", "communities")
_DISTANCES: Final = ("bfs", "sssp")
_LINE_INTERVAL_S: Final = 0.2  # a run can complete thousands of supersteps per second


class SuperstepLines:
    """Progress lines on standard error, at most one every 0.2 seconds."""

    def __init__(self) -> None:
        self._last_shown_s = 0.0

    def show(self, event: "Event") -> None:
        """Print a line if this event ends a superstep and the last line is old enough."""
        from talka.graph.events import SuperstepDone

        is_due = time.monotonic() - self._last_shown_s >= _LINE_INTERVAL_S
        if isinstance(event, SuperstepDone) and is_due:
            print(as_line(event), file=sys.stderr)
            self._last_shown_s = time.monotonic()


def as_line(done: "SuperstepDone") -> str:
    """Format a superstep as one line with fixed columns."""
    directions = [("push", done.pushed), ("pull", done.pulled)]
    used = " + ".join(f"{name} {count}" for name, count in directions if count) or "-"
    return (
        f"superstep {done.superstep:5d}  active {format_count(done.num_active):>7}  "
        f"messages {format_count(done.num_messages):>7}  sent {format_bytes(done.sent_bytes):>8}  "
        f"{used:<15}  {format_seconds(done.seconds):>7}"
    )


def print_answer_as_json(answer: Any, finished: "Finished", out: Path | None) -> None:
    """Print one object: the result of the run, and the answer or the path of its file."""
    summary = {**finished.result, "run": str(finished.dir)}
    if out is not None:
        print_json({**summary, "out": str(out)})
    elif isinstance(answer, dict):
        print_json({**summary, "answer": answer})
    else:
        from talka.data.writing import write_json_rows

        sys.stdout.write(f'{json.dumps(summary, indent=2)[:-2]},\n  "rows": ')
        write_json_rows(answer, sys.stdout)
        sys.stdout.write("}\n")


def print_answer_as_csv(answer: Any, algorithm: str) -> None:
    import io

    import pyarrow.csv

    from talka.data.writing import check_answer_fits

    check_answer_fits(algorithm, "csv", is_table=not isinstance(answer, dict))
    file = io.BytesIO()
    pyarrow.csv.write_csv(answer, file)
    sys.stdout.write(file.getvalue().decode())


def print_answer(answer: Any, finished: "Finished", out: Path | None) -> None:
    """Print the most important rows, the comparison of costs, notes and a summary line."""
    from talka.cli.costs import print_comparisons

    result = finished.result
    if isinstance(answer, dict):
        print_json(answer)
    elif answer.num_rows:
        title, rows = _most_important(result["algorithm"], answer)
        print_table(rows, title=title, right=list(rows[0]) if rows else ())
    print()
    shown = [row for row in finished.comparisons if not LATER_SUPERSTEPS.fullmatch(row.cost_id)]
    print_comparisons([row for row in shown if row.predicted or row.cost_id != "graph/superstep/0"])
    print()
    for line in (*result["notes"], _summary_line(result, finished.dir, out)):
        print_text(line)


def _most_important(algorithm: str, answer: Any) -> tuple[str, list[dict[str, Any]]]:
    """Return a title and the rows that a reader looks for first."""
    import pyarrow.compute as pc

    if algorithm in _GROUPS:
        sizes = answer.group_by("value").aggregate([("vertex", "count")])
        largest = sizes.sort_by([("vertex_count", "descending"), ("value", "ascending")])
        rows = largest.slice(0, NUM_SHOWN).to_pylist()
        title = f"{largest.num_rows:,} {algorithm.replace('-', ' ')}, largest first"
        return title, [{"id": row["value"], "vertices": row["vertex_count"]} for row in rows]
    if algorithm in _DISTANCES:
        reached = answer.filter(pc.is_valid(answer["value"]))
        farthest = reached.sort_by([("value", "descending"), ("vertex", "ascending")])
        title = f"{reached.num_rows:,} of {answer.num_rows:,} vertices reached, farthest first"
        return title, farthest.slice(0, NUM_SHOWN).to_pylist()
    highest = answer.sort_by([("value", "descending"), ("vertex", "ascending")])
    return "Highest values", highest.slice(0, NUM_SHOWN).to_pylist()


def _summary_line(result: dict[str, Any], run_dir: Path, out: Path | None) -> str:
    rate = result["edges_per_s"]
    facts = [
        f"{format_count(result['num_vertices'])} vertices",
        f"{format_count(result['num_edges'])} edges",
        f"{result['num_supersteps']} supersteps",
        *([] if rate is None else [f"{format_count(rate)} edges per second"]),
        f"{format_bytes(result['sent_bytes'])} sent",
        *([] if out is None else [f"answer in {out}"]),
        f"run directory {run_dir}",
    ]
    return ", ".join(facts)
