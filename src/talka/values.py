"""Values as bytes: Arrow and numpy as Arrow IPC files, plain values as msgpack. Nothing is pickled.

Outputs of tasks are stored in this form, and values between processes are sent in it.
"""

import ast
import functools
import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgpack
import numpy as np
import pyarrow as pa

from talka.errors import NotStorableError, PayloadError
from talka.guard import Caught

_KIND: Final = b"talka"  # key in the schema metadata for the kind of value in the file
_OPTIONS: Final = pa.ipc.IpcWriteOptions(
    unify_dictionaries=True,
    allow_64bit=True,  # a numpy array is one column of bytes, possibly more than 2 GiB
)
_TUPLE, _SCALAR, _WHOLE = 1, 2, 3  # msgpack extension types
MAX_DEPTH = 128
"""Levels of nested lists, tuples and dicts that a plain value may have."""
_CHECKED_TUPLES = 8
_CONTAINERS = (list, tuple, dict)
_MAX_FOREIGN_DEPTH: Final = 32
_ARROW = (pa.Table, pa.RecordBatch, pa.ChunkedArray, pa.Array)


class PackedValue(NamedTuple):
    """A plain value encoded as msgpack: immutable, of known size, valid in every process."""

    data: bytes


def size_in_memory(value: Any) -> int:
    """Return the bytes of memory that a storable value keeps alive."""
    if isinstance(value, PackedValue):
        return len(value.data)
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    return int(value.get_total_buffer_size())


def to_storable(value: Any) -> Any:
    """Return the storable form of a value: checked, read-only, not a small view of a large array.

    Arrow and numpy values keep their type; everything else becomes a `PackedValue`. Raises
    NotStorableError for other types.
    """
    if isinstance(value, np.ndarray) and value.ndim > 0:
        if value.dtype.hasobject:
            raise NotStorableError(f"a numpy array of {value.dtype}")
        if value.base is not None and getattr(value.base, "nbytes", 0) > 2 * value.nbytes:
            value = value.copy()  # a slice would keep the whole array alive
        value = value.view(np.ndarray)
        value.flags.writeable = False
        return value
    if isinstance(value, _ARROW):
        return value
    return pack(value)


def pack(value: Any) -> PackedValue:
    """Encode a plain value as msgpack; tuples and numpy scalars keep their type."""
    return PackedValue(_packed(value, num_tuples=0))


def _packed(value: Any, num_tuples: int) -> bytes:
    """Encode a value that is nested inside `num_tuples` tuples."""
    pack_other = functools.partial(_pack_other, num_tuples=num_tuples)
    try:
        data: bytes = msgpack.packb(value, default=pack_other, strict_types=True)
    except (OverflowError, ValueError, RecursionError) as error:
        raise NotStorableError(f"{_type_name(value)} ({error})") from error
    return data


def _is_shallow(value: Any) -> bool:
    """Return whether a value has at most `MAX_DEPTH` levels; False if it contains itself."""
    level = {id(value): value}
    for _ in range(MAX_DEPTH):
        inner: dict[int, Any] = {}
        for container in level.values():
            parts = container
            if isinstance(container, dict):
                parts = (*container, *container.values())
            inner.update((id(part), part) for part in parts if isinstance(part, _CONTAINERS))
        if not inner:
            return True
        level = inner
    return False


def pack_whole(value: Any) -> PackedValue:
    """Encode a small Arrow or numpy value as msgpack, to be sent inside a frame."""
    return PackedValue(msgpack.packb(msgpack.ExtType(_WHOLE, to_buffer(value).to_pybytes())))


def unpack(packed: PackedValue) -> Any:
    """Decode what `pack` or `pack_whole` encoded."""
    return msgpack.unpackb(packed.data, ext_hook=_unpack_other, strict_map_key=False)


def _unpack_inner(code: int, data: bytes) -> Any:
    """Decode a value inside a tuple.

    An `Unpacker` is slower than `unpackb` but needs little stack; `unpackb` takes 40 kB per level.
    """
    if code != _TUPLE:
        return _unpack_other(code, data)
    unpacker = msgpack.Unpacker(
        ext_hook=_unpack_inner, strict_map_key=False, max_buffer_size=len(data), read_size=1
    )
    unpacker.feed(data)
    return tuple(unpacker.unpack())


def write(value: Any, sink: Any) -> None:
    """Write an Arrow or numpy value into a pyarrow file or stream."""
    table = _as_table(value)
    with pa.ipc.new_file(sink, table.schema, options=_OPTIONS) as writer:
        writer.write_table(table)


def read(buffer: pa.Buffer) -> Any:
    """Return the value in a file that `write` made, without a copy."""
    reader = pa.ipc.open_file(buffer)
    kind = json.loads(reader.schema.metadata[_KIND])
    table = reader.read_all()
    return _READERS[kind["kind"]](_without_kind(table), kind)


def to_buffer(value: Any) -> pa.Buffer:
    """Encode an Arrow or numpy value into one buffer, for transports that do not use segments."""
    sink = pa.BufferOutputStream()
    write(value, sink)
    return sink.getvalue()


def from_buffer(data: Any) -> Any:
    """Decode a buffer that `to_buffer` made, without a copy."""
    return read(pa.py_buffer(data))


