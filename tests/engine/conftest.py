import pytest

from tests.engine.engines import Recorder, open_engine


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture(params=["embedded", pytest.param("ray", marks=pytest.mark.slow)])
def engine(request, recorder):
    """Provide each engine in turn, and close it after the test."""
    with open_engine(request.param, request, recorder) as engine:
        yield engine
