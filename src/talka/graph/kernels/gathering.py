"""Combination of the messages from the sources of each row: a kernel each for sum, min and max."""

from typing import Any

from talka.compiled import compiled


@compiled
def gather_sum(
    start: Any, stop: Any, offsets: Any, columns: Any, messages: Any, identity: Any, combined: Any
) -> None:
    for row in range(start, stop):
        total = identity
        for entry in range(offsets[row], offsets[row + 1]):
            total += messages[columns[entry]]
        combined[row] = total


@compiled
def gather_min(
    start: Any, stop: Any, offsets: Any, columns: Any, messages: Any, identity: Any, combined: Any
) -> None:
    for row in range(start, stop):
        least = identity
        for entry in range(offsets[row], offsets[row + 1]):
            least = min(least, messages[columns[entry]])
        combined[row] = least


@compiled
def gather_max(
    start: Any, stop: Any, offsets: Any, columns: Any, messages: Any, identity: Any, combined: Any
) -> None:
    for row in range(start, stop):
        most = identity
        for entry in range(offsets[row], offsets[row + 1]):
            most = max(most, messages[columns[entry]])
        combined[row] = most


@compiled
def find_sent(
    start: Any, stop: Any, offsets: Any, columns: Any, sends: Any, combined: Any, identity: Any,
    is_sent: Any,
) -> None:  # fmt: skip
    """Set `is_sent` for each row to which at least one source sends a message.

    The sources are read only if the combined message equals the identity.
    """
    for row in range(start, stop):
        is_sent[row] = combined[row] != identity
        if not is_sent[row]:
            for entry in range(offsets[row], offsets[row + 1]):
                if sends[columns[entry]]:
                    is_sent[row] = True
                    break


GATHERS = {"sum": gather_sum, "min": gather_min, "max": gather_max}
