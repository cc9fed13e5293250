"""Addresses that lead to no cluster; `tests/conftest.py` checks that no connection is left."""

import socket

import pytest

from talka.engine import OnRay
from talka.errors import ClusterError

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "address, problem",
    [
        ("nonsense", "this is not HOST:PORT"),
        ("127.0.0.1:notaport", "this is not HOST:PORT"),
        ("127.0.0.1:99999", "this is not HOST:PORT"),
        ("no-such-host.invalid:6379", "no server responds"),
    ],
)
def test_a_wrong_address_is_reported_at_once(address, problem):
    with pytest.raises(ClusterError, match=problem) as caught:
        OnRay(address)
    assert "ray start --head" in str(caught.value)


def test_a_port_without_a_server_is_reported_at_once():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ClusterError, match="no server responds"):
        OnRay(f"ray://127.0.0.1:{port}")
