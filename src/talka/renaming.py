"""Deprecated names of keyword arguments, which still work but cause a warning."""

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


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
