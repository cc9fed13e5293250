"""The mailbox of this process, which all its groups and exchanges share."""

import atexit
import threading
from collections.abc import Callable

from talka.channels.mailbox import Mailbox

_lock = threading.RLock()
_provided: Callable[[], Mailbox] | None = None
_opened: tuple[object, Mailbox] | None = None


def provide(mailbox: Callable[[], Mailbox] | None) -> None:
    """Set where the mailbox of this process comes from: the gang that it is a rank of."""
    global _provided
    with _lock:
        _provided = mailbox


def is_provided() -> bool:
    """Return whether this process is a rank of a gang."""
    return _provided is not None


def world(owner: object, make: Callable[[], Mailbox]) -> Mailbox:
    """Return the mailbox of this process: that of its gang, or one that is made for the owner.

    The owner is the job that the process belongs to: if it changes, ranks mean other processes, and
    the former mailbox is closed.
    """
    global _opened
    with _lock:
        if _provided is not None:
            return _provided()
        if _opened is None or _opened[0] is not owner or _opened[1].is_closed:
            leave()
            _opened = (owner, make())
            atexit.register(leave)
        return _opened[1]


def leave() -> None:
    """Close the mailbox that was made for this process, if there is one."""
    global _opened
    with _lock:
        if _opened is not None:
            atexit.unregister(leave)
            _opened[1].close()
        _opened = None
