"""Types that driver and tasks of a superstep exchange: context in, outputs and report out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from talka.engine import Engine, Ref


class Context(NamedTuple):
    """The facts about a superstep that all partitions get."""

    superstep: int
    num_vertices: int
    is_last: bool
    """True if no superstep follows, so that messages need not be sent."""
    aggregates: dict[str, float]
    num_threads: int


@dataclass
class Report:
    """Counts of one superstep of one partition."""

    num_active: int = 0
    active_edges: int = 0
    way: str = ""
    """"push" or "pull"; empty if no messages were sent along edges."""
    edges: int = 0
    """Number of edges that messages were sent along."""
    num_messages: int = 0
    """Number of messages to other partitions."""
    sent_bytes: int = 0
    is_quiet: bool = True
    """True if the partition sent no message, not even to its own vertices."""
    rounds: int = 1
    totals: dict[str, list[float]] = field(default_factory=dict)
    """Partial aggregates, which the driver combines."""

    def as_plain(self) -> dict[str, Any]:
        return vars(self)  # asdict would copy every value, for each task

    @staticmethod
    def merged(plain: list[dict[str, Any]]) -> "Report":
        """Merge the reports of the tasks that make up one superstep of a partition."""
        merged = Report(**plain[0])
        for more in plain[1:]:
            other = Report(**more)
            merged.edges += other.edges
            merged.num_messages += other.num_messages
            merged.sent_bytes += other.sent_bytes
            merged.is_quiet, merged.way = other.is_quiet, other.way
        return merged


class PartitionOutputs(NamedTuple):
    """Refs of the outputs of one superstep of one partition."""

    tasks: tuple[tuple[Ref, ...], ...]
    """All outputs, grouped by task; the first of each task is its report."""
    state: tuple[Ref, ...]
    """Outputs that the partition itself needs in the next superstep."""
    mails: tuple[Ref, ...]
    """One mail per receiving partition."""

    @property
    def reports(self) -> list[Ref]:
        return [refs[0] for refs in self.tasks]

    @property
    def refs(self) -> list[Ref]:
        return [ref for refs in self.tasks for ref in refs]


class Stepper(Protocol):
    """Submits the supersteps of one kind of program."""

    num_partitions: int

    def begin(self, engine: Engine, index: int, context: Context) -> PartitionOutputs:
        """Submit superstep 0 of a partition: initial values and the first messages."""
        ...

    def advance(
        self, engine: Engine, index: int, context: Context, before: Sequence[PartitionOutputs]
    ) -> PartitionOutputs:
        """Submit the next superstep of a partition, given the outputs of all partitions."""
        ...

    def complete(
        self, engine: Engine, context: Context, outputs: Sequence[PartitionOutputs]
    ) -> list[PartitionOutputs]:
        """Submit the second half of a superstep, if it has one, after the first half of all."""
        ...

    def restored(
        self, engine: Engine, index: int, saved: Sequence[Sequence[Any]]
    ) -> PartitionOutputs:
        """Submit tasks that return the saved outputs of a partition."""
        ...

    def check(self, saved: Sequence[Sequence[Sequence[Any]]]) -> None:
        """Raise PayloadError if a checkpoint holds outputs that no superstep can return."""
        ...

    def changed_graph(self) -> list[Any]:
        """Return the graph as it is saved in a checkpoint; empty if it has not changed."""
        ...

    def take_graph(self, saved: Sequence[Any]) -> None:
        """Restore the graph that `changed_graph` returned; called before outputs are restored."""
        ...


def as_saved(*outputs: Any) -> Any:
    """Return the arguments: a task that creates the outputs that a checkpoint holds."""
    return outputs if len(outputs) > 1 else outputs[0]
