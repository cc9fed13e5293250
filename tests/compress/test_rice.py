"""Rice codes: their words, their size, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.compress.bits import rice
from talka.errors import PayloadError
from tests.compress import sparse_twins as twin


@st.composite
def index_sets(draw, max_values=3000):
    num_values = draw(st.integers(1, max_values))
    some = draw(st.sets(st.integers(0, num_values - 1), max_size=60))
    density = draw(st.sampled_from([0.0, 0.01, 0.2, 0.5, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    some |= set(np.flatnonzero(rng.random(num_values) < density).tolist())
    return np.array(sorted(some), np.uint32), num_values


@settings(max_examples=200, deadline=None)
@given(index_sets())
def test_words_are_the_twins_and_read_back(indices_in):
    indices, num_values = indices_in
    words = rice.encode(indices, num_values)
    assert words.tobytes() == twin.rice_words(indices.tolist(), num_values)
    assert rice.decode(words, num_values, len(indices)).tolist() == indices.tolist()
    assert rice.parameter(num_values, len(indices)) == twin.rice_parameter(num_values, len(indices))
    assert len(words) <= rice.max_words(num_values, len(indices))


def test_an_example_by_hand():
    """Of 20 values the three at 1, 4 and 19: gaps 1, 2, 14; b is 2 as 20 - 3 = 17 >= 3 * 4."""
    one, two, fourteen = "1" + "10", "1" + "01", "000" + "1" + "01"
    expected = int((one + two + fourteen)[::-1], 2)
    assert rice.encode(np.array([1, 4, 19], np.uint32), 20).tolist() == [expected]


@pytest.mark.parametrize("density, bits", [(0.01, 8.11), (0.001, 11.50)])
def test_bits_an_index(density, bits):
    num_values = 4_000_000
    indices = np.flatnonzero(np.random.default_rng(5).random(num_values) < density)
    words = rice.encode(indices.astype(np.uint32), num_values)
    assert 32 * len(words) / len(indices) == pytest.approx(bits, rel=0.02)
    expected = rice.expected_words(num_values, len(indices))
    assert len(words) == pytest.approx(expected, rel=0.01)


def test_the_longest_code_is_as_long_as_was_said():
    """All at the end: the first gap is all there is."""
    for num_values, count in [(1, 1), (1000, 1), (1000, 3), (99_991, 700), (64, 64), (640, 500)]:
        indices = np.arange(num_values - count, num_values, dtype=np.uint32)
        words = rice.encode(indices, num_values)
        assert len(words) == rice.max_words(num_values, count)
        assert rice.decode(words, num_values, count).tolist() == indices.tolist()


def test_never_more_than_a_bitmap():
    for num_values in [1, 2, 3, 31, 33, 100, 257]:
        for count in range(num_values + 1):
            assert rice.max_words(num_values, count) <= -(-num_values // 32)


def test_above_a_third_it_is_the_bitmap():
    indices = np.flatnonzero(np.random.default_rng(1).random(320) < 0.5)
    bitmap = np.zeros(320, np.uint8)
    bitmap[indices] = 1
    words = rice.encode(indices.astype(np.uint32), 320)
    assert words.tobytes() == np.packbits(bitmap, bitorder="little").tobytes()[: 4 * len(words)]


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 300), st.integers(0, 300), st.binary(max_size=160), st.booleans())
def test_any_bytes_are_indices_or_an_error(num_values, count, data, sparse):
    words = np.frombuffer(data[: len(data) // 4 * 4], np.uint32).copy()
    if sparse:
        words &= words >> 3 & words << 7  # long runs of zeros
    try:
        indices = rice.decode(words, num_values, count).tolist()
    except PayloadError:
        return
    assert len(indices) == count
    assert indices == sorted(set(indices))
    assert all(index < num_values for index in indices)
    assert rice.encode(np.array(indices, np.uint32), num_values).tolist() == words.tolist()


@settings(max_examples=200, deadline=None)
@given(index_sets(400), st.integers(0, 1 << 20), st.integers(0, 31), st.integers(-2, 2))
def test_changed_words_are_other_indices_or_an_error(indices_in, place, bit, more):
    indices, num_values = indices_in
    words = rice.encode(indices, num_values).copy()
    if len(words):
        words[place % len(words)] ^= np.uint32(1 << bit)
    try:
        changed = rice.decode(words, num_values, len(indices) + more).tolist()
    except PayloadError:
        return
    assert changed == sorted(set(changed))
    assert all(index < num_values for index in changed)


@pytest.mark.parametrize("count", [-1, 11, 1 << 31])
def test_a_count_that_cannot_be(count):
    with pytest.raises(PayloadError):
        rice.decode(np.ones(1, np.uint32), 10, count)
