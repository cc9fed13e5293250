"""The one storage form: Arrow and numpy as Arrow IPC files, plain values as msgpack.

A file has no name: it is anonymous shared memory (memfd), or an unlinked file on disk. So nothing
is left behind however the process ends, it fits no `/dev/shm` limit, and other processes of the
job read it through its descriptor without a copy.
"""

import ast
import json
import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgpack
import numpy as np
import pyarrow as pa

from talka.errors import NotStorableError
from talka.files import unnamed_file

_KIND: Final = b"talka"  # the key in the schema's metadata that says what the file holds
_OPTIONS: Final = pa.ipc.IpcWriteOptions(unify_dictionaries=True)
_TUPLE, _SCALAR = 1, 2  # msgpack extension types
_ARROW = (pa.Table, pa.RecordBatch, pa.ChunkedArray, pa.Array)


class Packed(NamedTuple):
    """A plain value as bytes: immutable, sized, the same in every process."""

    data: bytes


class File:
    """An unnamed file with a value in storage form; closed when nobody refers to it."""

    __slots__ = ("descriptor", "is_packed", "num_bytes", "on_disk")

    def __init__(self, descriptor: int, *, num_bytes: int, is_packed: bool, on_disk: bool) -> None:
        self.descriptor, self.num_bytes = descriptor, num_bytes
        self.is_packed, self.on_disk = is_packed, on_disk

    def __del__(self) -> None:
        os.close(self.descriptor)

    def buffer(self) -> pa.Buffer:
        """The file's bytes, mapped, not read; the mapping outlives the descriptor."""
        if self.num_bytes == 0:
            return pa.py_buffer(b"")
        return pa.py_buffer(mmap.mmap(self.descriptor, self.num_bytes, prot=mmap.PROT_READ))


