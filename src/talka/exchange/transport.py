"""Channels for the ranks of a torch process group: exchanges send nothing through gloo.

Ranks of a gang have channels already. Others find each other through the store of torch's default
process group, whatever its backend, or through that of torchrun.
"""

import os
from collections.abc import Sequence
from typing import Final

import torch.distributed as dist

from talka.channels import Group, Mailbox, MailboxOptions
from talka.channels.messages import Channels
from talka.channels.rendezvous import new_secret
from talka.channels.world import world
from talka.engine.gangs.keys import MemoryRendezvous
from talka.engine.gangs.torchrun import StoreRendezvous, store_of_job
from talka.machine import own_address

ENCRYPT_VARIABLE: Final = "TALKA_ENCRYPT"
"""Environment variable: 1 encrypts messages between machines, outside of gangs of talka."""

Members = dist.ProcessGroup | Channels | Sequence[int] | None
"""Workers among which something is exchanged: a process group, a group of channels or the worker of
a gang, or ranks; None for all workers."""


def group_of(members: Members, name: str) -> Group:
    """Return a group of channels for some workers; all of them must call it, in the same order."""
    if isinstance(members, Channels):
        return Group(members.mailbox, members.global_ranks, name=name)
    return Group(_mailbox(), _ranks(members), name=name)


def num_members(members: Members) -> int:
    """Return the number of workers."""
    return members.size if isinstance(members, Channels) else len(_ranks(members))


def _ranks(members: dist.ProcessGroup | Sequence[int] | None) -> Sequence[int]:
    if isinstance(members, Sequence):
        return members
    if members is None:
        return range(_mailbox().size)
    return dist.get_process_group_ranks(members)


def _mailbox() -> Mailbox:
    """Return the mailbox of this process; one that no launcher started is the only worker."""
    if dist.is_initialized():
        return world(dist.group.WORLD, _new_mailbox)
    if "WORLD_SIZE" in os.environ:
        return world("launched", _new_mailbox)
    return world("alone", lambda: Mailbox(0, 1, MemoryRendezvous(), new_secret()))


def _new_mailbox() -> Mailbox:
    """Connect with the other ranks through torch's store, whether or not they have a group."""
    rendezvous = StoreRendezvous(store_of_job("talka/channels"))
    rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if dist.is_initialized():
        rank, size = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        rendezvous.set("secret", new_secret())
    return Mailbox(
        rank,
        size,
        rendezvous,
        rendezvous.get("secret"),
        address=own_address(os.environ.get("MASTER_ADDR", "")) or "127.0.0.1",
        options=MailboxOptions(encrypt=os.environ.get(ENCRYPT_VARIABLE) == "1"),
    )
