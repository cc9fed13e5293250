import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from talka.train.models.glove.order import batches, shuffled, visits_of
from tests.train.models.glove.planted import in_blocks

some_blocks = st.builds(
    lambda places, edge: in_blocks(
        np.array(places) // 50,
        np.array(places) % 50,
        np.ones(len(places)),
        num_words=50,
        block_edge=edge,
    ),
    st.lists(st.integers(0, 2_499), min_size=1, max_size=200),
    st.integers(1, 60),
)


@given(some_blocks, st.integers(1, 40))
def test_visits_hold_every_pair_once_in_its_own_block(blocks, visit_pairs):
    visits = visits_of(blocks, visit_pairs=visit_pairs)
    places = np.concatenate([np.arange(start, stop) for start, stop, _, _ in visits])
    assert sorted(places) == list(range(blocks.num_pairs))
    for start, stop, first_row, first_col in visits:
        assert 0 < stop - start <= visit_pairs
        [block] = np.flatnonzero((blocks.start <= start) & (stop <= blocks.stop))
        assert first_row == blocks.row_block[block] * blocks.block_edge
        assert first_col == blocks.col_block[block] * blocks.block_edge


@given(some_blocks, st.integers(0, 5), st.integers(0, 5))
def test_shuffling_keeps_the_visits_and_depends_on_seed_and_epoch_alone(blocks, seed, epoch):
    visits = visits_of(blocks, visit_pairs=3)
    mixed = shuffled(visits, seed=seed, epoch=epoch)
    assert sorted(map(tuple, mixed)) == sorted(map(tuple, visits))
    np.testing.assert_array_equal(mixed, shuffled(visits, seed=seed, epoch=epoch))


@given(some_blocks, st.integers(1, 300))
def test_batches_are_the_visits_in_order_and_of_like_size(blocks, max_pairs):
    visits = visits_of(blocks, visit_pairs=4)
    parts = list(batches(visits, max_pairs=max_pairs))
    np.testing.assert_array_equal(np.concatenate(parts), visits)
    assert all(len(part) for part in parts)
    assert max((part[:, 1] - part[:, 0]).sum() for part in parts) <= 1.5 * max_pairs + 8


def test_no_visits_make_no_batches():
    assert list(batches(np.empty((0, 4), np.int64), max_pairs=10)) == []
