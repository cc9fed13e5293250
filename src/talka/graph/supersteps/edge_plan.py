"""The form in which an edge program reaches its tasks, and the state it leaves between them."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class EdgePlan:
    """The source text and plain values of an edge program, as tasks need them.

    Names and order of the fields are part of the identity that checkpoints store; `identity.py`
    translates fields that have been renamed.
    """

    text: str
    value_type: str
    message_type: str
    identity: float
    """Neutral element of `combine`: it stands for the absence of a message."""
    has_frontier: bool
    has_settled: bool
    is_weighted: bool
    local_rounds: bool
    """True if partitions run several rounds on their own vertices between two exchanges."""
    parameters: tuple[float, ...]
    aggregates: dict[str, str]
    """How each aggregate is combined."""


class State(NamedTuple):
    """Values of vertices, and the places of those that send messages."""

    values: NDArray[Any]
    frontier: NDArray[np.uint32] | None
    """Places of the vertices that send; None: all of them do."""
