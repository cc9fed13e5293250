"""Packages that only some parts of talka need, and how to install them."""

from importlib.util import find_spec

from talka.errors import MissingPackageError

EXTRAS = {"torch": "train", "safetensors": "train", "ray": "cluster"}
"""The extra of talka that installs a package."""


def require(package: str, *, by: str) -> None:
    """Raise `MissingPackageError` if a package of an extra is not installed."""
    if find_spec(package) is None:
        raise MissingPackageError(package, EXTRAS[package], by)
