"""What goes wrong while a job writes, said about the output that was asked for."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from talka.errors import OutputError


@contextlib.contextmanager
def writing(out: Path) -> Iterator[None]:
    """Errors of the file system inside become errors about `out`."""
    try:
        yield
    except OSError as error:
        problem = f"cannot be written ({error.strerror or error})"
        raise OutputError(str(out), problem, "Choose another --out.") from error
