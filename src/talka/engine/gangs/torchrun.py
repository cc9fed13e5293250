"""A gang inside torchrun: its ranks exist already, and this process is one of them."""

import itertools
import os
import secrets
import threading
import time
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import torch
import torch.distributed as dist

from talka.channels.rendezvous import TIMEOUT_S, check_key, check_value
from talka.engine import storage
from talka.engine.base import Gang
from talka.engine.gangs.spec import GangSpec
from talka.engine.gangs.worker import GangWorker
from talka.engine.storage import PackedValue
from talka.errors import InvalidValueError, RendezvousTimeoutError
from talka.events import RUN_DIR_VARIABLE, Stream
from talka.machine import own_address

_numbers = itertools.count()
"""Number of gangs in this process; the same in all ranks, as all start the same gangs."""
_POLL_S: Final = (0.001, 0.05)
_DONE_S: Final = 7 * 24 * 3600.0  # a rank may finish days after another


class ExistingGang(Gang):
    """The handle of a gang under torchrun. `wait` runs `main` as this rank, in the calling thread.

    torchrun itself ends all ranks if one fails, so `on_failure`, time limits and `stop` have no effect.
    """

    def __init__(self, spec: GangSpec, events: Stream) -> None:
        world_size = int(os.environ["WORLD_SIZE"])
        if spec.size != world_size:
            allowed = f"{world_size}, the number of ranks that torchrun started"
            raise InvalidValueError("size", spec.size, allowed)
        self._spec, self._events = spec, events
        self._results: list[Any] | None = None

    def wait(self, timeout_s: float | None = None) -> list[Any]:
        if self._results is None:
            self._results = _run(self._spec, self._events)
        return list(self._results)

    def stop(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self.wait()


class StoreRendezvous:
    """The rendezvous under torchrun: torch's store.

    A waiting `get` of that store blocks all other threads, so this one looks again and again.
    """

    def __init__(self, store: Any) -> None:
        self._store = store
        self._lock = threading.Lock()

    def set(self, key: str, value: bytes) -> None:
        """Store a value."""
        check_key(key)
        check_value(key, value)
        with self._lock:
            self._store.set(key, bytes(value))

    def get(self, key: str, timeout_s: float = TIMEOUT_S) -> bytes:
        """Wait until a key is set and return its value."""
        check_key(key)
        deadline, pause_s = time.monotonic() + timeout_s, _POLL_S[0]
        while True:
            with self._lock:
                if self._store.check([key]):
                    return bytes(self._store.get(key))
            if time.monotonic() >= deadline:
                raise RendezvousTimeoutError(key, timeout_s)
            time.sleep(min(pause_s, max(0.0, deadline - time.monotonic())))
            pause_s = min(2 * pause_s, _POLL_S[1])


def _run(spec: GangSpec, events: Stream) -> list[Any]:
    """Run `main` as this rank and return the results of all ranks."""
    if spec.backend is not None and not dist.is_initialized():
        dist.init_process_group(spec.backend)
    rank, number = int(os.environ["RANK"]), next(_numbers)
    rendezvous = StoreRendezvous(_store(f"talka/gang-{number}/user"))
    internal = StoreRendezvous(_store(f"talka/gang-{number}/own"))
    if rank == 0:
        internal.set("secret", secrets.token_bytes(32))
    worker = GangWorker(
        rank,
        spec.size,
        _stream(rank, events),
        roles=spec.roles,
        rendezvous=rendezvous,
        secret=internal.get("secret"),
        address=own_address(os.environ.get("MASTER_ADDR", "")) or "127.0.0.1",
    )
    role = worker.role
    value = spec.mains[role](worker, *spec.arguments[role])
    if spec.backend is None:
        return _exchanged(value, rank, spec.size, internal)
    return _gathered(value, spec.size)


def _store(prefix: str) -> Any:
    """Return a part of torch's store: that of the process group, or else torchrun's own."""
    from torch.distributed import PrefixStore  # type: ignore[attr-defined]  # not in its __all__

    if dist.is_initialized():
        whole = dist.distributed_c10d._get_default_store()
    else:
        whole = _own_store()
    return PrefixStore(prefix, whole)


_opened: list[Any] = []


def _own_store() -> Any:
    """Connect to torchrun's store, once per process."""
    from torch.distributed.rendezvous import rendezvous

    if not _opened:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        _opened.append(next(iter(rendezvous("env://", rank, size)))[0])
    return _opened[0]


def _stream(rank: int, events: Stream) -> Stream:
    folder = os.environ.get(RUN_DIR_VARIABLE) or events.dir
    if folder is None:
        return Stream()
    Path(folder).mkdir(parents=True, exist_ok=True)
    return Stream(Path(folder) / f"events.rank-{rank}.jsonl")


def _encoded(value: Any) -> tuple[Any, bool]:
    """Return a result in storage form, and whether that is msgpack; nothing is pickled."""
    storable = storage.to_storable(value)
    is_packed = isinstance(storable, PackedValue)
    data = storable.data if isinstance(storable, PackedValue) else storage.to_buffer(storable)
    return data, is_packed


def _exchanged(value: Any, rank: int, size: int, keys: StoreRendezvous) -> list[Any]:
    """Return the results of all ranks, without a process group: in pieces through the store."""
    data, is_packed = _encoded(value)
    raw, piece = memoryview(data).cast("B"), 1 << 20
    starts = range(0, len(raw), piece)
    for number, start in enumerate(starts):
        keys.set(f"{rank}/{number}", bytes(raw[start : start + piece]))
    keys.set(f"{rank}", f"{len(starts)} {int(is_packed)}".encode())
    results = []
    for other in range(size):
        num_pieces, packed = map(int, keys.get(f"{other}", _DONE_S).split())
        joined = b"".join(keys.get(f"{other}/{number}") for number in range(num_pieces))
        array = np.frombuffer(bytearray(joined), np.uint8)
        results.append(storage.from_foreign(array, is_packed=bool(packed)))
    keys.set(f"done/{rank}", b"")
    if rank == 0:  # it may host the store: the others must have read everything
        for other in range(size):
            keys.get(f"done/{other}", _DONE_S)
    return results


def _gathered(value: Any, size: int) -> list[Any]:
    """Return the results of all ranks, by collectives."""
    data, is_packed = _encoded(value)
    own = torch.from_numpy(np.frombuffer(data, np.uint8).copy())
    header = torch.tensor([len(own), is_packed])
    headers = [torch.empty_like(header) for _ in range(size)]
    dist.all_gather(headers, header)
    longest = max(int(header[0]) for header in headers)
    padded = torch.zeros(longest, dtype=torch.uint8)
    padded[: len(own)] = own
    received = [torch.empty_like(padded) for _ in range(size)]
    dist.all_gather(received, padded)
    results = []
    for data_of_rank, (length, is_packed_there) in zip(received, headers, strict=True):
        raw = data_of_rank[: int(length)].numpy()
        results.append(storage.from_foreign(raw, is_packed=bool(is_packed_there)))
    return results
