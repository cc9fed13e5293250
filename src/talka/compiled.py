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
    """Compile a kernel when it is first called."""
    return compiled_with(function)


def inlined(function: Kernel) -> Kernel:
    """Compile a kernel into each of its callers: for a few lines inside of a hot loop."""
    return compiled_with(function, forceinline=True)


def compiled_with(function: Kernel, **options: Any) -> Kernel:
    """Compile a kernel with further options of numba."""
    options = {"nogil": True, "error_model": "numpy", **options}
    try:
        kernel = numba.njit(function, cache=True, **options)
        _skip_outdated_index(kernel)
        return cast(Kernel, kernel)
    except RuntimeError:  # no folder to keep it in, as in a read-only container without a home
        return cast(Kernel, numba.njit(function, cache=False, **options))


def _skip_outdated_index(kernel: Any) -> None:
    """Compile again if the cached index of a kernel refers to classes that no longer exist.

    The index names the classes of named tuples among the arguments. numba unpickles it before it
    compares dates, so after an upgrade that renames such a class, every call would fail.
    """
    file = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    if file is None:  # numba is switched off
        return
    load = file._load_index

    def load_if_readable() -> Any:
        try:
            return load()
        except (AttributeError, ImportError):
            return {}

    file._load_index = load_if_readable
