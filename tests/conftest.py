"""Fixtures that several folders share. Ray takes seconds to start, so all tests share one."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.turns import turn

# The worker processes and Ray's workers must find the same modules as the tests.
os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[1]))
# A shell has what it starts in the background ignore Ctrl+C, and that is inherited. Tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with turn(alone=item.get_closest_marker("alone") is not None):
        return (yield)


RAY_MACHINE = {"num_cpus": 1, "node_ip_address": "127.0.0.2", "object_store_memory": 200_000_000}


@pytest.fixture(scope="session")
def lab_works():
    """Skips where a lab cannot be built; as root, in CI, it can."""
    from talka.errors import LabError
    from talka.lab import Lab, LabConfig

    try:
        with Lab(LabConfig(num_hosts=1, rate_bits_per_s=1e9)):
            pass
    except LabError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def ray_cluster():
    """Three Ray machines of one core each, on loopback, that notice a death within a second."""
    if "ray" not in sys.modules:
        from talka.engine import on_ray  # noqa: F401  # sets up the key before ray is imported
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
    try:
        for _ in range(2):
            cluster.add_node(**RAY_MACHINE)
        cluster.wait_for_nodes()
        yield cluster
    finally:
        cluster.shutdown()


@pytest.fixture
def extra_machine(ray_cluster):
    """One more machine, that a test may remove."""
    machine = ray_cluster.add_node(**RAY_MACHINE)
    ray_cluster.wait_for_nodes()
    yield machine
    if machine in ray_cluster.worker_nodes:
        ray_cluster.remove_node(machine)
