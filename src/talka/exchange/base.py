"""The base class of exchanges: all workers give a flat vector, and all get its average.

A subclass defines in `steps` how one vector is averaged; it sends and receives through a `Call`.
`compressed.py` has the base class of exchanges of compressed vectors. Every worker gets
bit-identical results.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, cast

import torch
from torch import Tensor
from torch.futures import Future

from talka.channels.collectives.port import Steps
from talka.compress import Layout, Piece, State
from talka.compress.layout import nameless
from talka.errors import InvalidValueError
from talka.exchange.buffers import Buffers
from talka.exchange.call import Call
from talka.exchange.conveyor import Conveyor
from talka.exchange.meter import Meter
from talka.exchange.momentum import Momentum
from talka.exchange.power_sgd import Codec
from talka.exchange.pricing.price import FREE, CodecRates, Price
from talka.exchange.snapshot import Snapshot
from talka.exchange.transport import Members, group_of
from talka.network import Network

TAGS_PER_CALL = 16
MAX_TAG = 1 << 62


class Exchange(ABC):
    """Averages vectors over some workers, in a thread.

    All of them must construct it, in the same order as other exchanges of the same workers, and
    must call `average` in the same order. Opening and closing one costs no connection.
    """

    name: ClassVar[str]

    def __init__(self, codec: Codec, *, group: Members = None, momentum: float = 0.0) -> None:
        self.check(codec)
        self.momentum, self.nonfinite = Momentum(momentum), codec.nonfinite
        self.channels = group_of(group, "exchange")
        self.rank, self.num_workers = self.channels.rank, self.channels.size
        self.meter = Meter()
        self.buffers = Buffers()
        self._conveyor = Conveyor(self.meter)
        self._count = itertools.count()

    @property
    @abstractmethod
    def codec(self) -> Codec:
        """Codec of this worker; its expected sizes follow recent gradients."""

    @property
    def spec(self) -> str:
        """Short form of the compressor."""
        return self.codec.spec

    @classmethod
    @abstractmethod
    def check(cls, codec: Codec) -> None:
        """Raise SpecError if this exchange cannot carry what the codec encodes."""

    @classmethod
    @abstractmethod
    def price(
        cls, codec: Codec, layout: Layout, network: Network, rates: CodecRates = FREE
    ) -> Price:
        """Return the price of one average; raise SpecError as `check` does.

        Nothing overlaps in it. Without `rates`, encoding and decoding take no time.
        """

    @abstractmethod
    def steps(self, call: Call) -> Steps:
        """Average `call.values` in place; yield messages that must arrive before it continues."""

    def state(self) -> State:
        """Return all of this worker that the next average depends on, for checkpoints."""
        return self.momentum.state()

    def load_state(self, state: State) -> None:
        """Replace the state by one that `state` or `merged` returned."""
        self.momentum.load_state(state)

    def residuals(self) -> list[dict[str, Tensor]]:
        """Return the residuals by parameter, for each side of the exchange on this worker."""
        return []

    def snapshot(self, pieces: Iterable[Piece]) -> Snapshot:
        """Copy momentum and residuals of some slices of parameters, to restore them later."""
        return Snapshot([*self.momentum.states(), *self.residuals()], pieces)

    def residual_norm(self) -> float:
        """Return the Euclidean norm of all residuals of this worker."""
        squares = [
            float(value.square().sum(dtype=torch.float64))
            for side in self.residuals()
            for value in side.values()
        ]
        return math.sqrt(sum(squares))

    @abstractmethod
    def merged(self, states: Sequence[State]) -> State:
        """Return the state of this worker from those of all workers of a former run.

        It is used if their number differs from the present one.
        """

    def average(
        self, flat: Tensor, layout: Layout | None = None, *, weight: float = 1.0
    ) -> "Future[Tensor]":
        """Average the vectors of all workers in place: the future's value is `flat` itself.

        With nonfinite="pass", an average that is not finite leaves momentum and residuals of these
        parameters unchanged on every worker: such a step is meant to be skipped.

        Parameters
        ----------
        weight
            Weight of this worker relative to the mean weight of all: the weights of all workers must
            add up to their number. Momentum and residuals are those of weighted vectors.
        """
        if not 0 <= weight <= self.num_workers * (1 + 1e-9):
            allowed = f"from 0 to {self.num_workers}, the number of workers, and 1 on average"
            raise InvalidValueError("weight", weight, allowed)
        if flat.is_complex() or flat.layout != torch.strided:
            kind = f"{flat.dtype}, {flat.layout}"
            raise InvalidValueError("the vector to average", kind, "real and dense")
        values = flat.detach().reshape(-1).to("cpu", torch.float32).contiguous()
        first_tag = (next(self._count) * TAGS_PER_CALL) % MAX_TAG
        call = Call(self, values, nameless(len(values)) if layout is None else layout, first_tag)

        names = frozenset(piece.name for piece in call.layout)
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
                if weight != 1.0:
                    values.mul_(weight)
                self.momentum.add_to(values, call.layout)
            return self.steps(call)

        return cast("Future[Tensor]", self._conveyor.put(start, result, names))

    def close(self) -> None:
        """End the thread, and forget messages that nobody received."""
        self._conveyor.close()
        self.channels.close()
