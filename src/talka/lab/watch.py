"""Decides which rank to signal and when: plain code without processes or clocks.

a rank ended, or time passed -> signals to send

Times are seconds since the start, passed by the caller; `next_s` is when to call again.
"""

import heapq
import signal
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from talka.errors import InvalidValueError
from talka.lab.base import Kill, Pause, Trouble

GRACE_S = 10.0  # for the other ranks to end by themselves, once one has failed


class Send(NamedTuple):
    """Instruction to send a signal to all processes of a rank."""

    rank: int
    signal: signal.Signals


class Blame(NamedTuple):
    """The rank that failed first."""

    rank: int
    exit_code: int | None
    """Exit code; None if the rank exceeded the time limit."""


class _Due(NamedTuple):
    """A scheduled signal.

    At equal times SIGCONT (18) comes before SIGSTOP (19): a pause may start when another ends.
    """

    at_s: float
    signal: int
    rank: int


class Watch:
    """State of the ranks of one run, from their start until all have ended.

    Ranks that were ended by a `Kill` do not count as failures. After the first failure the others
    have `GRACE_S` to end, unless ranks are killed on purpose: such a run tests how the others cope.
    """

    def __init__(
        self, num_ranks: int, troubles: Sequence[Trouble] = (), *, timeout_s: float | None = None
    ) -> None:
        check_troubles(troubles, num_ranks)
        self.blame: Blame | None = None
        self.exit_codes: dict[int, int] = {}
        self._num_ranks = num_ranks
        self._has_kills = any(isinstance(trouble, Kill) for trouble in troubles)
        self._killed: set[int] = set()
        self._num_pauses = dict.fromkeys(range(num_ranks), 0)
        self._due = [due for trouble in troubles for due in _signals_of(trouble)]
        heapq.heapify(self._due)
        self._grace_ends_s: float | None = None
        self._timeout_s = timeout_s

    @property
    def is_done(self) -> bool:
        """True if all ranks have ended."""
        return len(self.exit_codes) == self._num_ranks

    @property
    def next_s(self) -> float | None:
        """Time at which `advance` has to be called again, unless a rank ends before."""
        times = [self._grace_ends_s, self._timeout_s, self._due[0].at_s if self._due else None]
        return min((time_s for time_s in times if time_s is not None), default=None)

    def ended(self, rank: int, exit_code: int, *, now_s: float) -> None:
        """Record that a rank ended; a first failure starts the grace period."""
        self.exit_codes.setdefault(rank, exit_code)
        if exit_code == 0 or rank in self._killed or self.blame is not None:
            return
        self.blame = Blame(rank, exit_code)
        if not self._has_kills:
            self._grace_ends_s = now_s + GRACE_S

    def advance(self, now_s: float) -> list[Send]:
        """Return the signals that are due now."""
        sends = []
        while self._due and self._due[0].at_s <= now_s:
            due = heapq.heappop(self._due)
            if due.rank not in self.exit_codes and due.rank not in self._killed:
                sends += self._apply(due)
        if self._timeout_s is not None and self._timeout_s <= now_s:
            sends += self._give_up()
        elif self._grace_ends_s is not None and self._grace_ends_s <= now_s:
            sends += self._end(self._running())
        return sends

    def _apply(self, due: _Due) -> list[Send]:
        if due.signal == signal.SIGKILL:
            return self._end([due.rank])
        was_paused = self._num_pauses[due.rank] > 0
        self._num_pauses[due.rank] += 1 if due.signal == signal.SIGSTOP else -1
        is_paused = self._num_pauses[due.rank] > 0
        return [Send(due.rank, signal.Signals(due.signal))] if is_paused != was_paused else []

    def _give_up(self) -> list[Send]:
        running = self._running()
        self._timeout_s = None
        if running and self.blame is None:
            self.blame = Blame(running[0], None)
        return self._end(running)

    def _end(self, ranks: Iterable[int]) -> list[Send]:
        """Kill ranks; their exit codes no longer count as failures."""
        sends = [Send(rank, signal.SIGKILL) for rank in ranks if rank not in self._killed]
        self._killed.update(send.rank for send in sends)
        if not self._running():
            self._grace_ends_s = None
        return sends

    def _running(self) -> list[int]:
        ranks = range(self._num_ranks)
        return [rank for rank in ranks if rank not in self.exit_codes and rank not in self._killed]


def check_troubles(troubles: Sequence[Trouble], num_ranks: int) -> None:
    """Raise InvalidValueError for a rank that does not exist."""
    for trouble in troubles:
        if not 0 <= trouble.rank < num_ranks:
            name = type(trouble).__name__.lower()
            raise InvalidValueError(name, trouble.rank, f"a rank from 0 to {num_ranks - 1}")


def _signals_of(trouble: Trouble) -> list[_Due]:
    if isinstance(trouble, Pause):
        return [
            _Due(trouble.at_s, signal.SIGSTOP, trouble.rank),
            _Due(trouble.at_s + trouble.for_s, signal.SIGCONT, trouble.rank),
        ]
    return [_Due(trouble.at_s, signal.SIGKILL, trouble.rank)]
