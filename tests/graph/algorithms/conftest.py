"""Engines shared by all tests here: starting one takes longer than most runs."""

import pytest

from talka.engine import Embedded


@pytest.fixture(scope="session")
def embedded():
    with Embedded(threads=2) as engine:
        yield engine


@pytest.fixture(scope="module")  # it ends before the Ray that it is connected to
def on_ray(ray_cluster):
    from talka.engine import OnRay

    with OnRay(ray_cluster.address) as engine:
        yield engine
