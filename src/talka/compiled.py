"""The one place that calls numba: kernels release the GIL, and their machine code is kept on disk.

Never `parallel=True`: the caller divides the work, so that it can be interrupted between pieces and
threads are counted in one place. Never `fastmath` by default: it doubled the time of loops that
gather, and sums would depend on the processor. Numba's cache does not notice a change of the options
below: after one, remove the `__pycache__` folders of the kernels.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(function: Kernel) -> Kernel:
    """Compile a kernel when it is first called."""
    return compiled_with(function)


def inlined(function: Kernel) -> Kernel:
    """Compile a kernel into each of its callers: for a few lines inside a hot loop."""
    return compiled_with(function, forceinline=True)


def compiled_with(function: Kernel, *, cache: bool = True, **options: Any) -> Kernel:
    """Compile a kernel with further options of numba.

    With `cache`, the machine code is kept on disk, unless there is no folder to write to.
    """
    options = {"nogil": True, "error_model": "numpy", **options}
    try:
        kernel = numba.njit(cache=cache, **options)(function)
    except RuntimeError:  # no folder for the cache, as in a read-only container without a home
        kernel = numba.njit(**options)(function)
    _skip_outdated_index(kernel)
    return cast(Kernel, kernel)


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
