"""Rhythms on machines of a Ray cluster."""

import pytest

from talka.engine.on_ray.engine import OnRay
from tests.train.rhythms import rhythm_ranks as ranks

pytestmark = pytest.mark.slow


def test_workers_on_ray_average_their_models(ray_cluster):
    options = {"every": 5, "compressor": "uniform:3/max/512+ef", "outer": "nesterov:0.7/0.5"}
    with OnRay(ray_cluster.address) as engine:
        outcomes = engine.gang(ranks.run, "LocalSGD", options, size=2, backend=None)
    assert outcomes[0][0] == outcomes[1][0]
    assert [rounds for _, _, rounds in outcomes] == [3, 3]
    assert outcomes[0][1]["sent_bytes"] > 0
