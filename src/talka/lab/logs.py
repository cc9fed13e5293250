"""Logs of what ranks print, one per rank. Rank 0's output can be shown while it runs.

Without a folder the logs are unnamed files, so that none is left behind however the driver ends; they
are copied to named files only if a rank failed.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from talka.errors import OutputError
from talka.files import temporary_folder

TAIL_BYTES = 8_000
Show = Callable[[bytes], object]


class Logs:
    """The logs of one run."""

    def __init__(self, folder: Path | None, num_ranks: int, *, show: Show | None) -> None:
        self._folder = folder
        self._show = show
        self._files = _open_all(folder, num_ranks)
        self.live: list[int] = []
        """Descriptor of rank 0's output, to be polled; empty if it is not shown."""
        self._inlet: int | None = None
        if show is not None:
            outlet, self._inlet = os.pipe()
            os.set_blocking(outlet, False)
            self.live.append(outlet)

    def __enter__(self) -> "Logs":
        return self

    def __exit__(self, *error: object) -> None:
        self.close_inlet()
        for outlet in self.live:
            os.close(outlet)
        for file in self._files:
            file.close()

    def descriptor(self, rank: int) -> int:
        """Return the descriptor that a rank writes to."""
        if rank == 0 and self._inlet is not None:
            return self._inlet
        return self._files[rank].fileno()

    def close_inlet(self) -> None:
        """Close our end of rank 0's pipe, after rank 0 has inherited it."""
        if self._inlet is not None:
            os.close(self._inlet)
            self._inlet = None

    def follow(self) -> bool:
        """Show and log new output of rank 0; return False after its end."""
        if self._show is None:
            return False
        with contextlib.suppress(BlockingIOError):
            while output := os.read(self.live[0], 1 << 16):
                self._files[0].write(output)
                self._show(output)
            return False
        return True

    def tail(self, rank: int) -> str:
        """Return the last TAIL_BYTES of a rank's log."""
        descriptor = self._files[rank].fileno()
        start = max(0, os.fstat(descriptor).st_size - TAIL_BYTES)
        return os.pread(descriptor, TAIL_BYTES, start).decode(errors="replace")

    def keep(self) -> None:
        """Copy unnamed logs to a new temporary folder."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="talka-lab-", dir=temporary_folder()))
            for rank, file in enumerate(self._files):
                file.seek(0)
                with _path(self._folder, rank).open("wb") as copy:
                    shutil.copyfileobj(file, copy)

    def path(self, rank: int) -> Path | None:
        """Return the path of a rank's log; None if the logs are unnamed."""
        return None if self._folder is None else _path(self._folder, rank)


def _open_all(folder: Path | None, num_ranks: int) -> list[IO[bytes]]:
    if folder is None:
        return [
            tempfile.TemporaryFile(buffering=0, dir=temporary_folder()) for _ in range(num_ranks)
        ]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [_path(folder, rank).open("w+b", buffering=0) for rank in range(num_ranks)]
    except OSError as error:
        problem = f"is not a folder that can be written to ({error.strerror})"
        raise OutputError(str(folder), problem, "Give another folder for the logs.") from None


def _path(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.log"
