"""The graph job: from a file of edges to a value for every vertex (`talka graph`)."""

from talka.jobs.graph.config import Arguments, GraphConfig, Input, Placement
from talka.jobs.graph.job import GraphJob

__all__ = ["Arguments", "GraphConfig", "GraphJob", "Input", "Placement"]
