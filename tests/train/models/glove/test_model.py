import dataclasses
import threading

import numpy as np
import pytest

from talka.data.text import PAIR
from talka.errors import InvalidValueError
from talka.train.models.glove import (
    PAIR_DTYPE,
    DivergedError,
    GloVe,
    GloVeConfig,
    PairSample,
    fixed_sample,
)
from talka.train.models.glove.order import shuffled, visits_of
from tests.train.models.glove.planted import Blocks, all_pairs, in_blocks, planted
from tests.train.models.glove.twin import Twin

DIM = 20


@pytest.fixture(scope="module")
def blocks():
    return planted()


def test_pairs_have_the_layout_in_which_text_is_counted():
    assert PAIR_DTYPE == PAIR


def trained(blocks, *, epochs=1, threads=1, seed=3, **options):
    model = GloVe(blocks.num_words, DIM, config=GloVeConfig(**options), seed=seed)
    losses = [model.train_epoch(blocks, threads=threads) for _ in range(epochs)]
    return model, losses


def visited(blocks, model, epoch):
    """All pairs in the order in which the trainer visits them."""
    visits = visits_of(blocks, visit_pairs=model.config.visit_pairs)
    visits = shuffled(visits, seed=model.seed, epoch=epoch)
    places = np.concatenate([np.arange(start, stop) for start, stop, _, _ in visits])
    return tuple(side[places] for side in all_pairs(blocks))


class TestAgainstAPlainFloat64Twin:
    @pytest.mark.parametrize("dim", [1, 13, 14, 15, 16, 31, 100])
    def test_same_start_and_same_order_give_the_same_losses(self, dim):
        blocks = planted(20_000, num_words=300, block_edge=100)
        model, twin = GloVe(blocks.num_words, dim, seed=5), Twin(blocks.num_words, dim)
        twin.start_like(model._table, dim)
        for epoch in range(3):
            expected = twin.epoch(*visited(blocks, model, epoch))
            assert model.train_epoch(blocks) == pytest.approx(expected, rel=1e-5)
        np.testing.assert_allclose(
            model.vectors(), twin.words[0] + twin.contexts[0], rtol=1e-3, atol=1e-5
        )

    def test_other_options_mean_the_same_to_both(self):
        blocks = planted(20_000, num_words=300, block_edge=100)
        config = GloVeConfig(learning_rate=0.02, x_max=10.0, alpha=0.5)
        model = GloVe(blocks.num_words, 10, config=config)
        twin = Twin(blocks.num_words, 10, rate=0.02, x_max=10.0, alpha=0.5)
        twin.start_like(model._table, 10)
        expected = twin.epoch(*visited(blocks, model, 0))
        assert model.train_epoch(blocks) == pytest.approx(expected, rel=1e-5)

    def test_visits_learn_as_well_as_a_full_shuffle(self, blocks):
        check_losses_like_a_shuffled_twin(blocks, threads=1)

    @pytest.mark.slow
    @pytest.mark.parametrize("threads", [1, 2])
    def test_two_million_pairs_learn_as_well_as_a_full_shuffle(self, threads):
        blocks = planted(2_000_000, num_words=5_000, block_edge=1_024)
        check_losses_like_a_shuffled_twin(blocks, threads=threads)


def check_losses_like_a_shuffled_twin(blocks, *, threads):
    """Running and evaluated loss of three epochs within 1%, from another start and order."""
    model, twin = GloVe(blocks.num_words, DIM, seed=1), Twin(blocks.num_words, DIM, seed=2)
    everything, sample = all_pairs(blocks), fixed_sample(blocks)
    for epoch in range(3):
        order = np.random.default_rng(epoch).permutation(blocks.num_pairs)
        expected = twin.epoch(*(side[order] for side in everything))
        assert model.train_epoch(blocks, threads=threads) == pytest.approx(expected, rel=0.01)
        expected = twin.evaluate(*everything)
        assert model.evaluate(sample) == pytest.approx(expected, rel=0.01)


class TestThreads:
    def test_one_thread_gives_the_same_bits_for_the_same_seed(self, blocks):
        first, first_losses = trained(blocks, epochs=2)
        again, again_losses = trained(blocks, epochs=2)
        assert first._table.tobytes() == again._table.tobytes()
        assert first_losses == again_losses

    def test_another_seed_gives_another_model(self, blocks):
        first, _ = trained(blocks)
        other, _ = trained(blocks, seed=4)
        assert not np.array_equal(first.vectors(), other.vectors())

    def test_epochs_visit_in_different_orders(self, blocks):
        visits = visits_of(blocks, visit_pairs=100)
        first, second = (shuffled(visits, seed=0, epoch=epoch) for epoch in range(2))
        assert not np.array_equal(first, second)

    @pytest.mark.parametrize("threads", [2, 4])
    def test_lock_free_threads_learn_as_well_as_one(self, blocks, threads):
        sample = fixed_sample(blocks, size=100_000)
        alone, _ = trained(blocks, epochs=3)
        together, _ = trained(blocks, epochs=3, threads=threads)
        # At most this far above; 700 words make threads meet far more often than a vocabulary does.
        assert together.evaluate(sample) < 1.02 * alone.evaluate(sample)

    def test_calls_say_how_many_pairs_were_trained_and_from_the_callers_thread(self, blocks):
        steps = []
        model = GloVe(blocks.num_words, DIM)
        model.train_epoch(
            blocks, threads=2, advance=lambda done: steps.append((done, threading.get_ident()))
        )
        assert sum(done for done, _ in steps) == blocks.num_pairs
        assert {thread for _, thread in steps} == {threading.get_ident()}
        assert len(steps) >= 8

    def test_an_interrupt_ends_all_threads(self, blocks):
        def interrupt(num_pairs):
            raise KeyboardInterrupt

        before = set(threading.enumerate())
        model = GloVe(blocks.num_words, DIM)
        with pytest.raises(KeyboardInterrupt):
            model.train_epoch(blocks, threads=2, advance=interrupt)
        assert set(threading.enumerate()) <= before
        assert model.epochs_done == 0


