"""Values of own vertices for whoever has them as neighbours: one for each mirror, however many edges.

A message goes to a vertex. Here it is meant for a partition, so all that one says to another goes to
the first vertex that both know. For undirected graphs, where knowing is mutual.
"""

from itertools import pairwise
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from talka.graph.programs.step import Step

MESSAGE: Final = np.dtype([("vertex", np.uint32), ("value", np.uint32)])
INDICES: Final[dict[str, Literal["num_own", "num_vertices"]]] = {
    "vertex": "num_vertices",
    "value": "num_vertices",
}


def spread(step: Step, values: NDArray[np.uint32]) -> None:
    """Tell every partition the values of own vertices that it keeps as mirrors."""
    partition = step.partition
    for q, (start, stop) in enumerate(pairwise(partition.receive_place_offsets)):
        if start < stop:
            places = partition.receive_places[start:stop]
            messages = np.empty(len(places), MESSAGE)
            messages["vertex"], messages["value"] = partition.own[places], values[places]
            receiver = partition.target_mirrors[partition.target_mirror_offsets[q]]
            step.send(np.full(len(places), receiver), messages)


def gathered(step: Step, values: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Own values, and what was told of mirrors: an entry for each target slot."""
    messages = step.inbox.messages
    by_number = np.zeros(step.num_vertices, np.uint32)  # of mirrors; no other entry is read
    by_number[messages["vertex"]] = messages["value"]
    return np.concatenate([values, by_number[step.partition.target_mirrors]])
