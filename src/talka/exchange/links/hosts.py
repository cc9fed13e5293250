"""Finding the ranks that share a host, and the facts about each host."""

import os
import socket
from typing import NamedTuple

from talka.channels import Group
from talka.machine import num_cores, own_address


class HostFacts(NamedTuple):
    """Facts about the machine of a rank."""

    name: str
    address: str
    """IP address from which it reaches MASTER_ADDR; empty if that is not set."""
    num_cores: int


def hosts_of_all(group: Group) -> tuple[int, ...]:
    """Return the host of every rank of a group, numbered from 0. All ranks must call it.

    A host is identified by `GROUP_RANK`, which torchrun and the lab set, or by the machine's name.
    """
    names = group.all_gather(os.environ.get("GROUP_RANK") or socket.gethostname())
    order = list(dict.fromkeys(names))
    return tuple(order.index(name) for name in names)


def facts_of_all(group: Group) -> list[HostFacts]:
    """Return the facts about the machine of every rank of a group. All ranks must call it."""
    address = own_address(os.environ.get("MASTER_ADDR", ""))
    facts = group.all_gather((socket.gethostname(), address, num_cores()))
    return [HostFacts(*fact) for fact in facts]
