"""What driver and tasks exchange in a superstep: context in, outputs and a report out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from talka.engine import Engine, Ref


class Context(NamedTuple):
    superstep: int
    num_vertices: int
    is_last: bool
    """Nobody will hear what is said now."""
    aggregates: dict[str, float]
    num_threads: int


@dataclass
class Report:
    """Counts of one partition."""

    num_active: int = 0
    active_edges: int = 0
    way: str = ""
    edges: int = 0
    """That were walked along."""
    num_messages: int = 0
    """That left the partition."""
    sent_bytes: int = 0
    is_quiet: bool = True
    """Nothing was said at all, not even to itself."""
    rounds: int = 1
    totals: dict[str, list[float]] = field(default_factory=dict)
    """Aggregates, still in pieces that the driver combines."""

    def as_plain(self) -> dict[str, Any]:
        return vars(self)  # asdict would copy every value, for each task

    @staticmethod
    def merged(plain: list[dict[str, Any]]) -> "Report":
        """The reports of the tasks that one partition's superstep was made of."""
        merged = Report(**plain[0])
        for more in plain[1:]:
            other = Report(**more)
            merged.edges += other.edges
            merged.num_messages += other.num_messages
            merged.sent_bytes += other.sent_bytes
            merged.is_quiet, merged.way = other.is_quiet, other.way
        return merged


class PartitionOutputs(NamedTuple):
    """Outputs of the tasks that made up one superstep of one partition."""

    tasks: tuple[tuple[Ref, ...], ...]
    """All outputs, task by task; the first of each is its report."""
    state: tuple[Ref, ...]
    """What the partition itself needs in the next superstep."""
    mails: tuple[Ref, ...]
    """One for each partition."""

    @property
    def reports(self) -> list[Ref]:
        return [outputs[0] for outputs in self.tasks]

    @property
    def outputs(self) -> list[Ref]:
        return [ref for outputs in self.tasks for ref in outputs]


class Stepper(Protocol):
    """Submits supersteps of one kind of program."""

    num_partitions: int

    def begin(self, engine: Engine, index: int, context: Context) -> PartitionOutputs:
        """Superstep 0 of a partition: values are made, and said for the first time."""
        ...

    def advance(
        self, engine: Engine, index: int, context: Context, before: Sequence[PartitionOutputs]
    ) -> PartitionOutputs:
        """The next superstep of a partition, after the turns of all of them."""
        ...

    def complete(
        self, engine: Engine, context: Context, outputs_of_all: Sequence[PartitionOutputs]
    ) -> list[PartitionOutputs]:
        """The second half of a superstep, where it has two, after the first halves of all."""
        ...

    def restored(
        self, engine: Engine, index: int, saved: Sequence[Sequence[Any]]
    ) -> PartitionOutputs:
        """The turn whose outputs were saved, task by task."""
        ...

    def check(self, saved: Sequence[Sequence[Sequence[Any]]]) -> None:
        """Refuse outputs of a checkpoint that no superstep can have left: PayloadError."""
        ...

    def changed_graph(self) -> list[Any]:
        """The graph as a checkpoint keeps it; empty while it is the one that was given."""
        ...

    def take_graph(self, saved: Sequence[Any]) -> None:
        """What `changed_graph` gave, before turns are restored."""
        ...


def as_saved(*outputs: Any) -> Any:
    """A task that makes what a checkpoint holds."""
    return outputs if len(outputs) > 1 else outputs[0]
