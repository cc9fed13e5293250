"""A run directory: what was asked, what happened, what came out.

runs/<time>-<name>/config.json         resolved, with versions
                   events.jsonl        the driver's events
                   events.rank-R.jsonl rank R's events (one writer per file)
                   logs/               what ranks printed
                   result.json         whole or not at all
"""

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

from talka.errors import RunDirectoryError
from talka.events.base import Failure, RunEnded, RunStarted, Status
from talka.events.stream import Stream
from talka.files import write_whole

RUN_DIR_VARIABLE = "TALKA_RUN_DIR"
_VERSIONS_OF = ("talka", "numpy", "pyarrow", "torch", "numba", "duckdb", "ray")


class Run:
    """Opens a run directory for a job and closes it with how the job ended.

    Under `root` a new folder is made, named by time and job. A `with` block that ends by an error
    writes that error as an event; `result.json` is there only if `finish` was called.
    """

    def __init__(self, name: str, config: Mapping[str, Any], *, root: Path = Path("runs")) -> None:
        self.name = name
        self.dir = _new_directory(root, name)
        self.result: dict[str, Any] | None = None
        write_whole(self.dir / "config.json", json.dumps(_config(name, config), indent=2))
        self.stream = Stream(self.dir / "events.jsonl")
        self.stream.emit(RunStarted(name))

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write the result; the last thing a job does."""
        self.result = dict(result)
        write_whole(self.dir / "result.json", json.dumps(self.result, indent=2))

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
            self.stream.emit(Failure(str(error) or type(error).__name__, detail))
        self.stream.emit(RunEnded(status))
        self.stream.close()


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
        raise RunDirectoryError(
            str(root), f"cannot be written ({problem})", "Choose a folder that you may write to."
        ) from error
    raise RunDirectoryError(str(root), "is full of runs of this second", "Clear it.")


def _config(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "started_s": time.time(),
        "command": sys.argv,
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "num_cores": os.cpu_count(),
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
