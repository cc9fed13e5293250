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
    root = _root(value)
    if isinstance(root, pa.Buffer) and not root.is_mutable:
        return value
    if not isinstance(root, np.ndarray) or not (root.flags.c_contiguous or root.flags.f_contiguous):
        value = root = value.copy()
    root.flags.writeable = False
    start = value.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return np.ndarray(
        value.shape, value.dtype, pa.py_buffer(root), offset=start, strides=value.strides
    )


def _root(view: Any) -> Any:
    """Return what owns the memory of a view; None if it is an array to which others may write."""
    node, is_exclusive = view.base, True
    while isinstance(node, np.ndarray):
        is_exclusive = is_exclusive and sys.getrefcount(node) <= _NUM_REFERENCES
        if node.base is None:
            return node if is_exclusive and node.flags.owndata else None
        node = node.base
    return node
