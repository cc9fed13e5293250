"""Predicted costs of a graph job: from the file before it is read, from its partitions afterwards.

Sent bytes are exact for algorithms in which every vertex sends in every superstep: one message per
mirror. If only a frontier sends, they are an estimate, and the reason begins with "about".
"""

from pathlib import Path
from typing import Final

from talka.graph.programs.kernel_cache import was_compiled
from talka.graph.reading.detect import format_of
from talka.graph.supersteps.walking import PUSH_COST
from talka.graph.trials import GRAPH
from talka.inputs import is_piped
from talka.jobs.graph.config import GraphConfig
from talka.jobs.graph.layout import GraphLayout
from talka.jobs.graph.levels import Levels
from talka.plans import Part
from talka.profile import MEMORY, this_machine
from talka.units import format_bytes, format_count

_EDGE_PROGRAMS: Final = ("bfs", "pagerank", "sssp", "strong-components")
_EDGES_PER_VERTEX: Final = 5.0  # as long as the number of vertices is not known
_SAMPLE_BYTES: Final = 1 << 16
_PLACE_BYTES: Final = 4
_MAX_ROWS: Final = 100  # single supersteps listed; all later ones cost the same
_TEXT_FORMATS: Final = ("edges", "csv", "tsv", "ldbc")


_MESSAGE_BYTES: Final = {"pagerank": 8, "bfs": 4, "sssp": 8, "components": 4}
_RECORDS_PER_MIRROR: Final = {"bfs": 1.1, "sssp": 1.1, "components": 1.75}
"""Messages to each mirror over a whole run, of algorithms in which only changed vertices send.

In a search most mirrors get one, some a second from a later level. Labels of components reach all
mirrors, then smaller ones reach three quarters of them. Measured on a network of hubs, a grid and a
random graph with `benchmarks.explain`: 0.95 to 1.2 and 1.7 to 1.95.
"""


def predict_reading(config: GraphConfig, layout: GraphLayout | None = None) -> list[Part]:
    """Predict reading and building from the size of the file and its first lines.

    The number of vertices is that of the layout, if there is one.
    """
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
    figures = this_machine().figures(GRAPH)
    rate, built = figures["read_bytes_per_s"], figures["built_edges_per_s"]
    num_vertices = num_edges / _EDGES_PER_VERTEX if layout is None else layout.num_vertices
    building_s = num_edges / built + num_vertices * figures["built_vertex_s"]
    return [
        Part(
            cost_id="graph/read",
            seconds=figures["load_read_s"] + num_bytes / rate,
            reason=f"{size} at {format_bytes(rate)} per second, after loading kernels",
            trials=(GRAPH.name,),
        ),
        Part(
            cost_id="graph/build",
            seconds=figures["load_build_s"] + building_s,
            reason=f"about {format_count(num_edges)} edges at {format_count(built)} per second, "
            "after loading kernels",
            trials=(GRAPH.name,),
        ),
    ]


def predict_compiling(config: GraphConfig) -> list[Part]:
    """Predict the compilation of the algorithm's edge programs; empty if it has none."""
    if config.algorithm not in _EDGE_PROGRAMS:
        return []
    figures = this_machine().figures(GRAPH)
    seconds = figures["load_program_s"]
    reason = "its kernels were compiled before and are loaded"
    if not was_compiled(config.algorithm):
        seconds += figures["compile_s"]
        reason = "its kernels are compiled for the first time on this machine"
    return [Part(cost_id="graph/compile", seconds=seconds, reason=reason, trials=(GRAPH.name,))]


def _unknown_reading(input_description: str) -> list[Part]:
    reason = f"{input_description}: not known before it is read"
    return [Part(cost_id=cost_id, reason=reason) for cost_id in ("graph/read", "graph/build")]


def predict_supersteps(config: GraphConfig, layout: GraphLayout) -> Part:
    """Predict all supersteps together and, if every vertex sends in each, every single one."""
    if config.algorithm == "pagerank":
        return _full_supersteps(config, layout)
    if config.algorithm in _RECORDS_PER_MIRROR:
        return _frontier_supersteps(config, layout)
    sent_bytes = None if layout.num_mirrors else 0.0
    reason = f"{_mirrors(layout)}; the number of messages depends on the graph"
    return Part(cost_id="graph/supersteps", sent_bytes=sent_bytes, reason=reason)


