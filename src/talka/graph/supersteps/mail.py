"""What one partition says to another in a superstep: an array, in one of four forms.

    empty                      nothing
    messages                   one for every place of the route, in its order
    records (place, message)   for some places
    records (optional)         one for every place; `nothing` where there is no message

In an edge program a message that equals `nothing` is no message in any form. In a general program it
is one, unless it is an optional message.

Both ends know the route (`Partition`), so no vertex is ever named. The shorter form is taken, from
counts alone: the same messages always take the same bytes.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

OPTIONAL: Final = "optional"


class SparseMail(NamedTuple):
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
    return mail_of_some(SparseMail(said.astype(np.uint32), messages[said]), len(messages), nothing)


def mail_of_some(some: SparseMail, num_places: int, nothing: Any) -> NDArray[Any]:
    """Mail with messages for some places, ascending."""
    kind = record_of(some.messages.dtype)
    if len(some.places) * kind.itemsize >= num_places * some.messages.itemsize:
        messages = np.full(num_places, nothing, some.messages.dtype)
        messages[some.places] = some.messages
        return messages
    records = np.empty(len(some.places), kind)
    records["place"], records["message"] = some.places, some.messages
    return records


def mail_of_sent(
    messages: NDArray[Any], is_sent: NDArray[np.bool_], nothing: Any, *, is_local: bool = False
) -> NDArray[Any]:
    """Return the mail of a general program.

    Places without a message hold `nothing`, but so may places with one: a sum may be 0. Local mail
    does not travel, so it is never copied to become shorter.
    """
    num_sent = int(np.count_nonzero(is_sent))
    if num_sent == len(messages):
        return messages
    if num_sent == 0:
        return messages[:0]
    kind = record_of(messages.dtype)
    is_short = is_local or num_sent * kind.itemsize >= messages.nbytes
    if is_short and int(np.count_nonzero(messages != nothing)) == num_sent:
        return messages.view([(OPTIONAL, messages.dtype)])
    records = np.empty(num_sent, kind)
    records["place"], records["message"] = np.flatnonzero(is_sent), messages[is_sent]
    return records


def sent_in(mail: NDArray[Any], nothing: Any) -> tuple[NDArray[np.int64] | slice, NDArray[Any]]:
    """Return the places of the route and the messages of `mail_of_sent`."""
    names = mail.dtype.names
    if names is None:
        return slice(None), mail
    if names[0] == OPTIONAL:
        places = np.flatnonzero(mail[OPTIONAL] != nothing)
        return places, mail[OPTIONAL][places]
    return mail["place"].astype(np.int64), mail["message"]


def opened(mail: NDArray[Any]) -> SparseMail | NDArray[Any]:
    """The messages for all places, or for some."""
    if mail.dtype.names is None:
        return mail
    return SparseMail(np.ascontiguousarray(mail["place"]), np.ascontiguousarray(mail["message"]))


def record_of(message: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype([("place", np.uint32), ("message", message)])
