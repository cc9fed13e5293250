"""Files without a name, in memory or on disk: no end of the process leaves one behind."""

import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class UnnamedFile:
    """Owner of the descriptor of a file without a name, which it closes when it is collected.

    The descriptor comes from `unnamed_file` (on disk) or `os.memfd_create` (shared memory). The
    file exists as long as a descriptor or a mapping of it does. Reads and writes take an
    offset and share no position, so threads may use one file at the same time.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def write_at(self, data: Any, offset: int) -> int:
        """Write all of `data` and return the offset behind it; OSError if the disk is full."""
        rest = _as_bytes(data)
        while rest:  # one call writes at most 2 GiB
            num_written = os.pwrite(self.descriptor, rest, offset)
            rest, offset = rest[num_written:], offset + num_written
        return offset

    def read_into(self, buffer: Any, offset: int) -> None:
        """Fill all of `buffer` with the bytes from `offset` on; EOFError if there are too few."""
        rest = _as_bytes(buffer)
        while rest:
            num_read = os.preadv(self.descriptor, [rest], offset)
            if num_read == 0:
                raise EOFError(f"{len(rest)} bytes are missing at the end of an unnamed file")
            rest, offset = rest[num_read:], offset + num_read

    def copy_to(self, target: "UnnamedFile", num_bytes: int) -> None:
        """Append the first `num_bytes` bytes to an empty file, inside the kernel."""
        num_copied = 0
        while num_copied < num_bytes:
            count = os.sendfile(
                target.descriptor, self.descriptor, num_copied, num_bytes - num_copied
            )
            if count == 0:
                raise EOFError(f"{num_bytes - num_copied} bytes are missing in an unnamed file")
            num_copied += count

    def close(self) -> None:
        """Close the descriptor; a second call does nothing."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _as_bytes(buffer: Any) -> memoryview:
    view = memoryview(buffer)
    return view.cast("B") if view.nbytes else memoryview(b"")  # an empty one cannot be cast


def temporary_folder() -> Path:
    """Return the folder for temporary files: TMPDIR, TEMP or TMP, otherwise /tmp or /var/tmp.

    `tempfile.gettempdir` tries each by writing a named file, which SIGKILL would leave behind.
    """
    named = [os.environ.get(variable) for variable in ("TMPDIR", "TEMP", "TMP")]
    for folder in (*filter(None, named), "/tmp", "/var/tmp"):  # not a fixed name in it
        if os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):
            return Path(folder).absolute()
    return Path.cwd()


def unnamed_file(folder: Path) -> int:
    """Return the descriptor of a new file without a name in the file system of `folder`."""
    import tempfile  # here: the import is slow, and most commands make no such file

    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        return os.dup(file.fileno())
