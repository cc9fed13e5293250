"""Decisions about a gang: which ranks failed, who is notified, when it ends and with what.

    finished, failed, stopped, the clock  ->  `Outcomes`  ->  ranks to notify, the end, the results

Without processes, sockets or a clock: the caller provides the present time.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from talka.engine.gangs.spec import OnFailure
from talka.errors import GangError

# Seconds to wait after the first failure: another rank may have died before it.
GRACE_S = 0.5
STOPPED = "was ended by stop()"


class Sign(NamedTuple):
    """Failure of a rank as the driver observed it."""

    rank: int
    seen_s: float
    died: bool
    how: str


def culprit(signs: Sequence[Sign]) -> Sign:
    """Return the failure to report: the first death, or the first exception if no rank died.

    Exceptions in other ranks are often caused by the death of one.

    >>> culprit([Sign(0, 1.0, False, "raised"), Sign(2, 1.2, True, "died")]).rank
    2
    """
    return min(signs, key=lambda sign: (not sign.died, sign.seen_s))


class Outcomes:
    """Results and failures of the ranks of one gang.

    Parameters
    ----------
    start_s
        Time at which the gang starts, by the clock of the caller. `timeout_s` counts from then.
    """

    def __init__(
        self, size: int, *, on_failure: OnFailure, timeout_s: float | None, start_s: float
    ) -> None:
        self.size = size
        self._reports = on_failure == "report"
        self._timeout_s = timeout_s
        self._deadline_s = None if timeout_s is None else start_s + timeout_s
        self._values: dict[int, Any] = {}
        self._signs: dict[int, Sign] = {}
        self._is_ended = False

    @property
    def running(self) -> tuple[int, ...]:
        """Ranks that have neither finished nor failed."""
        return tuple(
            rank
            for rank in range(self.size)
            if rank not in self._values and rank not in self._signs
        )

    @property
    def finished_ranks(self) -> tuple[int, ...]:
        """Ranks whose result is known and that have not failed since."""
        return tuple(sorted(self._values.keys() - self._signs.keys()))

    @property
    def is_over(self) -> bool:
        """True if the results, or the error to raise, are known."""
        return self._is_ended or not self.running

    @property
    def is_success(self) -> bool:
        """True if `results` returns, so that ranks that have finished may end in an orderly way."""
        return bool(self._values) if self._reports else not self._signs

    def left_s(self, now_s: float) -> float | None:
        """Return the seconds until `expired` has to be called; None if that is not necessary."""
        return None if self._deadline_s is None else max(0.0, self._deadline_s - now_s)

    def finished(self, rank: int, value: Any) -> None:
        """Record the result of a rank."""
        if rank not in self._signs:
            self._values[rank] = value

    def failed(self, rank: int, now_s: float, *, died: bool, how: str) -> tuple[int, ...] | None:
        """Record a failure; return the ranks that must learn of it, or None if it is not new.

        A rank that has finished only waits for the others, and its result stays. Others may still be
        connected to it, so its death is reported; it does not end the gang.
        """
        if rank in self._signs or (rank in self._values and not self._reports):
            return None
        self._signs[rank] = Sign(rank, now_s, died, how)
        if self._reports:
            return tuple(other for other in range(self.size) if other not in self._signs)
        grace_end_s = now_s + GRACE_S
        self._deadline_s = min(self._deadline_s or grace_end_s, grace_end_s)
        return ()

    def expired(self, now_s: float) -> tuple[int, ...]:
        """Return the ranks to end because the time is over; the gang is over then."""
        if self._deadline_s is None or now_s < self._deadline_s or self.is_over:
            return ()
        late = self.running
        if self._reports or not self._signs:
            for rank in late:
                how = f"had not finished after {self._timeout_s:g} s"
                self._signs[rank] = Sign(rank, now_s, died=False, how=how)
        self._is_ended = True
        return late

    def stopped(self, now_s: float) -> None:
        """End the gang because the caller does not want it any more."""
        for rank in self.running:
            self._signs[rank] = Sign(rank, now_s, died=False, how=STOPPED)
        self._is_ended = True

    def results(self, tail_of: Callable[[int], str]) -> list[Any]:
        """Return what `Gang.wait` returns, in order of rank, or raise the error that it raises.

        Parameters
        ----------
        tail_of
            Returns the end of the log of a rank.
        """

        def error(sign: Sign) -> GangError:
            return GangError(sign.rank, self.size, sign.how, tail_of(sign.rank))

        if not self.is_success:
            raise error(culprit(list(self._signs.values())))
        return [
            self._values[rank] if rank in self._values else error(self._signs[rank])
            for rank in range(self.size)
        ]
