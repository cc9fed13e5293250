"""How fast are programs over graphs on one machine, beside the libraries that people use?

    python -m benchmarks.graph --preset smoke          # some seconds
    python -m benchmarks.graph --preset full --json FILE --markdown FILE

R-MAT edges (benchmarks/rmat.py) and Epinions (TALKA_DATA), in turns with networkit, igraph and scipy,
all with two threads if they support it. A talka call is timed completely, from the arguments to an
Arrow table with the original ids; for other libraries only the algorithm is timed. Ratios are talka's
speed over the other's. Graphs are built (see benchmarks/graph_build.py) and kernels compiled before.
"""

import gzip
import os
import subprocess
import sys
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
from talka.graph import Aggregate, EdgeProgram, Graph, RunOptions, VertexProgram, run_program

DATA = Path(os.environ.get("TALKA_DATA", Path(__file__).parents[2] / "shared" / "data"))
NUM_THREADS = 2
PRESETS = {
    "smoke": {"scale": 11, "repeats": 1, "scales": [10], "partitions": [4], "real": False},
    "full": {
        "scale": 20,
        "repeats": 5,
        "scales": [16, 18, 20, 22],
        "partitions": [2, 8, 32],
        "real": True,
    },
}
GROWTH = """
import sys, time
from benchmarks.graph_build import peak_bytes
from benchmarks.rmat import rmat
from talka.graph import Graph
warm = Graph.from_edges(rmat(6))
jobs = {"pagerank": lambda g: g.pagerank(), "bfs": lambda g: g.bfs(g.vertex_of(0)),
        "components": lambda g: g.components()}
for job in jobs.values():
    job(warm)
edges = rmat(SCALE)
before = peak_bytes(reset=True)
took = {}
start = time.perf_counter()
graph = Graph.from_edges(edges)
took["build"] = time.perf_counter() - start
for name, job in jobs.items():
    start = time.perf_counter()
    job(graph)
    took[name] = time.perf_counter() - start
print(peak_bytes() - before, *took.values())
"""


class GeneralRanks(VertexProgram):
    """PageRank as a vertex program, on whole arrays."""

    combine = "sum"
    aggregates = {"sinks": "sum"}  # noqa: RUF012
    num_supersteps = 20

    def compute(self, step):
        size = step.num_vertices
        if step.superstep == 0:
            step["value"] = 1 / size
        else:
            sinks = step.aggregates["sinks"] / size
            step["value"] = 0.15 / size + 0.85 * (step.combined + sinks)
        ranks, degrees = step["value"], step.out_degrees
        step.aggregate("sinks", ranks[degrees == 0].sum())
        step.send_along_edges(ranks / np.maximum(degrees, 1))


def user_ranks():
    """PageRank as an edge program written by a user."""
    return EdgeProgram(
        initial=lambda num_vertices: 1 / num_vertices,
        message=lambda value, out_degree: value / out_degree,
        combine="sum",
        update=lambda combined, sinks, num_vertices: (
            0.15 / num_vertices + 0.85 * (combined + sinks / num_vertices)
        ),
        aggregates={"sinks": Aggregate(lambda value, out_degree: value * (out_degree == 0))},
        num_supersteps=20,
    )


