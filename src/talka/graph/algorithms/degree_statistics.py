"""Statistics of degrees, isolated vertices, loops and duplicates, without running a program."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from talka.graph.csr import Csr
from talka.graph.graph import GraphData

PERCENTILES: Final = (1, 5, 25, 75, 95, 99)


def degree_statistics(graph: GraphData) -> dict[str, Any]:
    """Return counts for the whole graph and the distributions of in-degrees and out-degrees.

    Of several edges with the same ends all but one are duplicates. A vertex without any edge is
    isolated.
    """
    incoming, outgoing = graph.degrees()
    num_loops, num_duplicates = _loops_and_duplicates(graph.out, directed=graph.directed)
    return {
        "num_vertices": graph.num_vertices,
        "num_edges": graph.num_edges,
        "num_isolated": int(((incoming == 0) & (outgoing == 0)).sum()),
        "num_loops": num_loops,
        "num_duplicates": num_duplicates,
        "in": _spread(incoming),
        "out": _spread(outgoing),
    }


def _loops_and_duplicates(out: Csr, *, directed: bool) -> tuple[int, int]:
    rows = np.repeat(np.arange(out.num_rows, dtype=np.uint32), out.degrees())
    is_loop = rows == out.columns
    is_again = np.zeros(out.num_entries, np.bool_)
    is_again[1:] = (rows[1:] == rows[:-1]) & (out.columns[1:] == out.columns[:-1])
    num_loops, num_again = int(is_loop.sum()), int(is_again.sum())
    if directed:
        return num_loops, num_again
    loops_again = int((is_loop & is_again).sum())  # loops are stored once, other edges twice
    return num_loops, (num_again + loops_again) // 2


def _spread(degrees: NDArray[np.int64]) -> dict[str, Any]:
    """Return statistics of a distribution; all are None for a graph without vertices."""
    if len(degrees) == 0:
        return dict.fromkeys(("min", "mean", "median", "max", "percentiles"))
    percentiles = np.percentile(degrees, PERCENTILES, method="inverted_cdf").tolist()
    return {
        "min": int(degrees.min()),
        "mean": float(degrees.mean()),
        "median": float(np.median(degrees)),
        "max": int(degrees.max()),
        "percentiles": dict(zip(map(str, PERCENTILES), percentiles, strict=True)),
    }
