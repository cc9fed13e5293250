"""How fast is a graph built, and how much memory does that take?

    python -m benchmarks.graph_build --preset smoke          # some seconds
    python -m benchmarks.graph_build --preset full --json FILE --markdown FILE

R-MAT edges (benchmarks/rmat.py), both directions, in turns with other libraries. talka renumbers
every graph by degree; the others need consecutive ids from 0, so for scattered ids the time of
`np.unique` is added to theirs. networkit builds a directed graph with both directions from the same
arrays. Memory is the peak of a separate process, without its arrays of edges.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.harness import (
    arguments,
    interleaved,
    measurable,
    peer,
    publish,
    spread,
    with_missing,
)
from benchmarks.rmat import rmat
from talka.graph import Graph

PRESETS = {
    "smoke": {"scale": 11, "strings": 9, "repeats": 1, "igraph": True},
    "full": {"scale": 20, "strings": 16, "repeats": 3, "igraph": False},
}
MEASURE_PEAK = """
import numpy as np
from benchmarks.graph_build import ids_of, peak_bytes
from benchmarks.rmat import rmat
from talka.graph import Graph
few = ids_of(KIND, rmat(4))
Graph.from_edges(few, directed=DIRECTED)  # kernels are loaded, and memory of the interpreter taken
edges = ids_of(KIND, rmat(SCALE))
before = peak_bytes(reset=True)
graph = Graph.from_edges(edges, directed=DIRECTED)
print(peak_bytes() - before)
"""


def ids_of(kind, edges):
    """Return the same graph with other ids: unchanged, scattered over 63 bits, or strings."""
    if kind == "0 to n-1":
        return edges
    num_vertices = int(max(ends.max() for ends in edges)) + 1
    if kind == "63 bits":
        ids = np.random.default_rng(0).integers(0, 2**63, num_vertices)
    else:
        ids = np.array([f"vertex-{number}" for number in range(num_vertices)])
    return tuple(ids[ends] for ends in edges)


def peak_bytes(*, reset=False):
    """Return the peak memory of this process since it was reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def with_networkit(edges):
    import networkit

    sources, targets = edges
    ones = np.ones(len(sources))
    num_vertices = int(max(sources.max(), targets.max())) + 1
    return networkit.GraphFromCoo((ones, (sources, targets)), n=num_vertices, directed=True)


def with_scipy(edges):
    import scipy.sparse

    sources, targets = edges
    num_vertices = int(max(sources.max(), targets.max())) + 1
    shape = (num_vertices, num_vertices)
    entries = scipy.sparse.coo_array((np.ones(len(sources), np.int8), edges), shape=shape)
    return entries.tocsr(), entries.tocsc()


def with_igraph(edges):
    import igraph

    return igraph.Graph(edges=np.column_stack(edges), directed=True)


def after_unique(build):
    """Wrap `build` to renumber ids first, for libraries that need consecutive ids from 0."""

    def run(edges):
        _, numbers = np.unique(np.concatenate(edges), return_inverse=True)
        return build((numbers[: len(edges[0])], numbers[len(edges[0]) :]))

    return run


def peers_of(kind, preset):
    peers = {
        "networkit": peer("networkit", with_networkit),
        "scipy": peer("scipy", with_scipy),
    }
    if preset["igraph"]:
        peers["igraph"] = peer("igraph", with_igraph)
    if kind == "0 to n-1":
        return {**peers, "scipy, np.unique first": peer("scipy", after_unique(with_scipy))}
    return {
        f"{name}, np.unique first": build and after_unique(build) for name, build in peers.items()
    }


def rows_of(kind, preset):
    edges = ids_of(kind, rmat(preset["strings"] if kind == "strings" else preset["scale"]))
    candidates = {"talka": Graph.from_edges, **peers_of(kind, preset)}
    runs = {
        name: lambda build=build: discard(build(edges))
        for name, build in measurable(candidates).items()
    }
    runs["talka"]()  # compiles
    seconds = interleaved(runs, repeats=preset["repeats"])
    ours, _ = spread(seconds["talka"])
    rows = []
    for name, times in seconds.items():
        median, apart = spread(times)
        rows.append(
            {
                "ids": kind,
                "built by": name,
                "of talka's speed": f"{ours / median:.2f}",
                "M edges a second": f"{len(edges[0]) / median / 1e6:.2f}",
                "seconds": f"{median:.3f}",
                "fastest": f"{min(times):.3f}",
                "largest over smallest": f"{apart:.1f}",
            }
        )
    return with_missing(rows, candidates, "built by")


def discard(built):
    """Free graphs immediately: the next candidate needs the memory."""
    del built


def memory_row(kind, directed, preset):
    scale = preset["scale"]
    values = {"KIND": repr(kind), "DIRECTED": repr(directed), "SCALE": repr(scale)}
    code = MEASURE_PEAK
    for name, value in values.items():
        code = code.replace(name, value)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    num_edges = 16 << scale
    return {
        "ids": kind,
        "edges": f"{num_edges:,}, {'directed' if directed else 'undirected'}",
        "bytes an edge at the peak": f"{int(done.stdout) / num_edges:.1f}",
    }


def text_rows(preset, folder):
    """Build graphs from a text file, plain and compressed, beside a reader that builds no graph."""
    import pyarrow.csv

    edges = rmat(preset["scale"])
    plain, packed = folder / "edges.txt", folder / "edges.txt.gz"
    np.savetxt(plain, np.column_stack(edges), fmt="%d", delimiter="\t")
    with open(plain, "rb") as source:
        subprocess.run(["gzip", "-1", "-c"], stdin=source, stdout=packed.open("wb"), check=True)
    options = pyarrow.csv.ReadOptions(autogenerate_column_names=True)
    tabs = pyarrow.csv.ParseOptions(delimiter="\t")
    candidates = {
        "talka": lambda: discard(Graph.from_edges(plain)),
        "talka from .gz": lambda: discard(Graph.from_edges(packed)),
        "pyarrow.csv, the table only": lambda: discard(
            pyarrow.csv.read_csv(plain, read_options=options, parse_options=tabs)
        ),
        "networkit": peer("networkit", lambda: discard(networkit_from(plain))),
    }
    candidates["talka"]()
    seconds = interleaved(candidates, repeats=preset["repeats"])
    ours, _ = spread(seconds["talka"])
    size = plain.stat().st_size
    rows = [
        {
            "built by": name,
            "of talka's speed": f"{ours / spread(times)[0]:.2f}",
            "MB of text a second": f"{size / spread(times)[0] / 1e6:.0f}",
            "seconds": f"{spread(times)[0]:.3f}",
            "fastest": f"{min(times):.3f}",
        }
        for name, times in seconds.items()
    ]
    return with_missing(rows, candidates, "built by")


def networkit_from(path):
    import networkit

    return networkit.graphio.EdgeListReader("\t", 0, directed=True).read(str(path))


def main():
    args = arguments(__doc__, PRESETS)
    preset = PRESETS[args.preset]
    kinds = ["0 to n-1", "63 bits", "strings"]
    with tempfile.TemporaryDirectory() as folder:
        tables = {
            f"From arrays, {16 << preset['scale']:,} edges ({16 << preset['strings']:,} of strings)": [
                row for kind in kinds for row in rows_of(kind, preset)
            ],
            "From text": text_rows(preset, Path(folder)),
            "Memory": [
                memory_row(kind, directed, preset)
                for kind, directed in (("0 to n-1", True), ("0 to n-1", False), ("63 bits", True))
            ],
        }
    publish(args, "How fast is a graph built, and how much memory does that take?", tables)


if __name__ == "__main__":
    main()
