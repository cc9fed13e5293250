"""Shorten long series before they are plotted: a plot has about as many pixels as `MAX_POINTS`."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

Point = TypeVar("Point")

MAX_POINTS: Final = 500


def thinned(
    series: Sequence[Point],
    combine: Callable[[Sequence[Point]], Point],
    *,
    max_points: int = MAX_POINTS,
) -> list[Point]:
    """Combine runs of neighbours so that at most `max_points` points remain.

    >>> thinned([1, 2, 3, 4, 5], max, max_points=2)
    [3, 5]
    """
    size = -(-len(series) // max_points)
    groups = [series[start : start + size] for start in range(0, len(series), size or 1)]
    return [group[0] if len(group) == 1 else combine(group) for group in groups]
