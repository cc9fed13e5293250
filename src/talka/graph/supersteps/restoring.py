"""Validate the content of a checkpoint before kernels use it.

A checksum shows that a file is not damaged, not that its content is valid, and kernels do not check
indices. So every length, type, place and number is compared with the partitions of the graph. The
functions raise PayloadError with the problem.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from talka.errors import PayloadError
from talka.graph.kernels.ordering import present
from talka.graph.partitions.partition import Partition
from talka.graph.supersteps.mail import OPTIONAL, record_of
from talka.graph.supersteps.protocol import Report

MAX_SUPERSTEP: Final = 2**53
_COUNTS: Final = ("num_active", "active_edges", "edges", "num_messages", "sent_bytes", "rounds")
_FIELDS: Final = {field.name for field in fields(Report)}


def check_count(name: str, values: Sequence[Any], expected: int) -> None:
    if not isinstance(values, list | tuple) or len(values) != expected:
        raise PayloadError(f"does not hold {expected} {name}")


def check_report(report: Any, aggregates: Mapping[str, Any]) -> None:
    """Check counts and totals of a report; `aggregates` has the way each total is combined."""
    if not isinstance(report, dict) or report.keys() != _FIELDS:
        raise PayloadError("holds a report without its fields")
    counts = [report[name] for name in _COUNTS]
    if not all(type(count) is int and 0 <= count < 2**63 for count in counts):
        raise PayloadError("holds a report with counts that are not whole numbers")
    if type(report["is_quiet"]) is not bool or report["way"] not in ("", "push", "pull"):
        raise PayloadError("holds a report with invalid flags")
    totals = report["totals"]
    if not isinstance(totals, dict) or totals.keys() != aggregates.keys():
        raise PayloadError("holds a report with other aggregates")
    for name, values in totals.items():
        is_any_type = callable(aggregates[name])  # combined by a function of the program
        if not isinstance(values, list) or not (
            is_any_type or all(isinstance(value, int | float) for value in values)
        ):
            raise PayloadError(f"does not hold numbers for the aggregate {name!r}")


def check_array(name: str, array: Any, kind: Any, length: int | None = None) -> None:
    """Check that `array` is one-dimensional, of this type and length."""
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != np.dtype(kind):
        raise PayloadError(f"holds {name} of a type other than {np.dtype(kind)}")
    if length is not None and len(array) != length:
        raise PayloadError(f"holds {len(array)} {name}, not {length}")
    for flags in _flags(array):
        if len(flags) and int(flags.max()) > 1:  # numpy would count such flags wrongly
            raise PayloadError(f"holds {name} with flags that are neither true nor false")


def check_below(name: str, numbers: NDArray[Any], limit: int) -> None:
    if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < limit:
        raise PayloadError(f"holds {name} that are not below {limit}")


def check_indices(
    indices: Mapping[str, str],
    limits: Mapping[str, int],
    columns: Mapping[str, NDArray[Any]],
    messages: Sequence[NDArray[Any]],
) -> None:
    """Check `VertexProgram.indices` of one partition: in its columns and in all messages to it."""
    for name, limit in indices.items():
        if name in columns:
            check_below(f"values of {name!r}", columns[name], limits[limit])
            continue
        for mail in messages:
            numbers = mail if name == "message" else mail[name]
            check_below(f"messages of {name!r}", numbers, limits[limit])


def check_edge_mail(mail: Any, kind: np.dtype[Any], partition: Partition, sender: int) -> None:
    """Check mail of an edge program: empty, or for all or some places of the route."""
    num_places = len(partition.route_from(sender))
    if isinstance(mail, np.ndarray) and mail.dtype.names is not None:
        _check_records(mail, record_of(kind), num_places)
    else:
        check_array("messages", mail, kind)
        if len(mail) not in (0, num_places):
            raise PayloadError(f"holds {len(mail)} messages for {num_places} places")


def check_vertex_mail(mail: Any, kind: np.dtype[Any], partition: Partition, sender: int) -> Any:
    """Check mail of a vertex program for `partition`, and return its messages."""
    num_places = len(partition.route_from(sender))
    names = mail.dtype.names if isinstance(mail, np.ndarray) else None
    if names == ("number", "message"):
        check_array("messages", mail, [("number", np.uint32), ("message", kind)])
        if not present(partition.own, mail["number"])[1].all():
            raise PayloadError("holds messages to vertices of another partition")
        return mail["message"]
    if names == ("place", "message"):
        _check_records(mail, record_of(kind), num_places)
        return mail["message"]
    if names == (OPTIONAL,):
        check_array("messages", mail, [(OPTIONAL, kind)], num_places)
        return mail[OPTIONAL]
    check_array("messages", mail, kind)
    if len(mail) not in (0, num_places):
        raise PayloadError(f"holds {len(mail)} messages for {num_places} places")
    return mail


def _check_records(mail: NDArray[Any], kind: np.dtype[Any], num_places: int) -> None:
    check_array("messages", mail, kind)
    places = mail["place"].astype(np.int64)
    check_below("places of messages", places, num_places)
    if (np.diff(places) <= 0).any():
        raise PayloadError("holds two messages for one place")


def _flags(array: NDArray[Any]) -> Iterator[NDArray[np.uint8]]:
    """Yield the bytes of all boolean fields."""
    names = array.dtype.names
    if names is not None:
        for name in names:
            yield from _flags(array[name])
    elif array.dtype.kind == "b":
        yield array.view(np.uint8)
