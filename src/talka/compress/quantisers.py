"""Grids with names: uniform, qsgd and terngrad. `grid.py` has their implementation."""

from typing import Any, NamedTuple, Self

from talka.compress.grid import MAX_BUCKET, MIN_BUCKET, GridRounding, Norm
from talka.errors import SpecError


class Uniform(GridRounding):
    """Grid of 2^k even points on [-1, 1]; by default scaled by the L2 norm of all values."""

    name, code = "uniform", 5

    @classmethod
    def parse(cls, arguments: list[str], **options: Any) -> Self:
        grid = _read(arguments, largest=16)
        if grid is None or grid.fixed:
            raise SpecError(
                f"{cls.name}:{'/'.join(arguments)}",
                "does not describe a grid",
                "k from 1 to 16 for 2^k points, then the norm, l2 or max, then the number of "
                f"values that share one, {MIN_BUCKET} or more or all: uniform:3, uniform:3/max/512",
            )
        top = (1 << grid.number) - 1
        return cls(top, norm=grid.norm or "l2", bucket=grid.bucket or None, fixed=True, **options)

    @property
    def spec(self) -> str:
        arguments: list[object] = [self.width]
        if self.norm != "l2" or self.bucket:
            arguments += [self.norm]
        if self.bucket:
            arguments += [self.bucket]
        return f"{self.name}:{'/'.join(map(str, arguments))}"


class Qsgd(GridRounding):
    """Grid of s levels on either side of zero; by default scaled by the L2 norm of 512 values."""

    name, code = "qsgd", 6

    @classmethod
    def parse(cls, arguments: list[str], **options: Any) -> Self:
        grid = _read(arguments, largest=32767)
        if grid is None:
            raise SpecError(
                f"{cls.name}:{'/'.join(arguments)}",
                "does not describe a grid",
                "s from 1 to 32767 for the levels on either side of zero, then the norm, l2 or "
                f"max, and the number of values that share one, {MIN_BUCKET} or more or all; "
                "`fixed` turns Elias codes off: qsgd:7, qsgd:7/1024, qsgd:7/max/512, qsgd:7/fixed",
            )
        bucket = 512 if grid.bucket is None else grid.bucket or None
        norm = grid.norm or "l2"
        return cls(2 * grid.number, norm=norm, bucket=bucket, fixed=grid.fixed, **options)

    @property
    def spec(self) -> str:
        arguments: list[object] = [self.top // 2]
        if self.norm != "l2":
            arguments += [self.norm]
        if self.norm != "l2" or self.bucket != 512:
            arguments += [self.bucket or "all"]
        if self.fixed:
            arguments += ["fixed"]
        return f"{self.name}:{'/'.join(map(str, arguments))}"


class TernGrad(GridRounding):
    """Grid of -1, 0 and 1 times the largest magnitude of all values: qsgd:1/max/all."""

    name, code = "terngrad", 7

    @classmethod
    def parse(cls, arguments: list[str], **options: Any) -> Self:
        if arguments:
            return super().parse(arguments)
        return cls(2, norm="max", bucket=None, fixed=False, **options)


class _GridArguments(NamedTuple):
    """The arguments of a grid; None for those that were left out."""

    number: int
    norm: Norm | None
    bucket: int | None
    """Number of values that share a norm; 0 for all."""
    fixed: bool


def _read(arguments: list[str], *, largest: int) -> _GridArguments | None:
    """Read a number, then norm, bucket and `fixed`, each at most once; None if that fails.

    >>> _read(["3", "max", "512"], largest=16)
    _GridArguments(number=3, norm='max', bucket=512, fixed=False)
    >>> _read(["3", "max", "max"], largest=16)
    """
    number = _whole(arguments[0], 1, largest) if arguments else None
    norms: list[Norm] = [norm for norm in ("l2", "max") if norm in arguments[1:]]
    others = [text for text in arguments[1:] if text not in ("l2", "max", "fixed")]
    buckets = [0 if text == "all" else _whole(text, MIN_BUCKET, MAX_BUCKET) for text in others]
    fixed = "fixed" in arguments[1:]
    num_known = 1 + len(norms) + len(buckets) + fixed
    if number is None or None in buckets or len(norms) > 1 or len(buckets) > 1:
        return None
    if num_known != len(arguments):
        return None
    return _GridArguments(
        number, norms[0] if norms else None, buckets[0] if buckets else None, fixed
    )


def _whole(text: str, least: int, largest: int) -> int | None:
    value = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None
    return value if value is not None and least <= value <= largest else None
