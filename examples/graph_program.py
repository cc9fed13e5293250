"""Two custom programs on a graph of roads: one made of functions, one that works on whole arrays.

    python examples/graph_program.py        # a few seconds, mostly for compiling the first time

You should see the widest road to every town, and that most towns have fewer roads than their
neighbours.
"""

from typing import ClassVar

import numpy as np

from talka.graph import EdgeProgram, Graph, RunOptions, VertexProgram, run_program

ROADS = [("ash", "birch", 7.0), ("birch", "cedar", 3.0), ("ash", "cedar", 2.0), ("cedar", "elm", 9.0),
         ("birch", "elm", 1.0), ("elm", "fir", 1.5), ("cedar", "gorse", 5.0), ("cedar", "hazel", 2.5)]  # fmt: skip


def widest(source):
    """Find the widest route to every town; a route is as wide as its narrowest road."""
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
    """Mean number of roads of a town's neighbours, and the number of towns with fewer roads."""

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
answer = graph.run(widest(graph.number_of("ash")), RunOptions(num_partitions=2)).to_pydict()
for town, width in zip(answer["vertex"], answer["value"], strict=True):
    print(f"{town:6} {width:4}")

outdone = run_program(graph, NeighbourDegrees(), RunOptions()).aggregates["num_outdone"]
print(f"{outdone:.0f} of {graph.num_vertices} towns have fewer roads than their neighbours")

assert answer["value"] == [np.inf, 7.0, 3.0, 3.0, 1.5, 3.0, 2.5]
assert outdone == 5
