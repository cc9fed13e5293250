"""Restoring momentum and residuals after an average whose result is not used."""

from collections.abc import Iterable, Sequence

from torch import Tensor

from talka.compress import Piece


class Snapshot:
    """Copies of the state of some slices of parameters; missing state counts as zero.

    >>> import torch
    >>> residuals = {"w": torch.ones(3)}
    >>> before = Snapshot([residuals], [Piece("w", (3,), 0, 0, 3), Piece("b", (1,), 0, 3, 4)])
    >>> residuals["w"] += 5
    >>> residuals["b"] = torch.ones(1)
    >>> before.restore()
    >>> residuals
    {'w': tensor([1., 1., 1.]), 'b': tensor([0.])}
    """

    def __init__(self, states: Sequence[dict[str, Tensor]], pieces: Iterable[Piece]) -> None:
        self._copies = [
            (
                state,
                piece,
                _slice_of(state[piece.name], piece).clone() if piece.name in state else None,
            )
            for state in states
            for piece in pieces
        ]

    def restore(self) -> None:
        """Write the copies back."""
        for state, piece, copy in self._copies:
            if copy is not None:
                _slice_of(state[piece.name], piece).copy_(copy)
            elif piece.name in state:
                _slice_of(state[piece.name], piece).zero_()


def _slice_of(whole: Tensor, piece: Piece) -> Tensor:
    return whole[piece.offset : piece.offset + piece.num_values]
