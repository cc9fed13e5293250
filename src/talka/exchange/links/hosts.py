"""Finding the ranks that share a host, and the facts about each host."""

import hashlib
import os
import socket
from typing import NamedTuple

import torch
import torch.distributed as dist

from talka.machine import num_cores, own_address

_FACT_BYTES = 512


class HostFacts(NamedTuple):
    """Facts about the machine of a rank."""

    name: str
    address: str
    """IP address from which it reaches MASTER_ADDR; empty if that is not set."""
    num_cores: int


def hosts_of_all(group: dist.ProcessGroup | None) -> tuple[int, ...]:
    """Return the host of every rank of a group, numbered from 0. All ranks must call it.

    A host is identified by `GROUP_RANK`, which torchrun and the lab set, or by the machine's name.
    """
    name = os.environ.get("GROUP_RANK") or socket.gethostname()
    number = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest(), "big")
    gathered = [torch.empty(1, dtype=torch.int64) for _ in range(dist.get_world_size(group))]
    dist.all_gather(gathered, torch.tensor([number]), group=group)
    numbers = [int(tensor) for tensor in gathered]
    order = list(dict.fromkeys(numbers))
    return tuple(order.index(number) for number in numbers)


def facts_of_all(group: dist.ProcessGroup | None = None) -> list[HostFacts]:
    """Return the facts about the machine of every rank of a group. All ranks must call it.

    They are sent as text in tensors of a fixed length: nothing is unpickled.
    """
    master = os.environ.get("MASTER_ADDR", "")
    text = f"{num_cores()}\n{own_address(master)}\n{socket.gethostname()}".encode()[:_FACT_BYTES]
    own = torch.zeros(_FACT_BYTES, dtype=torch.uint8)
    own[: len(text)] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    gathered = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(gathered, own, group=group)
    facts = []
    for tensor in gathered:
        received = tensor.numpy().tobytes().rstrip(b"\0").decode("utf-8", "replace")
        cores, address, name = received.split("\n", 2)
        facts.append(HostFacts(name, address, int(cores)))
    return facts
