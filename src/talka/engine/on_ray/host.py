"""The actor that runs the parts of gangs on one machine of a Ray cluster.

    ranks <-> `MachinePart` <-> thread per gang -> queue --take--> driver
                                                 <--deliver--

The driver keeps the actor for later gangs, so that ranks are forked from a process that has loaded
torch already. If the actor ends, for any reason, so do all ranks.
"""

import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from talka.engine.gangs.fork_server import ForkServers
from talka.engine.gangs.group import interface_of
from talka.engine.gangs.local import environment, preload_of
from talka.engine.gangs.part import MachinePart, PartSpec, RankMessage
from talka.engine.on_ray.logs import LogSender
from talka.engine.storage import File, PackedValue
from talka.guard import Caught

TAKE_S: Final = 1.0
"""Seconds after which a call of `take` returns even without a message."""
LOG_EVERY_S: Final = 0.2
"""Seconds between two looks at the logs of ranks, whose new output the driver takes."""
MAX_HELD_BYTES: Final = 1 << 24
MAX_CONCURRENCY: Final = 32
"""Calls that run at the same time; each gang has one that waits for messages."""


class MachineHost:
    """The actor of one machine: it forks ranks, and keeps their messages until the driver takes them."""

    def __init__(self) -> None:
        self._servers = ForkServers()
        self._gangs: dict[str, _HostedGang] = {}

    def start(
        self,
        gang: str,
        hellos: Mapping[int, dict[str, Any]],
        shipped: Mapping[str, bytes],
        sends_logs: bool,  # noqa: FBT001  # the driver passes it by position
    ) -> dict[int, str]:
        """Start ranks of a gang, and return the path of the log of each, on this machine.

        Parameters
        ----------
        gang
            Name of the gang, in later calls and in the names of its logs.
        hellos
            First frame for each rank.
        shipped
            Function and arguments of each role.
        sends_logs
            Whether the driver takes what the ranks print.
        """
        address = ray.util.get_node_ip_address()
        folder = _log_folder()
        logs = {
            rank: None if folder is None else folder / f"talka-{gang}-rank-{rank}.log"
            for rank in hellos
        }
        whole = [{**hello, "address": address} for hello in hellos.values()]
        backend = whole[0]["backend"]
        spec = PartSpec(
            ranks=list(hellos),
            hellos=whole,
            shipped=shipped,
            log_paths=list(logs.values()),
            environment=environment(1, interface=interface_of(address)),
            preload=preload_of(backend),
            result_form=ray_form,
        )
        paths = {rank: path for rank, path in logs.items() if path is not None}
        sent = LogSender(paths if sends_logs else {})
        self._gangs[gang] = _HostedGang(MachinePart(spec, self._servers), spec.ranks, sent)
        return {rank: str(path) for rank, path in paths.items()}

    def take(self, gang: str) -> list[tuple[int, dict[str, Any]]]:
        """Wait for messages of ranks and return them; each is returned once."""
        return self._gangs[gang].take()

    def deliver(self, gang: str, frames: Sequence[tuple[int, dict[str, Any]]]) -> None:
        """Send frames to ranks; `{"end": True}` kills the rank."""
        hosted = self._gangs.get(gang)
        if hosted is not None:
            hosted.deliver(frames)

    def tail(self, gang: str, rank: int) -> str:
        """Return the end of the log of a rank."""
        return self._gangs[gang].part.tail(rank)

    def stop(self, gang: str) -> list[tuple[int, dict[str, Any]]]:
        """End all ranks of a gang, wait until they have ended, and return their last output."""
        hosted = self._gangs.pop(gang, None)
        return [] if hosted is None else hosted.stop()

    def close(self) -> None:
        """End all processes of this actor."""
        for gang in list(self._gangs):
            self.stop(gang)
        self._servers.close()


