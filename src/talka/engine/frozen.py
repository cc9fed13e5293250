"""Immutable outputs: memory that a task may still refer to is copied before it is stored.

A native task runs in the process of the driver. It may keep an array that it returned and write to it
again, or return a view of one. Memory that only the output refers to is not copied.
"""

import sys
from typing import Any

import numpy as np
import pyarrow as pa

# References to an array that only this code uses: the `base` of a view, a variable, an argument.
_NUM_REFERENCES = 3

_SMALL_BYTES = 4096  # up to here copying is faster than finding out whether it is needed


def frozen(value: Any) -> Any:
    """Return a storable value that cannot be changed, nor made writeable again.

    Plain values are bytes already. Arrow values are immutable by convention and returned as they
    are: there is no way to find out whether a table shares memory with a numpy array of the task.

    >>> array = frozen(np.arange(3))
    >>> array.flags.writeable = True
    Traceback (most recent call last):
    ...
    ValueError: cannot set WRITEABLE flag to True of this array
    """
    if not isinstance(value, np.ndarray) or value.nbytes == 0:
        return value
    if value.nbytes <= _SMALL_BYTES:
        return np.ndarray(value.shape, value.dtype, value.tobytes())
    root = _root(value)
    if isinstance(root, pa.Buffer) and not root.is_mutable:
        return value
    if not isinstance(root, np.ndarray) or not root.flags.forc:
        value = root = value.copy()
    root.setflags(write=False)
    memory, is_whole = pa.py_buffer(root), value.nbytes == root.nbytes and value.flags.forc
    if is_whole and value.ndim == 1:  # the usual case, and faster
        return np.frombuffer(memory, value.dtype)
    start = 0 if is_whole else _address(value) - _address(root)
    return np.ndarray(value.shape, value.dtype, memory, offset=start, strides=value.strides)


def _address(array: np.ndarray[Any, Any]) -> int:
    """Return the address of the first value. Takes a microsecond, and most outputs do not need it."""
    address: int = array.__array_interface__["data"][0]
    return address


def _root(view: Any) -> Any:
    """Return the owner of the memory of a view; None if other code may write to it."""
    array, is_exclusive = view.base, True
    while isinstance(array, np.ndarray):
        is_exclusive = is_exclusive and sys.getrefcount(array) <= _NUM_REFERENCES
        if array.base is None:
            return array if is_exclusive and array.flags.owndata else None
        array = array.base
    return array
