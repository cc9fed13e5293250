"""Rounds of all workers, collected while their events arrive; a step with an average is a round.

event of a worker -> its part of a round -> totals, at most MAX_ROUNDS rounds, and the last few

In a round, the worker with the smallest wait is the one that the others waited for. What it waited is
the network; what the others waited longer than that is waiting for it.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from typing import ClassVar, Final, NamedTuple

from talka.events import Event, Stamped
from talka.report.base import natural_order
from talka.train.events import RoundDone, StepDone

MAX_ROUNDS: Final = 1024
"""Rounds that are kept; with more, only every second one is kept, then every fourth, and so on."""
MAX_RECENT: Final = 32
"""Last rounds of each worker that are kept for the timeline."""
EVERY_STEP: Final = "every-step"
"""Rhythm of steps."""


class RoundKey(NamedTuple):
    """Identity of a round: the same for all workers that take part in it."""

    part: int
    """Number of restarts and changes of the rhythm before it."""
    number: int
    """Number of the round since the start of this part; the first is 1."""


class WorkerRound(NamedTuple):
    """What one worker did in a round; times in seconds."""

    end_s: float
    """Time since 1970 at which the exchange ended, by the clock of the worker."""
    num_steps: int
    staleness: int
    sent_bytes: int
    compute_s: float
    encode_s: float
    wait_s: float
    decode_s: float
    after_compute_s: float | None


class TrainingRound(NamedTuple):
    """One round of all workers that have reported it."""

    key: RoundKey
    rhythm: str
    workers: dict[str, WorkerRound]

    @property
    def network_s(self) -> float:
        """Smallest wait of a worker in this round."""
        return min(done.wait_s for done in self.workers.values())

    @property
    def awaited(self) -> str | None:
        """Worker that the others waited for; None for a single worker."""
        if len(self.workers) < 2:
            return None
        return min(self.workers, key=lambda name: (self.workers[name].wait_s, natural_order(name)))

    def others_s(self, worker: str) -> float:
        """Return the seconds that a worker waited for others, not for the network."""
        return self.workers[worker].wait_s - self.network_s


class WorkerTotals:
    """Sums over all rounds of one worker."""

    __slots__ = ("num_rounds", "num_steps", "sent_bytes")

    def __init__(self) -> None:
        self.num_rounds = self.num_steps = self.sent_bytes = 0

    def add(self, done: WorkerRound) -> None:
        self.num_rounds += 1
        self.num_steps += done.num_steps
        self.sent_bytes += done.sent_bytes


class RoundSeries:
    """Rounds of all workers, independent of the order in which workers write."""

    KINDS: ClassVar[tuple[type[Event], ...]] = (StepDone, RoundDone)

    def __init__(self) -> None:
        self.totals: defaultdict[str, WorkerTotals] = defaultdict(WorkerTotals)
        """Sums by worker."""
        self.num_rounds: Counter[str] = Counter()
        """Number of rounds of the worker with the most, by rhythm."""
        self.kept_every = 1
        """1 if all rounds are kept, 4 if every fourth is."""
        self._by_worker: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._places: dict[str, tuple[RoundKey, str]] = {}
        self._rounds: dict[RoundKey, TrainingRound] = {}
        self._recent: dict[str, deque[tuple[RoundKey, str, WorkerRound]]] = {}

    def add(self, stamped: Stamped) -> None:
        """Add an event."""
        rhythm, number, done = _read(stamped)
        source = stamped.source
        key = self._key(source, rhythm, number)
        self._places[source] = key, rhythm
        self.totals[source].add(done)
        self._by_worker[source][rhythm] += 1
        self.num_rounds[rhythm] = max(self.num_rounds[rhythm], self._by_worker[source][rhythm])
        recent = self._recent.setdefault(source, deque(maxlen=MAX_RECENT))
        recent.append((key, rhythm, done))
        if key.number % self.kept_every == 0:
            self._rounds.setdefault(key, TrainingRound(key, rhythm, {})).workers[source] = done
            while len(self._rounds) > MAX_ROUNDS:
                self._thin()

    def _key(self, source: str, rhythm: str, number: int) -> RoundKey:
        """Return the key of the next round of a worker; one that starts again begins a new part."""
        if source not in self._places:
            return RoundKey(0, number)
        before, former = self._places[source]
        if number <= before.number or rhythm != former:
            return RoundKey(before.part + 1, number)
        return RoundKey(before.part, number)

    def _thin(self) -> None:
        """Keep every second of the rounds: whichever order they came in, the same ones remain."""
        self.kept_every *= 2
        for key in [key for key in self._rounds if key.number % self.kept_every]:
            del self._rounds[key]

    @property
    def workers(self) -> list[str]:
        """Workers that reported a round, in natural order."""
        return sorted(self.totals, key=natural_order)

    def rounds(self) -> list[TrainingRound]:
        """Return the rounds that are kept, in order."""
        return [self._rounds[key] for key in sorted(self._rounds)]

    def window(self, workers: Iterable[str], max_rounds: int) -> list[TrainingRound]:
        """Return the last rounds that all of some workers have reported, in order."""
        parts = {worker: self._recent[worker] for worker in workers}
        if not parts:
            return []
        common = set.intersection(*({key for key, _, _ in seen} for seen in parts.values()))
        rounds: dict[RoundKey, TrainingRound] = {}
        for worker, seen in parts.items():
            for key, rhythm, done in seen:
                if key in common:
                    rounds.setdefault(key, TrainingRound(key, rhythm, {})).workers[worker] = done
        return [rounds[key] for key in sorted(rounds)][-max_rounds:]


def _read(stamped: Stamped) -> tuple[str, int, WorkerRound]:
    event = stamped.event
    assert isinstance(event, StepDone | RoundDone)
    if isinstance(event, StepDone):
        rhythm, number, num_steps, staleness = EVERY_STEP, event.step, 1, 0
    else:
        rhythm, number = event.rhythm, event.round
        num_steps, staleness = event.num_steps, event.staleness
    seconds = (event.compute_s, event.encode_s, event.wait_s, event.decode_s)
    done = WorkerRound(
        stamped.time_s, num_steps, staleness, event.sent_bytes, *seconds, event.after_compute_s
    )
    return rhythm, number, done
