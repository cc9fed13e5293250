"""Where the walker of a personalised PageRank begins again."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from talka.errors import InvalidValueError
from talka.graph.algorithms.answers import Vertices, numbers_of

if TYPE_CHECKING:
    from talka.graph.graph import Graph

Sources = Vertices | Mapping[Any, float]
"""Ids, or ids with weights."""


def restart_shares(graph: "Graph", sources: Sources) -> NDArray[np.float64]:
    """The share of jumps that go to each vertex, by number."""
    if isinstance(sources, Mapping):
        vertices, weights = list(sources), np.array(list(sources.values()), np.float64)
        numbers = numbers_of(graph, vertices, "sources")
    else:
        numbers = numbers_of(graph, sources, "sources")
        weights = np.ones(len(numbers))
    if not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
        raise InvalidValueError("sources", sources, "ids with weights of 0 or more, not all 0")
    shares = np.bincount(numbers, weights, graph.num_vertices)
    return np.asarray(shares / weights.sum(), np.float64)
