"""Run a program on a graph: compile, cut, place, run supersteps, collect values by vertex."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic

import numpy as np
from numpy.typing import NDArray

from talka.engine import Embedded, Engine
from talka.errors import InvalidValueError
from talka.events import Stream
from talka.graph.events import SuperstepDone
from talka.graph.graph import AnyGraph, GraphData
from talka.graph.partitions.partition import Partition
from talka.graph.partitions.placing import by_slots, place, release
from talka.graph.programs.edge_program import EdgeProgram
from talka.graph.programs.identity import identity, parts_of_edge_program, parts_of_vertex_program
from talka.graph.programs.vertex_program import VertexProgram, check
from talka.graph.supersteps.checkpoint import Checkpoints
from talka.graph.supersteps.edge_tasks import EdgeStepper, plan_of
from talka.graph.supersteps.halting import HaltingRules
from talka.graph.supersteps.loop import Supersteps
from talka.graph.supersteps.protocol import Stepper
from talka.graph.supersteps.vertex_tasks import VertexStepper
from talka.machine import num_cores

MAX_SUPERSTEPS: Final = 100_000
"""Limit for a program that has neither `num_supersteps` nor `max_supersteps`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options for running any program.

    Parameters
    ----------
    engine
        Engine that runs the tasks. Default: the cores of this machine.
    num_partitions
        Number of partitions of the graph. Default: one, which all threads share.
    partitioning
        How the graph is cut: "ranges", "hash" or "vertex_cut".
    max_supersteps
        Number of supersteps after which a program that has not ended fails. Default: 100,000 for
        your own programs without `num_supersteps`; built-in algorithms always end.
    compiled
        False runs the functions of an edge program as plain Python in worker processes.
    checkpoint_dir, checkpoint_every, resume
        Folder for checkpoints, number of supersteps between them (default: chosen from their
        cost), and whether to resume from the checkpoint in the folder.
    events
        Stream that receives progress and measured costs.
    """

    engine: Engine | None = None
    num_partitions: int = 1
    partitioning: str = "ranges"
    max_supersteps: int | None = None
    compiled: bool = True
    checkpoint_dir: Path | None = None
    checkpoint_every: int | None = None
    resume: bool = False
    events: Stream | None = None

    def __post_init__(self) -> None:
        for name in ("num_partitions", "max_supersteps"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidValueError(name, value, "a whole number of at least 1")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[AnyGraph]):
    """Values of a finished program by vertex number, and statistics of its supersteps."""

    graph: AnyGraph
    """The graph at the end: the given one unless the program has changed it."""
    columns: dict[str, NDArray[Any]]
    aggregates: dict[str, Any]
    supersteps: list[SuperstepDone]

    @property
    def values(self) -> NDArray[Any]:
        """Values of the first column."""
        return next(iter(self.columns.values()))


def run_program(
    graph: AnyGraph, program: EdgeProgram | VertexProgram, options: RunOptions
) -> Outcome[AnyGraph]:
    """Run supersteps until the program ends, and return its values."""
    if isinstance(program, EdgeProgram):
        return _run_edge_program(graph, program, options)
    return _run_vertex_program(graph, program, options)


def _run_edge_program(
    graph: AnyGraph, program: EdgeProgram, options: RunOptions
) -> Outcome[AnyGraph]:
    _check_attributes(graph, program)
    if program.is_weighted and not graph.is_weighted and graph.num_edges:
        raise InvalidValueError(
            "weights", None, "given: `message` of the program has a parameter `weight`"
        )
    events = options.events or Stream()
    how = options.partitioning if options.num_partitions > 1 else "ranges"
    with events.phase("graph/compile"):
        plan = plan_of(
            program,
            offset_type=graph.out.offsets.dtype.name,
            compiled=options.compiled,
            alone=program.order_independent and options.num_partitions > 1 and how != "vertex_cut",
        )
    with events.phase("graph/cut"):
        partitions = graph.cut(options.num_partitions, how).partitions
    attributes = [np.ascontiguousarray(array) for array in program.attributes.values()]
    arrays = [*_degrees(graph, partitions), *attributes]
    limit = _max_supersteps(program, options)
    rules = HaltingRules(program.num_supersteps, limit, program.until, plan.aggregates)
    with _engine(options, events) as engine:
        placed = place(
            engine, partitions, by_slots(partitions, arrays), python=not options.compiled
        )
        stepper = EdgeStepper(plan, partitions, placed, is_vertex_cut=how == "vertex_cut")
        identity_parts = partial(parts_of_edge_program, program, plan)
        ended = _supersteps(graph, engine, stepper, rules, options, events, identity_parts).run()
        release(engine, placed)
    values = np.empty(graph.num_vertices, plan.value_type)
    for partition, (own, _) in zip(partitions, ended.states, strict=True):
        values[partition.own] = own
    return Outcome(graph, {"value": values}, ended.aggregates, ended.history)


def _run_vertex_program(
    graph: AnyGraph, program: VertexProgram, options: RunOptions
) -> Outcome[AnyGraph]:
    check(program)
    how = options.partitioning if options.num_partitions > 1 else "ranges"
    if how == "vertex_cut":
        allowed = "ranges or hash: a vertex program needs all edges of a vertex in one partition"
        raise InvalidValueError("partitioning", how, allowed)
    events = options.events or Stream()
    rules = HaltingRules(
        program.num_supersteps,
        _max_supersteps(program, options),
        program.until,
        program.aggregates,
        program.master,
    )
    with _engine(options, events) as engine:
        with events.phase("graph/cut"):
            stepper = VertexStepper(engine, program, graph, options.num_partitions, how)
        identity_parts = partial(parts_of_vertex_program, program)
        ended = _supersteps(graph, engine, stepper, rules, options, events, identity_parts).run()
        stepper.close()
    after = stepper.graph
    columns = {name: np.empty(after.num_vertices, kind) for name, kind in program.columns.items()}
    for partition, (*own, _) in zip(stepper.cut.partitions, ended.states, strict=True):
        for column, values in zip(columns.values(), own, strict=True):
            column[partition.own] = values
    return Outcome(after, columns, ended.aggregates, ended.history)


def _supersteps(
    graph: GraphData,
    engine: Engine,
    stepper: Stepper,
    rules: HaltingRules,
    options: RunOptions,
    events: Stream,
    identity_parts: Callable[[], list[Any]],
) -> Supersteps:
    """Prepare the loop; `identity_parts` distinguishes the program from others in checkpoints."""
    is_written = options.checkpoint_dir is not None
    cut = (options.num_partitions, options.partitioning)
    return Supersteps(
        engine,
        stepper,
        rules,
        num_vertices=graph.num_vertices,
        num_threads=max(1, num_cores() // options.num_partitions),
        events=events,
        checkpoints=Checkpoints(
            options.checkpoint_dir,
            identity(graph, cut, identity_parts()) if is_written else "",  # slow on large graphs
            every=options.checkpoint_every,
            resume=options.resume,
            is_needed=options.num_partitions > 1 or is_written,
        ),
    )


def _max_supersteps(program: EdgeProgram | VertexProgram, options: RunOptions) -> int | None:
    if options.max_supersteps is not None or program.num_supersteps is not None:
        return options.max_supersteps  # None: `num_supersteps` ends the program
    return MAX_SUPERSTEPS


@contextmanager
def _engine(options: RunOptions, events: Stream) -> Iterator[Engine]:
    if options.engine is not None:
        yield options.engine
        return
    with Embedded(events=events) as engine:
        yield engine


def _degrees(graph: GraphData, partitions: Sequence[Partition]) -> list[NDArray[np.uint32]]:
    """Return out-degrees and in-degrees by vertex number."""
    if len(partitions) == 1:
        return [partitions[0].out_degrees, partitions[0].in_degrees]
    return [side.degrees().astype(np.uint32) for side in (graph.out, graph.into)]


def _check_attributes(graph: GraphData, program: EdgeProgram) -> None:
    for name, array in program.attributes.items():
        if np.shape(array) != (graph.num_vertices,):
            allowed = f"an array with one entry for each of the {graph.num_vertices} vertices"
            raise InvalidValueError(f"the attribute {name!r}", np.shape(array), allowed)
