"""What people call the columns of edges."""

from collections.abc import Sequence
from typing import NamedTuple

SOURCES = ("source", "src", "from", "fromnodeid", "from_id", "source_id")
TARGETS = ("target", "dst", "dest", "destination", "to", "tonodeid", "to_id", "target_id")
WEIGHTS = ("weight", "weights")


def is_header(fields: Sequence[str]) -> bool:
    """Whether a line of strings names a source and a target.

    >>> is_header(["Source", "Target", "Weight"]), is_header(["anna", "bert"])
    (True, False)
    """
    names = [field.strip('"').lower() for field in fields]
    return any(name in SOURCES for name in names) and any(name in TARGETS for name in names)


class Places(NamedTuple):
    source: int
    target: int
    weight: int | None


def places(names: Sequence[str], *, third_is_number: bool) -> Places:
    """Columns by their names where both ends have known ones, else the first two.

    The weight is the column of that name, else a third one of numbers.

    >>> places(["id", "src", "dst", "weight"], third_is_number=True)
    Places(source=1, target=2, weight=3)
    >>> places(["a", "b", "c"], third_is_number=True)
    Places(source=0, target=1, weight=2)
    """
    source, target, weight = (_place(known, names) for known in (SOURCES, TARGETS, WEIGHTS))
    if source is None or target is None:
        source, target = 0, 1
    if weight is None and third_is_number and 2 not in (source, target):
        weight = 2
    return Places(source, target, weight)


def _place(known: Sequence[str], names: Sequence[str]) -> int | None:
    """Where the first column with one of the known names is."""
    return next((place for place, name in enumerate(names) if name.lower() in known), None)
