"""Messages between processes: one transport for users' channels, collectives and exchanges.

group.py       send, receive and collectives of one rank: what users and exchanges call
mailbox.py     all messages of one process: matches what arrives with what is awaited
link.py        one direction between two ranks: a stream, its queue and its reader
streams.py     bytes over Unix sockets and TCP; curve.py: encrypted, by ZeroMQ
handshake.py   proof of the secret; frames.py: headers and limits; coding.py: values as bytes
"""

from talka.channels.group import Group
from talka.channels.mailbox import Mailbox
from talka.channels.options import MailboxOptions
from talka.channels.rendezvous import Rendezvous

__all__ = ["Group", "Mailbox", "MailboxOptions", "Rendezvous"]
