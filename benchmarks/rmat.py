"""Graphs with few hubs and many small vertices, as the Graph500 benchmark draws them (R-MAT).

Every edge passes `scale` levels; in each it picks one of four quarters of the adjacency matrix with
the probabilities 0.57, 0.19, 0.19, 0.05. Then the vertices are shuffled, so that ids are independent
of degrees. Duplicates and loops are kept. The same seed gives the same edges on any machine and with
any number of threads: edge i draws from a generator that starts at i.
"""

import numpy as np

from talka.compiled import compiled
from talka.graph.kernels.threads import over_ranges
from talka.machine import num_cores

# Of 2**32: below the first a quarter is the upper left, below the second the upper right, ...
_LEFT_ABOVE = np.uint64(round(0.57 * 2**32))
_ABOVE = np.uint64(round(0.76 * 2**32))
_LEFT_BELOW = np.uint64(round(0.95 * 2**32))
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def rmat(scale, edge_factor=16, seed=1):
    """Return int64 (sources, targets) of `edge_factor * 2**scale` edges of `2**scale` vertices."""
    num_edges = edge_factor << scale
    sources, targets = np.empty(num_edges, np.int64), np.empty(num_edges, np.int64)
    shuffled = np.random.default_rng(seed).permutation(1 << scale)
    cuts = np.linspace(0, num_edges, num_cores() + 1).astype(np.int64)
    over_ranges(_draw, cuts, np.uint64(seed), scale, shuffled, sources, targets)
    return sources, targets


@compiled
def _mixed(state):
    """Apply the output function of SplitMix64."""
    state = (state ^ state >> np.uint64(30)) * _MIX_1
    state = (state ^ state >> np.uint64(27)) * _MIX_2
    return state ^ state >> np.uint64(31)


@compiled
def _draw(start, stop, seed, scale, shuffled, sources, targets):
    for edge in range(start, stop):
        state = _mixed(_mixed(np.uint64(edge)) ^ seed)
        source = target = 0
        for _ in range(scale):
            state += _STEP
            drawn = _mixed(state) >> np.uint64(32)
            below = drawn >= _ABOVE
            right = drawn >= _LEFT_BELOW if below else drawn >= _LEFT_ABOVE
            source = source << 1 | below
            target = target << 1 | right
        sources[edge] = shuffled[source]
        targets[edge] = shuffled[target]
