import pytest

from tests.one_rank import one_rank


@pytest.fixture
def alone():
    """This process is the only rank."""
    with one_rank():
        yield
