"""Start an ordinary training script on several workers, as `talka train` does."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from talka.engine import Engine
from talka.errors import GangTimeoutError
from talka.train.scripts.rank import ScriptRun, run_script

_SHOW_EVERY_S = 0.1
_CHUNK_BYTES = 1 << 20

Show = Callable[[bytes], object]


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """The outcome of a script that ended well on all workers."""

    num_workers: int
    seconds: float
    metrics: dict[str, float | None]
    """Last value of each metric that rank 0 logged; None if it is not finite."""


def launch(
    engine: Engine,
    run: ScriptRun,
    *,
    num_workers: int,
    log: Path | None = None,
    show: Show | None = None,
) -> ScriptResult:
    """Run a script on workers of an engine, and wait until it has ended on all of them.

    Parameters
    ----------
    log, show
        File with the output of rank 0, and a function that receives what is added to it.

    Raises
    ------
    GangError
        If the script failed on a worker; the others were ended.
    """
    start_s = time.monotonic()
    output = None if log is None or show is None else LogReader(log)
    try:
        with engine.start_gang(run_script, run, size=num_workers, backend=None) as gang:
            while True:
                try:
                    results = gang.wait(_SHOW_EVERY_S)
                    break
                except GangTimeoutError:
                    if output is not None and show is not None:
                        _show_all(output, show)
    finally:
        if output is not None and show is not None:
            _show_all(output, show)
            show(output.rest())
    return ScriptResult(num_workers, time.monotonic() - start_s, dict(results[0]))


def _show_all(output: "LogReader", show: Show) -> None:
    while lines := output.lines():
        show(lines)


class LogReader:
    """Reads what is added to a log, in whole lines; a carriage return ends a line, too."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""

    def lines(self) -> bytes:
        """Return the lines that were added since the last call, at most about 1 MB of them."""
        while True:
            new = self._read()
            if not new:
                return b""
            text = self._rest + new
            end = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
            if len(text) > _CHUNK_BYTES and not end:
                end = len(text)  # a line longer than a chunk
            self._rest = text[end:]
            if end:
                return text[:end]

    def rest(self) -> bytes:
        """Return a last line without an end."""
        rest, self._rest = self._rest, b""
        return rest

    def _read(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                new = file.read(_CHUNK_BYTES)
        except FileNotFoundError:
            return b""
        self._offset += len(new)
        return new
