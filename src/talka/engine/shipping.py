"""Functions sent from the driver to its workers by cloudpickle; other values are never pickled."""

import pickle
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import cloudpickle

from talka.errors import NotShippableError

MAX_SHIPPED_BYTES = 256 * 1024 * 1024
_INSTALLED = tuple(
    path
    for key in ("stdlib", "platstdlib", "purelib", "platlib")
    if (path := sysconfig.get_path(key))
)


def ship(function: Callable[..., Any], constants: Any = None) -> bytes:
    """Return a function, or its constant arguments if they are given, as bytes.

    Raises NotShippableError if that is not possible or takes more than `MAX_SHIPPED_BYTES`.
    """
    shipped = function if constants is None else constants
    try:
        with _own_module_by_value(function):
            data: bytes = cloudpickle.dumps(shipped)
    except (pickle.PicklingError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise NotShippableError(name_of(function), str(error)) from error
    if len(data) > MAX_SHIPPED_BYTES:
        problem = f"it has {len(data) / 1e6:.0f} MB, together with all that it refers to"
        raise NotShippableError(name_of(function), problem)
    return data


def unship(data: bytes | memoryview) -> Any:
    """Return what was given to `ship`. Only for bytes from the driver of this worker."""
    return cloudpickle.loads(data)


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function for events and errors."""
    name: str = getattr(unwrapped(function), "__qualname__", type(function).__qualname__)
    return name.rpartition("<locals>.")[2]


def unwrapped(function: Any) -> Any:
    """Return the function inside `functools.partial`."""
    while hasattr(function, "func"):
        function = function.func
    return function


@contextmanager
def _own_module_by_value(function: Callable[..., Any]) -> Iterator[None]:
    """Send the code of a module that is not installed (a script, a test) with the function.

    The function can then run on a machine that does not have the file.
    """
    module = sys.modules.get(getattr(unwrapped(function), "__module__", None) or "")
    if module is None or module.__name__ == "__main__" or _is_installed(module):
        yield  # cloudpickle sends __main__ by value anyway
        return
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def _is_installed(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return file is None or file.startswith(_INSTALLED) or module.__name__.split(".")[0] == "talka"
