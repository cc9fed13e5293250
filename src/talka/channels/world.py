"""The mailbox of this process, which all its groups and exchanges share."""

import atexit
import threading
from collections.abc import Callable

from talka.channels.mailbox import Mailbox

_lock = threading.Lock()
_mailbox: Mailbox | None = None
_owner: object = None


def world(owner: object, make: Callable[[], Mailbox]) -> Mailbox:
    """Return the mailbox of this process; make it if there is none for this owner.

    The owner is the job that the process belongs to: if it changes, the ranks mean other processes,
    and the former mailbox is closed.
    """
    global _mailbox, _owner
    with _lock:
        if _mailbox is None or _owner is not owner or _mailbox.is_closed:
            if _mailbox is not None:
                _mailbox.close()
            else:
                atexit.register(leave)
            _mailbox, _owner = make(), owner
        return _mailbox


def leave() -> None:
    """Close the mailbox of this process, if it has one."""
    global _mailbox, _owner
    with _lock:
        if _mailbox is not None:
            atexit.unregister(leave)
            _mailbox.close()
        _mailbox = _owner = None
