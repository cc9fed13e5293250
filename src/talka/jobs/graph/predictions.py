"""Predicted costs of a graph job: from the file before it is read, from its partitions afterwards.

Sent bytes are exact for algorithms in which every vertex sends in every superstep: one message per
mirror. If only a frontier sends, they are an estimate, and the reason begins with "about".
"""

from pathlib import Path
from typing import Final, NamedTuple

from talka.events import Predicted
from talka.graph.programs.kernel_cache import was_compiled
from talka.graph.reading.detect import format_of
from talka.inputs import is_piped
from talka.jobs.graph.config import GraphConfig
from talka.jobs.graph.plan import Plan
from talka.units import format_bytes, format_count

_TEXT_BYTES_PER_S: Final = 100e6  # lines of ids parsed by two ordinary cores
_BUILT_EDGES_PER_S: Final = 10e6  # renumbered and grouped in both directions by two ordinary cores
_LOAD_S: Final = 0.5  # to load kernels from disk that were compiled before
_LOAD_TO_BUILD_S: Final = 0.03  # the same for the kernels that renumber and group edges
_COMPILE_S: Final = 1.0  # kernels of an edge program, 0.6 to 1.5 s on an ordinary core
_LOAD_PROGRAM_S: Final = 0.02  # the same kernels from the cache
_EDGE_PROGRAMS: Final = ("bfs", "pagerank", "sssp", "strong-components")
_SAMPLE_BYTES: Final = 1 << 16
_PLACE_BYTES: Final = 4
_SUPERSTEP_S: Final = 0.003  # to submit tasks, collect reports and decide whether to halt
_MAX_ROWS: Final = 100  # single supersteps listed; all later ones cost the same
_TEXT_FORMATS: Final = ("edges", "csv", "tsv", "ldbc")


class _Messages(NamedTuple):
    """Messages that an algorithm sends."""

    message_bytes: int
    num_supersteps: int | None
    """Supersteps in which every vertex sends; None if only changed vertices send."""


def predict_reading(config: GraphConfig) -> list[Predicted]:
    """Predict reading and building from the size of the file and its first lines."""
    source = config.input
    path = Path(source.edges)
    if is_piped(path):
        return _unknown_reading("a pipe")
    try:
        num_bytes = path.stat().st_size
        line_bytes = _mean_line_bytes(path)
    except OSError:
        return []  # the reader reports the error
    format = format_of(path) if source.file_format == "auto" else source.file_format
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
            f"{size} at {rate} per second, after loading kernels",
        ),
        Predicted(
            "graph/build",
            None,
            _LOAD_TO_BUILD_S + num_edges / _BUILT_EDGES_PER_S,
            f"about {format_count(num_edges)} edges at {built} per second, after loading kernels",
        ),
    ]


def predict_compiling(config: GraphConfig) -> list[Predicted]:
    """Predict the compilation of the algorithm's edge programs; empty if it has none."""
    if config.algorithm not in _EDGE_PROGRAMS:
        return []
    if was_compiled(config.algorithm):
        seconds, reason = _LOAD_PROGRAM_S, "its kernels were compiled before and are loaded"
    else:
        seconds, reason = _COMPILE_S, "its kernels are compiled for the first time on this machine"
    return [Predicted("graph/compile", None, seconds, reason)]


def _unknown_reading(input_description: str) -> list[Predicted]:
    reason = f"{input_description}: not known before it is read"
    return [Predicted(cost_id, None, None, reason) for cost_id in ("graph/read", "graph/build")]


def predict_supersteps(config: GraphConfig, plan: Plan) -> list[Predicted]:
    """Predict all supersteps together and, if every vertex sends in each, every single one."""
    messages = _messages_of(config)
    mirrors = f"{format_count(plan.num_mirrors)} mirrors"
    if messages is None:
        reason = f"{mirrors}; the number of messages depends on the graph"
        return [Predicted("graph/supersteps", None if plan.num_mirrors else 0.0, None, reason)]
    pass_s = _pass_seconds(config, plan)
    if messages.num_supersteps is None:
        record_bytes = messages.message_bytes + _PLACE_BYTES
        reason = f"about: {mirrors} updated once with {record_bytes} bytes, all edges visited once"
        sent_bytes = float(plan.num_mirrors * record_bytes)
        return [Predicted("graph/supersteps", sent_bytes, pass_s, reason)]
    return _predict_full_supersteps(messages, plan, pass_s)


def _predict_full_supersteps(
    messages: _Messages, plan: Plan, pass_s: float | None
) -> list[Predicted]:
    """Predict supersteps in which every vertex sends."""
    assert messages.num_supersteps is not None
    last = messages.num_supersteps
    sent_bytes = float(plan.num_mirrors * messages.message_bytes)
    edges, speed = format_count(plan.num_edges), format_count(plan.edges_per_s)
    rows = [
        Predicted(
            "graph/supersteps",
            sent_bytes * last,
            None if pass_s is None else pass_s * last,
            f"{last} x {edges} edges at {speed} per second (measured on a sample)",
        )
    ]
    reason = f"{format_count(plan.num_mirrors)} mirrors x {messages.message_bytes} bytes"
    for superstep in range(min(last, _MAX_ROWS)):
        rows.append(Predicted(f"superstep/{superstep}", sent_bytes, pass_s, reason))
    if last < _MAX_ROWS:
        rows.append(Predicted(f"superstep/{last}", 0.0, None, "the last superstep sends nothing"))
    return rows


def _messages_of(config: GraphConfig) -> _Messages | None:
    """Return what the algorithm sends; None if that depends on the graph."""
    arguments = config.arguments
    if config.algorithm == "pagerank":
        most = 20 if arguments.tolerance is None else 100
        return _Messages(8, most if arguments.num_supersteps is None else arguments.num_supersteps)
    if config.algorithm in ("bfs", "sssp"):
        return _Messages(4 if config.algorithm == "bfs" else 8, None)
    return None


def _pass_seconds(config: GraphConfig, plan: Plan) -> float | None:
    """Return the seconds of one pass over all edges; None on other machines, not measured there."""
    if config.placement.engine != "embedded":
        return None
    num_edges = plan.num_edges * (1 if config.input.directed else 2)
    return _SUPERSTEP_S + (num_edges / plan.edges_per_s if plan.edges_per_s else 0.0)


def _mean_line_bytes(path: Path) -> float:
    with path.open("rb") as file:
        sample = file.read(_SAMPLE_BYTES)
    return max(len(sample) / max(sample.count(b"\n"), 1), 2.0)
