"""The one way kernels are compiled: they release the GIL and are kept on disk.

Never `parallel=True`: the caller cuts the work, so that it can be interrupted between the pieces
and threads are counted in one place. Never `fastmath`: it doubled the time of loops that gather,
and sums would depend on the processor.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(function: Kernel) -> Kernel:
    try:
        return cast(Kernel, _compile(function, cache=True))
    except RuntimeError:  # no folder to keep it in, as in a read-only container without a home
        return cast(Kernel, _compile(function, cache=False))


def _compile(function: Callable[..., Any], *, cache: bool) -> Any:
    return numba.njit(function, cache=cache, nogil=True, error_model="numpy")
