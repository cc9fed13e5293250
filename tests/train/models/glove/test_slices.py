"""Operation parallelism: slices of coordinates, only products travel."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.engine import Embedded
from talka.train.models.glove import GloVe, GloVeConfig, fixed_sample
from talka.train.models.glove.slices import (
    ColumnRange,
    GloVeSlice,
    columns_of,
    predicted_bytes,
    sum_algorithm,
)
from tests.train.models.glove.planted import planted

DIM = 21
CONFIG = GloVeConfig()


def alone(values):
    """The sum over the only rank."""


def slices_side_by_side(blocks, size, epochs=1):
    """All ranks in one process, in lock-step threads: sums without a network."""
    import threading

    barrier = threading.Barrier(size)
    shared = [None] * size

    def sum_of(rank):
        def total(values):
            shared[rank] = values.copy()
            barrier.wait()
            values[:] = np.sum(shared, axis=0, dtype=np.float32)
            barrier.wait()

        return total

    models = [
        GloVeSlice(blocks.num_words, DIM, columns_of(rank, size, DIM), config=CONFIG, seed=3)
        for rank in range(size)
    ]
    losses = [[] for _ in range(size)]

    def train(rank):
        for epoch in range(epochs):
            losses[rank].append(models[rank].train_epoch(blocks, sum_of(rank), epoch=epoch))

    threads = [threading.Thread(target=train, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return models, losses


def whole(blocks, epochs=1):
    model = GloVeSlice(blocks.num_words, DIM, ColumnRange(0, DIM + 2), config=CONFIG, seed=3)
    return model, [model.train_epoch(blocks, alone, epoch=epoch) for epoch in range(epochs)]


@given(st.integers(1, 9), st.integers(1, 40))
def test_shares_cover_all_columns_once_and_are_equal(size, dim):
    shares = [columns_of(rank, size, dim) for rank in range(size)]
    columns = [column for share in shares for column in range(share.start, share.stop)]
    assert columns == list(range(dim + 2))
    widths = [share.stop - share.start for share in shares]
    assert max(widths) - min(widths) <= 1


@pytest.mark.parametrize("size", [2, 3, 7])
def test_slices_start_as_the_whole_model_does(size):
    model = GloVe(50, DIM, seed=3)
    parts = [
        GloVeSlice(50, DIM, columns_of(rank, size, DIM), config=CONFIG, seed=3).vectors()
        for rank in range(size)
    ]
    np.testing.assert_array_equal(np.hstack(parts), model.vectors())


@pytest.mark.parametrize("size", [2, 3, 7])
def test_slices_equal_one_process_with_the_same_batches_up_to_rounding(size):
    blocks = planted(60_000, num_words=300, block_edge=100)
    single, losses = whole(blocks, epochs=2)
    models, split = slices_side_by_side(blocks, size, epochs=2)
    assert all(rank == split[0] for rank in split), "every rank knows the same loss"
    assert split[0] == pytest.approx(losses, rel=1e-5)
    vectors = np.hstack([model.vectors() for model in models])
    np.testing.assert_allclose(vectors, single.vectors(), rtol=1e-3, atol=1e-4)


def test_batches_learn_as_well_as_single_steps():
    blocks = planted()
    model = GloVe(blocks.num_words, DIM, config=CONFIG, seed=3)
    steps = [model.train_epoch(blocks) for _ in range(3)]
    sample = fixed_sample(blocks, size=20_000)
    batched, losses = whole(blocks, epochs=3)
    assert losses[2] == pytest.approx(steps[2], rel=0.05)
    assert batched.evaluate(sample, alone) == pytest.approx(model.evaluate(sample), rel=0.05)


def test_a_saved_slice_goes_on_bit_for_bit_and_only_as_itself(tmp_path):
    from talka.errors import SavedStateError

    blocks = planted(20_000, num_words=300, block_edge=100)
    columns = ColumnRange(0, 12)
    first = GloVeSlice(300, DIM, columns, config=CONFIG, seed=3)
    first.train_epoch(blocks, alone, epoch=0)
    first.save(tmp_path / "slice")
    first.train_epoch(blocks, alone, epoch=1)
    second = GloVeSlice(300, DIM, columns, config=CONFIG, seed=3)
    second.load(tmp_path / "slice")
    second.train_epoch(blocks, alone, epoch=1)
    np.testing.assert_array_equal(first.vectors(), second.vectors())
    other = GloVeSlice(300, DIM, ColumnRange(0, 11), config=CONFIG, seed=3)
    with pytest.raises(SavedStateError, match="use the number of workers that saved it"):
        other.load(tmp_path / "slice")


def rank_main(worker):
    blocks = planted(60_000, num_words=300, block_edge=100)
    columns = columns_of(worker.rank, worker.size, DIM)
    model = GloVeSlice(blocks.num_words, DIM, columns, config=CONFIG, seed=3)
    algorithm = sum_algorithm(worker.size)
    worker.barrier()
    before = worker.mailbox.sent_bytes
    loss = model.train_epoch(
        blocks,
        lambda values: worker.all_reduce(values, out=values, algorithm=algorithm),
        epoch=0,
    )
    rounds = sum(1 for _ in model._batches(blocks, 0))
    return {"loss": loss, "sent": worker.mailbox.sent_bytes - before, "rounds": rounds}


@pytest.mark.parametrize("size", [2, 3, 4])
def test_real_ranks_agree_and_send_what_the_cost_model_says(size):
    blocks = planted(60_000, num_words=300, block_edge=100)
    _, [expected] = whole(blocks)
    with Embedded() as engine:
        results = engine.gang(rank_main, size=size, backend=None)
    assert {result["loss"] for result in results} == {results[0]["loss"]}
    assert results[0]["loss"] == pytest.approx(expected, rel=1e-5)
    sent = sum(result["sent"] for result in results)
    predicted = predicted_bytes(blocks.num_pairs, results[0]["rounds"], size)
    assert sent == pytest.approx(predicted, rel=0.01)
