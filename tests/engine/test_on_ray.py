"""Properties of the engine on Ray only: machines that die, placement, wrong addresses."""

import os
import re
import subprocess
import sys
import threading

import numpy as np
import psutil
import pytest

from talka.errors import GangError
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

BIG = 200_000  # values; Ray keeps small outputs with the driver, where they cannot be lost with a machine


@pytest.fixture
def engine(ray_cluster, recorder):
    from talka.engine import OnRay

    with OnRay(ray_cluster.address, events=recorder) as engine:
        yield engine


def place():
    import ray

    return ray.get_runtime_context().get_node_id()


def lie_somewhere():
    """Take long enough that Ray gives the next task to another machine."""
    import threading

    threading.Event().wait(0.3)
    return place(), np.ones(BIG)


def placed_on(engine, machine):
    """Return an output on this machine: one of many that the scheduler spread."""
    for _ in range(20):
        pairs = [engine.submit(lie_somewhere, num_outputs=2, name="seed") for _ in range(8)]
        places = engine.fetch([where for where, _ in pairs])
        if machine in places:
            return pairs[places.index(machine)][1]
    raise AssertionError("the scheduler never used this machine")


def test_near_runs_on_the_machine_of_the_input(engine, extra_machine):
    data = placed_on(engine, extra_machine.node_id)
    places = {engine.fetch(engine.submit(place, near=data)) for _ in range(5)}
    assert places == {extra_machine.node_id}


def test_large_constants_are_sent_to_machines_in_turn(engine):
    data = np.ones(BIG)
    places = [engine.fetch(engine.submit(lambda _: place(), data)) for _ in range(6)]
    assert places[:3] == places[3:]
    assert len(set(places)) == 3


def test_near_is_only_a_hint(engine, ray_cluster, extra_machine):
    data = placed_on(engine, extra_machine.node_id)
    ray_cluster.remove_node(extra_machine, allow_graceful=False)
    assert engine.fetch(engine.submit(place, near=data)) != extra_machine.node_id


def test_a_killed_machine_loses_only_its_own_outputs(engine, recorder, ray_cluster, extra_machine):
    """Test lost -> after -> end, kept -> end: only outputs of the dead machine run again."""
    home = placed_on(engine, ray_cluster.head_node.node_id)
    kept = engine.submit(lambda: np.full(BIG, 2.0), near=home, name="kept")
    engine.wait([kept])
    seed = placed_on(engine, extra_machine.node_id)
    lost = engine.submit(lambda x: x * 3, seed, near=seed, name="lost")
    after = engine.submit(lambda x: x + 1, lost, near=seed, name="after")
    engine.wait([after])  # not fetched, as that would leave a copy in the driver
    engine.release(seed)
    assert {engine._places[ref.id] for ref in (lost, after)} == {extra_machine.node_id}
    assert engine._places[kept.id] != extra_machine.node_id
    ray_cluster.remove_node(extra_machine, allow_graceful=False)
    end = engine.submit(lambda x, y: x + y, after, kept, name="end")
    np.testing.assert_array_equal(engine.fetch(end), np.full(BIG, 6.0))
    assert recorder.again() == ["after", "lost", "seed"]
    engine.close()
    runs = [recorder.num_runs(name) for name in ("kept", "lost", "after", "end")]
    assert runs == [1, 2, 2, 1]


def test_a_task_on_a_machine_that_dies_runs_on_another(
    engine, recorder, ray_cluster, extra_machine, tmp_path
):
    seed = placed_on(engine, extra_machine.node_id)

    def work(x):
        import threading

        mark = tmp_path / place()
        mark.touch()
        if mark.name == extra_machine_id:
            threading.Event().wait()
        return mark.name

    extra_machine_id = extra_machine.node_id
    ref = engine.submit(work, seed, near=seed, name="work")
    while not (tmp_path / extra_machine_id).exists():
        engine.wait([ref], timeout_s=0.05)
    ray_cluster.remove_node(extra_machine, allow_graceful=False)
    assert engine.fetch(ref) != extra_machine_id
    assert "work" in recorder.again()


