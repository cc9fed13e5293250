"""Values as messages: a short description and a body. Nothing is pickled.

numpy arrays, tensors   type and shape; the body is their memory, which is not copied
Arrow                   the body is an Arrow IPC file
plain values            msgpack: None, bool, int, float, str, bytes; lists, tuples, dicts of them
"""

import math
import sys
from typing import Any, Final

import msgpack
import numpy as np
import pyarrow as pa

from talka.channels.operations import Buffer, bytes_of
from talka.errors import FrameError, InvalidValueError, NotStorableError
from talka.values import PackedValue, dtype_of, dtype_text, from_foreign, to_buffer, to_storable

_PLAIN, _ARROW, _ARRAY, _TENSOR = "plain", "arrow", "array", "tensor"
_MAX_DIMENSIONS: Final = 64
_NAMED_BY_NUMPY: Final = "biufc"
_WITHOUT_NUMPY: Final = {"bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
"""Types of tensors that numpy does not have, and those with the same number of bytes."""
_TENSOR_TYPES: Final = frozenset(_WITHOUT_NUMPY) | {
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "float32", "float64", "complex64", "complex128",
}  # fmt: skip
_MAX_VALUES: Final = 1 << 62
"""Values of an array that numpy can describe, also of an empty one, without its zeros."""


def encoded(value: Any) -> tuple[bytes, Buffer]:
    """Return description and body of a value. The body of an array is its own memory.

    Raises NotStorableError for other types.
    """
    if type(value) is np.ndarray and value.dtype.kind in _NAMED_BY_NUMPY:
        return _described(_ARRAY, value.dtype.str, value.shape), _memory(value)
    if is_tensor(value):
        name = str(value.dtype).removeprefix("torch.")
        if name not in _TENSOR_TYPES or str(value.layout) != "torch.strided":
            raise NotStorableError(f"a tensor of {value.dtype} with layout {value.layout}")
        return _described(_TENSOR, name, value.shape), _memory(array_of(value))
    if isinstance(value, np.ndarray) and value.ndim and not value.dtype.hasobject:
        return _described(_ARRAY, dtype_text(value.dtype), value.shape), _memory(value)
    storable = to_storable(value)
    if isinstance(storable, PackedValue):
        return msgpack.packb([_PLAIN]), memoryview(storable.data)
    return msgpack.packb([_ARROW]), memoryview(to_buffer(storable))


def decoded(description: bytes, body: Buffer) -> Any:
    """Return the value; arrays and tensors share the memory of the body.

    Raises FrameError or PayloadError if the bytes are not valid.
    """
    kind, *rest = _description(description)
    if kind == _PLAIN:
        return from_foreign(body, is_packed=True)
    if kind == _ARROW:
        return from_foreign(pa.py_buffer(body), is_packed=False)
    name, shape = rest
    if kind == _ARRAY:
        return _shaped(body, _numpy_type(name), shape)
    import torch

    if name not in _TENSOR_TYPES:
        raise FrameError(f"has a tensor of unknown type {name[:40]!r}")
    dtype = getattr(torch, name)
    array = _shaped(body, np.dtype(_WITHOUT_NUMPY.get(name, name)), shape)
    tensor = torch.from_numpy(array)
    return tensor.view(dtype) if name in _WITHOUT_NUMPY else tensor


def memory_for(out: Any) -> Buffer:
    """Return the memory of an array or tensor into which a value is received.

    Raises InvalidValueError for one that has gaps or cannot be written: its bytes would be a copy.
    """
    if isinstance(out, np.ndarray):
        is_good = out.flags.c_contiguous and out.flags.writeable and not out.dtype.hasobject
    else:
        is_good = is_tensor(out) and out.is_contiguous() and str(out.device) == "cpu"
    if not is_good:
        allowed = "an array or tensor on the CPU, writable and without gaps"
        raise InvalidValueError("out", type(out).__name__, allowed)
    return encoded(out)[1] if out.ndim else encoded(out.reshape(1))[1]


def is_tensor(value: object) -> bool:
    """Return whether a value is a tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def array_of(tensor: Any) -> "np.ndarray[Any, Any]":
    """Return a numpy array with the memory of a tensor, or of its copy on the CPU."""
    tensor = tensor.detach().cpu().contiguous()
    name = str(tensor.dtype).removeprefix("torch.")
    if name in _WITHOUT_NUMPY:
        torch = sys.modules["torch"]
        tensor = tensor.view(getattr(torch, _WITHOUT_NUMPY[name]))
    array: np.ndarray[Any, Any] = tensor.numpy()
    return array


def _memory(array: "np.ndarray[Any, Any]") -> Buffer:
    return bytes_of(np.ascontiguousarray(array))


def _described(kind: str, name: str, shape: tuple[int, ...]) -> bytes:
    data: bytes = msgpack.packb([kind, name, list(shape)])
    return data


def _description(data: bytes) -> list[Any]:
    try:
        fields = msgpack.unpackb(data)
    except (ValueError, msgpack.UnpackException) as error:
        raise FrameError("has a description that cannot be read") from error
    match fields:
        case ["plain"] | ["arrow"]:
            return list(fields)
        case ["array" | "tensor", str(), [*shape]] if len(shape) <= _MAX_DIMENSIONS:
            if all(type(length) is int and length >= 0 for length in shape):
                return list(fields)
    raise FrameError("has a description of no known form")


def _numpy_type(name: str) -> "np.dtype[Any]":
    try:
        dtype = np.dtype(name) if len(name) <= 4 else dtype_of(name)
    except (TypeError, ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise FrameError("has an array of unknown type") from error
    if dtype.hasobject:
        raise FrameError("has an array of objects")
    if not dtype.itemsize:  # numpy would make arrays of another type, as long as the sender likes
        raise FrameError("has an array of values without bytes")
    return dtype


def _shaped(body: Buffer, dtype: "np.dtype[Any]", shape: list[int]) -> "np.ndarray[Any, Any]":
    count = math.prod(shape)
    if math.prod(length for length in shape if length) * dtype.itemsize > _MAX_VALUES:
        raise FrameError("has an array with too many values")
    if count * dtype.itemsize != len(body):
        raise FrameError(f"has {len(body)} bytes for an array of {count} values of {dtype}")
    if not count:
        return np.zeros(shape, dtype)
    return np.frombuffer(body, dtype).reshape(shape)


def check_sendable(value: Any) -> None:
    """Raise NotStorableError for a value that cannot be sent."""
    if not (isinstance(value, np.ndarray) or is_tensor(value)):
        to_storable(value)
    elif isinstance(value, np.ndarray) and value.dtype.hasobject:
        raise NotStorableError(f"a numpy array of {value.dtype}")
    else:
        encoded(value)
