"""Graph programs on Ray machines: the same bits, topology that stays, and a machine that goes."""

import time
from collections import Counter

import numpy as np
import pytest

from talka.engine import Embedded
from talka.engine.lineage import OutputId
from talka.events import TaskAgain
from talka.graph import Graph, RunOptions, run_program
from tests.engine.engines import Recorder
from tests.graph.programs import PROGRAMS
from tests.graph.vertex_programs import VERTEX_PROGRAMS

pytestmark = pytest.mark.slow
ALL = {**PROGRAMS, **VERTEX_PROGRAMS}
NUM_PARTITIONS = 3


def graph_of(size, num_edges, seed=1):
    random = np.random.default_rng(seed)
    ends = random.integers(0, size, (2, num_edges))
    return Graph.from_edges(tuple(ends), random.integers(1, 9, num_edges).astype(float))


SMALL = graph_of(60, 200)


@pytest.fixture(scope="module")
def large():
    """Values and mails of a partition exceed 100 kB: less, Ray keeps with the driver."""
    return graph_of(45_000, 500_000)


@pytest.fixture(scope="module")
def on_ray(ray_cluster):
    from talka.engine import OnRay

    with OnRay(ray_cluster.address) as engine:
        yield engine


def run(engine, graph, program, **given):
    outcome = run_program(graph, program, RunOptions(engine=engine, **given))
    columns = [column.tobytes() for column in outcome.columns.values()]
    return columns, len(outcome.supersteps)


def expected(graph, program, **given):
    with Embedded(threads=2) as engine:
        return run(engine, graph, program, **given)


def wait_until_noticed(machine):
    """What Ray asks a dead machine for before that, it waits for up to 10 seconds."""
    import ray

    deadline_s = time.monotonic() + 100
    while any(one["NodeID"] == machine.node_id and one["Alive"] for one in ray.nodes()):
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def watched(*args, **given):
    """Ray's engine that knows of which partition a task is, and may lose a machine."""
    from talka.engine import OnRay

    class Watched(OnRay):
        pinned = OutputId(-1)

        def __init__(self, cluster, *, machine=None, partitions=(), superstep=None, events=None):
            super().__init__(cluster.address, events=events)
            self.cluster, self.machine, self.partitions = cluster, machine, partitions
            self.superstep = superstep
            self.counts = Counter()
            self.partition_of = {}
            self.machines = {}
            """Of each task's first output: where it ran first."""

        def submit(self, function, *inputs, **given):
            name = given.get("name")
            index = self.counts[name] % NUM_PARTITIONS
            self.counts[name] += 1
            if name == "place" and index in self.partitions:
                self._places[self.pinned] = self.machine.node_id
            refs = super().submit(function, *inputs, **given)
            self._places.pop(self.pinned, None)
            self.partition_of[self._lineage.producer_of(refs[0].id)] = index
            return refs

        def _launch(self, task):
            if self.pinned in self._places:
                task.near = self.pinned
            super()._launch(task)

        def _finished(self, task):
            self.machines.setdefault((task.id, task.name), self._places[task.outputs[0]])
            super()._finished(task)

        def fetch(self, refs):
            submitted = self.counts["superstep"]
            if self.superstep is not None and submitted == NUM_PARTITIONS * (self.superstep + 1):
                self.superstep = None
                self.wait(refs)
                self.cluster.remove_node(self.machine, allow_graceful=False)
                wait_until_noticed(self.machine)
            return super().fetch(refs)

        def places_of(self, name):
            """For each partition the machines that ran tasks of this name."""
            found = [set() for _ in range(NUM_PARTITIONS)]
            for (task, named), machine in self.machines.items():
                if named == name:
                    found[self.partition_of[task]].add(machine)
            return found

    return Watched(*args, **given)


@pytest.mark.parametrize("num_partitions", [2, 3])
@pytest.mark.parametrize("name", ALL)
def test_ray_gives_the_bits_of_the_embedded_engine(on_ray, name, num_partitions):
    given = {"num_partitions": num_partitions, "partitioning": "hash"}
    assert run(on_ray, SMALL, ALL[name](), **given) == expected(SMALL, ALL[name](), **given)


def test_ray_gives_the_same_bits_under_a_vertex_cut(on_ray):
    given = {"num_partitions": 3, "partitioning": "vertex_cut"}
    program = PROGRAMS["pagerank"]()
    assert run(on_ray, SMALL, program, **given) == expected(SMALL, program, **given)


@pytest.mark.parametrize("name", ["pagerank", "ranks"])
def test_partitions_are_spread_and_topology_stays_where_it_is(ray_cluster, large, name):
    given = {"num_partitions": NUM_PARTITIONS}
    with watched(ray_cluster) as engine:
        assert run(engine, large, ALL[name](), **given) == expected(large, ALL[name](), **given)
        homes = engine.places_of("place")
        assert len(set.union(*homes)) == NUM_PARTITIONS, "one machine each"
        assert engine.places_of("superstep") == homes


@pytest.mark.parametrize(
    "name, how, partitions, superstep, every",
    [
        ("pagerank", "ranges", {1}, 3, None),
        ("pagerank", "ranges", {0, 1}, 4, 2),
        ("pagerank", "vertex_cut", {2}, 2, None),
        ("ranks", "hash", {0, 2}, 3, None),
        ("ranks", "hash", {1}, 4, 2),
    ],
)
def test_a_machine_that_goes_costs_only_its_own_partitions(
    ray_cluster, extra_machine, large, name, how, partitions, superstep, every
):
    recorder, program = Recorder(), ALL[name]()
    given = {"num_partitions": NUM_PARTITIONS, "partitioning": how, "checkpoint_every": every}
    with watched(
        ray_cluster,
        machine=extra_machine,
        partitions=partitions,
        superstep=superstep,
        events=recorder,
    ) as engine:
        assert run(engine, large, program, **given) == expected(large, program, **given)
        assert extra_machine not in ray_cluster.worker_nodes
        homes = engine.places_of("place")
        lost = {index for index, home in enumerate(homes) if home == {extra_machine.node_id}}
        assert lost >= partitions
        again = [event for event in recorder.events if isinstance(event, TaskAgain)]
        assert {engine.partition_of[event.task] for event in again} == lost
        replayed = Counter(event.name for event in again)["superstep"] / len(lost)
    if every is None:
        assert replayed == superstep + 1
    else:  # the one that was lost, and what was saved, unless the driver still has a copy
        assert 1 <= replayed <= 2
