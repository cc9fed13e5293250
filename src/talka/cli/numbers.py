"""Numbers on the command line: every option says its range once, and a value outside is refused.

    add("--rate", action=Number, parse=rate(), default="1gbit", help="... (default: %(default)s)")

The value of the option is the number: bytes for a size, seconds for a time, bits per second for a
rate. A default is written as it would be typed.
"""

import argparse
import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

from talka.errors import InvalidValueError
from talka.units import (
    format_bytes,
    format_rate,
    format_seconds,
    parse_bytes,
    parse_count,
    parse_rate,
    parse_seconds,
)

Parse = Callable[[str, str], Any]
"""From the name of an option and its text to its value."""


class Number(argparse.Action):
    """An option whose value `parse` reads; argparse would hide what is allowed."""

    def __init__(
        self,
        option_strings: Sequence[str],
        dest: str,
        *,
        parse: Parse,
        default: str | None = None,
        help: str = "",
        **options: Any,
    ) -> None:
        value = None if default is None else parse(option_strings[0], default)
        help = help.replace("%(default)s", str(default))
        super().__init__(option_strings, dest, default=value, help=help, **options)
        self._parse = parse

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, self._parse(option_string or self.dest, str(values)))


def count(*, at_least: int = 1, at_most: int | None = None) -> Parse:
    """Read a whole number such as 400, 20k or 2.9M.

    >>> count(at_most=64)("--workers", "4")
    4
    """
    allowed = f"a whole number {_range(at_least, at_most, lambda number: f'{number:,.0f}')}"

    def parse(name: str, text: str) -> int:
        given: int | str = text
        with contextlib.suppress(ValueError):
            given = int(text)
        with _explained(name, given, allowed):
            value = parse_count(text)
            _check(value, at_least, at_most)
        return value

    return parse


def number(
    *, at_least: float | None = None, above: float | None = None, at_most: float | None = None
) -> Parse:
    """Read a finite number such as 0.85 or 1e-3.

    >>> number(above=0)("--tolerance", "1e-3")
    0.001
    """
    bounds = f"above {above:g}" if above is not None else _range(at_least, at_most, "{:g}".format)
    allowed = f"a number {bounds}"

    def parse(name: str, text: str) -> float:
        given: float | str = text
        with contextlib.suppress(ValueError):
            given = float(text)
        with _explained(name, given, allowed):
            value = float(text)
            _check(value, at_least, at_most, above)
        return value

    return parse


def size(*, at_least: int = 0, at_most: int | None = None) -> Parse:
    """Read bytes, such as 25MB or 1.5GiB."""
    return _with_unit(parse_bytes, "a size such as 25MB or 1.5GiB", format_bytes, at_least, at_most)


def seconds(*, at_least: float = 0.0, at_most: float | None = None) -> Parse:
    """Read a time, such as 0.1ms, 5s or 2min."""
    what = "a time such as 0.1ms, 5s or 2min"
    return _with_unit(parse_seconds, what, format_seconds, at_least, at_most)


def rate(*, at_least: float = 1, at_most: float = 1e15) -> Parse:
    """Read bits per second, such as 100mbit or 1gbit."""
    what = "a rate such as 100mbit or 1gbit"
    return _with_unit(parse_rate, what, format_rate, at_least, at_most)


def _with_unit(
    read: Callable[[str], float],
    what: str,
    shown: Callable[[float], str],
    at_least: float,
    at_most: float | None,
) -> Parse:
    allowed = f"{what}, {_range(at_least, at_most, shown)}"

    def parse(name: str, text: str) -> float:
        with _explained(name, text, allowed):
            value = read(text)
            _check(value, at_least, at_most)
        return value

    return parse


def _check(
    value: float, at_least: float | None, at_most: float | None, above: float | None = None
) -> None:
    is_inside = (
        math.isfinite(value)
        and (at_least is None or value >= at_least)
        and (at_most is None or value <= at_most)
        and (above is None or value > above)
    )
    if not is_inside:
        raise ValueError(value)


@contextlib.contextmanager
def _explained(name: str, given: object, allowed: str) -> Any:
    """Say what is allowed, whatever is wrong: the text, or the range."""
    try:
        yield
    except (ValueError, OverflowError):
        raise InvalidValueError(name, given, allowed) from None


def _range(at_least: float | None, at_most: float | None, shown: Callable[[float], str]) -> str:
    if at_most is None:
        return f"of at least {shown(at_least or 0)}"
    return f"from {shown(at_least or 0)} to {shown(at_most)}"
