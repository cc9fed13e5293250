"""Counting sort against a stable sort; places against a search."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.graph.kernels.ordering import order_by, places_in, present

KINDS = [np.uint16, np.uint32, np.int64]


@given(keys=st.lists(st.integers(0, 20), max_size=200), kind=st.sampled_from(KINDS))
@settings(deadline=None)
def test_equal_keys_keep_their_order(keys, kind):
    keys = np.array(keys, kind)
    offsets, order = order_by(keys, 21)
    assert order.tolist() == np.argsort(keys, kind="stable").tolist()
    assert offsets.tolist() == [int((keys < key).sum()) for key in range(22)]


@pytest.mark.parametrize("keys, problem", [([3], "wrong size"), ([-1, 0], "negative")])
def test_a_key_out_of_range_is_refused_before_anything_is_written(keys, problem):
    with pytest.raises(ValueError, match=problem):
        order_by(np.array(keys), 3)


@given(
    st.sets(st.integers(0, 40), max_size=30), st.lists(st.integers(0, 2**32 - 1), max_size=30),
    st.booleans(),
)  # fmt: skip
@settings(deadline=None)
def test_places_are_where_numbers_are(numbers, others, without_gaps):
    numbers = range(min(numbers), max(numbers) + 1) if numbers and without_gaps else numbers
    ascending = np.array(sorted(numbers), np.uint32)
    assert places_in(ascending, ascending[::-1]).tolist() == list(range(len(ascending)))[::-1]
    asked = np.array([*others, *range(42)], np.uint32)
    places, is_there = present(ascending, asked)
    assert is_there.tolist() == [int(number) in set(ascending.tolist()) for number in asked]
    assert ascending[places].tolist() == asked[is_there].tolist()
