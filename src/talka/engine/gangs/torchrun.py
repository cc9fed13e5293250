"""A gang inside torchrun: its ranks exist already, and this process is one of them."""

import itertools
import os
import re
import threading
import time
from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Self

import torch.distributed as dist

from talka.channels.rendezvous import TIMEOUT_S, check_key, check_value, new_secret
from talka.engine.base import Gang
from talka.engine.gangs.spec import GangSpec
from talka.engine.gangs.worker import GangWorker
from talka.errors import InvalidValueError, RanksMissingError, RendezvousTimeoutError
from talka.events import RUN_DIR_VARIABLE, Stream
from talka.guard import Caught
from talka.machine import own_address

_numbers = itertools.count()
"""Number of gangs in this process; the same in all ranks, as all start the same gangs."""
_POLL_S: Final = (0.001, 0.05)
START_TIMEOUT_S: Final = 120.0
"""Seconds in which all ranks must have connected to the store of rank 0."""
_CONNECT_GRACE_S: Final = 10.0


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
    """Connect to torchrun's store, once per process.

    Torch connects and waits for the other ranks in native code, which Ctrl+C does not interrupt, so
    another thread does it.
    """
    if not _opened:
        connecting: Future[Any] = Future()
        threading.Thread(
            target=_connect, args=[connecting], name="talka-store", daemon=True
        ).start()
        try:
            _opened.append(connecting.result(START_TIMEOUT_S + _CONNECT_GRACE_S))
        except (TimeoutError, RuntimeError) as error:
            raise _missing_ranks(error) from None
    return _opened[0]


def _connect(connecting: "Future[Any]") -> None:
    from torch.distributed.rendezvous import rendezvous

    with Caught() as caught:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        timeout = timedelta(seconds=START_TIMEOUT_S)
        found = rendezvous("env://", rank, size, timeout=timeout)
        connecting.set_result(next(iter(found))[0])
    if caught.error is not None:
        connecting.set_exception(caught.error)


def _missing_ranks(error: Exception) -> RanksMissingError:
    """Explain why the ranks did not find each other, by what torch has reported."""
    address = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
    if "EADDRINUSE" in str(error):
        advice = "Set MASTER_PORT to a free port on all ranks, or end the job that uses this one."
        return RanksMissingError(address, "rank 0 cannot listen there: the port is in use", advice)
    if os.environ["RANK"] == "0":
        joined = re.search(r"(\d+)/(\d+) clients joined", str(error))
        found = f"only {joined[1]} of {joined[2]} ranks" if joined else "not all ranks"
        problem = f"{found} have connected within {START_TIMEOUT_S:g} s"
        advice = (
            "Start the others, with the same MASTER_ADDR and MASTER_PORT, and read their output."
        )
        return RanksMissingError(address, problem, advice)
    problem = f"rank 0 has not responded within {START_TIMEOUT_S:g} s"
    advice = "Start rank 0 there, and check that this machine can reach the address and the port."
    if address.startswith("127.") and os.environ.get("GROUP_RANK", "0") != "0":
        advice += " 127.0.0.1 always is the machine itself: give the address of the first machine."
    return RanksMissingError(address, problem, advice)


def _stream(rank: int, events: Stream) -> Stream:
    folder = os.environ.get(RUN_DIR_VARIABLE) or events.dir
    if folder is None:
        return Stream()
    Path(folder).mkdir(parents=True, exist_ok=True)
    return Stream(Path(folder) / f"events.rank-{rank}.jsonl")
