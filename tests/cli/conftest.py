import pytest


@pytest.fixture(autouse=True)
def _no_width(monkeypatch):
    """Tables are as wide as in a file, whatever the terminal is like that runs the tests."""
    monkeypatch.delenv("COLUMNS", raising=False)
