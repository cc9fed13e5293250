"""The run directory of a job: its configuration, its events and its result.

runs/<time>-<name>/config.json         resolved options, and versions of packages
                   events.jsonl        events of the driver
                   events.rank-R.jsonl events of rank R (one writer per file)
                   logs/               output of the ranks
                   result.json         written completely or not at all
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
    """A new run directory for a job; a context manager that records how the job ended.

    The directory is created under `root` and named after the time and the job. If the `with` block
    raises, the error is written as an event. `result.json` exists only if `finish` was called.

    Raises RunDirectoryError if the directory cannot be created.
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
        """Write `result.json`. A job does this last."""
        self.result = dict(result)
        self._write("result.json", self.result)

    def discard(self) -> None:
        """Remove the directory of a run that could not start.

        Only files that runs write are removed; a directory with other files stays.
        """
        self.stream.close()
        logs = self.dir / "logs"
        written = (*self.dir.glob("events*.jsonl"), *logs.glob("rank-*.log"))
        for path in (self.dir / "config.json", *written):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            if logs.exists():
                logs.rmdir()
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
        """Return what readers need to find out whether the writer is alive (see `liveness.py`)."""
        return {"boot_id": boot_id()} if self.stream.is_locked else {}

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        try:
            write_whole(self.dir / name, json.dumps(content, indent=2))
        except OSError as error:
            raise output_error(self.dir / name, error, _ADVICE) from error

    def _emit_last(self, event: Failure | RunEnded, *, is_needed: bool) -> None:
        """Emit an event at the end, where a full disk must not hide the error that ends the run."""
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
    problem = "already has 999 runs that started in this second"
    raise RunDirectoryError(str(root), problem, "Choose another folder or try again.")


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
