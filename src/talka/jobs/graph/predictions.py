"""What a job over a graph will cost: from the file before it is read, from the cut afterwards.

Bytes are exact where every vertex speaks in every superstep: one message for each mirror. Where
only a frontier speaks they are an estimate, and the reason says so.
"""

from pathlib import Path
from typing import Final, NamedTuple

from talka.events import Predicted
from talka.graph.reading.detect import format_of
from talka.inputs import is_piped
from talka.jobs.graph.config import GraphConfig
from talka.jobs.graph.plan import Plan
from talka.units import format_bytes, format_count

_TEXT_BYTES_PER_S: Final = 100e6  # of lines of ids, by two ordinary cores
_BUILT_EDGES_PER_S: Final = 10e6  # renumbered and grouped both ways, by two ordinary cores
_LOAD_S: Final = 0.5  # kernels from the disk, where they were compiled before
_LOAD_TO_BUILD_S: Final = 0.03  # the same for those that renumber and group edges
_SAMPLE_BYTES: Final = 1 << 16
_PLACE_BYTES: Final = 4
_SUPERSTEP_S: Final = 0.003  # to submit, to hear reports, to decide
_MAX_ROWS: Final = 100  # of supersteps; all later ones cost as much as the last of them
_TEXT_FORMATS: Final = ("edges", "csv", "tsv", "ldbc")


class _Talk(NamedTuple):
    """How an algorithm talks."""

    message_bytes: int
    num_supersteps: int | None
    """In each of which everybody speaks; None: whoever has changed speaks."""


def predict_reading(config: GraphConfig) -> list[Predicted]:
    """Reading and building, from the size of the file and a look at its first lines."""
    given = config.input
    path = Path(given.edges)
    if is_piped(path):
        return _unknown_reading("a pipe")
    try:
        num_bytes = path.stat().st_size
        line_bytes = _bytes_of_a_line(path)
    except OSError:
        return []  # the reader says what is wrong with it
    format = format_of(path) if given.file_format == "auto" else given.file_format
    size = format_bytes(num_bytes)
    if format not in _TEXT_FORMATS or path.suffix in (".gz", ".zst"):
        return _unknown_reading(size)
    num_edges = num_bytes / line_bytes
    rate, built = format_bytes(_TEXT_BYTES_PER_S), format_count(_BUILT_EDGES_PER_S)
    return [
        Predicted(
            "graph/read",
            None,
            _LOAD_S + num_bytes / _TEXT_BYTES_PER_S,
            f"{size} at {rate} a second, after kernels were loaded",
        ),
        Predicted(
            "graph/build",
            None,
            _LOAD_TO_BUILD_S + num_edges / _BUILT_EDGES_PER_S,
            f"about {format_count(num_edges)} edges at {built} a second, after kernels were loaded",
        ),
    ]


def _unknown_reading(what: str) -> list[Predicted]:
    reason = f"{what}: not known before it is read"
    return [Predicted(cost_id, None, None, reason) for cost_id in ("graph/read", "graph/build")]


def predict_supersteps(config: GraphConfig, plan: Plan) -> list[Predicted]:
    talk = _talk_of(config)
    mirrors = f"{format_count(plan.num_mirrors)} mirrors"
    if talk is None:
        reason = f"{mirrors}; what travels depends on the graph"
        return [Predicted("graph/supersteps", None if plan.num_mirrors else 0.0, None, reason)]
    pass_s = _pass_seconds(config, plan)
    if talk.num_supersteps is None:
        record_bytes = talk.message_bytes + _PLACE_BYTES
        reason = f"about: {mirrors} told once in {record_bytes} bytes, all edges walked once"
        sent_bytes = float(plan.num_mirrors * record_bytes)
        return [Predicted("graph/supersteps", sent_bytes, pass_s, reason)]
    return _of_everybody(talk, plan, pass_s)


def _of_everybody(talk: _Talk, plan: Plan, pass_s: float | None) -> list[Predicted]:
    assert talk.num_supersteps is not None
    last = talk.num_supersteps
    sent_bytes = float(plan.num_mirrors * talk.message_bytes)
    edges, speed = format_count(plan.num_edges), format_count(plan.edges_per_s)
    rows = [
        Predicted(
            "graph/supersteps",
            sent_bytes * last,
            None if pass_s is None else pass_s * last,
            f"{last} x {edges} edges at {speed} a second (a sample)",
        )
    ]
    reason = f"{format_count(plan.num_mirrors)} mirrors x {talk.message_bytes} bytes"
    for superstep in range(min(last, _MAX_ROWS)):
        rows.append(Predicted(f"superstep/{superstep}", sent_bytes, pass_s, reason))
    if last < _MAX_ROWS:
        rows.append(Predicted(f"superstep/{last}", 0.0, None, "the last one says nothing"))
    return rows


def _talk_of(config: GraphConfig) -> _Talk | None:
    arguments = config.arguments
    if config.algorithm == "pagerank":
        most = 20 if arguments.tolerance is None else 100
        return _Talk(8, most if arguments.num_supersteps is None else arguments.num_supersteps)
    if config.algorithm in ("bfs", "sssp"):
        return _Talk(4 if config.algorithm == "bfs" else 8, None)
    return None


def _pass_seconds(config: GraphConfig, plan: Plan) -> float | None:
    """One walk along all edges; on other machines nobody has measured it."""
    if config.placement.engine != "embedded":
        return None
    num_edges = plan.num_edges * (1 if config.input.directed else 2)
    return _SUPERSTEP_S + (num_edges / plan.edges_per_s if plan.edges_per_s else 0.0)


def _bytes_of_a_line(path: Path) -> float:
    with path.open("rb") as file:
        sample = file.read(_SAMPLE_BYTES)
    return max(len(sample) / max(sample.count(b"\n"), 1), 2.0)
