"""One call of a collective: its messages, its memory and its time."""

import copy
import sys
import time
from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np

from talka.channels.buffers import MAX_PART_BYTES
from talka.channels.calls import CallLog
from talka.channels.coding import array_of, decoded, encoded, memory_for
from talka.channels.collectives.port import Array, Awaited
from talka.channels.collectives.port import others as other_ranks
from talka.channels.mailbox import Mailbox
from talka.channels.operations import Buffer, ReceiveOperation, SendOperation, bytes_of, new_buffer
from talka.channels.reducing import Operand
from talka.network import Network

_PHASES: Final = 1 << 8
_COLLECTIVE: Final = 1 << 63
"""Bit of the tag that separates messages of collectives from those of `send`."""


class Members(Protocol):
    """The group that makes a call."""

    rank: int
    size: int

    @property
    def mailbox(self) -> Mailbox: ...
    @property
    def global_ranks(self) -> tuple[int, ...]: ...
    @property
    def context(self) -> int: ...
    @property
    def call_log(self) -> CallLog | None: ...
    @property
    def known_network(self) -> Network | None: ...


class Round:
    """A `Port` for one call; a context manager that waits for its sends and takes the time."""

    def __init__(
        self,
        group: Members,
        name: str,
        number: int,
        num_bytes: int,
        operand: Operand | None,
    ) -> None:
        self.rank, self.num_workers = group.rank, group.size
        self.num_bytes = num_bytes
        self.algorithm = "dissemination" if name == "barrier" else "direct"
        self._group, self._name = group, name
        self._tag = _COLLECTIVE | (number * _PHASES) % _COLLECTIVE
        self._sends: list[Awaited] = []
        self._needs = frozenset(group.global_ranks)
        self._taken: list[Buffer] = []
        self.operand = operand
        self._start_s = 0.0

    def __enter__(self) -> "Round":
        self._start_s = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            return
        for send in self._sends:
            send.wait()
        for whole in self._taken:
            self._group.mailbox.buffers.give_back(whole)
        log = self._group.call_log
        if log is not None:
            seconds = time.perf_counter() - self._start_s
            network = self._group.known_network
            log.add(self._name, self.algorithm, self.num_bytes, seconds, network)

    def others(self) -> list[int]:
        """Return the ranks of the others, the next one first."""
        return other_ranks(self)

    def keep(self, sends: Sequence[Awaited]) -> None:
        """Wait for these sends before the call ends."""
        self._sends += sends

    # The port of a pattern.

    def send(self, array: Array, to: int, *, phase: int = 0) -> SendOperation:
        return self._send(_memory(array), to, phase)

    def receive(self, into: Array, source: int, *, phase: int = 0) -> ReceiveOperation:
        return self._receive(source, phase, _memory(into), is_exact=True)

    def scratch(self, like: Array) -> Array:
        num_bytes = like.nbytes
        if num_bytes > MAX_PART_BYTES or not num_bytes:
            return (
                np.empty_like(like) if isinstance(like, np.ndarray) else like.new_empty(like.shape)
            )
        whole = self._group.mailbox.buffers.take()
        self._taken.append(whole)
        if isinstance(like, np.ndarray):
            return np.frombuffer(whole[:num_bytes], like.dtype)
        torch = sys.modules["torch"]
        return torch.frombuffer(whole[:num_bytes], dtype=like.dtype)

    def combine(self, into: Array, part: Array) -> None:
        assert self.operand is not None
        self.operand.combine(into, part)

    # Whole values.

    def send_value(self, value: Any, to: int) -> SendOperation:
        """Start to send a value with its description."""
        description, body = encoded(value)
        return self._send(body, to, 0, description)

    def receive_value(self, source: int, out: Any = None) -> Any:
        """Wait for a value, and return it."""
        return self.receive_values([source], None if out is None else {source: out})[source]

    def receive_values(self, sources: Sequence[int], out: Any = None) -> dict[int, Any]:
        """Wait for a value from each of these ranks."""
        receives = {
            source: self._receive(
                source, 0, None if out is None else memory_for(out[source]), is_exact=True
            )
            for source in sources
        }
        values = {}
        for source, receive in receives.items():
            receive.wait()
            value = decoded(receive.description, receive.data)
            values[source] = value if out is None else out[source]
        return values

    def send_bytes(self, data: bytes, to: int) -> SendOperation:
        """Start to send bytes without a description."""
        return self._send(memoryview(data), to, 0)

    def receive_message(self, source: int, into: Buffer | None) -> ReceiveOperation:
        """Wait for a message, and return it."""
        receive = self._receive(source, 0, into)
        receive.wait()
        return receive

    def after(self, num_phases: int) -> "Round":
        """Return a port of the same call whose messages follow those of earlier patterns."""
        later = copy.copy(self)
        later._tag += num_phases
        return later

    def buffer(self, num_bytes: int, into: Buffer | None) -> Buffer:
        """Return memory of this length: the beginning of `into` if it is given."""
        if into is None:
            return new_buffer(num_bytes)
        if len(into) != num_bytes:
            raise ValueError(f"`out` has {len(into)} bytes, and the value {num_bytes}")
        return into

    def _send(self, body: Buffer, to: int, phase: int, description: bytes = b"") -> SendOperation:
        group = self._group
        return group.mailbox.post_send(
            group.global_ranks[to],
            body,
            tag=self._tag + phase,
            context=group.context,
            description=description,
            needs=self._needs,
        )

    def _receive(
        self, source: int, phase: int, into: Buffer | None, *, is_exact: bool = False
    ) -> ReceiveOperation:
        group = self._group
        return group.mailbox.post_receive(
            group.global_ranks[source],
            tag=self._tag + phase,
            context=group.context,
            into=into,
            is_exact=is_exact,
            needs=self._needs,
        )


def _memory(array: Array) -> Buffer:
    return bytes_of(array if isinstance(array, np.ndarray) else array_of(array))
