"""Layouts: the parameters to which the values of a flat vector belong.

State is kept by parameter name and at full length; buckets and chunks are slices of it. So
residuals stay with their parameter when buckets are regrouped or chunks change with the number of
workers.
"""

import math
from typing import NamedTuple


class Piece(NamedTuple):
    """A slice of a parameter: `values[start:stop]` are its elements from `offset` on."""

    name: str
    shape: tuple[int, ...]
    offset: int
    start: int
    stop: int

    @property
    def num_values(self) -> int:
        return self.stop - self.start

    @property
    def full_length(self) -> int:
        """Number of values of the whole parameter."""
        return math.prod(self.shape)


Layout = tuple[Piece, ...]


def nameless(num_values: int) -> Layout:
    """Return the layout of a vector without known parameters: one piece with an empty name."""
    return (Piece("", (num_values,), 0, 0, num_values),)


def layout_of(shapes: dict[str, tuple[int, ...]]) -> Layout:
    """Return the layout of whole parameters, one after another.

    >>> [(piece.name, piece.start, piece.stop) for piece in layout_of({"w": (2, 3), "b": (3,)})]
    [('w', 0, 6), ('b', 6, 9)]
    """
    pieces, start = [], 0
    for name, shape in shapes.items():
        stop = start + math.prod(shape)
        pieces.append(Piece(name, tuple(shape), 0, start, stop))
        start = stop
    return tuple(pieces)


def cut(layout: Layout, start: int, stop: int) -> Layout:
    """Return the layout of `values[start:stop]`.

    >>> cut(layout_of({"w": (2, 3), "b": (3,)}), 4, 8)
    (Piece(name='w', shape=(2, 3), offset=4, start=0, stop=2), Piece(name='b', shape=(3,), offset=0, start=2, stop=4))
    """
    pieces = []
    for piece in layout:
        first, last = max(piece.start, start), min(piece.stop, stop)
        if first < last:
            offset = piece.offset + first - piece.start
            pieces.append(Piece(piece.name, piece.shape, offset, first - start, last - start))
    return tuple(pieces)