class _HostedGang:
    """A part, and the thread that receives its messages."""

    def __init__(self, part: MachinePart, ranks: Sequence[int], logs: LogSender) -> None:
        self.part, self._ranks, self._logs = part, ranks, logs
        self._condition = threading.Condition()
        self._messages: list[RankMessage] = []
        self._held_bytes = 0
        self._is_stopped = False
        part.start()
        self._thread = threading.Thread(target=self._receive, name="talka-part", daemon=True)
        self._thread.start()

    def take(self) -> list[tuple[int, dict[str, Any]]]:
        end_s, output = time.monotonic() + TAKE_S, self._logs.take()
        while not output and (left_s := end_s - time.monotonic()) > 0:
            with self._condition:
                wait_s = min(LOG_EVERY_S, left_s)
                if self._condition.wait_for(lambda: self._messages or self._is_stopped, wait_s):
                    break
            output = self._logs.take()
        with self._condition:
            messages, self._messages, self._held_bytes = self._messages, [], 0
        return [*output, *((message.rank, message.frame) for message in messages)]

    def deliver(self, frames: Sequence[tuple[int, dict[str, Any]]]) -> None:
        with self._condition:
            if self._is_stopped:
                return
            for rank, frame in frames:
                if "end" in frame:
                    self.part.end(rank)
                else:
                    self.part.send(rank, frame)

    def stop(self) -> list[tuple[int, dict[str, Any]]]:
        with self._condition:
            if not self._is_stopped:
                self._is_stopped = True
                self.part.wake()
                self._condition.notify_all()
        self._thread.join()
        return self._logs.take_rest()

    def _receive(self) -> None:
        with Caught() as caught:
            while not self._is_stopped:
                for message in self.part.receive(None):
                    self._hold(message)
        with self._condition:
            self._is_stopped = True
            if caught.error is not None:
                how = f"its machine could not receive its messages: {caught.error!r}"
                self._messages += [RankMessage(rank, {"died": how}) for rank in self._ranks]
        self.part.close()

    def _hold(self, message: RankMessage) -> None:
        """Keep a message for the driver; lines of events only if there is room."""
        lines = message.frame.get("lines")
        with self._condition:
            is_taken = lines is None or self._held_bytes + len(lines) <= MAX_HELD_BYTES
            if is_taken:
                self._messages.append(message)
                self._held_bytes += len(lines or b"")
                self._condition.notify()
        if lines is not None:
            answer = {"answer": message.frame["call"], "taken": is_taken}
            self.part.send(message.rank, answer)


def _log_folder() -> Path | None:
    """Return the folder of Ray's logs; None if this actor does not print into a file."""
    output = Path(os.readlink("/proc/self/fd/1"))
    return output.parent if output.is_file() else None


def ray_form(content: PackedValue | File) -> Any:
    """Return a result as `on_ray.task.value_of` reads it: msgpack as bytes, Arrow IPC as an array."""
    if isinstance(content, PackedValue):
        return content.data
    buffer = content.buffer()
    return buffer.to_pybytes() if content.is_packed else np.frombuffer(buffer, np.uint8)


class MachineHosts:
    """The actors of an engine, one for each machine that has had ranks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._actors: dict[str, Any] = {}

    def of(self, machine: str) -> Any:
        """Return the actor of a machine, which is started if there is none."""
        with self._lock:
            if machine not in self._actors:
                there = NodeAffinitySchedulingStrategy(machine, soft=False)
                # The cores of the ranks are reserved by a placement group; the actor needs none.
                actor = ray.remote(
                    num_cpus=0,
                    max_restarts=0,
                    max_task_retries=0,
                    max_concurrency=MAX_CONCURRENCY,
                    scheduling_strategy=there,
                )(MachineHost)
                self._actors[machine] = actor.remote()
            return self._actors[machine]

    def forget(self, machine: str, actor: Any) -> None:
        """Declare that an actor has died."""
        with self._lock:
            if self._actors.get(machine) is actor:
                del self._actors[machine]

    def close(self, timeout_s: float) -> None:
        """End all actors and their processes."""
        with self._lock:
            actors, self._actors = list(self._actors.values()), {}
        if not ray.is_initialized():
            return  # the caller has disconnected, and Ray has ended the actors
        if actors:
            ray.wait(
                [actor.close.remote() for actor in actors],
                num_returns=len(actors),
                timeout=timeout_s,
            )
        for actor in actors:
            ray.kill(actor)
