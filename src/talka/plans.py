"""Plans: a tree of costed parts that can be read before anything runs.

A job is made by a function that returns a `Plan`. `Plan.explain()` returns the root of a tree of
parts; `Plan.run()` does the work and measures under the same cost ids.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from talka.events import Considered, Predicted, Stream


@dataclass(frozen=True, slots=True)
class Alternative:
    """A choice that lost, with its cost and why it was not taken."""

    choice: str
    why_not: str
    seconds: float | None = None
    sent_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a plan with its predicted cost, which includes that of the parts inside it.

    >>> read = Part(cost_id="graph/read", seconds=2.0)
    >>> write = Part(cost_id="graph/write", seconds=1.0, sent_bytes=8.0)
    >>> whole = Part.of("graph", [read, write])
    >>> whole.seconds, whole.sent_bytes, [part.cost_id for part in whole.walk()]
    (3.0, 8.0, ['graph', 'graph/read', 'graph/write'])
    """

    cost_id: str
    """Path that begins with the job, such as `graph/superstep/3/exchange`; without spaces."""
    seconds: float | None = None
    """Seconds; None if they cannot be predicted."""
    sent_bytes: float | None = None
    """Bytes that all workers send; None if they cannot be predicted."""
    memory_bytes: float | None = None
    """Peak memory of this part in one process; None if unknown."""
    reason: str = ""
    """How the cost was predicted, or why it cannot be."""
    choice: str = ""
    """What was chosen, if there were alternatives."""
    alternatives: tuple[Alternative, ...] = ()
    """Choices that lost, the best first."""
    parts: tuple["Part", ...] = ()
    """Parts inside this one, in the order in which they run."""
    trials: tuple[str, ...] = ()
    """Names of the trials of the machine profile that the prediction used."""

    def __post_init__(self) -> None:
        assert " " not in self.cost_id, self.cost_id

    @classmethod
    def of(cls, cost_id: str, parts: Sequence["Part"], *, reason: str = "") -> "Part":
        """Return the part that consists of others, which run one after another."""
        return cls(
            cost_id=cost_id,
            seconds=None if any(part.seconds is None for part in parts) else _seconds_of(parts),
            sent_bytes=_sent_bytes_of(parts),
            memory_bytes=max((part.memory_bytes or 0.0 for part in parts), default=0.0) or None,
            reason=reason,
            parts=tuple(parts),
        )

    def walk(self) -> Iterator["Part"]:
        """Yield this part and all parts inside it, outer ones first."""
        yield self
        for part in self.parts:
            yield from part.walk()

    @property
    def known_seconds(self) -> float:
        """Seconds of all parts whose seconds are known."""
        return _seconds_of(self.parts) if self.seconds is None else self.seconds

    def unknown(self) -> list[str]:
        """Return the cost ids of the innermost parts whose seconds are not known."""
        if self.seconds is not None:
            return []
        if not self.parts:
            return [self.cost_id]
        return [cost_id for part in self.parts for cost_id in part.unknown()]

    def starting_with(self, first: "Part") -> "Part":
        """Return the same part with one more part at its beginning."""
        return replace(Part.of(self.cost_id, [first, *self.parts]), reason=self.reason)

    def events(self) -> Iterator[Predicted | Considered]:
        """Yield the events that record this part, its alternatives and the parts inside it."""
        for part in self.walk():
            yield Predicted(
                part.cost_id, part.sent_bytes, part.seconds, part.reason, part.memory_bytes
            )
            for lost in part.alternatives:
                yield Considered(
                    part.cost_id, lost.choice, lost.sent_bytes, lost.seconds, lost.why_not
                )

    def as_plain(self) -> dict[str, Any]:
        """Return the tree as plain values, for JSON."""
        return {
            "cost_id": self.cost_id,
            "seconds": self.seconds,
            "sent_bytes": self.sent_bytes,
            "memory_bytes": self.memory_bytes,
            "reason": self.reason,
            "choice": self.choice,
            "alternatives": [
                {
                    "choice": lost.choice,
                    "seconds": lost.seconds,
                    "sent_bytes": lost.sent_bytes,
                    "why_not": lost.why_not,
                }
                for lost in self.alternatives
            ],
            "parts": [part.as_plain() for part in self.parts],
        }


class Plan(Protocol):
    """A job whose cost is known before it runs."""

    name: str
    """Name of the job, such as `graph-bfs`, for its run directory."""
    config: dict[str, Any]
    """The resolved configuration as plain values, for config.json."""

    @property
    def planned_s(self) -> float:
        """Seconds of work that was done while planning and is a part of the plan itself."""
        ...

    def explain(self) -> Part:
        """Return the predicted cost as a tree."""
        ...

    def run(self, events: Stream) -> dict[str, Any]:
        """Do the work with its parts as phases of `events`; return the result as plain values."""
        ...


def _seconds_of(parts: Sequence[Part]) -> float:
    return sum(part.known_seconds for part in parts)


def _sent_bytes_of(parts: Sequence[Part]) -> float | None:
    """Return the bytes of the parts that send something; None if none does."""
    known = [part.sent_bytes for part in parts if part.sent_bytes is not None]
    return sum(known) if known else None
