"""What one partition says to another in a superstep: an array, in one of three forms.

    empty                      nothing
    messages                   one for every place of the route, in its order
    records (place, message)   for some places

Both ends know the route (`Part`), so no vertex is ever named. The shorter form is taken, from
counts alone: the same messages always take the same bytes.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Some(NamedTuple):
    """Messages for some places."""

    places: NDArray[np.uint32]
    messages: NDArray[Any]


def mail_of_all(messages: NDArray[Any], nothing: Any) -> NDArray[Any]:
    """Mail with a message for every place; places with `nothing` are left out where that pays."""
    if len(messages) == 0:
        return messages
    said = np.flatnonzero(messages != nothing)
    kind = record_of(messages.dtype)
    if len(said) * kind.itemsize >= messages.nbytes:
        return messages
    return mail_of_some(Some(said.astype(np.uint32), messages[said]), len(messages), nothing)


def mail_of_some(some: Some, num_places: int, nothing: Any) -> NDArray[Any]:
    """Mail with messages for some places, ascending."""
    kind = record_of(some.messages.dtype)
    if len(some.places) * kind.itemsize >= num_places * some.messages.itemsize:
        messages = np.full(num_places, nothing, some.messages.dtype)
        messages[some.places] = some.messages
        return messages
    records = np.empty(len(some.places), kind)
    records["place"], records["message"] = some.places, some.messages
    return records


def opened(mail: NDArray[Any]) -> Some | NDArray[Any]:
    """The messages for all places, or for some."""
    if mail.dtype.names is None:
        return mail
    return Some(np.ascontiguousarray(mail["place"]), np.ascontiguousarray(mail["message"]))


def record_of(message: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype([("place", np.uint32), ("message", message)])
