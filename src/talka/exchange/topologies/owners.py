"""Owners of the slices of parameters.

An owner depends only on the parameter's name, its length and the number of owners. So owners do not
change when buckets are regrouped, and their residuals can be redistributed when the number of
workers changes.
"""

import zlib

from talka.compress import Layout, Piece

BLOCK = 1024
"""Number of values of which slices begin at multiples; a shorter parameter has one owner."""


def slices(num_values: int, num_owners: int) -> list[tuple[int, int]]:
    """Return start and stop of slices that are as equal as whole blocks allow.

    >>> slices(5000, 3)
    [(0, 2048), (2048, 4096), (4096, 5000)]
    >>> slices(10, 3)
    [(0, 10), (10, 10), (10, 10)]
    """
    share, rest = divmod(-(-num_values // BLOCK), num_owners)
    stops = [
        min(num_values, BLOCK * (share * owner + min(owner, rest)))
        for owner in range(1, num_owners + 1)
    ]
    return list(zip([0, *stops[:-1]], stops, strict=True))


def even_shares(layout: Layout, num_owners: int) -> list[Layout]:
    """Return each owner's layout: a slice of every parameter.

    The owner of the first slice depends on the name of the parameter; the next owners follow.
    """
    shares: list[list[Piece]] = [[] for _ in range(num_owners)]
    for piece in layout:
        first = zlib.crc32(piece.name.encode()) % num_owners
        for number, (start, stop) in enumerate(slices(piece.full_length, num_owners)):
            begin, end = max(start, piece.offset), min(stop, piece.offset + piece.num_values)
            if begin < end:
                at = piece.start + begin - piece.offset
                owned = Piece(piece.name, piece.shape, begin, at, at + end - begin)
                shares[(first + number) % num_owners].append(owned)
    return [tuple(share) for share in shares]
