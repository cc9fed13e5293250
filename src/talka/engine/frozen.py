"""Outputs that nobody can change: memory that a task may still refer to is copied before it is stored.

A native task runs in our own process. It may keep an array that it returned and fill it again, or
return a view of one. Memory that only the output refers to is kept as it is, without a copy.
"""

import sys
from typing import Any

import numpy as np
import pyarrow as pa

# References to an array of which nobody else knows: the `base` of a view, a variable, an argument.
_NUM_REFERENCES = 3

_SMALL_BYTES = 4096  # up to here a copy is faster than finding out whether it is needed


def frozen(value: Any) -> Any:
    """Return a settled value as one that cannot be changed, nor made writeable again.

    Plain values are bytes by now. Arrow's are immutable by its rules, and taken as such: nothing
    tells whether a table was built over an array of numpy that its maker keeps.

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
    if is_whole and value.ndim == 1:  # as nearly all are: this is faster
        return np.frombuffer(memory, value.dtype)
    start = 0 if is_whole else _address(value) - _address(root)
    return np.ndarray(value.shape, value.dtype, memory, offset=start, strides=value.strides)


def _address(array: np.ndarray[Any, Any]) -> int:
    """Return where the first value is. Takes a microsecond: most outputs do not need it."""
    address: int = array.__array_interface__["data"][0]
    return address


def _root(view: Any) -> Any:
    """Return what owns the memory of a view; None if it is an array to which others may write."""
    node, is_exclusive = view.base, True
    while isinstance(node, np.ndarray):
        is_exclusive = is_exclusive and sys.getrefcount(node) <= _NUM_REFERENCES
        if node.base is None:
            return node if is_exclusive and node.flags.owndata else None
        node = node.base
    return node
