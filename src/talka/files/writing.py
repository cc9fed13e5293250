"""Files that are written completely or not at all, whenever the process ends."""

import contextlib
import errno
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path

from talka.errors import output_error

TEMPORARY_NAME = re.compile(r"\.talka-[0-9a-f]{8}-[0-9a-f]{8}")
"""Temporary names of files just before they are renamed; a kill at that moment can leave one."""


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to; it becomes `path` when the block ends without an error.

    If the file system supports it, the file has no name until its content is on the disk, so that a
    killed process leaves nothing behind. Otherwise, and during the rename, it has a temporary name
    in the same folder and a lock; the next write to `path` removes files with such a name whose
    writer is dead.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "result.json"
    >>> with whole_file(target) as beside:
    ...     _ = beside.write_text("{}")
    >>> target.read_text(), len(list(target.parent.iterdir()))
    ('{}', 1)
    """
    _remove_abandoned(path)
    handle, name = _new_file(path)
    try:
        yield _path_of(handle) if name is None else name
        os.fsync(handle)  # first, as a crash must not leave an empty file under the name
        if name is None:
            name = _temporary_name(path)
            # Only linkat follows the link in /proc, and Python calls it if a descriptor is given.
            os.link(_path_of(handle), name, src_dir_fd=handle)
        name.replace(path)
        _sync_folder(path.parent)
    finally:
        if name is not None:
            name.unlink(missing_ok=True)
        os.close(handle)


def write_whole(path: Path, text: str) -> None:
    """Write a text file in UTF-8, completely or not at all."""
    with whole_file(path) as beside:
        beside.write_text(text, encoding="utf-8")


def lock_now(handle: int) -> bool:
    """Lock an open file or folder; return False if another process has locked it.

    The lock ends with the last copy of the descriptor, at the latest with the process. On file
    systems without locks this always returns True.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def wait_for_lock(handle: int) -> None:
    """Lock an open file, and wait until no other process has locked it."""
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(handle, fcntl.LOCK_EX)


def is_at(path: Path, handle: int) -> bool:
    """Return whether an open file or folder is the one that has this path now."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def _new_file(path: Path) -> tuple[int, Path | None]:
    """Return a locked descriptor of a new file, and its temporary name if it must have one.

    The mode is that of any new file: the kernel applies the umask.
    """
    try:
        handle = os.open(path.parent, os.O_TMPFILE | os.O_RDWR, 0o666)
    except OSError as error:
        # Kernels and file systems without O_TMPFILE try to open the folder for writing.
        if error.errno not in (errno.EISDIR, errno.EOPNOTSUPP, errno.ENOENT, errno.EINVAL):
            raise
    else:
        if _path_of(handle).exists():
            lock_now(handle)
            return handle, None
        os.close(handle)  # without /proc the file cannot get a name later
    while True:
        name = _temporary_name(path)
        handle = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        if lock_now(handle) and is_at(name, handle):
            return handle, name
        os.close(handle)  # another writer removed it as abandoned before it was locked


def _path_of(handle: int) -> Path:
    return Path(f"/proc/self/fd/{handle}")


def _temporary_name(path: Path) -> Path:
    return path.with_name(f"{_temporary_prefix(path)}{os.urandom(4).hex()}")


def _temporary_prefix(path: Path) -> str:
    """Return the prefix for all writers of `path`; short even if the name of the file is long."""
    import hashlib

    return f".talka-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:8]}-"


def _remove_abandoned(path: Path) -> None:
    """Remove temporary files of dead writers of `path`: no process holds their lock."""
    prefix = _temporary_prefix(path)
    with contextlib.suppress(OSError):  # if the folder cannot be listed, the write will fail
        for name in os.listdir(path.parent):
            if name.startswith(prefix) and TEMPORARY_NAME.fullmatch(name):
                _remove_if_free(path.with_name(name))


def _remove_if_free(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            if lock_now(handle) and is_at(path, handle):
                path.unlink()
        finally:
            os.close(handle)


def _sync_folder(folder: Path) -> None:
    """Sync a rename to the disk, if the file system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def errors_about(out: Path) -> Iterator[None]:
    """Turn errors of the file system inside the block into OutputErrors about `out`."""
    try:
        yield
    except OSError as error:
        raise output_error(out, error, "Choose another --out.") from error
