"""Trial of graphs on this machine: reading, building and compiling, and the cost of a superstep.

Everything runs in fresh processes, as the first work of a process includes loading kernels.
"""

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.csv

from talka.graph import Graph, RunOptions
from talka.profile import Trial
from talka.profile.trial import figures_of_process, median_seconds, write_figures

_NUM_EDGES = 2_000_000
_NUM_VERTICES = 250_000
_FEW_SUPERSTEPS, _MANY_SUPERSTEPS = 10, 110


def _measure() -> dict[str, float]:
    with TemporaryDirectory(prefix="talka-") as folder:
        # The folder takes the place of the user's cache: the first process compiles its program.
        first, second = (
            figures_of_process("talka.graph.trials", folder, XDG_CACHE_HOME=folder)
            for _ in range(2)
        )
    return {**second, "compile_s": max(first["load_program_s"] - second["load_program_s"], 0.0)}


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
    build_s = min(_build_seconds(ends) for _ in range(3))
    tiny_graph = Graph.from_edges(tuple(ends[:, : 4 * 64] % 64))
    superstep_figures = _superstep_figures(tiny_graph)
    return {
        "load_read_s": max(tiny_s - _seconds(tiny), 0.0),
        "read_bytes_per_s": path.stat().st_size / max(read_s, 1e-6),
        "load_build_s": load_build_s,
        "built_edges_per_s": _NUM_EDGES / max(build_s, 1e-6),
        **superstep_figures,
        **_uniting_figures(Graph.from_edges(tuple(ends), directed=False)),
    }


def _seconds(path: Path) -> float:
    """Return the seconds to read a file of edges, without building a graph."""
    from talka.events import Stream
    from talka.graph.reading.detect import read_edges

    start = time.perf_counter()
    read_edges(str(path), None, None, format="edges", events=Stream())
    return time.perf_counter() - start


def _build_seconds(ends: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]") -> float:
    start = time.perf_counter()
    Graph.from_edges(tuple(ends))
    return time.perf_counter() - start


def _superstep_figures(graph: Graph) -> dict[str, float]:
    """Return the seconds to load a program, and the fixed cost of a superstep and a partition."""

    def run(num_supersteps: int, num_partitions: int) -> None:
        options = RunOptions(num_partitions=num_partitions)
        graph.pagerank(num_supersteps=num_supersteps, options=options)

    start = time.perf_counter()
    run(1, 1)
    first_s = time.perf_counter() - start

    def superstep_s(num_partitions: int) -> float:
        few_s, many_s = (
            median_seconds(lambda n=count: run(n, num_partitions), repeats=3)  # type: ignore[misc]
            for count in (_FEW_SUPERSTEPS, _MANY_SUPERSTEPS)
        )
        return max(many_s - few_s, 0.0) / (_MANY_SUPERSTEPS - _FEW_SUPERSTEPS)

    one_s, four_s = superstep_s(1), superstep_s(4)
    return {
        "load_program_s": first_s,
        "superstep_s": one_s,
        "superstep_of_partition_s": max(four_s - one_s, 0.0) / 3,
    }


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
        *("load_read_s", "read_bytes_per_s", "load_build_s", "built_edges_per_s"),
        *("compile_s", "load_program_s", "superstep_s", "superstep_of_partition_s"),
        *("united_vertices_per_s", "united_edges_per_s"),
    ),
    _measure,
    packages=("numba", "pyarrow"),
)

if __name__ == "__main__":
    write_figures(_figures(Path(sys.argv[1])))