def from_foreign(data: Any, *, is_packed: bool) -> Any:
    """Decode a value from an untrusted source: a file of the user, or another rank.

    All of it is checked before any of it is used; raises PayloadError if it is not valid.
    """
    try:
        if is_packed:
            return _unpack_foreign(bytes(data), 0)
        buffer = pa.py_buffer(data)
        pa.ipc.open_file(buffer).read_all().validate(full=True)
        return read(buffer)
    except Exception as error:  # these parsers raise many types
        raise PayloadError(f"cannot be read: {str(error) or type(error).__name__}") from error


def _unpack_foreign(data: bytes, depth: int) -> Any:
    """Decode a plain value without arrays; ValueError if it is nested too deep for the stack."""
    if depth > _MAX_FOREIGN_DEPTH:
        raise ValueError("it is nested too deep")

    def unpack_other(code: int, inner: bytes) -> Any:
        if code == _TUPLE:
            return tuple(_unpack_foreign(inner, depth + 1))
        if code == _SCALAR:
            return _unpack_other(code, inner)
        raise ValueError(f"it holds a value of unknown kind {code}")

    return msgpack.unpackb(data, ext_hook=unpack_other, strict_map_key=False)


def _as_table(value: Any) -> pa.Table:
    if isinstance(value, np.ndarray):
        value = np.ascontiguousarray(value)
        kind = {"kind": "numpy", "dtype": dtype_text(value.dtype), "shape": value.shape}
        flat = pa.Array.from_buffers(pa.uint8(), value.nbytes, [None, pa.py_buffer(value)])
        table = pa.table([flat], names=["bytes"])
    elif isinstance(value, pa.Table):
        kind, table = {"kind": "table"}, value
    elif isinstance(value, pa.RecordBatch):
        kind, table = {"kind": "batch"}, pa.Table.from_batches([value])
    elif isinstance(value, pa.ChunkedArray):
        kind, table = {"kind": "chunked"}, pa.table([value], names=["values"])
    else:
        kind, table = {"kind": "array"}, pa.table([value], names=["values"])
    return table.replace_schema_metadata(
        {**(table.schema.metadata or {}), _KIND: json.dumps(kind).encode()}
    )


def _without_kind(table: pa.Table) -> pa.Table:
    metadata = {key: value for key, value in table.schema.metadata.items() if key != _KIND}
    return table.replace_schema_metadata(metadata or None)


def _one_chunk(chunked: pa.ChunkedArray) -> pa.Array:
    return chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()


def _read_batch(table: pa.Table, kind: dict[str, Any]) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _read_numpy(table: pa.Table, kind: dict[str, Any]) -> Any:
    flat = _one_chunk(table.column(0))
    dtype = dtype_of(kind["dtype"])
    buffer = flat.buffers()[1] if len(flat) else b""
    return np.frombuffer(buffer, dtype, count=int(np.prod(kind["shape"]))).reshape(kind["shape"])


_READERS = {
    "table": lambda table, kind: table,
    "batch": _read_batch,
    "chunked": lambda table, kind: table.column(0),
    "array": lambda table, kind: _one_chunk(table.column(0)),
    "numpy": _read_numpy,
}


def dtype_text(dtype: np.dtype[Any]) -> str:
    """Return a dtype as a Python literal, as in numpy's file format."""
    return repr(np.lib.format.dtype_to_descr(dtype))


def dtype_of(text: str) -> np.dtype[Any]:
    """Return the dtype of a text that `dtype_text` returned."""
    return np.lib.format.descr_to_dtype(ast.literal_eval(text))


def _pack_other(value: Any, num_tuples: int) -> msgpack.ExtType:
    if type(value) is tuple:
        # Each tuple is a nested call of msgpack, and a stack overflow is not an exception. The depth
        # is checked only after several levels, because it takes as long as packing.
        if num_tuples == _CHECKED_TUPLES and not _is_shallow(value):
            problem = f"nested more than {MAX_DEPTH} levels deep"
            raise NotStorableError(f"{_type_name(value)} ({problem})")
        return msgpack.ExtType(_TUPLE, _packed(list(value), num_tuples + 1))
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        if value.dtype.hasobject:
            raise NotStorableError(f"a numpy array of {value.dtype}")
        fields = [dtype_text(value.dtype), value.tobytes()]
        return msgpack.ExtType(_SCALAR, msgpack.packb(fields))
    raise NotStorableError(_type_name(value))


def _unpack_other(code: int, data: bytes) -> Any:
    if code == _TUPLE:
        return tuple(msgpack.unpackb(data, ext_hook=_unpack_inner, strict_map_key=False))
    if code == _WHOLE:
        return from_buffer(data)
    text, raw = msgpack.unpackb(data)
    dtype = dtype_of(text)
    return np.frombuffer(raw, dtype)[0] if dtype.itemsize else np.zeros(1, dtype)[0]


def _type_name(value: object) -> str:
    kind = type(value)
    name = (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    return f"a value of type {name}"


def describe(value: Any) -> str:
    """Return a short description of a value for error messages."""
    if isinstance(value, pa.Table | pa.RecordBatch):
        names: Sequence[str] = value.schema.names
        shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        return f"{type(value).__name__} of {value.num_rows} rows ({shown})"
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return f"Arrow array of {len(value)} {value.type}"
    if isinstance(value, np.ndarray):
        return f"numpy array {value.dtype} {list(value.shape)}"
    with Caught() as caught:
        text = repr(value)
    if caught.error is not None:
        return _type_name(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
