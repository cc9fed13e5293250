"""A gang inside torchrun: its ranks exist already, and this process is one of them."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from talka.engine import storage
from talka.engine.gangs.worker import GangWorker
from talka.engine.storage import PackedValue
from talka.errors import InvalidValueError
from talka.events import RUN_DIR_VARIABLE, Stream


def existing_gang(
    main: Callable[..., Any], args: Sequence[Any], *, size: int, events: Stream
) -> list[Any]:
    """Run `main` as this rank and return the results of all ranks."""
    world_size = int(os.environ["WORLD_SIZE"])
    if size != world_size:
        allowed = f"{world_size}, the number of ranks that torchrun started"
        raise InvalidValueError("size", size, allowed)
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    rank = dist.get_rank()
    worker = GangWorker(rank, size, _stream(rank, events), log_path=None)
    return _gathered(main(worker, *args), size)


def _stream(rank: int, events: Stream) -> Stream:
    folder = os.environ.get(RUN_DIR_VARIABLE) or events.dir
    if folder is None:
        return Stream()
    Path(folder).mkdir(parents=True, exist_ok=True)
    return Stream(Path(folder) / f"events.rank-{rank}.jsonl")


def _gathered(value: Any, size: int) -> list[Any]:
    """Return the results of all ranks. They are sent in storage form, not by pickle."""
    storable = storage.to_storable(value)
    data = storable.data if isinstance(storable, PackedValue) else storage.to_buffer(storable)
    own = torch.from_numpy(np.frombuffer(data, np.uint8).copy())
    header = torch.tensor([len(own), isinstance(storable, PackedValue)])
    headers = [torch.empty_like(header) for _ in range(size)]
    dist.all_gather(headers, header)
    longest = max(int(header[0]) for header in headers)
    padded = torch.zeros(longest, dtype=torch.uint8)
    padded[: len(own)] = own
    received = [torch.empty_like(padded) for _ in range(size)]
    dist.all_gather(received, padded)
    results = []
    for data_of_rank, (length, is_packed) in zip(received, headers, strict=True):
        raw = data_of_rank[: int(length)].numpy()
        results.append(storage.from_foreign(raw, is_packed=bool(is_packed)))
    return results