def test_a_gang_spreads_over_machines(engine):
    """Ranks of one machine have one parent."""
    parents = engine.gang(lambda worker: os.getppid(), size=3, backend=None)
    assert len(set(parents)) == 3


def report_losses(worker, folder):
    """Leave a mark, and return the ranks that were lost once there is one."""
    (folder / f"{worker.rank}-{os.getpid()}").touch()
    heard = threading.Event()
    worker.losses.add_listener(lambda rank, how: heard.set())
    heard.wait()
    return sorted(worker.losses.ranks)


def processes_of(folder, size):
    """Wait until all ranks have left their mark; return their processes by rank."""
    wait_until(lambda: len(list(folder.iterdir())) == size)
    pairs = (path.name.split("-") for path in folder.iterdir())
    return {int(rank): psutil.Process(int(process)) for rank, process in pairs}


def test_a_machine_that_dies_is_reported_to_the_ranks_of_others(
    engine, ray_cluster, extra_machine, tmp_path
):
    gang = engine.start_gang(
        report_losses, tmp_path, size=4, backend=None, on_failure="report", timeout_s=100
    )
    processes = processes_of(tmp_path, 4)
    ray_cluster.remove_node(extra_machine, allow_graceful=False)
    results = gang.wait()
    [lost] = [rank for rank, result in enumerate(results) if isinstance(result, GangError)]
    assert [result for rank, result in enumerate(results) if rank != lost] == [[lost]] * 3
    assert "died" in results[lost].how
    assert psutil.wait_procs(processes.values(), timeout=60)[1] == []


def test_an_actor_that_is_killed_ends_its_ranks_and_the_next_gang_has_another(engine, tmp_path):
    import ray

    gang = engine.start_gang(report_losses, tmp_path, size=3, backend=None, timeout_s=100)
    processes = processes_of(tmp_path, 3)
    ray.kill(engine._hosts.of(next(iter(engine._hosts._actors))))
    with pytest.raises(GangError, match=r"rank . of 3 died \(.*actor"):
        gang.wait()
    assert psutil.wait_procs(processes.values(), timeout=60)[1] == []
    assert engine.gang(lambda worker: worker.rank, size=3, backend=None) == [0, 1, 2]


def test_a_gang_larger_than_the_cluster_is_refused_at_once(engine):
    from talka.errors import ClusterError

    with pytest.raises(
        ClusterError, match="a gang of 99 ranks needs 99 cores, but the cluster has"
    ):
        engine.gang(lambda worker: None, size=99)


def test_two_engines_share_a_connection(engine, ray_cluster):
    from talka.engine import OnRay

    with OnRay(ray_cluster.address) as second:
        assert second.fetch(second.submit(lambda: 1)) == 1
    assert engine.fetch(engine.submit(lambda: 2)) == 2


def test_a_second_cluster_in_one_process_is_refused(engine):
    from talka.engine import OnRay
    from talka.errors import ClusterError

    with pytest.raises(ClusterError, match="is connected to Ray at .* already"):
        OnRay("127.0.0.1:1")


def test_a_large_function_is_sent_once(engine):
    weights = np.ones(50_000)
    refs = [engine.submit(lambda i: float(weights[i]), i) for i in range(5)]
    assert engine.fetch(refs) == [1.0] * 5
    assert len(engine._functions) == 1


OTHER_VERSION = """
import sys
from talka.engine import OnRay
from talka.errors import ClusterError
import ray
right, ray.__version__ = ray.__version__, "0.0.1"
try:
    OnRay(sys.argv[1])
except ClusterError as error:
    print(right, ray.is_initialized(), error)
"""


def test_a_ray_of_another_version_is_reported_with_both_versions(ray_cluster):
    """Run in another process, as this one is connected to Ray."""
    done = subprocess.run(
        [sys.executable, "-c", OTHER_VERSION, ray_cluster.address],
        stdout=subprocess.PIPE,
        text=True,
        timeout=250,
        check=True,
    )
    right, is_connected, problem = done.stdout.split(maxsplit=2)
    assert is_connected == "False"
    assert re.search(f"{re.escape(right)}.*0.0.1.*same versions", problem)
