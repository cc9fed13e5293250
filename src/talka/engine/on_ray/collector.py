"""The way of events from ranks on Ray to the run directory of the driver.

    rank: Relay --add--> actor on the driver's machine --take--> driver: events.rank-R.jsonl

An actor stands between them because a rank cannot call its driver, and cannot be called while its
`main` runs.
"""

import contextlib
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from talka.engine.gangs.gang import PROGRESS
from talka.events import Stamped, Stream
from talka.events.parsing import parsed

MAX_HELD_BYTES: Final = 1 << 24
_TIMEOUT_S: Final = 10.0


class LineStore:
    """Lines of ranks that the driver has not taken yet; a Ray actor."""

    def __init__(self) -> None:
        self._batches: defaultdict[int, list[bytes]] = defaultdict(list)
        self._num_bytes = 0

    def add(self, rank: int, batch: bytes) -> bool:
        """Keep the lines of a rank; return False if there is no room."""
        if self._num_bytes + len(batch) > MAX_HELD_BYTES:
            return False
        self._batches[rank].append(batch)
        self._num_bytes += len(batch)
        return True

    def take(self) -> dict[int, bytes]:
        """Return the lines of each rank, and forget them."""
        taken = {rank: b"".join(batches) for rank, batches in self._batches.items()}
        self._batches.clear()
        self._num_bytes = 0
        return taken


class Collector:
    """Writes the events of all ranks into the run directory of the driver."""

    def __init__(self, events: Stream) -> None:
        self._events = events
        self._streams: dict[int, Stream] = {}
        self._taking: Any = None
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        actor = ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0)(LineStore)
        self.store: Any = actor.options(scheduling_strategy=here).remote()
        """The actor that ranks send their lines to."""

    def collect(self) -> None:
        """Write what has arrived, and show the progress of rank 0 to the listeners of the driver."""
        self._collect(timeout_s=0)

    def close(self) -> None:
        """Write what has arrived, and end the actor."""
        self._collect(timeout_s=_TIMEOUT_S)  # what an earlier call has asked for
        self._collect(timeout_s=_TIMEOUT_S)
        ray.kill(self.store)
        for stream in self._streams.values():
            stream.close()

    def _collect(self, *, timeout_s: float) -> None:
        """Take the lines from the actor; if it does not answer in time, a later call gets them."""
        if self._taking is None:
            self._taking = self.store.take.remote()
        if ray.wait([self._taking], timeout=timeout_s)[0]:
            taken, self._taking = self._taking, None
            with contextlib.suppress(RayError):  # the actor is gone, with its machine
                for rank, lines in ray.get(taken).items():
                    self._write(rank, lines)

    def _write(self, rank: int, lines: bytes) -> None:
        if self._events.dir is not None:
            if rank not in self._streams:
                self._streams[rank] = Stream(_path(self._events.dir, rank))
            self._streams[rank].append(lines)
        if rank == 0:
            for line in lines.splitlines():
                content = parsed(line, "rank-0")
                if isinstance(content, Stamped) and isinstance(content.event, PROGRESS):
                    self._events.notify_listeners(content.event)


def _path(folder: Path, rank: int) -> Path:
    return folder / f"events.rank-{rank}.jsonl"


def send(store: Any, rank: int, batch: bytes) -> bool:
    """Send lines of a rank to the actor; return False if it has no room for them."""
    return bool(ray.get(store.add.remote(rank, batch), timeout=_TIMEOUT_S))
