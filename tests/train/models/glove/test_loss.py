import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.errors import InvalidValueError
from talka.train.models.glove import GloVe, GloVeConfig, fixed_sample, weight
from tests.train.models.glove.planted import all_pairs, in_blocks, planted


def test_weight_by_hand():
    assert weight(100.0) == 1
    assert weight(6.25) == pytest.approx(0.0625**0.75)  # 1/16, so 1/8
    assert weight(6.25) == pytest.approx(0.125)
    assert weight(1e9) == 1
    assert weight(5.0, x_max=10.0, alpha=0.0) == 1


@given(st.lists(st.floats(1e-4, 1e7), min_size=1, max_size=50), st.floats(0, 2))
def test_weight_grows_with_the_count_up_to_one(counts, alpha):
    weights = weight(np.sort(counts), alpha=alpha)
    assert np.all(np.diff(weights) >= 0)
    assert np.all((weights > 0) & (weights <= 1))


def test_loss_of_a_sample_by_brute_force():
    blocks = planted(5_000, num_words=200, block_edge=64)
    model = GloVe(200, 7, config=GloVeConfig(x_max=20.0, alpha=0.5))
    model.train_epoch(blocks)
    sample = fixed_sample(blocks, size=300)
    words, contexts = model._table[:200, 0].astype(float), model._table[200:, 0].astype(float)
    losses = []
    for row, col, count in zip(*sample, strict=True):
        predicted = words[row, :7] @ contexts[col, :7] + words[row, 7] + contexts[col, 8]
        losses.append(0.5 * min(1, (count / 20) ** 0.5) * (predicted - np.log(count)) ** 2)
    assert model.evaluate(sample) == pytest.approx(np.mean(losses), rel=1e-6)
    assert model.evaluate(sample) == model.evaluate(sample)


class TestFixedSample:
    def test_is_the_same_for_the_same_seed_only(self):
        blocks = planted(5_000, num_words=200, block_edge=64)
        first, again, other = (fixed_sample(blocks, size=100, seed=seed) for seed in (1, 1, 2))
        assert all(np.array_equal(*sides) for sides in zip(first, again, strict=True))
        assert not np.array_equal(first.rows, other.rows)

    @given(st.integers(1, 400), st.integers(0, 9), st.integers(1, 60))
    def test_holds_pairs_of_the_data_without_repetition(self, size, seed, block_edge):
        places = np.random.default_rng(seed).choice(2_500, 300, replace=False)
        counts = 1.0 + np.arange(300)
        blocks = in_blocks(
            places // 50, places % 50, counts, num_words=50, block_edge=block_edge, seed=seed
        )
        sample = fixed_sample(blocks, size=size, seed=seed)
        known = set(zip(*all_pairs(blocks), strict=True))
        drawn = set(zip(*sample, strict=True))
        assert len(drawn) == len(sample.rows) == min(size, 300)
        assert drawn <= known

    def test_a_sample_as_large_as_the_data_is_the_data(self):
        blocks = planted(5_000, num_words=200, block_edge=64)
        sample = fixed_sample(blocks)
        for side, expected in zip(sample, all_pairs(blocks), strict=True):
            np.testing.assert_array_equal(side, expected)

    def test_must_not_be_empty(self):
        with pytest.raises(InvalidValueError, match="size is 0"):
            fixed_sample(planted(100, num_words=20, block_edge=8), size=0)
