"""What goes wrong while a job writes, said about the output that was asked for."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from talka.errors import output_error


@contextlib.contextmanager
def writing(out: Path) -> Iterator[None]:
    """Errors of the file system inside become errors about `out`."""
    try:
        yield
    except OSError as error:
        raise output_error(out, error, "Choose another --out.") from error