class Peers:
    """The same graph in other libraries, with consecutive ids from 0."""

    def __init__(self, edges, weights):
        _, numbers = np.unique(np.concatenate(edges), return_inverse=True)
        self.ends = numbers[: len(edges[0])], numbers[len(edges[0]) :]
        self.size = int(numbers.max()) + 1
        self.weights = weights
        for package, build in {
            "networkit": self._build_networkit,
            "scipy": self._build_scipy,
            "igraph": self._build_igraph,
        }.items():
            if peer(package, build):
                build(np.ones(len(edges[0])))

    def _build_networkit(self, ones):
        import networkit

        networkit.setNumberOfThreads(NUM_THREADS)
        self.networkit = networkit.GraphFromCoo((ones, self.ends), n=self.size, directed=True)
        self.undirected = networkit.graphtools.toUndirected(self.networkit)
        weighted = (self.weights, self.ends)
        self.weighted = networkit.GraphFromCoo(weighted, n=self.size, directed=True, weighted=True)

    def _build_scipy(self, ones):
        import scipy.sparse

        shape = (self.size, self.size)
        self.matrix = scipy.sparse.coo_array((ones, self.ends), shape=shape).T.tocsr()

    def _build_igraph(self, ones):
        import igraph

        self.igraph = igraph.Graph(n=self.size, edges=np.column_stack(self.ends), directed=True)
        self.igraph.es["weight"] = self.weights

    def simple(self):
        """Return a graph for triangles: undirected, without duplicates and loops, indexed edges."""
        import networkit

        low, high = np.minimum(*self.ends), np.maximum(*self.ends)
        keys = np.unique((low * self.size + high)[low != high])
        pairs = (keys // self.size, keys % self.size)
        graph = networkit.GraphFromCoo((np.ones(len(keys)), pairs), n=self.size, directed=False)
        graph.indexEdges()
        return graph


def candidates_of(graph, weighted, peers, *, hub):
    """Return {question: {library: call}}; the first library is talka."""
    source = int(peers.ends[0][np.argmax(graph[1][0] == hub)])
    graph = graph[0]
    ones = np.full(peers.size, 1 / peers.size)

    def ranks():
        import networkit

        run = networkit.centrality.PageRank(peers.networkit, 0.85, 0.0)
        run.maxIterations = 20
        run.run()

    def products():
        vector = ones
        for _ in range(20):
            vector = peers.matrix @ vector

    def levels():
        import networkit

        networkit.distance.BFS(peers.networkit, source, storePaths=False).run()

    def parts():
        import networkit

        networkit.components.ParallelConnectedComponents(peers.undirected).run()

    def distances():
        import networkit

        networkit.distance.Dijkstra(peers.weighted, source, storePaths=False).run()

    return {
        "PageRank, 20 supersteps": {
            "talka": graph.pagerank,
            "networkit": peer("networkit", ranks),
            "scipy, 20 products on one core": peer("scipy", products),
            "igraph, to its end": peer("igraph", lambda: peers.igraph.pagerank()),
            "talka, a user's edge program": lambda: graph.run(user_ranks()),
            "talka, a general program": lambda: graph.run(GeneralRanks()),
        },
        "BFS from a hub": {
            "talka": lambda: graph.bfs(hub),
            "networkit": peer("networkit", levels),
            "igraph": peer("igraph", lambda: peers.igraph.distances(source, mode="out")),
        },
        "Components": {
            "talka": graph.components,
            "networkit, parallel": peer("networkit", parts),
        },
        "Shortest paths": {
            "talka": lambda: weighted.sssp(hub),
            "networkit": peer("networkit", distances),
            "igraph": peer(
                "igraph", lambda: peers.igraph.distances(source, weights="weight", mode="out")
            ),
        },
    }


def rows_of(question, candidates, num_edges, *, repeats):
    present = measurable(candidates)
    for call in present.values():
        call()  # compiles, and fills caches alike
    seconds = interleaved(
        {name: lambda call=call: discard(call()) for name, call in present.items()},
        repeats=repeats,
    )
    ours, _ = spread(seconds["talka"])
    rows = [
        {
            "question": question,
            "by": name,
            "talka's speed over it": f"{spread(times)[0] / ours:.2f}",
            "M edges a second": f"{num_edges / spread(times)[0] / 1e6:.1f}",
            "seconds": f"{spread(times)[0]:.4f}",
            "fastest": f"{min(times):.4f}",
            "largest over smallest": f"{spread(times)[1]:.1f}",
        }
        for name, times in seconds.items()
    ]
    return with_missing(rows, candidates, "by")


def discard(result):
    del result


def algorithm_rows(edges, *, repeats):
    weights = np.random.default_rng(0).random(len(edges[0]))
    graph, weighted = Graph.from_edges(edges), Graph.from_edges(edges, weights)
    peers = Peers(edges, weights)
    hub = graph.vertex_of(0)
    questions = candidates_of((graph, edges), weighted, peers, hub=hub)
    rows = []
    for question, candidates in questions.items():
        times = 20 if question.startswith("PageRank") else 1
        rows += rows_of(question, candidates, times * graph.num_edges, repeats=repeats)
    return rows + triangle_rows(graph, peers)


def triangle_rows(graph, peers):
    """Measure only once: networkit takes half a minute at scale 20."""
    simple = peer("networkit", peers.simple)
    simple = simple and simple()

    def scores():
        import networkit

        networkit.sparsification.TriangleEdgeScore(simple).run()

    candidates = {"talka": graph.triangles, "networkit, edge scores": simple and scores}
    return rows_of("Triangles", candidates, graph.num_edges, repeats=1)


def partition_rows(edges, counts, *, repeats):
    """Compare PageRank in partitions that only exchange messages with one that threads share."""
    graph = Graph.from_edges(edges)
    ways = {"1, shared": RunOptions()}
    for count in counts:
        for how in ("ranges", "hash", "vertex_cut"):
            ways[f"{count}, {how}"] = RunOptions(num_partitions=count, partitioning=how)
    program = user_ranks()
    done = {}

    def run(name, options):
        done[name] = run_program(graph, program, options).supersteps
        return sum(one.seconds for one in done[name])

    for name, options in ways.items():
        run(name, options)  # cuts and compiles
    seconds = interleaved(
        {name: lambda name=name, o=options: run(name, o) for name, options in ways.items()},
        repeats=repeats,
    )
    shared, _ = spread(seconds["1, shared"])
    rows = []
    for name, options in ways.items():
        report = graph.cut(options.num_partitions, options.partitioning).report
        rows.append(
            {
                "partitions": name,
                "times that of one": f"{spread(seconds[name])[0] / shared:.2f}",
                "seconds": f"{spread(seconds[name])[0]:.3f}",
                "MB a superstep": f"{done[name][1].sent_bytes / 1e6:.2f}",
                "predicted": f"{report.superstep_bytes / 1e6:.2f}",
                "cut edges": f"{report.cut_edges:.0%}",
                "balance": f"{report.balance:.2f}",
            }
        )
    return rows


def growth_row(scale):
    code = GROWTH.replace("SCALE", str(scale))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    peak, *took = map(float, done.stdout.split())
    num_edges = 16 << scale
    names = ("build", "pagerank, 20 supersteps", "bfs", "components")
    nanoseconds = {
        f"{name}, ns an edge": f"{seconds / num_edges * 1e9:.1f}"
        for name, seconds in zip(names, took, strict=True)
    }
    return {
        "scale": scale,
        "edges": f"{num_edges:,}",
        **nanoseconds,
        "bytes an edge at the peak": f"{peak / num_edges:.1f}",
    }


def epinions():
    with gzip.open(DATA / "graphs" / "soc-Epinions1.txt.gz") as file:
        return tuple(np.loadtxt(file, np.int64).T)


def main():
    args = arguments(__doc__, PRESETS)
    preset = PRESETS[args.preset]
    edges = rmat(preset["scale"])
    repeats = preset["repeats"]
    tables = {"How the cost grows": [growth_row(scale) for scale in preset["scales"]]}
    name = f"R-MAT of scale {preset['scale']}, {len(edges[0]):,} edges"
    tables[name] = algorithm_rows(edges, repeats=repeats)
    tables[f"PageRank in partitions, {name}"] = partition_rows(
        edges, preset["partitions"], repeats=repeats
    )
    if preset["real"] and DATA.exists():
        real = epinions()
        rows = algorithm_rows(real, repeats=repeats)
        tables[f"Epinions, {len(real[0]):,} edges"] = rows
    publish(args, "How fast are programs over graphs, beside other libraries?", tables)


if __name__ == "__main__":
    main()
