"""The part of a gang on this machine: its processes, and the messages from and to them.

    fork server -> leader -> ranks; `receive` waits for frames of all of them, and never for one

All ranks of a local gang are one part. On Ray, each machine has one (`on_ray/host.py`).
"""

import os
import select
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from talka.engine import parcels
from talka.engine.descriptors import limit_explained
from talka.engine.gangs.fork_server import ForkServer, ForkServers, Surroundings, open_log, tail_of
from talka.engine.local.frame_channel import FrameChannel
from talka.engine.local.processes import how_it_ended

TORCH: Final = ("torch.distributed",)
NUMPY: Final = ("numpy",)
_ENDING_S: Final = 2.0  # seconds for a rank to end after it closed its channel
_CLOSE_S: Final = 15.0  # seconds for the leader to end all processes


class RankMessage(NamedTuple):
    """A message of a rank, or of its leader about its end (`died`)."""

    rank: int
    frame: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSpec:
    """Description of a part: its ranks, their functions, and what they inherit."""

    ranks: Sequence[int]
    hellos: Sequence[dict[str, Any]]
    """First frame for each rank, to which the part adds what it knows itself."""
    shipped: Mapping[str, bytes]
    """Function and arguments of each role."""
    log_paths: Sequence[Path | None]
    """Log of each rank; None for a file without a name."""
    environment: dict[str, str]
    preload: tuple[str, ...]
    result_form: Callable[[Any], Any]
    """Converts a result, which is a storable value or a file in shared memory."""


