"""Graph programs on Ray: same bits as locally, partitions stay in place, a machine is lost."""

import time
from collections import Counter

import numpy as np
import pytest

from talka.engine import Embedded
from talka.engine.events import TaskAgain
from talka.engine.lineage import OutputId
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
    """A graph with values and mails above 100 kB per partition: Ray keeps less in the driver."""
    return graph_of(45_000, 500_000)


@pytest.fixture(scope="module")
def on_ray(ray_cluster):
    from talka.engine import OnRay

    with OnRay(ray_cluster.address) as engine:
        yield engine


def run(engine, graph, program, **options):
    outcome = run_program(graph, program, RunOptions(engine=engine, **options))
    columns = [column.tobytes() for column in outcome.columns.values()]
    return columns, len(outcome.supersteps)


def expected(graph, program, **options):
    with Embedded(threads=2) as engine:
        return run(engine, graph, program, **options)


def wait_until_noticed(machine):
    """Wait until Ray notices a dead machine; requests to it before take up to 10 seconds."""
    import ray

    deadline_s = time.monotonic() + 100
    while any(node["NodeID"] == machine.node_id and node["Alive"] for node in ray.nodes()):
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def watched(*args, **options):
    """Return an engine on Ray that records the partition of each task, and may lose a machine."""
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
            """Machine that first ran each task, by task and name."""

        def submit(self, function, *inputs, **options):
            name = options.get("name")
            index = self.counts[name] % NUM_PARTITIONS
            self.counts[name] += 1
            if name == "place" and index in self.partitions:
                self._places[self.pinned] = self.machine.node_id
            refs = super().submit(function, *inputs, **options)
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
            """Return for each partition the machines that ran tasks of this name."""
            machines = [set() for _ in range(NUM_PARTITIONS)]
            for (task, task_name), machine in self.machines.items():
                if task_name == name:
                    machines[self.partition_of[task]].add(machine)
            return machines

    return Watched(*args, **options)


@pytest.mark.parametrize("num_partitions", [2, 3])
@pytest.mark.parametrize("name", ALL)
def test_ray_gives_the_bits_of_the_embedded_engine(on_ray, name, num_partitions):
    options = {"num_partitions": num_partitions, "partitioning": "hash"}
    assert run(on_ray, SMALL, ALL[name](), **options) == expected(SMALL, ALL[name](), **options)


def test_ray_gives_the_same_bits_under_a_vertex_cut(on_ray):
    options = {"num_partitions": 3, "partitioning": "vertex_cut"}
    program = PROGRAMS["pagerank"]()
    assert run(on_ray, SMALL, program, **options) == expected(SMALL, program, **options)


@pytest.mark.parametrize("name", ["pagerank", "ranks"])
def test_partitions_are_spread_and_topology_stays_where_it_is(ray_cluster, large, name):
    options = {"num_partitions": NUM_PARTITIONS}
    with watched(ray_cluster) as engine:
        assert run(engine, large, ALL[name](), **options) == expected(large, ALL[name](), **options)
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
    options = {"num_partitions": NUM_PARTITIONS, "partitioning": how, "checkpoint_every": every}
    with watched(
        ray_cluster,
        machine=extra_machine,
        partitions=partitions,
        superstep=superstep,
        events=recorder,
    ) as engine:
        assert run(engine, large, program, **options) == expected(large, program, **options)
        assert extra_machine not in ray_cluster.worker_nodes
        homes = engine.places_of("place")
        lost = {index for index, home in enumerate(homes) if home == {extra_machine.node_id}}
        assert lost >= partitions
        again = [event for event in recorder.events if isinstance(event, TaskAgain)]
        assert {engine.partition_of[event.task] for event in again} == lost
        replayed = Counter(event.name for event in again)["superstep"] / len(lost)
    if every is None:
        assert replayed == superstep + 1
    else:  # the lost superstep and the saved one, unless the driver still has a copy
        assert 1 <= replayed <= 2
