"""The plan of a graph algorithm: read edges, run an algorithm, write a value for every vertex.

    file -> graph -> partitions -> supersteps -> FILE

Checkpoints are saved in FILE.unfinished, and `resume` continues from the last one.
"""

import contextlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from talka.data.writing import check_answer_fits, format_of_output, write_answer
from talka.engine.by_name import engine_by_name
from talka.errors import EdgeFileError, GraphError, InvalidValueError, OptionError
from talka.events import Event, Measured, Noted, Stream
from talka.events.stream import Listener
from talka.graph import Graph, RunOptions
from talka.graph.algorithms import ALGORITHMS
from talka.graph.events import SuperstepDone
from talka.graph.programs.kernel_cache import remember_compiled
from talka.jobs.graph.arguments import arguments_for
from talka.jobs.graph.config import GraphConfig
from talka.jobs.graph.layout import GraphLayout, estimated_layout, layout_of
from talka.jobs.graph.predictions import predict_compiling, predict_reading, predict_supersteps
from talka.jobs.graph.sample import needs_sample
from talka.jobs.graph.work import CheckpointFolder
from talka.machine import peak_memory_bytes
from talka.plans import Part

_UNREADABLE = (EdgeFileError, GraphError, pa.ArrowException, OSError)
_USES_PLANNED_CUT = ("bfs", "sssp", "pagerank")
"""Algorithms that run on the partitions that predictions are made from, so a plan costs little."""


class GraphPlan:
    """A graph algorithm on a file of edges, as a `talka.plans.Plan`.

    Parameters
    ----------
    out, format
        The output file, and its format if the suffix of the file does not determine it. Without
        `out` the answer is kept in `answer`.
    watch
        Called with every event, for showing progress.
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
        self._layout: GraphLayout | None = None
        self._planned: list[Measured | Noted] = []
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
            advice = "Checkpoints are next to the output: add the --out of the run to continue."
            raise OptionError("--resume", "needs --out", advice)

    @property
    def can_be_resumed(self) -> bool:
        """Whether a checkpoint was saved."""
        return self._unfinished is not None and self._unfinished.has_progress

    @property
    def planned_s(self) -> float:
        """Seconds of reading and building a small graph while planning."""
        costs = [event for event in self._planned if isinstance(event, Measured)]
        return sum(cost.seconds or 0.0 for cost in costs)

    def prepare(self, events: Stream) -> GraphLayout:
        """Read a graph, or a sample of a large one, so that supersteps can be predicted.

        What was read is not read again by `run`.
        """
        with events.listening(self._remember):
            if needs_sample(Path(self._config.input.edges)):
                # A sample can be invalid although the file is valid: its header may count all lines.
                with events.phase("graph/sample"), contextlib.suppress(*_UNREADABLE):
                    self._layout = estimated_layout(self._config)
            if self._layout is None:
                self._graph = self._read(events)
                self._layout = layout_of(self._graph, self._config)
        return self._layout

    def explain(self) -> Part:
        """Predict reading from the size of the file and, after `prepare`, the supersteps."""
        parts = [*predict_reading(self._config, self._layout), *predict_compiling(self._config)]
        if self._layout is not None and self._algorithm.runs_program:
            parts.append(predict_supersteps(self._config, self._layout))
        return Part.of("graph", parts)

    def run(self, events: Stream) -> dict[str, Any]:
        totals = _Totals()
        with events.listening(totals.add), events.listening(self._watch), self._work_folder():
            for event in self._planned:
                events.emit(event)
            graph = self._graph or self._read(events)
            self._predict(graph, events)
            self.answer = self._answer(graph, events)
            remember_compiled(self._config.algorithm)
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
            **totals.result(),
            "peak_memory_bytes": peak_memory_bytes(),
        }

    def _remember(self, event: Event) -> None:
        """Keep what was measured and noted while planning, for the events of the run."""
        if isinstance(event, Measured | Noted) and event.cost_id != "graph/sample":
            self._planned.append(event)

    @contextlib.contextmanager
    def _work_folder(self) -> Any:
        """Hold the folder for checkpoints while the job runs."""
        if self._unfinished is None:
            yield
            return
        try:
            self._unfinished.open()
            yield
        finally:
            self._unfinished.close()

    def _read(self, events: Stream) -> Graph:
        source = self._config.input
        graph = Graph.from_edges(
            source.edges,
            directed=source.directed,
            drop_duplicates=source.drop_duplicates,
            drop_loops=source.drop_loops,
            format=source.file_format,
            events=events,
        )
        num_partitions = self._config.placement.num_partitions
        if num_partitions > max(1, graph.num_vertices):
            allowed = f"at most {max(1, graph.num_vertices):,}, the number of vertices"
            raise InvalidValueError("num_partitions", num_partitions, allowed)
        return graph

    def _predict(self, graph: Graph, events: Stream) -> None:
        """Predict the supersteps from the graph that was read, unless that was done before."""
        is_exact = self._layout is not None and not self._layout.is_estimate
        if not is_exact and self._config.algorithm in _USES_PLANNED_CUT:
            with events.phase("graph/plan"):
                self._layout = layout_of(graph, self._config)
            for event in predict_supersteps(self._config, self._layout).events():
                events.emit(event)

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
            arguments = arguments_for(self._config, graph)
            return self._algorithm.function(graph, **arguments, options=options)


class _Totals:
    """Totals over the events of a run, for its result."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._supersteps: list[SuperstepDone] = []
        self._notes: list[str] = []

    def add(self, event: Event) -> None:
        if isinstance(event, Noted):
            self._notes.append(event.message)
        if isinstance(event, SuperstepDone):
            self._supersteps.append(event)
        if isinstance(event, Measured) and event.cost_id.startswith("graph/"):
            self._seconds[event.cost_id] = self._seconds.get(event.cost_id, 0.0) + (
                event.seconds or 0.0
            )

    def result(self) -> dict[str, Any]:
        seconds = sum(superstep.seconds for superstep in self._supersteps)
        edges = sum(superstep.edges for superstep in self._supersteps)
        return {
            "num_supersteps": len(self._supersteps),
            "sent_bytes": sum(superstep.sent_bytes for superstep in self._supersteps),
            "edges_per_s": edges / seconds if seconds else None,
            "seconds": self._seconds,
            "notes": self._notes,
        }
