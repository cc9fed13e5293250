"""Combine what the sources of each row say: sum, smallest or largest, one kernel each."""

from typing import Any

from talka.compiled import compiled


@compiled
def gather_sum(
    start: Any, stop: Any, offsets: Any, columns: Any, said: Any, nothing: Any, combined: Any
) -> None:
    for row in range(start, stop):
        total = nothing
        for entry in range(offsets[row], offsets[row + 1]):
            total += said[columns[entry]]
        combined[row] = total


@compiled
def gather_min(
    start: Any, stop: Any, offsets: Any, columns: Any, said: Any, nothing: Any, combined: Any
) -> None:
    for row in range(start, stop):
        least = nothing
        for entry in range(offsets[row], offsets[row + 1]):
            least = min(least, said[columns[entry]])
        combined[row] = least


@compiled
def gather_max(
    start: Any, stop: Any, offsets: Any, columns: Any, said: Any, nothing: Any, combined: Any
) -> None:
    for row in range(start, stop):
        most = nothing
        for entry in range(offsets[row], offsets[row + 1]):
            most = max(most, said[columns[entry]])
        combined[row] = most


GATHERS = {"sum": gather_sum, "min": gather_min, "max": gather_max}