class MachinePart:
    """The ranks of a gang on this machine. One thread receives; all may call `send` and `wake`."""

    def __init__(self, spec: PartSpec, servers: ForkServers) -> None:
        self._spec, self._servers = spec, servers
        self._server: ForkServer | None = None
        self._leader: FrameChannel | None = None
        self._channels: dict[int, FrameChannel] = {}
        self._logs: dict[int, IO[bytes]] = {}
        self._ending: dict[int, float] = {}
        """Ranks that closed their channel, and the time at which they count as dead."""
        self._ended: set[int] = set()
        with limit_explained():
            self._wakeup = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def start(self) -> None:
        """Request the processes of all ranks; `receive` returns what they send."""
        spec = self._spec
        with limit_explained():
            for rank, path in zip(spec.ranks, spec.log_paths, strict=True):
                self._logs[rank] = open_log(path)
            surroundings = Surroundings.here(spec.preload, spec.environment)
            self._server = self._servers.borrow(surroundings)
        places, mains = _file_of(spec.shipped)
        try:
            forked = self._server.fork([self._logs[rank].fileno() for rank in spec.ranks], mains)
        finally:
            os.close(mains)
        self._leader = forked.leader
        self._channels = dict(zip(spec.ranks, forked.ranks, strict=True))
        for rank, hello, path in zip(spec.ranks, spec.hellos, spec.log_paths, strict=True):
            known = {
                "main": places[hello["roles"][rank]],
                "path": list(surroundings.path),
                "log_path": None if path is None else str(path),
            }
            self._channels[rank].add({**hello, **known})

    def receive(self, timeout_s: float | None) -> list[RankMessage]:
        """Wait for messages; return none after the timeout or after `wake`."""
        due_s = min(self._ending.values(), default=None)
        if due_s is not None:
            left_s = max(0.0, due_s - time.monotonic())
            timeout_s = left_s if timeout_s is None else min(timeout_s, left_s)
        ready = self._poll(timeout_s)
        messages: list[RankMessage] = []
        for rank, channel in self._channels.items():
            if channel.fileno() in ready:
                messages += self._received(rank, channel)
        if self._leader is not None and self._leader.fileno() in ready:
            messages += self._ends(self._leader)
        now_s = time.monotonic()
        for rank, due_s in list(self._ending.items()):
            if now_s >= due_s:
                messages += self._end(rank, "it closed its channel")
        return messages

    def send(self, rank: int, frame: dict[str, Any]) -> None:
        """Send a frame to a rank; it is dropped if the rank has ended."""
        channel = self._channels[rank]
        channel.add(frame)
        if channel.has_leaving:
            self.wake()

    def end(self, rank: int) -> None:
        """Kill a rank and its process group."""
        if self._leader is not None:
            self._leader.add({"end": list(self._spec.ranks).index(rank)})

    def wake(self) -> None:
        """Make `receive` return."""
        os.eventfd_write(self._wakeup, 1)

    def tail(self, rank: int) -> str:
        """Return the end of the log of a rank, or of the fork server if that has not forked it."""
        if self._server is not None and not self._server.has_forked:
            return self._server.tail()
        return tail_of(self._logs[rank].fileno())

    def close(self) -> None:
        """End all ranks and everything that they started, and wait until they have ended."""
        if self._leader is not None:
            self._wait_for(self._leader)
        for channel in self._channels.values():
            channel.close()
        if self._server is not None:
            self._servers.give_back(self._server)
            self._server = None
        for log in self._logs.values():
            log.close()
        os.close(self._wakeup)

    def _wait_for(self, leader: FrameChannel) -> None:
        """Close the channel to the leader for writing, and wait until the leader closes it, too."""
        leader.finish()
        has_forked = self._server is not None and self._server.has_forked
        deadline = time.monotonic() + (_CLOSE_S if has_forked else 0)
        poll = select.poll()
        poll.register(leader, select.POLLIN)
        while not leader.is_closed and (left_s := deadline - time.monotonic()) > 0:
            poll.poll(1000 * left_s)
            leader.receive()
        leader.close()

    def _poll(self, timeout_s: float | None) -> set[int]:
        poll = select.poll()
        poll.register(self._wakeup, select.POLLIN)
        for channel in (*self._channels.values(), self._leader):
            if channel is not None and not channel.is_closed:
                leaving = select.POLLOUT if channel.has_leaving else 0
                poll.register(channel, select.POLLIN | leaving)
        ready = poll.poll(None if timeout_s is None else 1000 * timeout_s)
        for channel in self._channels.values():
            channel.flush()
        found = {descriptor for descriptor, _ in ready}
        if self._wakeup in found:
            os.eventfd_read(self._wakeup)
        return found

    def _received(self, rank: int, channel: FrameChannel) -> list[RankMessage]:
        """Return the messages of a rank that have arrived."""
        messages = []
        for frame, descriptors in channel.receive():
            if self._server is not None:
                self._server.has_forked = True
            if "result" in frame:
                [content] = parcels.unwrap(frame["result"], descriptors)
                frame = {"result": self._spec.result_form(content)}
            messages.append(RankMessage(rank, frame))
        if channel.is_closed and rank not in self._ended:
            self._ending[rank] = time.monotonic() + _ENDING_S
        return messages

    def _ends(self, leader: FrameChannel) -> list[RankMessage]:
        """Return the ends of ranks that the leader has reported, after their last messages."""
        messages: list[RankMessage] = []
        for frame, _ in leader.receive():
            assert self._server is not None
            self._server.has_forked = True
            rank = self._spec.ranks[frame["position"]]
            messages += self._received(rank, self._channels[rank])
            messages += self._end(rank, how_it_ended(frame["code"]))
        if leader.is_closed:
            how = self._how_leader_ended()
            for rank in self._spec.ranks:
                messages += self._received(rank, self._channels[rank])
                messages += self._end(rank, how)
        return messages

    def _how_leader_ended(self) -> str:
        assert self._server is not None
        if self._server.has_forked and self._server.is_alive:
            return "the process that started it was killed"
        return self._server.how_it_ended(_ENDING_S)

    def _end(self, rank: int, how: str) -> list[RankMessage]:
        self._ending.pop(rank, None)
        if rank in self._ended:
            return []
        self._ended.add(rank)
        return [RankMessage(rank, {"died": how})]


def _file_of(shipped: Mapping[str, bytes]) -> tuple[dict[str, tuple[int, int]], int]:
    """Write the functions of all roles into one unnamed file, which all ranks map.

    Returns start and end of each role, and the descriptor. Sent in frames, a large constant would be
    in memory once per rank.
    """
    places, start = {}, 0
    with limit_explained(), os.fdopen(os.memfd_create("talka-mains"), "wb") as file:
        for role, data in shipped.items():
            file.write(data)
            places[role] = (start, start + len(data))
            start += len(data)
        file.flush()
        return places, os.dup(file.fileno())
