"""What an exchange is: every worker gives a flat vector, all get the same bits of the average.

A member says in `steps` how one vector is averaged; it sends and receives through a `Call`, which
counts bytes, times the work and keeps buffers alive.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.futures import Future

from talka.compress import Compressor, ErrorFeedback, Layout, Payload, Piece, SectionCompressor
from talka.compress.base import NonFinite
from talka.compress.layout import nameless
from talka.errors import InvalidValueError
from talka.exchange.conveyor import Awaited, Conveyor, Steps
from talka.exchange.message import Message
from talka.exchange.meter import Meter
from talka.exchange.momentum import Momentum, merged_momentum
from talka.exchange.snapshot import Snapshot
from talka.network import Cost, Network

TAGS_PER_CALL = 64
MAX_TAG = 1 << 30

AnyCompressor = SectionCompressor | ErrorFeedback


class Exchange(ABC):
    """Averages vectors among the workers of a process group, in a thread of its own.

    Made by all workers at the same time (it opens a private group). `average` has to be called by
    all of them in the same order.
    """

    name: ClassVar[str]

    def __init__(
        self,
        *,
        group: dist.ProcessGroup | None = None,
        momentum: float = 0.0,
        nonfinite: NonFinite = "error",
    ) -> None:
        if nonfinite not in ("error", "pass"):
            raise InvalidValueError("nonfinite", nonfinite, "'error' or 'pass'")
        self.momentum, self.nonfinite = Momentum(momentum), nonfinite
        self.global_ranks = dist.get_process_group_ranks(group)
        self.rank, self.num_workers = dist.get_rank(group), len(self.global_ranks)
        self.group = dist.new_group(
            self.global_ranks, backend="gloo", use_local_synchronization=True
        )
        self.meter = Meter()
        self.buffers = Buffers()
        self._conveyor = Conveyor(self.meter)
        self._count = itertools.count()

    @property
    @abstractmethod
    def spec(self) -> str:
        """What is said, in its short form."""

    @abstractmethod
    def steps(self, call: "Call") -> Steps:
        """Average `call.values` in place; yield what has to arrive before it goes on."""

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint of this worker has to keep, by `worker/...` and `owner/...`."""
        return self.momentum.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.momentum.load_state(state)

    def residuals(self) -> list[dict[str, Tensor]]:
        """What was lost and is still to be said, by parameter, on each side that this worker has."""
        return []

    def snapshot(self, pieces: Iterable[Piece]) -> Snapshot:
        """Copy momentum and residuals of some slices of parameters, to restore them later."""
        return Snapshot([*self.momentum.states(), *self.residuals()], pieces)

    def residual_norm(self) -> float:
        squares = [
            float(value.square().sum(dtype=torch.float64))
            for side in self.residuals()
            for value in side.values()
        ]
        return math.sqrt(sum(squares))

    @abstractmethod
    def merged(self, states: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
        """One worker's state here, from those of another number of workers before."""

    def average(self, flat: Tensor, layout: Layout | None = None) -> "Future[Tensor]":
        """Average all workers' vectors, in place: the future's value is `flat` itself.

        With nonfinite="pass", an average that is not finite leaves momentum and residuals of these
        parameters as they were, on every worker: such a step is meant to be skipped.
        """
        if flat.is_complex() or flat.layout != torch.strided:
            kind = f"{flat.dtype}, {flat.layout}"
            raise InvalidValueError("the vector to average", kind, "real and dense")
        values = flat.detach().reshape(-1).to("cpu", torch.float32).contiguous()
        first_tag = (next(self._count) * TAGS_PER_CALL) % MAX_TAG
        call = Call(self, values, nameless(len(values)) if layout is None else layout, first_tag)

        before: Snapshot | None = None

        def result() -> Tensor:
            if before is not None and not values.isfinite().all():
                before.restore()
            if values.data_ptr() != flat.data_ptr():
                flat.copy_(values.view_as(flat))
            call.release()
            return flat

        def start() -> Steps:
            nonlocal before
            with self.meter.timed("encode_s"):
                if self.nonfinite == "pass":
                    before = self.snapshot(call.layout)
                self.momentum.enter(values, call.layout)
            return self.steps(call)

        return cast("Future[Tensor]", self._conveyor.put(start, result))

    def close(self) -> None:
        """End the thread. The process group goes with `destroy_process_group`."""
        self._conveyor.close()


class CompressedExchange(Exchange):
    """An exchange of what a compressor makes."""

    def __init__(
        self,
        compressor: AnyCompressor,
        *,
        group: dist.ProcessGroup | None = None,
        momentum: float = 0.0,
    ) -> None:
        self.check(compressor)
        inner = compressor.inner if isinstance(compressor, ErrorFeedback) else compressor
        super().__init__(group=group, momentum=momentum, nonfinite=inner.nonfinite)
        self.compressor = compressor
        self.prepare()

    @property
    def spec(self) -> str:
        return self.compressor.spec

    @classmethod
    def check(cls, compressor: AnyCompressor) -> None:
        """Raise SpecError if this exchange cannot carry what the compressor makes."""

    def prepare(self) -> None:
        """Copies of the compressor for each side, and neighbours."""

    @abstractmethod
    def sides(self) -> dict[str, AnyCompressor]:
        """The copies of the compressor in use: `worker`, and `owner` where sums are encoded again."""

    @classmethod
    @abstractmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        """What one average costs, by the bytes of a whole payload and of the vector itself."""

    @classmethod
    def payload_bytes(cls, compressor: AnyCompressor, layout: Layout, num_workers: int) -> float:
        """Expected bytes of all that one worker has to say about such a vector."""
        return compressor.expected_bytes(sum(piece.num_values for piece in layout), layout)

    def num_speakers(self) -> int:
        """Workers that keep residuals of gradients."""
        return self.num_workers

    def merged(self, states: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
        """The mean of the workers' residuals: what is still to be said stays the same in all.

        The sum of all residuals, over the number of workers, is what the average still lacks.
        """
        share = self.num_workers / (len(states) * self.num_speakers())
        merged = {key: value for key, value in states[0].items() if "/times/" not in key}
        for key in {key for state in states for key in state if "/residual/" in key}:
            total = sum(state[key].double() for state in states if key in state)
            assert isinstance(total, Tensor)
            worker = key.startswith("worker/")
            merged[key] = (total * share if worker else self.merged_owners(total, states)).float()
        return merged | merged_momentum(states)

    def merged_owners(self, total: Tensor, states: Sequence[dict[str, Tensor]]) -> Tensor:
        """Residuals of averages, from the sum over all that kept them."""
        return total

    def residuals(self) -> list[dict[str, Tensor]]:
        return [one.residuals for one in self.sides().values() if isinstance(one, ErrorFeedback)]

    def state(self) -> dict[str, Tensor]:
        return super().state() | {
            f"{side}/{key}": value
            for side, compressor in self.sides().items()
            for key, value in compressor.state().items()
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        super().load_state(state)
        for side, compressor in self.sides().items():
            mine = {
                key.removeprefix(f"{side}/"): state[key]
                for key in state
                if key.startswith(f"{side}/")
            }
            compressor.load_state(mine)


class Call:
    """One vector on its way to the average."""

    def __init__(self, exchange: Exchange, values: Tensor, layout: Layout, first_tag: int) -> None:
        self.values, self.layout = values, layout
        self._exchange, self._first_tag = exchange, first_tag
        self.rank, self.num_workers = exchange.rank, exchange.num_workers
        self._meter, self._buffers = exchange.meter, exchange.buffers
        self._taken: list[Tensor] = []

    def buffer(self, num_bytes: int) -> Tensor:
        """Bytes that are ours until the call ends."""
        taken = self._buffers.take(num_bytes)
        self._taken.append(taken)
        return taken

    def floats(self, num_values: int) -> Tensor:
        return self.buffer(4 * num_values)[: 4 * num_values].view(torch.float32)

    def release(self) -> None:
        self._buffers.give(self._taken)
        self._taken = []

    def encode(self, compressor: Compressor, values: Tensor, layout: Layout) -> Payload:
        with self._meter.timed("encode_s"):
            room = self.buffer(compressor.max_bytes(values.numel(), layout))
            return compressor.encode(values, layout, out=room)

    def decode(
        self,
        compressor: Compressor,
        data: Tensor,
        layout: Layout,
        *,
        add: bool = False,
        scale: float = 1.0,
    ) -> int:
        """Decode a payload, that arrived in a buffer which may be longer, into our values.

        Returns the bytes of that payload.
        """
        with self._meter.timed("decode_s"):
            payload = Payload(data[: Payload(data).header.num_bytes])
            compressor.decode(payload, self.values, layout, add=add, scale=scale)
        return payload.num_bytes

    def send(self, data: Tensor, to: int, *, phase: int = 0) -> Awaited:
        self._meter.sent_bytes += data.numel() * data.element_size()
        other, group = self._exchange.global_ranks[to], self._exchange.group
        tag = self._first_tag + phase
        return Message(lambda: dist.isend(data, other, group, tag), [other])

    def receive(self, into: Tensor, source: int, *, phase: int = 0) -> Awaited:
        """Of at most as many bytes as the buffer has."""
        other, group = self._exchange.global_ranks[source], self._exchange.group
        tag = self._first_tag + phase
        return Message(lambda: dist.irecv(into, other, group, tag), [other])

    def received(self, num_bytes: int) -> None:
        self._meter.received_bytes += num_bytes


_GRAIN = 1 << 12


class Buffers:
    """Byte tensors by size; used by one thread alone."""

    def __init__(self) -> None:
        self._free: dict[int, list[Tensor]] = {}

    def take(self, num_bytes: int) -> Tensor:
        """At least so many bytes, with anything in them."""
        size = max(_GRAIN, -(-num_bytes // _GRAIN) * _GRAIN)
        free = self._free.get(size)
        return free.pop() if free else torch.empty(size, dtype=torch.uint8)

    def give(self, buffers: list[Tensor]) -> None:
        for buffer in buffers:
            self._free.setdefault(buffer.numel(), []).append(buffer)
