"""Recognise the columns of edges by their names."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

SOURCES = ("source", "src", "from", "fromnodeid", "from_id", "source_id")
TARGETS = ("target", "dst", "dest", "destination", "to", "tonodeid", "to_id", "target_id")
WEIGHTS = (
    "weight",
    "weights",
    "w",
    "wt",
    "value",
    "cost",
    "distance",
    "dist",
    "length",
    "strength",
)
"""Names of weight columns, the most certain first: the first one present is used."""
_CERTAIN_WEIGHTS = WEIGHTS[:2]
TIMES = (
    "time", "times", "timestamp", "timestamps", "ts", "date", "datetime", "year", "month", "day",
    "since", "created", "created_at", "unixtime",
)  # fmt: skip
"""Names of columns of numbers that are not weights."""
INDEXES = ("", "unnamed: 0", "__index_level_0__")
"""Names that pandas gives to the column of row numbers."""


def is_header(fields: Sequence[str]) -> bool:
    """Return whether fields name a source and a target, or begin with row numbers of pandas.

    >>> is_header(["Source", "Target", "Weight"]), is_header(["anna", "bert"])
    (True, False)
    >>> is_header(["", "person", "friend"]), is_header(["", "person", "0.5"])
    (True, False)
    """
    names = [_plain(field) for field in fields]
    has_ends = any(name in SOURCES for name in names) and any(name in TARGETS for name in names)
    has_index = len(names) > 2 and names[0] in INDEXES and not any(map(is_number, names))
    return has_ends or has_index


class Places(NamedTuple):
    """Indices of the columns of edges."""

    source: int
    target: int
    weight: int | None


def places(names: Sequence[str], is_number: Callable[[int], bool]) -> Places:
    """Choose the columns of edges by their names.

    If source and target have known names, the weight must have one, too. Otherwise source and
    target are the first two columns that are neither row numbers nor `weight`, and a column of
    numbers after them is the weight unless its name is that of a time.

    >>> places(["id", "src", "dst", "time", "weight"], lambda place: True)
    Places(source=1, target=2, weight=4)
    >>> places(["", "a", "b", "c"], lambda place: True)
    Places(source=1, target=2, weight=3)
    >>> places(["a", "b", "time"], lambda place: True).weight is None
    True
    """
    plain = [_plain(name) for name in names]
    source, target = _place(SOURCES, plain), _place(TARGETS, plain)
    if source is not None and target is not None:
        return Places(source, target, _place(WEIGHTS, plain))
    ends = [place for place, name in enumerate(plain) if name not in _CERTAIN_WEIGHTS]
    if len(ends) > 2 and plain[ends[0]] in INDEXES:
        del ends[0]
    source, target = ends[:2] if len(ends) > 1 else (0, 1)
    others = {place: name for place, name in enumerate(plain) if place not in (source, target)}
    weight = _place(WEIGHTS, [others.get(place, "") for place in range(len(plain))])
    third = target + 1
    if weight is None and third in others and is_number(third) and others[third] not in TIMES:
        weight = third
    return Places(source, target, weight)


def described(names: Sequence[str], at: Places) -> str:
    """Describe which columns are used.

    >>> described(["src", "dst", "time"], Places(0, 1, None))
    "source is column 'src', target is column 'dst', without weights (not used: 'time')"
    """
    weight = "without weights" if at.weight is None else f"weight is column {names[at.weight]!r}"
    rest = [repr(name) for place, name in enumerate(names) if place not in at]
    unused = f" (not used: {', '.join(rest)})" if rest else ""
    ends = f"source is column {names[at.source]!r}, target is column {names[at.target]!r}"
    return f"{ends}, {weight}{unused}"


def unquoted(name: str) -> str:
    """Return a name without the quotes around it; a single quote character stays a name.

    >>> unquoted('"person"'), unquoted('""'), unquoted('"')
    ('person', '', '"')
    """
    return name[1:-1] if len(name) > 1 and name[0] == name[-1] == '"' else name


def _plain(name: str) -> str:
    return unquoted(name.strip()).strip().lower()


def is_number(field: str | bytes) -> bool:
    """Return whether a field of text is a number."""
    try:
        float(field)
    except ValueError:
        return False
    return True


def _place(known: Sequence[str], names: Sequence[str]) -> int | None:
    """Return the index of the first known name that is present."""
    return next((names.index(name) for name in known if name in names), None)
