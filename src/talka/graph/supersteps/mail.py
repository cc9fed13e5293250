"""Mail: the messages of one partition to another in a superstep, as an array in one of four forms.

    empty                      no messages
    messages                   one for every place of the route, in its order
    records (place, message)   for some places
    records (optional)         one for every place; `no_message` where there is none

In an edge program a value equal to `no_message` is not a message in any form. In a vertex program
it is one, except in the form `optional`.

Both sides know the route (`Partition`), so mail holds no vertex numbers. The shorter form is chosen
from counts only: the same messages always take the same bytes.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

OPTIONAL: Final = "optional"


class SparseMail(NamedTuple):
    """Messages for some of the places of a route."""

    places: NDArray[np.uint32]
    """Places in ascending order."""
    messages: NDArray[Any]


def dense_mail(messages: NDArray[Any], no_message: Any) -> NDArray[Any]:
    """Return mail with one entry per place; entries of `no_message` are left out if that pays."""
    if len(messages) == 0:
        return messages
    places = np.flatnonzero(messages != no_message)
    kind = record_of(messages.dtype)
    if len(places) * kind.itemsize >= messages.nbytes:
        return messages
    sparse = SparseMail(places.astype(np.uint32), messages[places])
    return sparse_mail(sparse, len(messages), no_message)


def sparse_mail(sparse: SparseMail, num_places: int, no_message: Any) -> NDArray[Any]:
    """Return mail with messages for some places; with one per place if that is shorter."""
    kind = record_of(sparse.messages.dtype)
    if len(sparse.places) * kind.itemsize >= num_places * sparse.messages.itemsize:
        messages = np.full(num_places, no_message, sparse.messages.dtype)
        messages[sparse.places] = sparse.messages
        return messages
    records = np.empty(len(sparse.places), kind)
    records["place"], records["message"] = sparse.places, sparse.messages
    return records


def vertex_mail(
    messages: NDArray[Any], is_sent: NDArray[np.bool_], no_message: Any, *, is_local: bool = False
) -> NDArray[Any]:
    """Return the mail of a vertex program.

    Places without a message hold `no_message`, but a message may have that value, too: a sum may be
    0. Local mail is not sent, so it is never copied to become shorter.
    """
    num_sent = int(np.count_nonzero(is_sent))
    if num_sent == len(messages):
        return messages
    if num_sent == 0:
        return messages[:0]
    kind = record_of(messages.dtype)
    is_short = is_local or num_sent * kind.itemsize >= messages.nbytes
    if is_short and int(np.count_nonzero(messages != no_message)) == num_sent:
        return messages.view([(OPTIONAL, messages.dtype)])
    records = np.empty(num_sent, kind)
    records["place"], records["message"] = np.flatnonzero(is_sent), messages[is_sent]
    return records


def open_vertex_mail(
    mail: NDArray[Any], no_message: Any
) -> tuple[NDArray[np.int64] | slice, NDArray[Any]]:
    """Return the places of the route and the messages of mail made by `vertex_mail`."""
    names = mail.dtype.names
    if names is None:
        return slice(None), mail
    if names[0] == OPTIONAL:
        places = np.flatnonzero(mail[OPTIONAL] != no_message)
        return places, mail[OPTIONAL][places]
    return mail["place"].astype(np.int64), mail["message"]


def open_edge_mail(mail: NDArray[Any]) -> SparseMail | NDArray[Any]:
    """Return the messages for all places, or for some."""
    if mail.dtype.names is None:
        return mail
    return SparseMail(np.ascontiguousarray(mail["place"]), np.ascontiguousarray(mail["message"]))


def record_of(message: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of a record of a place and a message."""
    return np.dtype([("place", np.uint32), ("message", message)])
