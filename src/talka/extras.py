"""Optional packages: some parts of talka need them, and an extra of talka installs them."""

from importlib.util import find_spec

from talka.errors import MissingPackageError

EXTRAS = {"torch": "train", "safetensors": "train", "ray": "cluster"}
"""Package -> extra of talka that installs it."""


def require(package: str, *, by: str) -> None:
    """Raise MissingPackageError if an optional package is not installed.

    Parameters
    ----------
    by
        Part of talka that needs the package, for the message.
    """
    if find_spec(package) is None:
        raise MissingPackageError(package, EXTRAS[package], by)
