"""Finding the ranks that share a host."""

import hashlib
import os
import socket

import torch
import torch.distributed as dist


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
