"""Former names of keyword arguments and attributes: they still work, with a deprecation warning."""

import functools
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)


def renamed(**new_names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that accepts former names of keyword arguments.

    `@renamed(spec="compressor")` passes the value of `spec` as `compressor`, with a
    DeprecationWarning.

    >>> @renamed(spec="compressor")
    ... def attach(model, compressor): ...
    >>> attach("model", spec="onebit", compressor="topk")
    Traceback (most recent call last):
        ...
    TypeError: attach() got 'spec', the former name of 'compressor', and 'compressor'
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for former, name in new_names.items():
                if former in kwargs:
                    if name in kwargs:
                        raise TypeError(
                            f"{function.__name__}() got {former!r}, the former name of {name!r}, "
                            f"and {name!r}"
                        )
                    message = f"the argument {former!r} is now called {name!r}"
                    warnings.warn(message, DeprecationWarning, stacklevel=2)
                    kwargs[name] = kwargs.pop(former)
            return function(*args, **kwargs)

        return call

    return decorate


def renamed_attribute(former: str, name: str) -> property:
    """Return a read-only property for the former name of an attribute."""

    def read(instance: Any) -> Any:
        message = f"the attribute {former!r} is now called {name!r}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return getattr(instance, name)

    return property(read, doc=f"Deprecated: use `{name}`.")


def renamed_fields(**new_names: str) -> Callable[[C], C]:
    """Accept former names of fields of a class, as keyword arguments and as attributes."""

    def decorate(cls: C) -> C:
        constructor: Any = cls.__init__  # type: ignore[misc]
        type.__setattr__(cls, "__init__", renamed(**new_names)(constructor))
        for former, name in new_names.items():
            type.__setattr__(cls, former, renamed_attribute(former, name))
        return cls

    return decorate
