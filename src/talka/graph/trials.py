"""Trial of graphs on this machine: reading, building and compiling, and the cost of a superstep.

Everything runs in fresh processes, as the first work of a process includes loading kernels.
"""

import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.csv

from talka.graph import Graph, RunOptions
from talka.graph.kernels.passes import gathered_edges_per_s
from talka.profile import Trial
from talka.profile.trial import figures_of_process, median_seconds, write_figures

Ends = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
"""Sources and targets of edges, as two rows."""
_NUM_EDGES = 2_000_000
_NUM_VERTICES = 400_000
_TINY_SUPERSTEPS, _SUPERSTEPS = 200, 20


def _measure() -> dict[str, float]:
    with TemporaryDirectory(prefix="talka-") as folder:
        # The folder takes the place of the user's cache, so the first process compiles its program.
        first, second = (
            figures_of_process("talka.graph.trials", folder, part, XDG_CACHE_HOME=folder)
            for part in ("program", "all")
        )
    compile_s = max(first["load_program_s"] - second["load_program_s"], 0.0)
    return {**second, "compile_s": compile_s}


def _figures(folder: Path) -> dict[str, float]:
    random = np.random.default_rng(0)
    ends = random.integers(0, _NUM_VERTICES, (2, _NUM_EDGES))
    path = folder / "edges.txt"
    options = pyarrow.csv.WriteOptions(include_header=False, delimiter=" ")
    pyarrow.csv.write_csv(pa.table(list(ends), names=["source", "target"]), path, options)
    tiny = folder / "tiny.txt"
    tiny.write_text("1 2\n2 1\n")

    tiny_s = _seconds(tiny)
    read_s = min(_seconds(path) for _ in range(3)) - _seconds(tiny)
    load_build_s = _build_seconds(ends[:, :2])
    first_s = _build_seconds(ends)  # in memory that is used the first time, as in a job
    build_s = statistics.median(_build_seconds(ends) for _ in range(3))
    fewer = ends % (_NUM_VERTICES // 10)
    fewer_s = statistics.median(_build_seconds(fewer) for _ in range(3))
    built_vertex_s = max(build_s - fewer_s, 0.0) / (0.9 * _NUM_VERTICES)
    superstep_figures = _superstep_figures(_tiny_graph())
    return {
        "load_read_s": max(tiny_s - _seconds(tiny), 0.0),
        "read_bytes_per_s": path.stat().st_size / max(read_s, 1e-6),
        "load_build_s": load_build_s,
        "built_vertex_s": built_vertex_s,
        "built_edges_per_s": _NUM_EDGES / max(first_s - built_vertex_s * _NUM_VERTICES, 1e-6),
        **superstep_figures,
        **_pass_figures(ends[:, :_NUM_VERTICES], superstep_figures),
        **_uniting_figures(Graph.from_edges(tuple(ends), directed=False)),
    }


def _seconds(path: Path) -> float:
    """Return the seconds to read a file of edges, without building a graph."""
    from talka.events import Stream
    from talka.graph.reading.detect import read_edges

    start = time.perf_counter()
    read_edges(str(path), None, None, format="edges", events=Stream())
    return time.perf_counter() - start


def _build_seconds(ends: Ends) -> float:
    start = time.perf_counter()
    Graph.from_edges(tuple(ends))
    return time.perf_counter() - start


def _tiny_graph() -> Graph:
    random = np.random.default_rng(0)
    return Graph.from_edges(tuple(random.integers(0, 64, (2, 256))))


def _program_seconds(graph: Graph) -> float:
    """Return the seconds of the first program of a process, which loads or compiles kernels."""
    start = time.perf_counter()
    graph.pagerank(num_supersteps=1)
    return time.perf_counter() - start


def _superstep_figures(graph: Graph) -> dict[str, float]:
    """Return the seconds to load a program, and the fixed cost of a superstep and a partition."""
    first_s = _program_seconds(graph)
    one_s, four_s = (_superstep_seconds(graph, count, _TINY_SUPERSTEPS) for count in (1, 4))
    return {
        "load_program_s": first_s,
        "superstep_s": one_s,
        "superstep_of_partition_s": max(four_s - one_s, 0.0) / 3,
    }


def _pass_figures(ends: Ends, fixed: dict[str, float]) -> dict[str, float]:
    """Return the cost of a superstep of PageRank per vertex and per mirror, besides its edges.

    The same graph takes up to twice as long in other pages of the memory, so three are built.
    """
    vertex_s, mirror_s = [], []
    for _ in range(3):
        graph = Graph.from_edges(tuple(ends), directed=False)
        one_s, four_s = (_superstep_seconds(graph, count, _SUPERSTEPS) for count in (1, 4))
        edges_s = graph.out.num_entries / gathered_edges_per_s(graph.into, graph.num_vertices)
        more_s = four_s - one_s - 3 * fixed["superstep_of_partition_s"]
        vertex_s.append((one_s - fixed["superstep_s"] - edges_s) / graph.num_vertices)
        mirror_s.append(more_s / graph.cut(4).report.num_mirrors)
    return {
        "vertex_s": max(statistics.median(vertex_s), 0.0),
        "mirror_s": max(statistics.median(mirror_s), 0.0),
    }


def _superstep_seconds(graph: Graph, num_partitions: int, num_supersteps: int) -> float:
    """Return the seconds of one superstep of PageRank, without starting and ending."""
    options = RunOptions(num_partitions=num_partitions)

    def seconds(count: int) -> float:
        return median_seconds(
            lambda: graph.pagerank(num_supersteps=count, options=options), repeats=3
        )

    return max(seconds(1 + num_supersteps) - seconds(1), 0.0) / num_supersteps


def _uniting_figures(graph: Graph) -> dict[str, float]:
    """Return the rates of finding components.

    One partition links few edges of each vertex; of several, each links all of its edges.
    """

    def seconds(num_partitions: int) -> float:
        options = RunOptions(num_partitions=num_partitions)
        return median_seconds(lambda: graph.components(options=options), repeats=3)

    return {
        "united_vertices_per_s": graph.num_vertices / seconds(1),
        "united_edges_per_s": graph.out.num_entries / seconds(4),
    }


GRAPH = Trial(
    "graph",
    "reading and building graphs, compiling programs, supersteps without work",
    (
        *("load_read_s", "read_bytes_per_s", "load_build_s", "built_vertex_s"),
        "built_edges_per_s",
        *("compile_s", "load_program_s", "superstep_s", "superstep_of_partition_s"),
        *("vertex_s", "mirror_s", "united_vertices_per_s", "united_edges_per_s"),
    ),
    _measure,
    packages=("numba", "pyarrow"),
)

if __name__ == "__main__":
    if sys.argv[2] == "program":
        write_figures({"load_program_s": _program_seconds(_tiny_graph())})
    else:
        write_figures(_figures(Path(sys.argv[1])))
