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


@compiled
def find_sent(
    start: Any, stop: Any, offsets: Any, columns: Any, sends: Any, combined: Any, nothing: Any,
    is_sent: Any,
) -> None:  # fmt: skip
    """Find the rows that any source sends a message to.

    Only where messages add up to `nothing`, or there are none, does it have to look at the sources.
    """
    for row in range(start, stop):
        is_sent[row] = combined[row] != nothing
        if not is_sent[row]:
            for entry in range(offsets[row], offsets[row + 1]):
                if sends[columns[entry]]:
                    is_sent[row] = True
                    break


GATHERS = {"sum": gather_sum, "min": gather_min, "max": gather_max}
