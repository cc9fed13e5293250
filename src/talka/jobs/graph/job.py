"""Edges in, an answer for every vertex out: the whole job.

    file -> graph -> partitions -> supersteps -> FILE

Checkpoints lie in FILE.unfinished, so that `resume` goes on from the last one.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from talka.data.writing import check_answer_fits, format_of_output, write_answer
from talka.engine.by_name import engine_by_name
from talka.errors import EdgeFileError, GraphError, InvalidValueError, OptionError
from talka.events import Event, Measured, Noted, Predicted, Stream, SuperstepDone
from talka.events.stream import Listener
from talka.graph import Graph, RunOptions
from talka.graph.algorithms import ALGORITHMS
from talka.jobs.graph.config import GraphConfig
from talka.jobs.graph.plan import Plan, estimated_plan, plan_of
from talka.jobs.graph.predictions import predict_reading, predict_supersteps
from talka.jobs.graph.sample import needs_sample
from talka.jobs.graph.work import CheckpointFolder
from talka.machine import peak_memory_bytes

_UNREADABLE = (EdgeFileError, GraphError, pa.ArrowException, OSError)
_CUT_AS_IT_IS = ("bfs", "sssp", "pagerank")
"""These run over the very cut that predictions are made from, so it costs nothing more."""


class GraphJob:
    """A job: see `talka.jobs.base.Job`.

    Parameters
    ----------
    out, format
        The file that gets the answer, and what is written into it where its name does not say so;
        without one the answer is kept in `answer`.
    watch
        Hears every event, for whoever shows progress.
    """

    def __init__(
        self,
        config: GraphConfig,
        out: Path | None = None,
        *,
        format: str | None = None,
        resume: bool = False,
        force: bool = False,
        watch: Listener | None = None,
    ) -> None:
        self._config, self._out, self._resume = config, out, resume
        self._algorithm = ALGORITHMS[config.algorithm]
        self._watch = watch or (lambda event: None)
        self._graph: Graph | None = None
        self._plan: Plan | None = None
        self.name = f"graph-{config.algorithm}"
        self.config = {**config.resolved(), "out": str(out), "resume": resume}
        self.answer: Any = None
        self._unfinished: CheckpointFolder | None = None
        if out is not None:
            self._format = format_of_output(out, format)
            is_table = self._algorithm.runs_program
            check_answer_fits(config.algorithm, self._format, is_table=is_table)
            self._unfinished = CheckpointFolder(out, config.resolved(), resume=resume, force=force)
        elif resume:
            advice = "Checkpoints lie beside the output: give the --out of the run to continue."
            raise OptionError("--resume", "needs --out", advice)

    @property
    def can_be_resumed(self) -> bool:
        return self._unfinished is not None and self._unfinished.has_progress

    def make_plan(self, events: Stream) -> Plan:
        """Read and cut the graph, or a sample of a large one: `explain` can then say more."""
        plan = None
        if needs_sample(Path(self._config.input.edges)):
            # A sample can be wrong where the whole is right: a header may count all of its lines.
            with events.phase("graph/sample"), contextlib.suppress(*_UNREADABLE):
                plan = estimated_plan(self._config)
        if plan is None:
            self._graph = self._read(events)
            plan = plan_of(self._graph, self._config)
        self._plan = plan
        return plan

    def explain(self) -> list[Predicted]:
        """Predict from the size of the file; after `make_plan` the supersteps, too."""
        rows = predict_reading(self._config)
        if self._plan is not None and self._algorithm.runs_program:
            rows += predict_supersteps(self._config, self._plan)
        return rows

    def run(self, events: Stream) -> dict[str, Any]:
        seen = _Seen()
        with events.listening(seen.hear), events.listening(self._watch), self._work():
            graph = self._graph or self._read(events)
            self._predict(graph, events)
            self.answer = self._answer(graph, events)
            if self._out is not None:
                assert self._unfinished is not None
                self._unfinished.check_still_free()
                with events.phase("graph/write"):
                    write_answer(self.answer, self._out, self._format)
                self._unfinished.remove()
        return {
            "algorithm": self._config.algorithm,
            "num_vertices": graph.num_vertices,
            "num_edges": graph.num_edges,
            "num_rows": self.answer.num_rows if self._algorithm.runs_program else 0,
            **seen.totals(),
            "peak_memory_bytes": peak_memory_bytes(),
        }

    @contextlib.contextmanager
    def _work(self) -> Any:
        """The folder of checkpoints, as long as the job goes on."""
        if self._unfinished is None:
            yield
            return
        try:
            self._unfinished.open()
            yield
        finally:
            self._unfinished.close()

    def _read(self, events: Stream) -> Graph:
        given = self._config.input
        graph = Graph.from_edges(
            given.edges,
            directed=given.directed,
            drop_duplicates=given.drop_duplicates,
            drop_loops=given.drop_loops,
            format=given.file_format,
            events=events,
        )
        num_partitions = self._config.placement.num_partitions
        if num_partitions > max(1, graph.num_vertices):
            allowed = f"at most {max(1, graph.num_vertices):,}, as many as the graph has vertices"
            raise InvalidValueError("num_partitions", num_partitions, allowed)
        return graph

    def _predict(self, graph: Graph, events: Stream) -> None:
        """Predict the supersteps now that the graph is known, unless that was done before."""
        is_known = self._plan is not None and not self._plan.is_estimate
        if not is_known and self._config.algorithm in _CUT_AS_IT_IS:
            with events.phase("graph/plan"):
                self._plan = plan_of(graph, self._config)
            for row in predict_supersteps(self._config, self._plan):
                events.emit(row)

    def _answer(self, graph: Graph, events: Stream) -> Any:
        if not self._algorithm.runs_program:
            return self._algorithm.function(graph)
        placement = self._config.placement
        with engine_by_name(placement.engine, events) as engine:
            options = RunOptions(
                engine=engine,
                num_partitions=placement.num_partitions,
                partitioning=placement.partitioning,
                checkpoint_dir=None if self._unfinished is None else self._unfinished.path,
                checkpoint_every=placement.checkpoint_every,
                resume=self._resume,
                events=events,
            )
            given = arguments_for(self._config, graph)
            return self._algorithm.function(graph, **given, options=options)


def arguments_for(config: GraphConfig, graph: Graph) -> dict[str, Any]:
    """What the algorithm is called with, besides the graph and its options."""
    arguments = config.arguments
    given: dict[str, Any] = {
        "damping": arguments.damping,
        "num_supersteps": arguments.num_supersteps,
        "tolerance": arguments.tolerance,
    }
    if arguments.source:
        name = "source" if ALGORITHMS[config.algorithm].needs_source else "sources"
        given[name] = _ids(arguments.source, graph)
    return {name: value for name, value in given.items() if value is not None}


def _ids(typed: Sequence[str], graph: Graph) -> list[int | str]:
    """Ids as the graph has them; what is no number is left for the graph to refuse."""
    if graph.ids.are_strings:
        return list(typed)
    return [int(text) if text.lstrip("-").isdecimal() else text for text in typed]


class _Seen:
    """Adds up what happens."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._supersteps: list[SuperstepDone] = []
        self._notes: list[str] = []

    def hear(self, event: Event) -> None:
        if isinstance(event, Noted):
            self._notes.append(event.message)
        if isinstance(event, SuperstepDone):
            self._supersteps.append(event)
        if isinstance(event, Measured) and event.cost_id.startswith("graph/"):
            self._seconds[event.cost_id] = self._seconds.get(event.cost_id, 0.0) + (
                event.seconds or 0.0
            )

    def totals(self) -> dict[str, Any]:
        seconds = sum(one.seconds for one in self._supersteps)
        edges = sum(one.edges for one in self._supersteps)
        return {
            "num_supersteps": len(self._supersteps),
            "sent_bytes": sum(one.sent_bytes for one in self._supersteps),
            "edges_per_s": edges / seconds if seconds else None,
            "seconds": self._seconds,
            "notes": self._notes,
        }
