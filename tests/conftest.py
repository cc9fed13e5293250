"""Fixtures that several folders share. Ray takes seconds to start, so all tests share one."""

import contextlib
import os
import signal
import sys
from pathlib import Path

import hypothesis
import pytest

from tests.groups import Groups, check_name, needs_ray, place_of
from tests.turns import turn

# A test may be slow on a busy machine: that is not a failure.
hypothesis.settings.register_profile("talka", deadline=None)
hypothesis.settings.load_profile("talka")
# The worker processes and Ray's workers must find the same modules as the tests.
os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[1]))
# A shell has what it starts in the background ignore Ctrl+C, and that is inherited. Tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with turn(alone=item.get_closest_marker("alone") is not None):
        return (yield)


def pytest_xdist_make_scheduler(config, log):
    return Groups(config, log)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: place_of(item.nodeid))
    for item in items:
        check_name(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    try:
        return (yield)
    finally:
        if needs_ray(item.nodeid) and (nextitem is None or not needs_ray(nextitem.nodeid)):
            _ray.close()  # not at the end of the session: idle daemons slow down all other tests
            _check_disconnected(item)
        if not needs_ray(item.nodeid):
            _check_disconnected(item)


def _check_disconnected(item):
    """A connection that a test leaves behind is one that the next test would use by mistake."""
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        ray.shutdown()
        pytest.fail(f"{item.nodeid} left a connection to Ray", pytrace=False)


_ray = contextlib.ExitStack()  # what ends the shared Ray
RAY_MACHINE = {"num_cpus": 1, "node_ip_address": "127.0.0.2", "object_store_memory": 200_000_000}


@pytest.fixture(scope="session")
def lab_works():
    """Skips where a lab cannot be built. Root can build one: there a failure is a failure."""
    from talka.errors import LabError
    from talka.lab import Lab, LabConfig

    try:
        with Lab(LabConfig(num_hosts=1, rate_bits_per_s=1e9)):
            pass
    except LabError as error:
        if os.getuid() == 0:
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def quotas_work(lab_works):
    """Skips where hosts of a lab cannot have processor quotas: without root, or without groups."""
    from talka.errors import LabError
    from talka.lab import Lab, LabConfig

    try:
        with Lab(LabConfig(num_hosts=1, rate_bits_per_s=1e9, cores=0.5)):
            pass
    except LabError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def ray_cluster():
    """Three Ray machines of one core each, on loopback, that notice a death within a second."""
    from talka.engine.on_ray.engine import OnRay  # noqa: I001  # it sets up the key before ray is imported

    from ray.cluster_utils import Cluster

    quick = {
        "health_check_initial_delay_ms": 500,
        "health_check_period_ms": 200,
        "health_check_timeout_ms": 1000,
        "health_check_failure_threshold": 3,
    }
    cluster = Cluster(
        initialize_head=True,
        head_node_args={**RAY_MACHINE, "_system_config": quick, "include_dashboard": False},
    )
    with _ray:
        _ray.callback(cluster.shutdown)
        for _ in range(2):
            cluster.add_node(**RAY_MACHINE)
        cluster.wait_for_nodes()
        # Engines of all tests share this connection, and so Ray's worker processes: those of a
        # connection of their own would have to start, and import everything, for each test.
        _ray.enter_context(OnRay(cluster.address))
        yield cluster


@pytest.fixture
def extra_machine(ray_cluster):
    """One more machine, that a test may remove."""
    machine = ray_cluster.add_node(**RAY_MACHINE)
    ray_cluster.wait_for_nodes()
    yield machine
    if machine in ray_cluster.worker_nodes:
        ray_cluster.remove_node(machine)
