import pytest

from tests.engine.engines import Recorder, open_engine


@pytest.fixture(scope="module", params=["embedded", pytest.param("ray", marks=pytest.mark.slow)])
def shared(request):
    """Provide each engine in turn to all tests of a module: the first gang of an engine is slow."""
    recorder = Recorder()
    with open_engine(request.param, request, recorder) as engine:
        yield engine


@pytest.fixture
def engine(shared):
    shared.events.events.clear()
    return shared
