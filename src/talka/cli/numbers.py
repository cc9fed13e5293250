"""Numeric options: each one declares its unit and range once, and other values are rejected.

    add("--rate", action=Number, parse=rate(), default="1gbit", help="... (default: %(default)s)")

The parsed value is a number: bytes for a size, seconds for a time, bits per second for a rate.
Defaults are written as a user would type them.
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
"""A function from the name of an option and its text to its value."""


class Number(argparse.Action):
    """An option read by `parse`, whose error lists the allowed values; argparse would hide them."""

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
        shown: int | str = text
        with contextlib.suppress(ValueError):
            shown = int(text)
        with _report_invalid(name, shown, allowed):
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
        shown: float | str = text
        with contextlib.suppress(ValueError):
            shown = float(text)
        with _report_invalid(name, shown, allowed):
            value = float(text)
            _check(value, at_least, at_most, above)
        return value

    return parse


def size(*, at_least: int = 0, at_most: int | None = None) -> Parse:
    """Read a number of bytes such as 25MB or 1.5GiB."""
    return _with_unit(parse_bytes, "a size such as 25MB or 1.5GiB", format_bytes, at_least, at_most)


def seconds(*, at_least: float = 0.0, at_most: float | None = None) -> Parse:
    """Read a duration such as 0.1ms, 5s or 2min."""
    description = "a time such as 0.1ms, 5s or 2min"
    return _with_unit(parse_seconds, description, format_seconds, at_least, at_most)


def rate(*, at_least: float = 1, at_most: float = 1e15) -> Parse:
    """Read a number of bits per second such as 100mbit or 1gbit."""
    description = "a rate such as 100mbit or 1gbit"
    return _with_unit(parse_rate, description, format_rate, at_least, at_most)


def _with_unit(
    read: Callable[[str], float],
    description: str,
    as_text: Callable[[float], str],
    at_least: float,
    at_most: float | None,
) -> Parse:
    allowed = f"{description}, {_range(at_least, at_most, as_text)}"

    def parse(name: str, text: str) -> float:
        with _report_invalid(name, text, allowed):
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
def _report_invalid(name: str, value: object, allowed: str) -> Any:
    """Turn an unreadable text or a value out of range into an error that lists what is allowed."""
    try:
        yield
    except (ValueError, OverflowError):
        raise InvalidValueError(name, value, allowed) from None


def _range(at_least: float | None, at_most: float | None, as_text: Callable[[float], str]) -> str:
    if at_most is None:
        return f"of at least {as_text(at_least or 0)}"
    return f"from {as_text(at_least or 0)} to {as_text(at_most)}"