def size_in_memory(value: Any) -> int:
    """Bytes that an Arrow or numpy value keeps alive."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    return int(value.get_total_buffer_size())


def settle(value: Any) -> Any:
    """Make a value that a task returned fit to be an output: immutable, checked, not a thin view.

    Arrow and numpy stay what they are; everything else becomes `Packed`.
    """
    if isinstance(value, np.ndarray) and value.ndim > 0:
        if value.dtype.hasobject:
            raise NotStorableError(f"a numpy array of {value.dtype}")
        if value.base is not None and getattr(value.base, "nbytes", 0) > 2 * value.nbytes:
            value = value.copy()  # a slice would keep the whole alive
        value = value.view(np.ndarray)
        value.flags.writeable = False
        return value
    if isinstance(value, _ARROW):
        return value
    return pack(value)


def pack(value: Any) -> Packed:
    """A plain value as msgpack; tuples stay tuples and numpy scalars numpy scalars."""
    try:
        return Packed(msgpack.packb(value, default=_pack_other, strict_types=True))
    except (OverflowError, ValueError, RecursionError) as error:
        raise NotStorableError(f"{_what(value)} ({error})") from error


def unpack(packed: Packed) -> Any:
    return msgpack.unpackb(packed.data, ext_hook=_unpack_other, strict_map_key=False)


def write(value: Any, sink: Any) -> None:
    """Write an Arrow or numpy value into a pyarrow file or stream."""
    table = _as_table(value)
    with pa.ipc.new_file(sink, table.schema, options=_OPTIONS) as writer:
        writer.write_table(table)


def read(buffer: pa.Buffer) -> Any:
    """The value in a file that `write` made, without a copy."""
    reader = pa.ipc.open_file(buffer)
    kind = json.loads(reader.schema.metadata[_KIND])
    table = reader.read_all()
    return _READERS[kind["kind"]](_without_kind(table), kind)


def to_buffer(value: Any) -> pa.Buffer:
    """An Arrow or numpy value as one piece of memory, for a transport that has its own files."""
    sink = pa.BufferOutputStream()
    write(value, sink)
    return sink.getvalue()


def from_buffer(data: Any) -> Any:
    """What `to_buffer` was given, without a copy."""
    return read(pa.py_buffer(data))


def read_file(file: File) -> Any:
    """The value in a file: Arrow and numpy mapped without a copy, plain values unpacked."""
    buffer = file.buffer()
    return unpack(Packed(buffer.to_pybytes())) if file.is_packed else read(buffer)


def in_shared_memory(value: Any) -> File:
    """Write an Arrow, numpy or packed value once, for every process of the job to map."""
    return _into(os.memfd_create("talka"), value, on_disk=False)


def on_disk(value: Any, folder: Path) -> File:
    """Write to an unnamed file in `folder`; OSError when the disk is full."""
    return _into(unnamed_file(folder), value, on_disk=True)


def moved_to_disk(file: File, folder: Path) -> File:
    """A copy on disk of a file in shared memory."""
    copy = File(unnamed_file(folder), num_bytes=0, is_packed=file.is_packed, on_disk=True)
    while copy.num_bytes < file.num_bytes:
        left = file.num_bytes - copy.num_bytes
        copy.num_bytes += os.sendfile(copy.descriptor, file.descriptor, copy.num_bytes, left)
    return copy


def _into(descriptor: int, value: Any, *, on_disk: bool) -> File:
    is_packed = isinstance(value, Packed)
    file = File(descriptor, num_bytes=0, is_packed=is_packed, on_disk=on_disk)  # owns it from here
    with open(descriptor, "wb", buffering=0, closefd=False) as raw:
        if isinstance(value, Packed):
            view = memoryview(value.data)
            while view:
                view = view[raw.write(view) :]
        else:
            with pa.PythonFile(raw, "w") as sink:
                write(value, sink)
    file.num_bytes = os.fstat(descriptor).st_size
    return file


def _as_table(value: Any) -> pa.Table:
    if isinstance(value, np.ndarray):
        value = np.ascontiguousarray(value)
        kind = {"kind": "numpy", "dtype": _dtype_text(value.dtype), "shape": value.shape}
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
    dtype = _dtype(kind["dtype"])
    buffer = flat.buffers()[1] if len(flat) else b""
    return np.frombuffer(buffer, dtype, count=int(np.prod(kind["shape"]))).reshape(kind["shape"])


_READERS = {
    "table": lambda table, kind: table,
    "batch": _read_batch,
    "chunked": lambda table, kind: table.column(0),
    "array": lambda table, kind: _one_chunk(table.column(0)),
    "numpy": _read_numpy,
}


def _dtype_text(dtype: np.dtype[Any]) -> str:
    """As in numpy's own file format: a Python literal."""
    return repr(np.lib.format.dtype_to_descr(dtype))


def _dtype(text: str) -> np.dtype[Any]:
    return np.lib.format.descr_to_dtype(ast.literal_eval(text))


def _pack_other(value: Any) -> msgpack.ExtType:
    if type(value) is tuple:
        return msgpack.ExtType(_TUPLE, pack(list(value)).data)
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        if value.dtype.hasobject:
            raise NotStorableError(f"a numpy array of {value.dtype}")
        described = [_dtype_text(value.dtype), value.tobytes()]
        return msgpack.ExtType(_SCALAR, msgpack.packb(described))
    raise NotStorableError(_what(value))


def _unpack_other(code: int, data: bytes) -> Any:
    if code == _TUPLE:
        return tuple(unpack(Packed(data)))
    text, raw = msgpack.unpackb(data)
    dtype = _dtype(text)
    return np.frombuffer(raw, dtype)[0] if dtype.itemsize else np.zeros(1, dtype)[0]


def _what(value: object) -> str:
    kind = type(value)
    name = (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    return f"a value of type {name}"


def describe(value: Any) -> str:
    """One short phrase for error messages."""
    if isinstance(value, pa.Table | pa.RecordBatch):
        names: Sequence[str] = value.schema.names
        shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        return f"{type(value).__name__} of {value.num_rows} rows ({shown})"
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return f"Arrow array of {len(value)} {value.type}"
    if isinstance(value, np.ndarray):
        return f"numpy array {value.dtype} {list(value.shape)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
