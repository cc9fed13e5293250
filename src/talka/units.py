"""Parse and format sizes, rates, times and counts with units.

Sizes and rates are decimal (1 kB = 1000 bytes, 1 gbit = 10^9 bits per second), as in network tools;
`KiB`, `MiB`, `GiB` are binary.
"""

import math
import re

from talka.errors import InvalidValueError

_BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "pb": 10**15}
_BYTES |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_BITS_PER_S = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "tbit": 10**12}
_BITS_PER_S |= {f"{name}/s": value for name, value in _BITS_PER_S.items()}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0, "min": 60.0, "h": 3600.0}
_COUNT = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}
_NUMBER = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)(?:e([+-]?\d+))?\s*([a-z/]*)\s*", re.IGNORECASE)


def parse_bytes(text: str, *, name: str = "size") -> int:
    """Return the bytes of a size such as `25MB`, `1.5GiB` or `400`.

    >>> parse_bytes("25MB"), parse_bytes("1KiB"), parse_bytes("400")
    (25000000, 1024, 400)
    """
    return round(_parse(text, _BYTES, name, "a size such as 400, 25MB or 1.5GiB"))


def parse_rate(text: str, *, name: str = "rate") -> float:
    """Return the bits per second of a rate such as `100mbit` or `1gbit`.

    >>> parse_rate("100mbit")
    100000000.0
    """
    allowed = "a rate in bits per second above 0, such as 100mbit or 1gbit"
    rate = _parse(text, _BITS_PER_S, name, allowed)
    if rate <= 0:
        raise InvalidValueError(name, text, allowed)
    return rate


def parse_seconds(text: str, *, name: str = "time") -> float:
    """Return the seconds of a time such as `0.1ms`, `5s` or `2min`.

    >>> parse_seconds("0.1ms")
    0.0001
    """
    return _parse(text, _SECONDS, name, "a time such as 0.1ms, 5s or 2min")


def parse_count(text: str, *, name: str = "number") -> int:
    """Return a whole number written as `2.9M` or `400`.

    >>> parse_count("2.9M")
    2900000
    """
    allowed = "a whole number such as 400, 20k or 2.9M"
    count = _parse(text, _COUNT, name, allowed)
    if not math.isclose(
        count, round(count), rel_tol=1e-12
    ):  # 2.9 * 10**6 may differ in the last bit
        raise InvalidValueError(name, text, allowed)
    return round(count)


def _parse(text: str, units: dict[str, int] | dict[str, float], name: str, allowed: str) -> float:
    match = _NUMBER.fullmatch(text)
    if match is None or match[3].lower() not in units:
        raise InvalidValueError(name, text, allowed)
    value = float(f"{match[1]}e{match[2] or 0}") * units[match[3].lower()]
    if value == float("inf"):
        raise InvalidValueError(name, text, allowed)
    return value


def format_bytes(num_bytes: float) -> str:
    """Format a size in bytes with three digits.

    >>> format_bytes(0), format_bytes(999), format_bytes(25_000_000), format_bytes(1.234e12)
    ('0 B', '999 B', '25.0 MB', '1.23 TB')
    """
    return f"{_scaled(num_bytes, ('k', 'M', 'G', 'T', 'P'))}B"


def format_rate(bits_per_s: float) -> str:
    """Format a rate in bits per second.

    >>> format_rate(100e6)
    '100 Mbit/s'
    """
    return f"{_scaled(bits_per_s, ('k', 'M', 'G', 'T'))}bit/s"


def format_count(count: float) -> str:
    """Format a count with three digits.

    >>> format_count(16_300_000), format_count(12)
    ('16.3 M', '12')
    """
    return _scaled(count, ("k", "M", "G", "T")).rstrip()


def _scaled(value: float, prefixes: tuple[str, ...]) -> str:
    if abs(value) < 999.5:
        return (
            f"{value:.0f} " if float(value).is_integer() or abs(value) >= 100 else f"{value:.3g} "
        )
    for prefix in prefixes:
        value /= 1000
        if abs(value) < 999.5 or prefix == prefixes[-1]:
            break
    decimals = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
    return f"{value:.{decimals}f} {prefix}"


def format_seconds(seconds: float) -> str:
    """Format a time with about three digits.

    >>> format_seconds(0.00012), format_seconds(0.25), format_seconds(12.34), format_seconds(200)
    ('0.12 ms', '250 ms', '12.3 s', '3 min 20 s')
    """
    if not math.isfinite(seconds):
        return f"{seconds} s"
    if seconds < 0:
        return f"-{format_seconds(-seconds)}"
    if seconds < 0.9995:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 99.95:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
