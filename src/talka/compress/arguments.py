"""Reading and writing the numbers in short forms."""

import math

from talka.errors import SpecError


def number(text: str) -> float | None:
    """Return the finite number in a text, or None.

    >>> number("0.01"), number("1e-3"), number("nan"), number("many")
    (0.01, 0.001, None, None)
    """
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def short(value: float) -> str:
    """Return the shortest text that reads as this number.

    >>> short(1.0), short(0.001)
    ('1', '0.001')
    """
    return repr(float(value)).removesuffix(".0")


def share(name: str, arguments: list[str]) -> float:
    """Return the only argument of a compressor that keeps a share of the values."""
    value = number(arguments[0]) if len(arguments) == 1 else None
    if value is None or not 0 < value <= 1:
        raise SpecError(
            ":".join([name, "/".join(arguments)]).removesuffix(":"),
            "does not give the share of the values to keep",
            f"one number above 0 and up to 1: {name}:0.01",
        )
    return value
