"""Low rank: PowerSGD (K8; Vogels et al., arXiv:1905.13727), one power iteration per step.

    M = gradient + residual       m x n, a parameter as a matrix
    P = mean of M Q               summed over workers, then made orthonormal
    Q = mean of M' P              summed over workers; the next step starts from it
    average = P Q',  residual = M - P Q'

This is not a compressor: the second message depends on the sum of the first messages of all
workers. Parameters that are not matrices, or would not become smaller, are sent whole with the
first sum.
"""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, cast

import torch
from torch import Tensor

from talka.channels.collectives.direct import direct_all_reduce
from talka.channels.collectives.port import Steps
from talka.compress import Layout, Piece, State, StateKey
from talka.errors import NonFiniteError, SpecError
from talka.exchange.base import Exchange
from talka.exchange.call import Call
from talka.exchange.merging import mean_of
from talka.exchange.power_sgd import Codec, PowerSgd
from talka.exchange.pricing.price import FREE, CodecRates, Price
from talka.exchange.transport import Members
from talka.network import Cost, Network, low_rank


class Split(NamedTuple):
    """The pieces of a vector that are sent as factors, and those that are sent whole."""

    matrices: list[tuple[Piece, int, int]]
    """Pieces with their numbers of rows and columns."""
    whole: list[Piece]

    def num_floats(self, rank: int) -> tuple[int, int]:
        """Return the number of floats in the first and in the second sum."""
        first = sum(_width(rank, m, n) * m for _, m, n in self.matrices)
        second = sum(_width(rank, m, n) * n for _, m, n in self.matrices)
        return first + sum(piece.num_values for piece in self.whole), second


def split(layout: Layout, rank: int) -> Split:
    """Sort the pieces of a vector; the first dimension of a parameter is that of its rows."""
    matrices, whole = [], []
    for piece in layout:
        m = piece.shape[0] if piece.shape else 1
        n = piece.full_length // m if m else 0
        complete = piece.num_values == piece.full_length
        if complete and len(piece.shape) > 1 and _width(rank, m, n) * (m + n) < m * n:
            matrices.append((piece, m, n))
        else:
            whole.append(piece)
    return Split(matrices, whole)


def _width(rank: int, m: int, n: int) -> int:
    return min(rank, m, n)


