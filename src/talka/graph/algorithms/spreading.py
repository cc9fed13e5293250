"""Exchange of values between partitions: one message per mirror, however many edges it has.

A message has a vertex as its receiver, but these are meant for a whole partition. They are sent to
the first of its vertices that the sender has as a mirror. Only for undirected graphs, in which two
partitions always mirror vertices of each other.
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
    """Send each partition the values of own vertices that it has as mirrors."""
    partition = step.partition
    for q, (start, stop) in enumerate(pairwise(partition.receive_place_offsets)):
        if start < stop:
            places = partition.receive_places[start:stop]
            messages = np.empty(len(places), MESSAGE)
            messages["vertex"], messages["value"] = partition.own[places], values[places]
            receiver = partition.target_mirrors[partition.target_mirror_offsets[q]]
            step.send(np.full(len(places), receiver), messages)


def gathered(step: Step, values: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return own values and the values that arrived for mirrors, with an entry per target slot."""
    messages = step.inbox.messages
    by_number = np.zeros(step.num_vertices, np.uint32)  # only entries of mirrors are read
    by_number[messages["vertex"]] = messages["value"]
    return np.concatenate([values, by_number[step.partition.target_mirrors]])
