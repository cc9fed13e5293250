"""Functions from the driver to its own workers (cloudpickle), and nothing else by pickle."""

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
    """A function, or what is fixed about its arguments, as bytes."""
    shipped = function if constants is None else constants
    try:
        with _own_module_by_value(function):
            data: bytes = cloudpickle.dumps(shipped)
    except (pickle.PicklingError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise NotShippableError(name_of(function), str(error)) from error
    if len(data) > MAX_SHIPPED_BYTES:
        problem = f"with all that it refers to it takes {len(data) / 1e6:.0f} MB"
        raise NotShippableError(name_of(function), problem)
    return data


def unship(data: bytes) -> Any:
    """What `ship` was given. Only for bytes that came from our own driver."""
    return cloudpickle.loads(data)


def name_of(function: Callable[..., Any]) -> str:
    """What to call a function in events and errors."""
    name: str = getattr(unwrapped(function), "__qualname__", type(function).__qualname__)
    return name.rpartition("<locals>.")[2]


def unwrapped(function: Any) -> Any:
    """The function inside of `functools.partial`."""
    while hasattr(function, "func"):
        function = function.func
    return function


@contextmanager
def _own_module_by_value(function: Callable[..., Any]) -> Iterator[None]:
    """Ship code of a module that is not installed (a script, a test) with the function.

    A machine that lacks the file can then run it.
    """
    module = sys.modules.get(getattr(unwrapped(function), "__module__", None) or "")
    if module is None or module.__name__ == "__main__" or _is_installed(module):
        yield  # cloudpickle ships __main__ by value anyway
        return
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def _is_installed(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return file is None or file.startswith(_INSTALLED) or module.__name__.split(".")[0] == "talka"