def _frontier_supersteps(config: GraphConfig, layout: GraphLayout) -> Part:
    """Predict supersteps in which only vertices send that have changed."""
    records = _RECORDS_PER_MIRROR[config.algorithm]
    record_bytes = _PLACE_BYTES + _MESSAGE_BYTES[config.algorithm]
    seconds = None
    supersteps = "all edges visited once" if config.algorithm != "components" else "few supersteps"
    if config.placement.engine == "embedded":
        if layout.levels is not None:
            seconds = _search_seconds(config, layout, layout.levels)
            about = "about " if layout.levels.is_estimate else ""
            supersteps = f"{about}{layout.levels.num_levels} levels from the source"
        elif config.algorithm == "components":
            seconds = _uniting_seconds(layout)
        else:
            seconds = _pass_seconds(config, layout)
    return Part(
        cost_id="graph/supersteps",
        seconds=seconds,
        sent_bytes=records * layout.num_mirrors * record_bytes,
        memory_bytes=layout.graph_bytes,
        reason=f"about: {_mirrors(layout)} x {records} records of {record_bytes} bytes, "
        f"{supersteps}",
        trials=(GRAPH.name,),
    )


def _uniting_seconds(layout: GraphLayout) -> float:
    """Return the seconds of components: one partition links few edges per vertex, several all."""
    figures = this_machine().figures(GRAPH)
    if layout.num_partitions == 1:
        return layout.num_vertices / figures["united_vertices_per_s"]
    num_supersteps = 4  # labels settle after two or three
    work_s = 2 * layout.num_edges / figures["united_edges_per_s"]
    return num_supersteps * _superstep_seconds(layout.num_partitions) + work_s


def _search_seconds(config: GraphConfig, layout: GraphLayout, levels: Levels) -> float:
    """Return the seconds of a search: a superstep per level, which pushes or pulls.

    Each superstep also copies the values of all vertices. Levels that the pilot did not count have
    the remaining edges together.
    """
    copy_bytes_per_s = this_machine().figures(MEMORY)["copy_bytes_per_s"]
    values_bytes = layout.num_vertices * _MESSAGE_BYTES[config.algorithm]
    superstep_s = _superstep_seconds(layout.num_partitions) + values_bytes / copy_bytes_per_s
    num_edges = layout.num_edges * (1 if config.input.directed else 2)
    left = num_edges - sum(levels.active_edges)
    walked, open_edges = 0.0, float(num_edges)
    for active in (*levels.active_edges, left if levels.is_estimate else 0):
        walked += min(PUSH_COST * active, open_edges)
        open_edges = max(open_edges - active, 0.0)
    edges_s = walked / layout.edges_per_s if layout.edges_per_s else 0.0
    return (levels.num_levels + 1) * superstep_s + edges_s


def _full_supersteps(config: GraphConfig, layout: GraphLayout) -> Part:
    """Predict supersteps in which every vertex sends."""
    arguments = config.arguments
    last = arguments.num_supersteps or (20 if arguments.tolerance is None else 100)
    message_bytes = _MESSAGE_BYTES[config.algorithm]
    pass_s = _pass_seconds(config, layout)
    sent_bytes = float(layout.num_mirrors * message_bytes)
    edges, speed = format_count(layout.num_edges), format_count(layout.edges_per_s)
    reason = f"{_mirrors(layout)} x {message_bytes} bytes"
    parts = [
        Part(
            cost_id=f"graph/superstep/{superstep}",
            seconds=pass_s,
            sent_bytes=sent_bytes,
            reason=reason,
        )
        for superstep in range(min(last, _MAX_ROWS))
    ]
    if last < _MAX_ROWS:
        reason = "the last superstep sends nothing"
        parts.append(Part(cost_id=f"graph/superstep/{last}", sent_bytes=0.0, reason=reason))
    return Part(
        cost_id="graph/supersteps",
        seconds=None if pass_s is None else pass_s * last,
        sent_bytes=sent_bytes * last,
        memory_bytes=layout.graph_bytes,
        reason=f"{last} x {edges} edges at {speed} per second (measured on a sample)",
        parts=tuple(parts),
        trials=(GRAPH.name,),
    )


def _mirrors(layout: GraphLayout) -> str:
    return f"{format_count(layout.num_mirrors)} mirrors"


def _pass_seconds(config: GraphConfig, layout: GraphLayout) -> float | None:
    """Return the seconds of a superstep over all edges, vertices and mirrors.

    None on other machines, whose speed is not known.
    """
    if config.placement.engine != "embedded":
        return None
    num_edges = layout.num_edges * (1 if config.input.directed else 2)
    edges_s = num_edges / layout.edges_per_s if layout.edges_per_s else 0.0
    figures = this_machine().figures(GRAPH)
    vertices_s = layout.num_vertices * figures["vertex_s"]
    mirrors_s = layout.num_mirrors * figures["mirror_s"]
    return _superstep_seconds(layout.num_partitions) + edges_s + vertices_s + mirrors_s


def _superstep_seconds(num_partitions: int) -> float:
    """Return the cost of a superstep without work: submitting tasks, collecting reports."""
    figures = this_machine().figures(GRAPH)
    more = figures["superstep_of_partition_s"] * (num_partitions - 1)
    return figures["superstep_s"] + more


def _mean_line_bytes(path: Path) -> float:
    with path.open("rb") as file:
        sample = file.read(_SAMPLE_BYTES)
    return max(len(sample) / max(sample.count(b"\n"), 1), 2.0)
