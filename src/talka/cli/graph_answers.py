"""What `talka graph` found: all of it for programs, the part that matters for people."""

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from talka.cli.tables import print_json, print_table, print_text

if TYPE_CHECKING:
    from talka.jobs.base import Finished

NUM_SHOWN: Final = 10
LATER_SUPERSTEPS: Final = re.compile(r"superstep/[1-9]\d*")
"""In a table one superstep is enough; the page of the run has all."""
_GROUPS: Final = ("components", "strong-components", "communities")
_DISTANCES: Final = ("bfs", "sssp")


def print_answer_as_json(answer: Any, finished: "Finished", out: Path | None) -> None:
    """One object: the result of the run, where the answer is, or the answer itself."""
    said = {**finished.result, "run": str(finished.dir)}
    if out is not None:
        print_json({**said, "out": str(out)})
    elif isinstance(answer, dict):
        print_json({**said, "answer": answer})
    else:
        from talka.data.writing import write_json_rows

        sys.stdout.write(f'{json.dumps(said, indent=2)[:-2]},\n  "rows": ')
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
    from talka.cli.costs import print_comparisons

    result = finished.result
    if isinstance(answer, dict):
        print_json(answer)
    elif answer.num_rows:
        title, rows = _in_short(result["algorithm"], answer)
        print_table(rows, title=title, right=list(rows[0]) if rows else ())
    print()
    told = [row for row in finished.comparisons if not LATER_SUPERSTEPS.fullmatch(row.cost_id)]
    print_comparisons([row for row in told if row.predicted or row.cost_id != "superstep/0"])
    print()
    for line in (*result["notes"], _last_line(result, finished.dir, out)):
        print_text(line)


def _in_short(algorithm: str, answer: Any) -> tuple[str, list[dict[str, Any]]]:
    """A title and the rows that a person would look for first."""
    import pyarrow.compute as pc

    if algorithm in _GROUPS:
        sizes = answer.group_by("value").aggregate([("vertex", "count")])
        largest = sizes.sort_by([("vertex_count", "descending"), ("value", "ascending")])
        rows = largest.slice(0, NUM_SHOWN).to_pylist()
        title = f"{largest.num_rows:,} {algorithm.replace('-', ' ')}, the largest"
        return title, [{"named": row["value"], "vertices": row["vertex_count"]} for row in rows]
    if algorithm in _DISTANCES:
        reached = answer.filter(pc.is_valid(answer["value"]))
        farthest = reached.sort_by([("value", "descending"), ("vertex", "ascending")])
        title = f"{reached.num_rows:,} of {answer.num_rows:,} vertices reached, the farthest"
        return title, farthest.slice(0, NUM_SHOWN).to_pylist()
    highest = answer.sort_by([("value", "descending"), ("vertex", "ascending")])
    return "The highest values", highest.slice(0, NUM_SHOWN).to_pylist()


def _last_line(result: dict[str, Any], run_dir: Path, out: Path | None) -> str:
    from talka.units import format_bytes, format_count

    sent = format_bytes(result["sent_bytes"])
    rate = result["edges_per_s"]
    speed = "" if rate is None else f", {format_count(rate)} edges a second"
    where = "" if out is None else f" in {out},"
    return (
        f"{format_count(result['num_vertices'])} vertices, {format_count(result['num_edges'])} "
        f"edges:{where} {result['num_supersteps']} supersteps{speed}, {sent} sent, run {run_dir}"
    )
