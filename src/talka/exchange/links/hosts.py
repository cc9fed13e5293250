"""Which ranks share a host."""

import hashlib
import os
import socket

import torch
import torch.distributed as dist


def hosts_of_all(group: dist.ProcessGroup | None) -> tuple[int, ...]:
    """The host of every rank of a group, numbered as they come; all ranks have to call it.

    A host is a `GROUP_RANK`, as torchrun and the lab set it, or else the machine's name.
    """
    name = os.environ.get("GROUP_RANK") or socket.gethostname()
    number = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest(), "big")
    gathered = [torch.empty(1, dtype=torch.int64) for _ in range(dist.get_world_size(group))]
    dist.all_gather(gathered, torch.tensor([number]), group=group)
    numbers = [int(one) for one in gathered]
    order = list(dict.fromkeys(numbers))
    return tuple(order.index(number) for number in numbers)
