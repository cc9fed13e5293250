"""Decides which rank to signal, which link to cut and when: plain code without processes or clocks.

a rank ended, or time passed -> signals to send, links to cut

Times are seconds since the start, passed by the caller; `next_s` is when to call again.
"""

import heapq
import signal
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from talka.lab.troubles import Cut, Kill, Pause, Trouble, check_troubles

GRACE_S = 10.0  # for the other ranks to end by themselves, once one has failed


class Send(NamedTuple):
    """Instruction to send a signal to all processes of a rank."""

    rank: int
    signal: signal.Signals


class CutLink(NamedTuple):
    """Instruction to cut the link of a host."""

    host: int


Instruction = Send | CutLink


class Blame(NamedTuple):
    """The rank that failed first."""

    rank: int
    exit_code: int | None
    """Exit code; None if the rank exceeded the time limit."""


class _Due(NamedTuple):
    """A scheduled signal, or the cut of a link.

    At equal times SIGCONT (18) comes before SIGSTOP (19): a pause may start when another ends.
    """

    at_s: float
    signal: int
    """Signal for the rank; `_CUT` to cut the link of the host."""
    target: int
    """Number of a rank or of a host."""
    every_s: float = 0.0
    """Seconds after which it is repeated; 0 if it is not."""


_CUT = 0


class Watch:
    """State of the ranks of one run, from their start until all have ended.

    Ranks that were ended by a `Kill`, or whose link was cut before they ended, do not count as
    failures. After the first failure the others have `GRACE_S` to end, unless ranks are killed or cut
    off on purpose: such a run tests how the others cope.
    """

    def __init__(
        self,
        num_hosts: int,
        troubles: Sequence[Trouble] = (),
        *,
        ranks_per_host: int = 1,
        timeout_s: float | None = None,
    ) -> None:
        check_troubles(troubles, num_hosts, ranks_per_host)
        num_ranks = num_hosts * ranks_per_host
        self.blame: Blame | None = None
        self.exit_codes: dict[int, int] = {}
        self._num_ranks = num_ranks
        self._ranks_per_host = ranks_per_host
        self._has_losses = any(isinstance(trouble, Kill | Cut) for trouble in troubles)
        self._cut_hosts: set[int] = set()
        self._killed: set[int] = set()
        self._num_pauses = dict.fromkeys(range(num_ranks), 0)
        self._due = [due for trouble in troubles for due in _scheduled(trouble, ranks_per_host)]
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
        is_lost = rank in self._killed or rank // self._ranks_per_host in self._cut_hosts
        if exit_code == 0 or is_lost or self.blame is not None:
            return
        self.blame = Blame(rank, exit_code)
        if not self._has_losses:
            self._grace_ends_s = now_s + GRACE_S

    def advance(self, now_s: float) -> list[Instruction]:
        """Return what is due now."""
        sends: list[Instruction] = []
        while self._due and self._due[0].at_s <= now_s:
            due = heapq.heappop(self._due)
            if due.signal == _CUT:
                self._cut_hosts.add(due.target)
                sends.append(CutLink(due.target))
            elif due.target not in self.exit_codes and due.target not in self._killed:
                sends += self._apply(due)
                if due.every_s:
                    heapq.heappush(self._due, due._replace(at_s=due.at_s + due.every_s))
        if self._timeout_s is not None and self._timeout_s <= now_s:
            sends += self._give_up()
        elif self._grace_ends_s is not None and self._grace_ends_s <= now_s:
            sends += self._end(self._running())
        return sends

    def _apply(self, due: _Due) -> list[Send]:
        if due.signal == signal.SIGKILL:
            return self._end([due.target])
        was_paused = self._num_pauses[due.target] > 0
        self._num_pauses[due.target] += 1 if due.signal == signal.SIGSTOP else -1
        is_paused = self._num_pauses[due.target] > 0
        return [Send(due.target, signal.Signals(due.signal))] if is_paused != was_paused else []

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


def _scheduled(trouble: Trouble, ranks_per_host: int) -> list[_Due]:
    if isinstance(trouble, Kill):
        return [_Due(trouble.at_s, signal.SIGKILL, trouble.rank)]
    if isinstance(trouble, Cut):
        return [_Due(trouble.at_s, _CUT, trouble.host)]
    if isinstance(trouble, Pause):
        return _stop_and_continue(trouble.rank, trouble.at_s, trouble.for_s)
    first = trouble.host * ranks_per_host
    return [
        due
        for rank in range(first, first + ranks_per_host)
        for due in _stop_and_continue(rank, trouble.every_s, trouble.for_s, trouble.every_s)
    ]


def _stop_and_continue(rank: int, at_s: float, for_s: float, every_s: float = 0.0) -> list[_Due]:
    return [
        _Due(at_s, signal.SIGSTOP, rank, every_s),
        _Due(at_s + for_s, signal.SIGCONT, rank, every_s),
    ]
