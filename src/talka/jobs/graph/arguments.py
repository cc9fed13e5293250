"""Arguments of a graph algorithm, from the configuration of a job and the ids of a graph."""

from collections.abc import Sequence
from typing import Any

from talka.graph import Graph
from talka.graph.algorithms import ALGORITHMS
from talka.jobs.graph.config import GraphConfig


def arguments_for(config: GraphConfig, graph: Graph) -> dict[str, Any]:
    """Return the keyword arguments of the algorithm, except the graph and its options."""
    arguments = config.arguments
    keywords: dict[str, Any] = {
        "damping": arguments.damping,
        "num_supersteps": arguments.num_supersteps,
        "tolerance": arguments.tolerance,
    }
    if arguments.source:
        name = "source" if ALGORITHMS[config.algorithm].needs_source else "sources"
        keywords[name] = _ids(arguments.source, graph)
    return {name: value for name, value in keywords.items() if value is not None}


def _ids(typed: Sequence[str], graph: Graph) -> list[int | str]:
    """Convert ids to the type of the graph's ids; the graph rejects text that is not a number."""
    if graph.ids.are_strings:
        return list(typed)
    return [int(text) if text.lstrip("-").isdecimal() else text for text in typed]
