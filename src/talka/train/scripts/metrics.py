"""`talka.train.log`: metrics of a training script, as events and as lines of rank 0.

    log(step=100, loss=0.3) -> event `MetricsLogged` in the run directory (all ranks)
                            -> "step 100  loss 0.3" on standard output      (rank 0)

Both are limited in rate, so that a loop may log every step. The last values always get through.
"""

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, Final

from talka.errors import InvalidValueError
from talka.events.current import OwnStream, before_end, own_stream
from talka.events.fields import MAX_FLOAT, MAX_INT
from talka.train.events import MetricsLogged

EVENT_EVERY_S: Final = 0.1
LINE_EVERY_S: Final = 1.0


def log(*, step: int | None = None, epoch: float | None = None, **metrics: float) -> None:
    """Report metrics of this rank, such as `log(step=100, loss=0.3)` or `log(epoch=2, accuracy=0.91)`.

    They become curves on the page of the run (`talka report`), one per rank. Rank 0 prints them, at most
    one line per second for the same metrics. Without a run directory, as under plain `python
    script.py`, they are only printed.

    Parameters
    ----------
    step, epoch
        Position of the values; without either, values are numbered.
    **metrics
        Numbers, or tensors and arrays with one element. They may be infinite or NaN.

    Raises
    ------
    InvalidValueError
        If no metric is given, or a value is not a number.
    """
    numbers = {name: _number(name, value) for name, value in metrics.items()}
    if not numbers:
        raise InvalidValueError("metrics", {}, "at least one number by name, such as loss=0.3")
    _own_log().add(_step(step), None if epoch is None else _epoch(epoch), numbers)


def last_metrics() -> dict[str, float | None]:
    """Return the last value of each metric that this process has logged; None if it is not finite."""
    return {} if _log is None else _log.last()


def flush() -> None:
    """Write and print what `log` has held back, at the end of a part of the work."""
    if _log is not None:
        _log.flush()


class MetricLog:
    """Metrics of one rank: limits the rate of events and lines. Thread-safe.

    Parameters
    ----------
    write
        Receives the lines to print, without a line break.
    clock
        Returns the time in seconds.
    """

    def __init__(
        self,
        own: OwnStream,
        *,
        write: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.own, self.process = own, os.getpid()
        self._write, self._clock = write, clock
        self._lock = threading.Lock()
        self._last: dict[str, float | None] = {}
        self._events: dict[str, MetricsLogged] = {}
        """Values that were not written yet, by metric."""
        self._lines: dict[tuple[str, ...], str] = {}
        """Lines that were not printed yet, by the names of their metrics."""
        self._written_s: dict[str, float] = {}
        self._printed_s: dict[tuple[str, ...], float] = {}

    def add(self, step: int | None, epoch: float | None, metrics: Mapping[str, float]) -> None:
        """Add the values of one call of `log`."""
        with self._lock:
            now_s = self._clock()
            for name, number in metrics.items():
                value = number if abs(number) <= MAX_FLOAT else None  # also None for NaN
                self._last[name] = value
                before = self._events.get(name)
                num_values = 1 if before is None else before.num_values + 1
                self._events[name] = MetricsLogged(name, value, step, epoch, num_values)
                if now_s - self._written_s.get(name, -math.inf) >= EVENT_EVERY_S:
                    self._emit(name, now_s)
            if self.own.rank == 0:
                names = tuple(metrics)
                self._lines[names] = line_of(step, epoch, metrics)
                if now_s - self._printed_s.get(names, -math.inf) >= LINE_EVERY_S:
                    self._print(names, now_s)

    def flush(self) -> None:
        """Write and print what was held back."""
        with self._lock:
            now_s = self._clock()
            for name in tuple(self._events):
                self._emit(name, now_s)
            for names in tuple(self._lines):
                self._print(names, now_s)

    def last(self) -> dict[str, float | None]:
        """Return the last value of each metric."""
        with self._lock:
            return dict(self._last)

    def _emit(self, name: str, now_s: float) -> None:
        event = self._events.pop(name)
        self._written_s[name] = now_s
        if self.own.stream is not None:
            self.own.stream.emit(event)

    def _print(self, names: tuple[str, ...], now_s: float) -> None:
        self._printed_s[names] = now_s
        self._write(self._lines.pop(names))


def line_of(step: int | None, epoch: float | None, metrics: Mapping[str, float]) -> str:
    """Return the line of one call of `log`.

    >>> line_of(100, None, {"loss": 0.30004, "lr": 1e-5})
    'step 100  loss 0.3  lr 1e-05'
    """
    places = {"epoch": epoch, "step": step}
    given = {name: place for name, place in places.items() if place is not None}
    return "  ".join(f"{name} {_short(value)}" for name, value in {**given, **metrics}.items())


def _short(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4g}"


_log: MetricLog | None = None
_log_lock = threading.Lock()


def _own_log() -> MetricLog:
    """Return the log of this process; a new one if it has become a rank, or was forked."""
    global _log
    with _log_lock:
        own = own_stream()
        if _log is None or _log.own is not own or _log.process != os.getpid():
            _log = MetricLog(own, write=_print_line)
            before_end(_log.flush)
        return _log


def _print_line(line: str) -> None:
    if sys.stdout is not None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def _number(name: str, value: Any) -> float:
    """Return a metric as a number; tensors and arrays with one element have `item`."""
    number = value
    if not isinstance(value, Real) and hasattr(value, "item"):
        try:
            number = value.item()
        except (ValueError, RuntimeError):
            raise InvalidValueError(name, "an array", "a number, or one element") from None
    if not isinstance(number, int | float | Real):
        raise InvalidValueError(name, value, "a number")
    if type(number) is int and abs(number) <= MAX_INT:
        return number
    try:
        return float(number)
    except OverflowError:  # a huge int
        return math.inf


def _step(step: Any) -> int | None:
    if step is None:
        return None
    number = _number("step", step)
    if not 0 <= number <= MAX_INT or number != int(number):
        raise InvalidValueError("step", step, "a whole number of at least 0")
    return int(number)


def _epoch(epoch: Any) -> float:
    number = _number("epoch", epoch)
    if not 0 <= number <= MAX_FLOAT:
        raise InvalidValueError("epoch", epoch, "a finite number of at least 0")
    return number
