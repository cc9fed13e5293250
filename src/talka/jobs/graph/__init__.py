"""Plans of graph algorithms: from a file of edges to a value for every vertex (`talka graph`)."""

from talka.jobs.graph.config import Arguments, GraphConfig, Input, Placement
from talka.jobs.graph.layout import GraphLayout
from talka.jobs.graph.plan import GraphPlan

__all__ = ["Arguments", "GraphConfig", "GraphLayout", "GraphPlan", "Input", "Placement"]
