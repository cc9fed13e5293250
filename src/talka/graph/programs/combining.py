"""Combining messages to the same vertex by sum, minimum or maximum, on whole arrays.

Compiled loops for the same operations: `kernels/gathering.py` for general programs, `template.py`
for edge programs.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from talka.errors import InvalidValueError

COMBINES: Final = ("sum", "min", "max", "any")
"""Names of the operations for messages of edge programs, and for aggregates of general ones."""

_REDUCERS: dict[str, Any] = {"sum": np.add, "min": np.minimum, "max": np.maximum}


def identity_for(combine: str | None, kind: np.dtype[Any]) -> Any:
    """Return the identity element: 0, or the largest or smallest number of the type.

    >>> identity_for("min", np.dtype(np.int8)), identity_for("sum", np.dtype(np.float64))
    (127, 0.0)
    """
    if combine is None:
        raise InvalidValueError("combine", None, "sum, min or max if messages are combined")
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
    """Return ascending vertex numbers and one combined message for each.

    Messages to the same number are combined in the order of the arrays.
    """
    if len(numbers) == 0:
        return numbers, messages
    order = np.argsort(numbers, kind="stable")
    numbers, messages = numbers[order], messages[order]
    starts = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))
    return numbers[starts], _REDUCERS[combine].reduceat(messages, starts)


def combine_at(
    combine: str, combined: NDArray[Any], places: NDArray[Any], messages: NDArray[Any]
) -> None:
    """Combine messages into `combined`, in place; all `places` must be different."""
    combined[places] = _REDUCERS[combine](combined[places], messages)
