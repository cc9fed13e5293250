"""Which values the fields of events may have: plain values that are safe to sum, plot and print."""

import types
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin

MAX_TIME_S: Final = 1e11  # the year 5138, which calendar functions can still format
MAX_INT: Final = 2**63
MAX_FLOAT: Final = 1e100  # sums, means and ratios of such numbers are still finite
MAX_DEPTH: Final = 50
_MAX_VALUES: Final = 10_000
_PLAIN: Final = (str, int, float, bool, type(None))


class Allowed(NamedTuple):
    """Values that a field may have."""

    types: frozenset[type]
    choices: frozenset[str] | None
    """Texts that are allowed; None for all."""


def allowed_by(annotation: Any) -> Allowed | None:
    """Return the values that an annotation allows; None if it is not one of plain values.

    >>> sorted(kind.__name__ for kind in allowed_by(float | None).types)
    ['NoneType', 'float', 'int']
    >>> allowed_by(list[int]) is None
    True
    """
    if get_origin(annotation) is Literal:
        texts = get_args(annotation)
        is_text = all(isinstance(text, str) for text in texts)
        return Allowed(frozenset({str}), frozenset(texts)) if is_text else None
    if isinstance(annotation, types.UnionType):
        options = [allowed_by(option) for option in get_args(annotation)]
        known = [option for option in options if option is not None]
        choices = [option.choices for option in known if option.choices is not None]
        if len(known) < len(options) or len(choices) > 1:
            return None
        kinds = frozenset[type]().union(*(option.types for option in known))
        return Allowed(kinds, choices[0] if choices else None)
    if annotation is float:
        return Allowed(frozenset({int, float}), None)
    if annotation is None:
        return Allowed(frozenset({type(None)}), None)
    return Allowed(frozenset({annotation}), None) if annotation in _PLAIN else None


def fits(value: Any, allowed: Allowed) -> bool:
    """Return whether a value of a JSON document is allowed and safe to compute with.

    >>> number, maybe = allowed_by(float), allowed_by(float | None)
    >>> (
    ...     fits(3, number),
    ...     fits(None, number),
    ...     fits(None, maybe),
    ...     fits("3", number),
    ...     fits(True, number),
    ... )
    (True, False, True, False, False)
    >>> fits(10**400, number), fits(1e300, number), fits("on", allowed_by(Literal["off"]))
    (False, False, False)
    """
    kind = type(value)
    if kind not in allowed.types:
        return False
    if kind is float:
        return -MAX_FLOAT <= value <= MAX_FLOAT  # type: ignore[no-any-return]
    if kind is int:
        return -MAX_INT <= value <= MAX_INT  # type: ignore[no-any-return]
    return kind is not str or allowed.choices is None or value in allowed.choices


def printable(text: str) -> str:
    """Replace lone surrogates in a text: JSON can contain them, but UTF-8 cannot encode them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def is_deep(value: Any) -> bool:
    """Return whether values are nested too deeply for recursive code."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def checked(value: Any) -> Any:
    """Return a JSON value in which all numbers are safe to compute with and all texts printable.

    Raises ValueError if it is nested too deeply, has too many values or a number that is too large.
    """
    level, num_values = [value], 0
    for _ in range(MAX_DEPTH):
        num_values += len(level)
        if num_values > _MAX_VALUES or not all(map(_is_safe, level)):
            raise ValueError("too many values, or a number that is too large")
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return _with_printable_texts(value)
    raise ValueError("nested too deeply")


def _inside(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


_ANY: Final = Allowed(frozenset({*_PLAIN, dict, list}), None)


def _is_safe(value: Any) -> bool:
    return fits(value, _ANY)


def _with_printable_texts(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_with_printable_texts(inner) for inner in value]
    if isinstance(value, dict):
        return {printable(key): _with_printable_texts(inner) for key, inner in value.items()}
    return value
