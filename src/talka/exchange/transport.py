"""Channels for the ranks of a torch process group: exchanges send nothing through gloo.

Ranks find each other through the store of torch's default process group, whatever its backend.
"""

import datetime
import os
import socket
from collections.abc import Sequence
from typing import Any, Final

import torch.distributed as dist

from talka.channels import Group, Mailbox
from talka.channels.rendezvous import new_secret
from talka.channels.world import world
from talka.errors import RendezvousTimeoutError

_PREFIX: Final = "talka/"
_WAIT_S: Final = 600.0


class StoreRendezvous:
    """Keys and values in the store of torch.distributed."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def set(self, key: str, value: bytes) -> None:
        """Set a key."""
        self._store.set(_PREFIX + key, value)

    def get(self, key: str, *, timeout_s: float | None = None) -> bytes:
        """Wait for a key, and return its value."""
        limit_s = _WAIT_S if timeout_s is None else timeout_s
        try:
            self._store.wait([_PREFIX + key], datetime.timedelta(seconds=limit_s))
        except (RuntimeError, dist.DistStoreError) as error:
            raise RendezvousTimeoutError(key, limit_s) from error
        value: bytes = self._store.get(_PREFIX + key)
        return value


Members = dist.ProcessGroup | Group | Sequence[int] | None
"""Workers among which something is exchanged: a process group, a group of channels, or ranks of all
workers; None for all."""


def group_of(members: Members, name: str) -> Group:
    """Return a group of channels for some workers; all of them must call it, in the same order."""
    if isinstance(members, Group):
        return Group(members.mailbox, members.global_ranks, name=name)
    return Group(_mailbox(), _ranks(members), name=name)


def num_members(members: Members) -> int:
    """Return the number of workers."""
    return members.size if isinstance(members, Group) else len(_ranks(members))


def _ranks(members: dist.ProcessGroup | Sequence[int] | None) -> Sequence[int]:
    if isinstance(members, Sequence):
        return members
    return dist.get_process_group_ranks(members)


def _mailbox() -> Mailbox:
    default = dist.group.WORLD
    return world(default, _new_mailbox)


def _new_mailbox() -> Mailbox:
    rendezvous = StoreRendezvous(dist.distributed_c10d._get_default_store())
    rank = dist.get_rank()
    if rank == 0:
        rendezvous.set("secret", new_secret())
    secret = rendezvous.get("secret")
    return Mailbox(rank, dist.get_world_size(), rendezvous, secret, address=own_address())


def own_address() -> str:
    """Return the address of this machine on the network of MASTER_ADDR; loopback without one."""
    master = os.environ.get("MASTER_ADDR")
    if not master:
        return "127.0.0.1"
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((master, 9))  # sends nothing: it only picks the interface
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"
