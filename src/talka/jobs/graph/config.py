"""Configuration of `talka graph`, checked when it is created."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from talka.engine.by_name import check_engine
from talka.errors import InvalidValueError, OptionError, UnknownNameError
from talka.graph.algorithms import ALGORITHMS
from talka.graph.partitions.cutting import WAYS
from talka.graph.reading.detect import READERS, FileFormat

MAX_PARTITIONS: Final = 1_000
"""Every pair of partitions exchanges messages, so the cost of a superstep grows with the square."""
_TAKES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "bfs": ("source",),
        "sssp": ("source",),
        "pagerank": ("source", "damping", "num_supersteps", "tolerance"),
        "communities": ("num_supersteps",),
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """A file of edges and how to build a graph from it."""

    edges: str
    file_format: FileFormat = "auto"
    directed: bool = True
    drop_duplicates: bool = False
    drop_loops: bool = False

    def __post_init__(self) -> None:
        if self.file_format != "auto" and self.file_format not in READERS:
            raise UnknownNameError("format of edges", self.file_format, ("auto", *READERS))


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Arguments of some algorithms; None or empty means the default of the algorithm."""

    source: tuple[str, ...] = ()
    damping: float | None = None
    num_supersteps: int | None = None
    tolerance: float | None = None

    def __post_init__(self) -> None:
        if self.num_supersteps is not None and self.num_supersteps < 1:
            allowed = "a whole number of at least 1"
            raise InvalidValueError("num_supersteps", self.num_supersteps, allowed)


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """Number and kind of partitions, and the engine they run on."""

    num_partitions: int = 1
    partitioning: str = "ranges"
    engine: str = "embedded"
    checkpoint_every: int | None = None
    """Supersteps between checkpoints; chosen by the cost of a checkpoint if None."""

    def __post_init__(self) -> None:
        if not 1 <= self.num_partitions <= MAX_PARTITIONS:
            allowed = f"a whole number from 1 to {MAX_PARTITIONS:,}"
            raise InvalidValueError("num_partitions", self.num_partitions, allowed)
        if self.partitioning not in WAYS:
            raise UnknownNameError("partitioning", self.partitioning, tuple(WAYS))
        if self.checkpoint_every is not None and self.checkpoint_every < 1:
            allowed = "a whole number of at least 1"
            raise InvalidValueError("checkpoint_every", self.checkpoint_every, allowed)
        check_engine(self.engine)


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphConfig:
    """All options of a graph job."""

    algorithm: str
    input: Input
    arguments: Arguments = field(default_factory=Arguments)
    placement: Placement = field(default_factory=Placement)

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise UnknownNameError("algorithm", self.algorithm, tuple(ALGORITHMS))
        takes = _TAKES.get(self.algorithm, ())
        for name, value in dataclasses.asdict(self.arguments).items():
            if value not in (None, ()) and name not in takes:
                users = [other for other in _TAKES if name in _TAKES[other]]
                problem = f"is not an option of {self.algorithm}"
                raise OptionError(name, problem, f"Remove it: it is for {', '.join(users)}.")
        if ALGORITHMS[self.algorithm].needs_source and not self.arguments.source:
            advice = f"Give the id of the vertex where {self.algorithm} starts."
            raise OptionError("source", "is missing", advice)

    def resolved(self) -> dict[str, Any]:
        """Return plain values by their names on the command line."""
        plain = {
            "algorithm": self.algorithm,
            **dataclasses.asdict(self.input),
            **dataclasses.asdict(self.arguments),
            **dataclasses.asdict(self.placement),
        }
        plain["undirected"] = not plain.pop("directed")
        return {name.removeprefix("num_"): value for name, value in plain.items()}
