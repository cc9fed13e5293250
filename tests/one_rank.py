"""A process group of one rank inside the test process: it needs no sockets and no other process."""

import contextlib

import torch.distributed as dist


@contextlib.contextmanager
def one_rank():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()
