"""All kernels of partitions, components, triangles, labels and cores, with their bounds checked:

NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=/tmp/checked python -m tests.graph.kernels.checked_kernels

`boundscheck=False` hides what is read or written outside of an array.
"""

import numba
import numpy as np

from talka.graph.kernels.components import (
    components,
    flatten,
    forest,
    smallest_in_trees,
    unite_rows,
)
from talka.graph.kernels.cores import cores, peel
from talka.graph.kernels.labels import most_frequent
from talka.graph.kernels.simple import forward_neighbours, neighbours
from talka.graph.kernels.triangles import clustering, count_closing, triangles
from talka.graph.partitions.cutting import WAYS, cut
from tests.graph.edges import Edges, hubs

LOOPS = [(0, 0), (2, 2), (2, 2), (1, 2), (2, 1)]
GRAPHS = [
    Edges(0, []),
    Edges(1, []),
    Edges(1, [(0, 0)]),
    Edges(4, []),
    Edges(4, LOOPS, weighted=True),
    Edges(4, LOOPS, directed=False, weighted=True),
    Edges(40, [(a, b) for a in range(40) for b in range(40)]),
    Edges(40, [(0, b) for b in range(40)], directed=False),
    hubs(scale=8),
    hubs(scale=8, directed=False),
]


def run(edges, num_threads):
    out, into = edges.sides()
    every = np.arange(edges.num_vertices, dtype=np.uint32)
    for how in WAYS:
        for num_partitions in (2, 5):
            for part in cut(out, into, num_partitions, how, num_threads=num_threads).partitions:
                trees = forest(len(part.target_numbers) + len(part.source_mirrors))
                places = np.arange(part.out.num_rows, dtype=np.uint32)
                unite_rows(trees, part.out, places, num_threads)
                flatten(trees)
                smallest_in_trees(trees, np.arange(len(trees), dtype=np.uint32))
    components(out, into, num_threads)
    triangles(out, into, num_threads)
    clustering(out, into, num_threads)
    lists = forward_neighbours(out, into, num_threads)
    count_closing(every, lists, every, lists, edges.num_vertices)
    most_frequent(out, into, every, edges.num_vertices, num_threads)
    cores(out, into, num_threads)
    around = neighbours(out, into, num_threads)
    peel(around.offsets, around.members, np.minimum(around.lengths(), every))


if __name__ == "__main__":
    assert numba.config.BOUNDSCHECK, "set NUMBA_BOUNDSCHECK=1"
    for graph in GRAPHS:
        for threads in (1, 3):
            run(graph, threads)
            print(f"{graph.num_vertices} vertices, {threads} threads")
