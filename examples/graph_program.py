"""Two programs of one's own over a graph of roads: one of functions, one of whole arrays.

    python examples/graph_program.py        # a few seconds, most of them to compile, once

You should see the widest road to every town, and that neighbours have more roads than oneself.
"""

from typing import ClassVar

import numpy as np

from talka.graph import EdgeProgram, Graph, RunOptions, VertexProgram, run_program

ROADS = [("ash", "birch", 7.0), ("birch", "cedar", 3.0), ("ash", "cedar", 2.0), ("cedar", "elm", 9.0),
         ("birch", "elm", 1.0), ("elm", "fir", 1.5), ("cedar", "gorse", 5.0), ("cedar", "hazel", 2.5)]  # fmt: skip


def widest(source):
    """A road is as wide as its narrowest piece; a town keeps the widest that it hears of."""
    return EdgeProgram(
        initial=lambda vertex, source: np.inf if vertex == source else 0.0,
        message=lambda value, weight: min(value, weight),
        combine="max",
        update=lambda value, combined: max(value, combined),
        active=lambda old, value: value > old,
        starts=lambda value: value > 0,
        order_independent=True,  # the order of messages does not change the widest
        parameters={"source": source},
    )


class NeighbourDegrees(VertexProgram):
    """The mean number of roads that neighbours have; counts those who have fewer themselves."""

    columns: ClassVar = {"mean_of_neighbours": np.float64}
    combine = "sum"
    aggregates: ClassVar = {"num_outdone": "sum"}

    def compute(self, step):
        if step.superstep == 0:
            step.send_along_edges(step.out_degrees)
        else:
            step["mean_of_neighbours"] = step.combined / np.maximum(step.in_degrees, 1)
            outdone = step["mean_of_neighbours"] > step.out_degrees
            step.aggregate("num_outdone", int(outdone.sum()))
        step.vote_to_halt()


sources, targets, widths = zip(*ROADS, strict=True)
graph = Graph.from_edges((sources, targets), widths, directed=False)
found = graph.run(widest(graph.number_of("ash")), RunOptions(num_partitions=2)).to_pydict()
for town, width in zip(found["vertex"], found["value"], strict=True):
    print(f"{town:6} {width:4}")

outdone = run_program(graph, NeighbourDegrees(), RunOptions()).aggregates["num_outdone"]
print(f"{outdone:.0f} of {graph.num_vertices} towns have fewer roads than their neighbours")

assert found["value"] == [np.inf, 7.0, 3.0, 3.0, 1.5, 3.0, 2.5]
assert outdone == 5
