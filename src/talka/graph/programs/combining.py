"""Messages to one vertex become one: the same three ways everywhere, on whole arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from talka.errors import InvalidValueError

_REDUCERS: dict[str, Any] = {"sum": np.add, "min": np.minimum, "max": np.maximum}


def nothing_for(combine: str | None, kind: np.dtype[Any]) -> Any:
    """The message that changes nothing: 0, the largest or the smallest number of its type.

    >>> nothing_for("min", np.dtype(np.int8)), nothing_for("sum", np.dtype(np.float64))
    (127, 0.0)
    """
    if combine is None:
        raise InvalidValueError("combine", None, "given where messages become one")
    if combine == "sum":
        return kind.type(0).item()
    if kind.kind == "b":
        return combine == "min"
    if kind.kind == "f":
        return float("inf" if combine == "min" else "-inf")
    limits = np.iinfo(kind)
    return int(limits.max if combine == "min" else limits.min)


def combine_by_number(
    combine: str, numbers: NDArray[np.uint32], messages: NDArray[Any]
) -> tuple[NDArray[np.uint32], NDArray[Any]]:
    """One message for each number, numbers ascending; messages are taken in the order given."""
    if len(numbers) == 0:
        return numbers, messages
    order = np.argsort(numbers, kind="stable")
    numbers, messages = numbers[order], messages[order]
    starts = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))
    return numbers[starts], _REDUCERS[combine].reduceat(messages, starts)


def combine_at(
    combine: str, combined: NDArray[Any], places: NDArray[Any], messages: NDArray[Any]
) -> None:
    """Into `combined`, at places that are all different."""
    combined[places] = _REDUCERS[combine](combined[places], messages)
