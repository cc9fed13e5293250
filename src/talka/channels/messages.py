"""Messages between ranks: send, receive, and collectives.

worker.send(array, to=1, tag="gradients")
array = worker.receive(source=0, tag="gradients")
total = worker.all_reduce(array)
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgpack
import numpy as np

from talka.channels.calls import CallLog
from talka.channels.choosing import ASSUMED, assumed_network, check_algorithm, choose
from talka.channels.coding import decoded, encoded, memory_for
from talka.channels.collectives import direct, ring, tree, waiting
from talka.channels.collectives.port import run
from talka.channels.mailbox import Mailbox
from talka.channels.operations import ReceiveOperation
from talka.channels.reducing import Operand, Reduction
from talka.channels.round import Round
from talka.channels.wire.numbering import context_of, tag_number
from talka.errors import InvalidValueError
from talka.network import Network

_MAX_DIRECT_RANKS: Final = 8
"""Up to this many, the root of a broadcast sends short values to all ranks itself."""
_SHORT_BYTES: Final = 1 << 15
"""Bytes up to which a value is part of an announcement that is passed on down a tree."""


class _Announcement(NamedTuple):
    """Announcement by the root of a broadcast whose value does not follow directly."""

    algorithm: str
    description: bytes
    num_bytes: int
    inline: bytes


class Channels(ABC):
    """Messages and collectives of one rank; the base of `Group` and of a worker of a gang.

    A subclass has these attributes. Ranks are numbered within the group.
    """

    rank: int
    size: int

    @property
    @abstractmethod
    def mailbox(self) -> Mailbox:
        """Messages of this process."""

    @property
    @abstractmethod
    def global_ranks(self) -> tuple[int, ...]:
        """Rank of each member among all ranks of the job."""

    @property
    def others(self) -> list[int]:
        """Ranks of the other members, the next one first."""
        return [(self.rank + step) % self.size for step in range(1, self.size)]

    @property
    def given_network(self) -> Network | None:
        """Links between the ranks, if they are known."""
        return None

    @property
    def call_log(self) -> CallLog | None:
        """Receives the seconds of collectives."""
        return None

    @cached_property
    def context(self) -> int:
        """Number of this group in messages, which its members compute without a message."""
        return context_of(self.global_ranks, self.mailbox.next_of(self.global_ranks, ""), "")

    @cached_property
    def network(self) -> Network:
        """Links between the ranks, by which algorithms are chosen; assumed if they are not known."""
        return self.known_network or Network.equal(ASSUMED, self.size)

    @cached_property
    def known_network(self) -> Network | None:
        """Links by which seconds are predicted: given ones, or those of one machine."""
        if self.given_network is not None:
            return self.given_network
        machines = self.mailbox.machines(self.global_ranks)
        return assumed_network(machines) if len(set(machines)) == 1 else None

    @cached_property
    def _calls(self) -> "itertools.count[int]":
        return itertools.count()

    # Point to point.

    def send(
        self,
        value: Any,
        *,
        to: int,
        tag: int | str = 0,
        timeout_s: float | None = None,
        copy: bool = True,
    ) -> None:
        """Send a value to a rank, without waiting for its receiver.

        Waits only if more than `buffer_bytes` are on their way to that rank. The value may be
        changed afterwards. Without `copy`, a long value is not copied: then this waits until it is
        on its way or, on one machine, until the other rank has received it.

        Raises LostWorkerError if the rank has ended, ChannelTimeoutError, NotStorableError.
        """
        description, body = encoded(value)
        if not copy:
            if timeout_s is not None:  # its memory would still be read
                raise InvalidValueError("timeout_s", timeout_s, "None without `copy`")
            peer, number = self._peer(to, "to"), tag_number(tag)
            self.mailbox.post_send(
                peer, body, tag=number, context=self.context, description=description
            ).wait()
            return
        self.mailbox.send(
            self._peer(to, "to"),
            body,
            tag=tag_number(tag),
            context=self.context,
            description=description,
            timeout_s=timeout_s,
        )

    def receive(
        self,
        *,
        source: int | None = None,
        tag: int | str = 0,
        timeout_s: float | None = None,
        out: Any = None,
    ) -> Any:
        """Wait for a value from a rank, or from any rank, and return it.

        Arrays are received into `out` if it is given.

        Raises LostWorkerError if the rank has ended, and ChannelTimeoutError.
        """
        return self._received(self._post(source, tag_number(tag), out), out, timeout_s)

    def receive_from_any(
        self, *, tag: int | str = 0, timeout_s: float | None = None
    ) -> tuple[int, Any]:
        """Wait for a value from any rank; return its rank and the value."""
        receive = self._post(None, tag_number(tag), None)
        value = self._received(receive, None, timeout_s)
        return self.global_ranks.index(receive.source), value

    def _post(self, source: int | None, tag: int, out: Any) -> ReceiveOperation:
        peer = None if source is None else self._peer(source, "source")
        into = None if out is None else memory_for(out)
        return self.mailbox.post_receive(
            peer, tag=tag, context=self.context, into=into, is_exact=True
        )

    def _received(self, receive: ReceiveOperation, out: Any, timeout_s: float | None = None) -> Any:
        receive.wait(timeout_s)
        value = decoded(receive.description, receive.data)
        return value if out is None else out

    def _peer(self, rank: int, name: str) -> int:
        if not 0 <= rank < self.size:
            raise InvalidValueError(name, rank, f"a rank from 0 to {self.size - 1}")
        return self.global_ranks[rank]

    # Collectives: all ranks of the group call them, in the same order.

    def barrier(self) -> None:
        """Wait until all ranks of the group have called this."""
        with self._timed("barrier", 0) as call:
            run(waiting.barrier(call, np.zeros(1, np.uint8)))

    def broadcast(
        self, value: Any = None, *, root: int = 0, algorithm: str | None = None, out: Any = None
    ) -> Any:
        """Return the value of the root on all ranks; other ranks need not give one.

        algorithm
            "direct", "tree" (O(log P) hops), "chain" (long values in parts along all ranks) or
            "scattered" (a piece to each rank, which passes it on); by default the one that is
            cheapest on the network. All ranks must give the same.
        out
            Memory for an array, on ranks other than the root.
        """
        check_algorithm("broadcast", algorithm)
        root = self._root(root)
        if self.size == 1:
            return value
        with self._timed("broadcast", 0) as call:
            if self.rank != root:
                return self._broadcast_from(call, root, algorithm, out)
            description, body = encoded(value)
            call.num_bytes = len(body)
            call.algorithm = algorithm or choose("broadcast", self.network, len(body))
            is_tree = self._announces_by_tree(algorithm)
            is_short = is_tree and len(body) <= _SHORT_BYTES
            if call.algorithm == "direct" and not is_tree:
                call.keep([call.send_value(value, peer) for peer in call.others()])
                return value
            inline = bytes(body) if is_short else b""
            data = msgpack.packb(_Announcement(call.algorithm, description, len(body), inline))
            ranks = tree.Family(root, self.size, root).children if is_tree else call.others()
            call.keep([call.send_bytes(data, peer) for peer in ranks])
            if not is_short:
                run(_BROADCASTS[call.algorithm](call.after(1), np.frombuffer(body, np.uint8), root))
            return value

    def _announces_by_tree(self, algorithm: str | None) -> bool:
        return algorithm == "tree" or (algorithm is None and self.size > _MAX_DIRECT_RANKS)

    def _broadcast_from(self, call: Round, root: int, algorithm: str | None, out: Any) -> Any:
        """Receive the root's value: directly, or after an announcement of how it comes."""
        family, is_tree = (
            tree.Family(self.rank, self.size, root),
            self._announces_by_tree(algorithm),
        )
        source = family.parent if is_tree else root
        assert source is not None
        into = None if out is None else memory_for(out)
        message = call.receive_message(source, None if is_tree else into)
        if message.description:
            call.num_bytes = len(message.data)
            call.buffer(call.num_bytes, into)  # raises if `out` is longer
            return decoded(message.description, message.data) if out is None else out
        if is_tree:
            data = bytes(message.data)
            call.keep([call.send_bytes(data, child) for child in reversed(family.children)])
        announcement = _Announcement(*msgpack.unpackb(message.data))
        call.num_bytes, call.algorithm = announcement.num_bytes, announcement.algorithm
        body = call.buffer(announcement.num_bytes, into)
        if announcement.num_bytes > len(announcement.inline):
            array = np.frombuffer(body, np.uint8)
            run(_BROADCASTS[announcement.algorithm](call.after(1), array, root))
        elif announcement.num_bytes:
            body[:] = announcement.inline
        return decoded(announcement.description, body) if out is None else out

    def scatter(
        self, values: Sequence[Any] | None = None, *, root: int = 0, out: Any = None
    ) -> Any:
        """Return the i-th value of the root on rank i; other ranks need not give any."""
        root = self._root(root)
        with self._timed("scatter", 0) as call:
            if self.rank != root:
                return call.receive_value(root, out)
            if values is None or len(values) != self.size:
                given = None if values is None else len(values)
                raise InvalidValueError(
                    "number of values to scatter", given, f"{self.size}, one per rank"
                )
            sends = [call.send_value(values[peer], peer) for peer in call.others()]
            call.num_bytes = sum(send.num_bytes for send in sends)
            call.keep(sends)
            return _placed(values[root], out)

    def gather(
        self, value: Any, *, root: int = 0, out: Sequence[Any] | None = None
    ) -> list[Any] | None:
        """Return the values of all ranks in order of rank on the root; None on the others."""
        root = self._root(root)
        with self._timed("gather", 0) as call:
            if self.rank != root:
                send = call.send_value(value, root)
                call.num_bytes = send.num_bytes
                call.keep([send])
                return None
            return self._collected(call, value, out)

    def all_gather(self, value: Any, *, out: Sequence[Any] | None = None) -> list[Any]:
        """Return the values of all ranks in order of rank."""
        with self._timed("all_gather", 0) as call:
            sends = [call.send_value(value, peer) for peer in call.others()]
            call.num_bytes = sends[0].num_bytes if sends else 0
            call.keep(sends)
            return self._collected(call, value, out)

    def all_to_all(self, values: Sequence[Any], *, out: Sequence[Any] | None = None) -> list[Any]:
        """Send the i-th value to rank i; return the values for this rank, in order of rank."""
        if len(values) != self.size:
            raise InvalidValueError("number of values", len(values), f"{self.size}, one per rank")
        with self._timed("all_to_all", 0) as call:
            sends = [call.send_value(values[peer], peer) for peer in call.others()]
            call.num_bytes = sum(send.num_bytes for send in sends)
            call.keep(sends)
            return self._collected(call, values[self.rank], out)

    def _collected(self, call: Round, own: Any, out: Sequence[Any] | None) -> list[Any]:
        received = call.receive_values(call.others(), out)
        received[self.rank] = _placed(own, None if out is None else out[self.rank])
        return [received[rank] for rank in range(self.size)]

    def reduce(
        self,
        value: Any,
        *,
        root: int = 0,
        operation: Reduction = "sum",
        algorithm: str | None = None,
        out: Any = None,
    ) -> Any:
        """Combine the values of all ranks; return the result on the root, None on the others.

        Values are numbers, or arrays or tensors of one type and shape.

        operation
            "sum", "mean", "min", "max" or "product".
        algorithm
            "direct", "tree" (O(log P) hops) or "scattered" (each rank combines a slice).
        out
            Memory for the result, which ranks other than the root use as well.
        """
        check_algorithm("reduce", algorithm)
        root, operand = self._root(root), Operand(value, operation, out)
        with self._timed("reduce", operand.num_bytes, operand) as call:
            chosen = algorithm or choose("reduce", self.network, operand.num_bytes)
            call.algorithm = chosen
            if self.size > 1:
                run(_REDUCTIONS[chosen](call, operand.flat, root))
        return operand.result(self.size) if self.rank == root else None

    def all_reduce(
        self,
        value: Any,
        *,
        operation: Reduction = "sum",
        algorithm: str | None = None,
        out: Any = None,
    ) -> Any:
        """Combine the values of all ranks and return the result, the same bits on each.

        operation
            As for `reduce`.
        algorithm
            "ring", "direct" (two hops), "gathered" (one hop, for short arrays) or "tree" (O(log P)
            hops: reduce and broadcast).
        out
            Memory for the result; may be `value` itself.
        """
        check_algorithm("all_reduce", algorithm)
        operand = Operand(value, operation, out)
        with self._timed("all_reduce", operand.num_bytes, operand) as call:
            chosen = algorithm or choose("all_reduce", self.network, operand.num_bytes)
            call.algorithm = chosen
            if self.size > 1:
                run(_ALL_REDUCTIONS[chosen](call, operand.flat))
        return operand.result(self.size)

    def _timed(self, name: str, num_bytes: int, operand: Operand | None = None) -> Round:
        return Round(self, name, next(self._calls), num_bytes, operand)

    def _root(self, root: int) -> int:
        if not 0 <= root < self.size:
            raise InvalidValueError("root", root, f"a rank from 0 to {self.size - 1}")
        return root


_BROADCASTS: Final = {
    "direct": direct.direct_broadcast,
    "tree": tree.tree_broadcast,
    "chain": ring.chain_broadcast,
    "scattered": direct.scattered_broadcast,
}
_REDUCTIONS: Final = {
    "direct": direct.direct_reduce,
    "tree": tree.tree_reduce,
    "scattered": direct.scattered_reduce,
}
_ALL_REDUCTIONS: Final = {
    "ring": ring.ring_all_reduce,
    "direct": direct.direct_all_reduce,
    "gathered": direct.gathered_all_reduce,
    "tree": tree.tree_all_reduce,
}


def _placed(value: Any, out: Any) -> Any:
    """Return this rank's own value, in the memory that was given for it."""
    if out is None or out is value:
        return value
    out[...] = value
    return out
