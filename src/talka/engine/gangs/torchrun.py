"""A gang inside torchrun: its ranks exist already, and this process is one of them."""

import itertools
import os
import threading
import time
from pathlib import Path
from typing import Any, Final, Self

import torch.distributed as dist

from talka.channels.rendezvous import TIMEOUT_S, check_key, check_value, new_secret
from talka.engine.base import Gang
from talka.engine.gangs.spec import GangSpec
from talka.engine.gangs.worker import GangWorker
from talka.errors import InvalidValueError, RendezvousTimeoutError
from talka.events import RUN_DIR_VARIABLE, Stream
from talka.machine import own_address

_numbers = itertools.count()
"""Number of gangs in this process; the same in all ranks, as all start the same gangs."""
_POLL_S: Final = (0.001, 0.05)


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
    rendezvous = StoreRendezvous(store_of_job(f"talka/gang-{number}/user"))
    internal = StoreRendezvous(store_of_job(f"talka/gang-{number}/own"))
    if rank == 0:
        internal.set("secret", new_secret())
    worker = GangWorker(
        rank,
        spec.size,
        _stream(rank, events),
        roles=spec.roles,
        rendezvous=rendezvous,
        secret=internal.get("secret"),
        address=own_address(os.environ.get("MASTER_ADDR", "")) or "127.0.0.1",
        options=spec.channels,
    )
    role = worker.role
    with worker.taking_part():
        value = spec.mains[role](worker, *spec.arguments[role])
        results = worker.all_gather(value)
        worker.barrier()  # the others have their results, too
    worker.leave()
    return results


def store_of_job(prefix: str) -> Any:
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