class LowRank(Exchange):
    """Sums two thin factors of each gradient matrix instead of the matrix."""

    name: ClassVar[str] = "low-rank"

    def __init__(self, codec: Codec, *, group: Members = None, momentum: float = 0.0) -> None:
        super().__init__(codec, group=group, momentum=momentum)
        self._codec = cast(PowerSgd, codec)  # see check()
        self._residuals: dict[str, Tensor] = {}
        self._starts: dict[str, Tensor] = {}

    @property
    def codec(self) -> PowerSgd:
        return self._codec

    @property
    def factor_rank(self) -> int:
        """Number of columns of each factor."""
        return self._codec.factor_rank

    @classmethod
    def check(cls, codec: Codec) -> None:
        if not isinstance(codec, PowerSgd):
            allowed = "powersgd:R there, such as powersgd:4"
            raise SpecError(codec.spec, "cannot use the exchange low-rank", allowed)

    @classmethod
    def price(
        cls, codec: Codec, layout: Layout, network: Network, rates: CodecRates = FREE
    ) -> Price:
        """Return the price of one average. Both factors are computed, then their product."""
        cls.check(codec)
        factor_rank = cast(PowerSgd, codec).factor_rank
        first, second = split(layout, factor_rank).num_floats(factor_rank)

        def cost_on(network: Network) -> Cost:
            return low_rank(network, 4 * first, 4 * second)

        num_values = sum(piece.num_values for piece in layout)
        return Price(
            codec.spec,
            cls.name,
            cost_on(network),
            codec_s=num_values * (rates.encode_s + rates.decode_s),
            payload_bytes=4.0 * (first + second),
            resparsifies=False,
            cost_on=cost_on,
        )

    def steps(self, call: Call) -> Steps:
        parts = split(call.layout, self.factor_rank)
        with self.meter.timed("encode_s"):
            wanted = [self._with_residual(call, *matrix) for matrix in parts.matrices]
            starts = [self._start(*matrix) for matrix in parts.matrices]
            firsts = [times(matrix, start) for matrix, start in zip(wanted, starts, strict=True)]
            whole = [call.values[piece.start : piece.stop] for piece in parts.whole]
            sum_1 = _joined([*firsts, *whole]).div_(self.num_workers)
            if self.nonfinite == "error":
                _check_finite(sum_1, parts, [*firsts, *whole], wanted)
        if self.num_workers > 1:
            yield from direct_all_reduce(call, sum_1)
        with self.meter.timed("encode_s"):
            *bases, rest = _apart(sum_1, [*firsts, torch.cat([sum_1[:0], *whole])])
            all_finite = bool(sum_1.isfinite().all())
            bases = [  # a basis that is not finite makes the average so, too
                torch.linalg.qr(basis).Q if all_finite or basis.isfinite().all() else basis
                for basis in bases
            ]
            sum_2 = _joined([times(m.T, p) for m, p in zip(wanted, bases, strict=True)])
            sum_2.div_(self.num_workers)
        if self.num_workers > 1:
            yield from direct_all_reduce(call.after(2), sum_2)
        with self.meter.timed("decode_s"):
            seconds, all_finite = _apart(sum_2, starts), bool(sum_2.isfinite().all())
            for (piece, m, n), matrix, p, q in zip(
                parts.matrices, wanted, bases, seconds, strict=True
            ):
                if all_finite or q.isfinite().all():
                    self._starts[piece.name] = q.clone()
                out = call.values[piece.start : piece.stop].view(m, n)
                torch.matmul(p, q.T, out=out)
                matrix -= out
            for piece, values in zip(
                parts.whole,
                torch.split(rest, [piece.num_values for piece in parts.whole]),
                strict=True,
            ):
                call.values[piece.start : piece.stop] = values

    def _with_residual(self, call: Call, piece: Piece, m: int, n: int) -> Tensor:
        """Return M, in the memory of the residual: there it becomes the next residual."""
        residual = self._residuals.setdefault(piece.name, torch.zeros(m * n))
        residual += call.values[piece.start : piece.stop]
        return residual.view(m, n)

    def _start(self, piece: Piece, m: int, n: int) -> Tensor:
        """Return Q of the last step, or at first random columns, the same on all workers."""
        if piece.name not in self._starts:
            generator = torch.Generator().manual_seed(n)
            self._starts[piece.name] = torch.randn(
                n, _width(self.factor_rank, m, n), generator=generator
            )
        return self._starts[piece.name]

    def residuals(self) -> list[dict[str, Tensor]]:
        return [self._residuals]

    def state(self) -> State:
        kept = {
            StateKey(kind, name, side="worker"): value
            for kind, values in self._by_kind().items()
            for name, value in values.items()
        }
        return super().state() | kept

    def load_state(self, state: State) -> None:
        super().load_state(state)
        for kind, values in self._by_kind().items():
            values.clear()
            for key, value in state.items():
                if (key.side, key.kind) == ("worker", kind):
                    values[key.name] = value.clone()

    def _by_kind(self) -> dict[str, dict[str, Tensor]]:
        return {"residual": self._residuals, "start": self._starts}

    def merged(self, states: Sequence[State]) -> State:
        return states[0] | mean_of(states, "residual") | mean_of(states, "momentum")


def times(matrix: Tensor, few_columns: Tensor) -> Tensor:
    """Return `matrix @ few_columns`, computed transposed: several times faster for few columns."""
    return (few_columns.T @ matrix.T).T


def _check_finite(joined: Tensor, parts: Split, sent: list[Tensor], wanted: list[Tensor]) -> None:
    """Raise NonFiniteError with the name of the first parameter that is not finite.

    Only the products are checked, which are much smaller than the gradients: a product is not
    finite in every row where its matrix is not.
    """
    if joined.isfinite().all():
        return
    for matrix in wanted:  # residuals share this memory and must stay finite
        matrix.nan_to_num_(0.0, 0.0, 0.0)
    pieces = [*(piece for piece, _, _ in parts.matrices), *parts.whole]
    for piece, values in zip(pieces, sent, strict=True):
        if not values.isfinite().all():
            raise NonFiniteError(piece.name)


def _joined(tensors: list[Tensor]) -> Tensor:
    return torch.cat([torch.empty(0), *(tensor.reshape(-1) for tensor in tensors)])


def _apart(joined: Tensor, like: list[Tensor]) -> list[Tensor]:
    parts = torch.split(joined, [tensor.numel() for tensor in like])
    return [part.view(tensor.shape) for part, tensor in zip(parts, like, strict=True)]
