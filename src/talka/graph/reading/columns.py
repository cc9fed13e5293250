"""Columns of ids and weights from users, validated and converted to common types."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from talka.errors import GraphError
from talka.graph.reading.base import Edges

_ALLOWED = "Ids are whole numbers of up to 64 bits, or strings."


def as_ids(ids: Any, name: str) -> Any:
    """Return int64, uint64 or uint32 (if no id is negative), or Arrow strings; copy if needed."""
    if isinstance(ids, pa.Array | pa.ChunkedArray):
        return _from_arrow(ids, name)
    array = np.asarray(ids)
    if array.ndim != 1:
        raise GraphError(
            f"{name} of {array.ndim} dimensions",
            "Give a pair of flat arrays: (edges[:, 0], edges[:, 1]).",
        )
    if array.dtype.kind in "iu":
        return _whole_numbers(array)
    if array.dtype.kind in "USOT":
        return _strings(array if isinstance(ids, np.ndarray) else list(ids), name)
    if array.size == 0:
        return np.empty(0, np.int64)
    raise GraphError(f"{name} of type {array.dtype}", _ALLOWED)


def _whole_numbers(array: NDArray[Any]) -> NDArray[Any]:
    if array.itemsize == 4 and (array.dtype.kind == "u" or array.size == 0 or array.min() >= 0):
        return np.ascontiguousarray(array).view(np.uint32)
    if array.itemsize < 8:
        return array.astype(np.int64)
    return np.ascontiguousarray(array)


def _strings(ids: Any, name: str) -> Any:
    try:
        array = pa.array(ids)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise GraphError(f"{name} of mixed or unknown types ({error})", _ALLOWED) from error
    if not isinstance(ids, list) and pa.types.is_integer(array.type):
        return _whole_numbers(array.to_numpy())  # an array of Python integers
    return _from_arrow(array, name)


def _from_arrow(column: Any, name: str) -> Any:
    if column.null_count:
        row = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0]
        raise GraphError(f"{name} with NULL in row {row}", "Every edge needs both of its ends.")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_integer(column.type):
        return _whole_numbers(column.to_numpy())
    if pa.types.is_binary(column.type) or pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary()).cast(pa.string())
    if pa.types.is_null(column.type):
        return np.empty(0, np.int64)
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if is_text or pa.types.is_string_view(column.type):
        return column
    raise GraphError(f"{name} of type {column.type}", _ALLOWED)


def as_weights(values: Any, num_edges: int) -> NDArray[np.float64]:
    """Return one float64 weight per edge; raise GraphError if there are more, fewer or NaN."""
    try:
        weights = np.ascontiguousarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise GraphError(
            "weights that are not numbers", f"They must be numbers: {error}."
        ) from error
    if weights.shape != (num_edges,):
        raise GraphError(
            f"{num_edges:,} edges and weights of shape {weights.shape}", "Give one weight per edge."
        )
    if np.isnan(weights).any():
        place = int(np.argmax(np.isnan(weights)))
        raise GraphError(
            f"a weight that is NaN or NULL (edge {place})", "Give every edge a weight."
        )
    return weights


def of_one_type(edges: Edges) -> Edges:
    """Convert all ids to one type: strings, or one type of integers."""
    if len(edges.sources) != len(edges.targets):
        problem = f"{len(edges.sources):,} sources and {len(edges.targets):,} targets"
        raise GraphError(problem, "Give as many targets as sources.")
    columns = {"sources": edges.sources, "targets": edges.targets, "vertices": edges.vertices}
    used = {name: ids for name, ids in columns.items() if ids is not None and len(ids)}
    strings = [name for name, ids in used.items() if not isinstance(ids, np.ndarray)]
    if strings and len(strings) < len(used):
        numbers = " and ".join(name for name in used if name not in strings)
        problem = f"{' and '.join(strings)} that are strings and {numbers} that are whole numbers"
        raise GraphError(problem, "Give all ids as one type: `[str(id) for id in ids]`.")
    if strings:
        empty = pa.array([], pa.string())
        return edges._replace(**{name: used.get(name, empty) for name in columns})
    kind = _common_type(used)
    none = np.empty(0, kind)
    changed = {name: used.get(name, none).astype(kind, copy=False) for name in columns}
    return edges._replace(**changed)


def _common_type(columns: dict[str, NDArray[Any]]) -> Any:
    kinds = {ids.dtype for ids in columns.values()}
    if len(kinds) == 1:
        return kinds.pop()
    if np.dtype(np.uint64) not in kinds:
        return np.dtype(np.int64)
    if any(ids.dtype == np.int64 and ids.min() < 0 for ids in columns.values()):
        problem = "negative ids beside ids of unsigned 64 bits"
        raise GraphError(problem, "No type of 64 bits holds both; give them as strings.")
    return np.dtype(np.uint64)


def joined_ids(first: Any, second: Any) -> Any:
    """Concatenate two columns of ids; raise GraphError if only one of them is strings."""
    both = of_one_type(Edges(first, first, vertices=second))
    if not both.has_strings:
        return np.concatenate([both.sources, both.vertices])
    columns = [ids.chunks if isinstance(ids, pa.ChunkedArray) else [ids] for ids in (first, second)]
    chunks = [chunk.cast(pa.large_string()) for column in columns for chunk in column]
    return pa.chunked_array(chunks)
