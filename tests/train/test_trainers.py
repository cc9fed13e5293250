"""Features of the hook that trainers need, on two ranks: states as dicts, and a scaler."""

import pytest

from talka.engine import Embedded
from tests.train import trainer_ranks

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outcomes():
    with Embedded() as engine:
        yield engine.gang(trainer_ranks.all_of_them, size=2)


def test_a_state_dict_of_each_rank_continues_to_the_bit(outcomes):
    [[straight, again, _], _], [[_, other, _], _] = outcomes
    assert straight == again == other


def test_a_state_dict_of_another_rank_or_step_is_refused_on_all_ranks(outcomes):
    first, second = [refusals for [_, _, refusals], _ in outcomes]
    assert "was refused on rank 1; see the error there" in first[0]
    assert "was saved by rank 0, but this is rank 1; every rank must save its own" in second[0]
    mixed = "mixes files of several saves (rank 0 has step 4, rank 1 has step 5)"
    assert mixed in first[1]
    assert mixed in second[1]


def test_all_ranks_skip_the_step_in_which_one_has_an_infinite_gradient(outcomes):
    _, [first, scale, loss, is_finite] = outcomes[0]
    _, [second, *_] = outcomes[1]
    assert first == second
    assert scale == 32
    assert loss < 1.2  # all five classes alike would be 1.61
    assert is_finite
