"""Which program may resume from a checkpoint: the same code, and built-in programs of any version."""

import gzip
from pathlib import Path
from types import FunctionType
from typing import ClassVar

import numpy as np
import pytest

from talka.errors import SavedStateError
from talka.events import Stream
from talka.graph import EdgeProgram, Graph, RunOptions, VertexProgram, run_program
from talka.graph.events import SuperstepDone
from talka.graph.programs.identity import identity, parts_of_edge_program, parts_of_vertex_program
from talka.graph.supersteps.edge_tasks import plan_of

FORMER = Path(__file__).parent / "former"  # checkpoints that the first version wrote

STEP = 2
ADDED = np.arange(3)


def helper(values):
    return values + STEP


class Counting(VertexProgram):
    columns: ClassVar = {"value": np.int64}
    num_supersteps = 4
    limit = 10

    def __init__(self, start=0, table=None):
        self.start, self.table = start, table

    def compute(self, step):
        step["value"] = helper(step["value"]) + self.start
        step.vote_to_halt(step["value"] > self.limit)


def parts(program):
    return [str(part) for part in parts_of_vertex_program(program)]


def edited(**members):
    """`Counting` after an edit: the same name, other members."""
    kind = type("Counting", (VertexProgram,), {**vars(Counting), **members})
    assert (kind.__module__, kind.__qualname__) == (Counting.__module__, "Counting")
    return kind()


def other_compute(self, step):
    step["value"] = helper(step["value"]) - self.start
    step.vote_to_halt(step["value"] > self.limit)


def other_constant(self, step):
    step["value"] = helper(step["value"]) + self.start
    step.vote_to_halt(step["value"] > 10)


def with_default(self, step, more=1):
    step["value"] = helper(step["value"]) + self.start


def with_another_default(self, step, more=2):
    step["value"] = helper(step["value"]) + self.start


def enclosing(amount):
    def compute(self, step):
        step["value"] = step["value"] + amount

    return compute


def copied(function, **names):
    """The same code in a module in which some names have other values."""
    return FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__)


DIFFERENT = {
    "as it was": edited(),
    "another line": edited(compute=other_compute),
    "another constant": edited(compute=other_constant),
    "another class variable": edited(limit=11),
    "another column": edited(columns={"value": np.int32}),
    "another method": edited(until=lambda self, aggregates: bool(aggregates)),
    "a default": edited(compute=with_default),
    "another default": edited(compute=with_another_default),
    "something enclosed": edited(compute=enclosing(1)),
    "something else enclosed": edited(compute=enclosing(2)),
    "another global number": edited(
        compute=copied(Counting.compute, helper=copied(helper, STEP=3))
    ),
    "another helper": edited(compute=copied(Counting.compute, helper=lambda values: values)),
    "another parameter": Counting(start=1),
    "an array": Counting(table=np.zeros(2_000)),
    "another array in the middle": Counting(table=np.eye(1, 2_000, 1_000)[0]),
}


def test_any_edit_makes_another_program():
    texts = {name: "\n".join(parts(program)) for name, program in DIFFERENT.items()}
    assert len(set(texts.values())) == len(texts)
    assert parts(Counting()) == parts(Counting())
    assert parts(Counting(table=np.zeros(9))) == parts(Counting(table=np.zeros(9)))


def test_a_program_that_did_not_change_is_the_same_wherever_its_lines_are():
    moved = FunctionType(Counting.compute.__code__.replace(co_firstlineno=900), globals())
    assert parts(edited(compute=moved)) == parts(edited(compute=copied(Counting.compute)))


def test_a_program_that_refers_to_itself_is_described():
    def compute(self, step):
        compute.calls += 1

    compute.calls = 0
    assert "(itself)" in parts(edited(compute=compute))[2]


class Stopped(Exception):
    pass


class Stopping(Stream):
    def emit(self, event):
        super().emit(event)
        if isinstance(event, SuperstepDone) and event.superstep == 2:
            raise Stopped


def test_an_edited_program_does_not_resume(tmp_path):
    graph = Graph.from_edges(([0, 1, 2], [1, 2, 0]))
    saved = {"checkpoint_dir": tmp_path, "checkpoint_every": 1}
    with pytest.raises(Stopped):
        run_program(graph, Counting(), RunOptions(**saved, events=Stopping()))
    resumed = RunOptions(**saved, resume=True)
    with pytest.raises(SavedStateError, match="or the program was edited"):
        run_program(graph, edited(compute=other_compute), resumed)
    assert run_program(graph, Counting(), resumed).values.tolist() == [10, 10, 10]


def small_graph():
    sources, targets = np.arange(30) * 7 % 13, (np.arange(30) * 5 + 3) % 17
    return Graph.from_edges((sources, targets), 1.0 + np.arange(30) % 4)


ALGORITHMS = {  # superstep of the checkpoint, partitions, what was called
    "bfs": (1, 1, "ranges", lambda graph, options: graph.bfs(0, options=options)),
    "sssp": (0, 2, "hash", lambda graph, options: graph.sssp(0, options=options)),
    "pagerank": (1, 2, "vertex_cut", lambda graph, options: graph.pagerank(options=options)),
    "components": (1, 2, "hash", lambda graph, options: graph.components(options=options)),
    "communities": (1, 2, "hash", lambda graph, options: graph.communities(options=options)),
    "cores": (1, 2, "hash", lambda graph, options: graph.cores(options=options)),
    "triangles": (1, 2, "hash", lambda graph, options: graph.triangles(options=options)),
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_algorithms_resume_from_checkpoints_of_the_first_version(name, tmp_path):
    superstep, num_partitions, how, call = ALGORITHMS[name]
    graph = small_graph()
    written = gzip.decompress((FORMER / f"{name}.checkpoint.gz").read_bytes())
    (tmp_path / f"superstep-{superstep:09}.checkpoint").write_bytes(written)
    done = []
    events = Stream()
    events.emit = done.append
    options = RunOptions(
        num_partitions=num_partitions, partitioning=how, checkpoint_dir=tmp_path, resume=True,
        events=events,
    )  # fmt: skip
    expected = call(graph, RunOptions(num_partitions=num_partitions, partitioning=how))
    assert call(graph, options).equals(expected)
    first = next(event for event in done if isinstance(event, SuperstepDone))
    assert first.superstep == superstep


def edge_parts(**functions):
    program = EdgeProgram(
        **{
            "initial": lambda: 0.0,
            "message": lambda value, superstep: value + superstep,
            "combine": "sum",
            "update": lambda combined: combined,
            "num_supersteps": 3,
            **functions,
        }
    )
    plan = plan_of(program, offset_type="uint32", compiled=False, alone=False)
    return identity(small_graph(), (1, "ranges"), parts_of_edge_program(program, plan))


def test_the_identity_of_an_edge_program_is_that_of_the_first_version():
    program = {
        "message": lambda value, weight: value + weight,
        "combine": lambda a, b: max(a, b),
        "identity": -np.inf,
        "active": lambda old, value: value > old,
    }
    assert edge_parts(**program)[:16] == "9398764b625d3ce6"


def test_an_edge_program_is_known_by_its_functions():
    assert edge_parts() == edge_parts()
    assert edge_parts() != edge_parts(update=lambda combined: 2 * combined)
    assert edge_parts() != edge_parts(update=lambda combined, out_degree: combined)
