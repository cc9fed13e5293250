"""Messages between processes: one transport for users' channels, collectives and exchanges.

    messages.py    send, receive and collectives of one rank: what users and exchanges call
    group.py       any ranks of a job as a group
    mailbox.py     all messages of one process; sending.py, reading.py and delivery.py do its work
    matching.py    which message is for which receive
    coding.py      values as bytes
    collectives    patterns such as ring and tree, written once
    wire           connections: streams, handshakes, headers

Names are imported on first use, since numpy and pyarrow take time.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from talka.channels.group import Group
    from talka.channels.mailbox import Mailbox
    from talka.channels.options import MailboxOptions
    from talka.channels.rendezvous import Rendezvous

__all__ = ["Group", "Mailbox", "MailboxOptions", "Rendezvous"]

_HOMES = {
    "Group": "group",
    "Mailbox": "mailbox",
    "MailboxOptions": "options",
    "Rendezvous": "rendezvous",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"talka.channels.{_HOMES[name]}"), name)
