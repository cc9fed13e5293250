import pytest

from talka.data.text import Resources, resources


@pytest.mark.parametrize("available, taken", [(150_000_000, 75_000_000), (64 * 10**9, 2 * 10**9)])
def test_no_more_than_half_of_the_available_memory_is_taken(monkeypatch, available, taken):
    monkeypatch.setattr(resources, "available_memory_bytes", lambda: available)
    assert Resources().memory_bytes == taken
    assert Resources(memory_bytes=5).memory_bytes == 5