class TestPairs:
    def test_pairs_may_be_mapped_from_a_file(self, blocks, tmp_path):
        blocks.pairs.tofile(tmp_path / "pairs.bin")
        mapped = np.memmap(tmp_path / "pairs.bin", PAIR_DTYPE, mode="r")
        _, from_file = trained(dataclasses.replace(blocks, pairs=mapped))
        _, from_memory = trained(blocks)
        assert from_file == from_memory

    def test_the_pairs_of_the_caller_stay_writeable(self, blocks):
        trained(blocks)
        assert blocks.pairs.flags.writeable

    def test_one_pair_is_enough(self):
        blocks = in_blocks([0], [0], [5.0], num_words=1, block_edge=16)
        model = GloVe(1, 3)
        assert model.train_epoch(blocks, threads=4) > 0

    def test_a_pair_by_hand(self):
        blocks = in_blocks([1], [0], [50.0], num_words=2, block_edge=2)
        model = GloVe(2, 2, seed=9)
        word, context = model._table[1, 0].copy(), model._table[2, 0].copy()
        error = word[:2] @ context[:2] + word[2] + context[3] - np.log(50.0)
        weight = 0.5**0.75
        assert model.train_epoch(blocks) == pytest.approx(0.5 * weight * error**2, rel=1e-6)
        slope = 0.05 * weight * error
        expected = [*(word[:2] - slope * context[:2]), word[2] - slope, 1]
        np.testing.assert_allclose(model._table[1, 0, :4], expected, rtol=1e-6)
        squares = 1 + (slope * context[:2]) ** 2
        np.testing.assert_allclose(model._table[1, 1, :2], squares, rtol=1e-6)

    def test_ones_and_padding_never_move(self, blocks):
        model, _ = trained(blocks, epochs=2)
        words, contexts = model._table[: blocks.num_words], model._table[blocks.num_words :]
        assert np.all(words[:, 0, DIM + 1] == 1)
        assert np.all(contexts[:, 0, DIM] == 1)
        assert np.all(model._table[:, 0, DIM + 2 :] == 0)

    def test_vectors_are_word_plus_context(self, blocks):
        model, _ = trained(blocks)
        words, contexts = model._table[: blocks.num_words], model._table[blocks.num_words :]
        expected = words[:, 0, :DIM] + contexts[:, 0, :DIM]
        assert model.vectors().dtype == np.float32
        np.testing.assert_array_equal(model.vectors(), expected)


class TestWhatIsRefused:
    def test_a_run_that_diverges_says_so(self, blocks):
        with pytest.raises(DivergedError, match=r"epoch 0.*learning rate is 1e\+08.*smaller"):
            trained(blocks, learning_rate=1e8)

    def test_a_word_number_beyond_the_vocabulary(self, blocks):
        pairs = blocks.pairs.copy()
        pairs["row"][-1] = 65_535
        with pytest.raises(InvalidValueError, match="word number too large"):
            trained(dataclasses.replace(blocks, pairs=pairs))

    @pytest.mark.parametrize(
        "options",
        [
            {"learning_rate": 0.0},
            {"learning_rate": float("nan")},
            {"x_max": 0.0},
            {"x_max": float("inf")},
            {"alpha": -1.0},
            {"visit_pairs": 0},
            {"visit_pairs": 100_000},
        ],
        ids=str,
    )
    def test_options_out_of_range(self, options):
        with pytest.raises(InvalidValueError, match=next(iter(options))):
            GloVeConfig(**options)

    @pytest.mark.parametrize("shape", [(0, 5, 0), (5, 0, 0), (5, 5, -1)], ids=str)
    def test_models_without_words_dimensions_or_a_seed(self, shape):
        num_words, dim, seed = shape
        with pytest.raises(InvalidValueError):
            GloVe(num_words, dim, seed=seed)

    def test_no_threads(self, blocks):
        with pytest.raises(InvalidValueError, match="threads is 0"):
            GloVe(blocks.num_words, DIM).train_epoch(blocks, threads=0)

    def test_no_pairs(self):
        empty = np.empty(0, np.int64)
        blocks = Blocks(5, 16, np.empty(0, PAIR_DTYPE), empty, empty, empty, empty)
        with pytest.raises(InvalidValueError, match="num_pairs is 0"):
            GloVe(5, DIM).train_epoch(blocks)

    def test_blocks_of_another_vocabulary(self, blocks):
        with pytest.raises(InvalidValueError, match="num_words"):
            GloVe(blocks.num_words + 1, DIM).train_epoch(blocks)

    @pytest.mark.parametrize("field", ["start", "stop", "row_block", "col_block"])
    def test_blocks_that_lead_out_of_the_pairs(self, blocks, field):
        wrong = getattr(blocks, field).copy()
        wrong[-1] = -1 if field != "stop" else blocks.num_pairs + 1
        with pytest.raises(InvalidValueError, match="blocks is"):
            GloVe(blocks.num_words, DIM).train_epoch(dataclasses.replace(blocks, **{field: wrong}))

    def test_a_sample_of_other_words(self, blocks):
        sample = PairSample(np.array([0]), np.array([blocks.num_words]), np.ones(1, np.float32))
        with pytest.raises(InvalidValueError, match="sample"):
            GloVe(blocks.num_words, DIM).evaluate(sample)
