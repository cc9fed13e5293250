"""Run a program over a graph: cut, place, compile, go; the values come back by vertex number."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from talka.engine import Embedded, Engine
from talka.errors import InvalidValueError
from talka.events import Stream, SuperstepDone
from talka.graph.checkpoint import Checkpoints
from talka.graph.edge_superstep import EdgePlan
from talka.graph.edge_tasks import EdgeStepper, plan_of
from talka.graph.halting import Rules
from talka.graph.kernels.threads import num_cores
from talka.graph.partitioning import cut
from talka.graph.placing import place, release
from talka.graph.program import EdgeProgram
from talka.graph.supersteps import Supersteps

if TYPE_CHECKING:
    from talka.graph.graph import Graph

MAX_SUPERSTEPS: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a program is run, whatever it is.

    Parameters
    ----------
    engine
        Where; this machine's cores unless given.
    num_partitions
        In how many parts the graph is cut. One unless given: threads then share it.
    partitioning
        How it is cut: "ranges", "hash" or "vertex_cut".
    max_supersteps
        A program that goes on longer is an error.
    compiled
        False: its functions run as plain Python in worker processes.
    checkpoint_dir, checkpoint_every, resume
        Where checkpoints are written, how often (from their cost unless given), and whether to go
        on from the one that is there.
    events
        Where to say what happens.
    """

    engine: Engine | None = None
    num_partitions: int = 1
    partitioning: str = "ranges"
    max_supersteps: int = MAX_SUPERSTEPS
    compiled: bool = True
    checkpoint_dir: Path | None = None
    checkpoint_every: int | None = None
    resume: bool = False
    events: Stream | None = None

    def __post_init__(self) -> None:
        for name in ("num_partitions", "max_supersteps"):
            if getattr(self, name) < 1:
                raise InvalidValueError(name, getattr(self, name), "a whole number of at least 1")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Values by vertex number, and what every superstep did."""

    values: NDArray[Any]
    aggregates: dict[str, float]
    supersteps: list[SuperstepDone]


def run_edge_program(graph: "Graph", program: EdgeProgram, options: RunOptions) -> Outcome:
    """Take supersteps until the program ends."""
    _check_attributes(graph, program)
    if program.is_weighted and not graph.is_weighted and graph.num_edges:
        raise InvalidValueError("weights", None, "given: the program's `message` asks for `weight`")
    events = options.events or Stream()
    how = options.partitioning if options.num_partitions > 1 else "ranges"
    with events.phase("graph/compile"):
        plan = plan_of(
            program,
            offset_type=graph.out.offsets.dtype.name,
            compiled=options.compiled,
            alone=program.asynchronous_ok and options.num_partitions > 1 and how != "vertex_cut",
        )
    with events.phase("graph/cut"):
        parts = cut(graph.out, graph.into, options.num_partitions, how).parts
    arrays = [*(side.astype(np.uint32) for side in (graph.out.degrees(), graph.into.degrees()))]
    arrays += [np.asarray(array) for array in program.attributes.values()]
    with _engine(options, events) as engine:
        placed = place(engine, parts, arrays, python=not options.compiled)
        ended = Supersteps(
            engine,
            EdgeStepper(plan, placed, is_vertex_cut=how == "vertex_cut"),
            Rules(program.num_supersteps, options.max_supersteps, program.until, plan.aggregates),
            num_vertices=graph.num_vertices,
            num_threads=max(1, num_cores() // len(parts)),
            events=events,
            checkpoints=_checkpoints(options, _identity(graph, plan, options)),
        ).run()
        release(engine, placed)
    values = np.empty(graph.num_vertices, plan.value_type)
    for part, (own, _) in zip(parts, ended.states, strict=True):
        values[part.own] = own
    return Outcome(values, ended.aggregates, ended.history)


@contextmanager
def _engine(options: RunOptions, events: Stream) -> Iterator[Engine]:
    if options.engine is not None:
        yield options.engine
        return
    with Embedded(events=events) as engine:
        yield engine


def _checkpoints(options: RunOptions, identity: str) -> Checkpoints:
    return Checkpoints(
        options.checkpoint_dir,
        identity,
        every=options.checkpoint_every,
        resume=options.resume,
        is_needed=options.num_partitions > 1 or options.checkpoint_dir is not None,
    )


def _identity(graph: "Graph", plan: EdgePlan, options: RunOptions) -> str:
    """Only the same run may go on from a checkpoint."""
    said = [graph.fingerprint(), plan, options.num_partitions, options.partitioning]
    return hashlib.sha256(repr(said).encode()).hexdigest()


def _check_attributes(graph: "Graph", program: EdgeProgram) -> None:
    for name, array in program.attributes.items():
        if np.shape(array) != (graph.num_vertices,):
            allowed = f"an array with an entry for each of {graph.num_vertices} vertices"
            raise InvalidValueError(f"the attribute {name!r}", np.shape(array), allowed)
