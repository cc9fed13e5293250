"""A run directory: what was asked, what happened, what came out.

runs/<time>-<name>/config.json         resolved, with versions
                   events.jsonl        the driver's events
                   events.rank-R.jsonl rank R's events (one writer per file)
                   logs/               what ranks printed
                   result.json         whole or not at all
"""

import contextlib
import importlib.metadata
import json
import os
import platform
import socket
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from talka.errors import OutputError, RunDirectoryError, output_error
from talka.events.base import Failure, RunEnded, RunStarted, Status
from talka.events.liveness import boot_id
from talka.events.stream import Stream
from talka.files import write_whole
from talka.machine import num_cores

RUN_DIR_VARIABLE = "TALKA_RUN_DIR"
_ADVICE = "Choose a folder that you may write to."
_VERSIONS_OF = ("talka", "numpy", "pyarrow", "torch", "numba", "duckdb", "ray")


class Run:
    """Opens a run directory for a job and closes it with how the job ended.

    Under `root` a new folder is made, named by time and job. A `with` block that ends by an error
    writes that error as an event; `result.json` is there only if `finish` was called.
    """

    def __init__(self, name: str, config: Mapping[str, Any], *, root: Path = Path("runs")) -> None:
        self.name = name
        self._root, self._made_root = root, not root.exists()
        self.dir = _new_directory(root, name)
        self.result: dict[str, Any] | None = None
        self.stream = Stream(self.dir / "events.jsonl")
        self._write("config.json", _config(name, config) | self._writer())
        self.stream.emit(RunStarted(name))

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write the result; the last thing a job does."""
        self.result = dict(result)
        self._write("result.json", self.result)

    def discard(self) -> None:
        """Remove the directory of a run that could not start: it has nothing to tell.

        Only what every run writes is removed; a directory with anything else in it stays.
        """
        self.stream.close()
        for path in (self.dir / "config.json", *self.dir.glob("events*.jsonl")):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.dir.rmdir()
            if self._made_root:
                self._root.rmdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        status: Status = "done"
        if isinstance(error, KeyboardInterrupt | SystemExit):
            status = "interrupted"
        elif error is not None:
            status = "failed"
            detail = "".join(traceback.format_exception(error))
            failure = Failure(str(error) or type(error).__name__, detail)
            self._emit_last(failure, is_needed=False)
        try:
            self._emit_last(RunEnded(status), is_needed=error is None)
        finally:
            self.stream.close()

    def _writer(self) -> dict[str, Any]:
        """What a reader needs to tell whether the writer lives; see `talka.events.liveness`."""
        return {"boot_id": boot_id()} if self.stream.is_locked else {}

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        try:
            write_whole(self.dir / name, json.dumps(content, indent=2))
        except OSError as error:
            raise output_error(self.dir / name, error, _ADVICE) from error

    def _emit_last(self, event: Failure | RunEnded, *, is_needed: bool) -> None:
        """A full disk is no reason to hide the error that ends the run."""
        try:
            self.stream.emit(event)
        except OutputError:
            if is_needed:
                raise


def _new_directory(root: Path, name: str) -> Path:
    stem = f"{time.strftime('%Y-%m-%dT%H-%M-%S')}-{name}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, 1000):
            path = root / (stem if attempt == 1 else f"{stem}-{attempt}")
            try:
                path.mkdir()
                return path
            except FileExistsError:
                continue
    except OSError as error:
        problem = error.strerror or str(error)
        raise RunDirectoryError(str(root), f"cannot be written ({problem})", _ADVICE) from error
    raise RunDirectoryError(str(root), "is full of runs of this second", "Clear it.")


def _config(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "started_s": time.time(),
        "command": sys.argv,
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "num_cores": num_cores(),
        "python": platform.python_version(),
        "versions": _versions(),
        "config": dict(config),
    }


def _versions() -> dict[str, str]:
    versions = {}
    for package in _VERSIONS_OF:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
