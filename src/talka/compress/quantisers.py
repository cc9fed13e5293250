"""The grids that have names: uniform, qsgd, terngrad. What they are made of stands in `grid.py`."""

from typing import Any, NamedTuple, Self

from talka.compress.grid import MAX_BUCKET, MIN_BUCKET, GridRounding, Norm
from talka.errors import SpecError


class Uniform(GridRounding):
    """2^k points evenly on [-1, 1]; the norm is the L2 norm of all values unless said."""

    name, code = "uniform", 5

    @classmethod
    def parse(cls, arguments: list[str], **options: Any) -> Self:
        said = _read(arguments, largest=16)
        if said is None or said.fixed:
            raise SpecError(
                f"{cls.name}:{'/'.join(arguments)}",
                "is no grid",
                "k from 1 to 16 for 2^k points, then the norm, l2 or max, then how many values "
                f"share one, {MIN_BUCKET} or more or all: uniform:3, uniform:3/max/512",
            )
        top = (1 << said.number) - 1
        return cls(top, norm=said.norm or "l2", bucket=said.bucket or None, fixed=True, **options)

    @property
    def spec(self) -> str:
        said: list[object] = [self.width]
        if self.norm != "l2" or self.bucket:
            said += [self.norm]
        if self.bucket:
            said += [self.bucket]
        return f"{self.name}:{'/'.join(map(str, said))}"


class Qsgd(GridRounding):
    """s levels on either side of zero; the norm is the L2 norm of 512 values unless said."""

    name, code = "qsgd", 6

    @classmethod
    def parse(cls, arguments: list[str], **options: Any) -> Self:
        said = _read(arguments, largest=32767)
        if said is None:
            raise SpecError(
                f"{cls.name}:{'/'.join(arguments)}",
                "is no grid",
                "s from 1 to 32767 for the levels on either side of zero, then the norm, l2 or max, "
                f"and how many values share one, {MIN_BUCKET} or more or all; `fixed` keeps Elias "
                "codes out: qsgd:7, qsgd:7/1024, qsgd:7/max/512, qsgd:7/fixed",
            )
        bucket = 512 if said.bucket is None else said.bucket or None
        norm = said.norm or "l2"
        return cls(2 * said.number, norm=norm, bucket=bucket, fixed=said.fixed, **options)

    @property
    def spec(self) -> str:
        said: list[object] = [self.top // 2]
        if self.norm != "l2":
            said += [self.norm]
        if self.norm != "l2" or self.bucket != 512:
            said += [self.bucket or "all"]
        if self.fixed:
            said += ["fixed"]
        return f"{self.name}:{'/'.join(map(str, said))}"


class TernGrad(GridRounding):
    """-1, 0 or 1 times the largest magnitude of all values: qsgd:1/max/all."""

    name, code = "terngrad", 7

    @classmethod
    def parse(cls, arguments: list[str], **options: Any) -> Self:
        if arguments:
            return super().parse(arguments)
        return cls(2, norm="max", bucket=None, fixed=False, **options)


class _Said(NamedTuple):
    number: int
    norm: Norm | None
    bucket: int | None
    """0 for all."""
    fixed: bool


def _read(arguments: list[str], *, largest: int) -> _Said | None:
    """A number, then a norm, a bucket and `fixed`, each once, in any order; None if it is not that.

    >>> _read(["3", "max", "512"], largest=16)
    _Said(number=3, norm='max', bucket=512, fixed=False)
    >>> _read(["3", "max", "max"], largest=16)
    """
    number = _whole(arguments[0], 1, largest) if arguments else None
    norms: list[Norm] = [one for one in ("l2", "max") if one in arguments[1:]]
    others = [one for one in arguments[1:] if one not in ("l2", "max", "fixed")]
    buckets = [0 if one == "all" else _whole(one, MIN_BUCKET, MAX_BUCKET) for one in others]
    fixed = "fixed" in arguments[1:]
    num_said = 1 + len(norms) + len(buckets) + fixed
    if number is None or None in buckets or len(norms) > 1 or len(buckets) > 1:
        return None
    if num_said != len(arguments):
        return None
    return _Said(number, norms[0] if norms else None, buckets[0] if buckets else None, fixed)


def _whole(text: str, least: int, largest: int) -> int | None:
    value = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None
    return value if value is not None and least <= value <= largest else None
