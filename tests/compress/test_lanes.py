"""Operations on sixteen lanes agree with numpy."""

import numpy as np
import pytest
from numba.core.errors import TypingError

from talka.compiled import compiled
from talka.compress.bits import lanes
from talka.compress.bits.checksum import checksum
from talka.compress.bits.lanes import LANES, load, store

RNG = np.random.default_rng(0)
FLOATS = RNG.standard_normal((2, LANES)).astype(np.float32)
WORDS = RNG.integers(0, 1 << 32, (2, LANES), np.uint32)


@compiled
def arithmetic(a, b, number, out):
    left, right = load(a, 0), load(b, 0)
    store(out, 0, left + right)
    store(out, LANES, left - right)
    store(out, 2 * LANES, left * right)
    store(out, 3 * LANES, left * number)


@pytest.mark.parametrize("pair", [FLOATS, WORDS], ids=["floats", "words"])
def test_arithmetic(pair):
    a, b = pair
    out = np.empty(4 * LANES, a.dtype)
    arithmetic(a, b, a.dtype.type(3), out)
    expected = [a + b, a - b, a * b, a * a.dtype.type(3)]
    np.testing.assert_array_equal(out.reshape(4, LANES), expected)


@compiled
def on_bits(a, b, out):
    left, right = load(a, 0), load(b, 0)
    store(out, 0, left & right)
    store(out, LANES, left | right)
    store(out, 2 * LANES, left ^ right)
    store(out, 3 * LANES, left << 5)
    store(out, 4 * LANES, left >> 7)


def test_bits():
    a, b = WORDS
    out = np.empty(5 * LANES, np.uint32)
    on_bits(a, b, out)
    expected = [a & b, a | b, a ^ b, a << np.uint32(5), a >> np.uint32(7)]
    np.testing.assert_array_equal(out.reshape(5, LANES), expected)


@compiled
def compared(a, b):
    left, right = load(a, 0), load(b, 0)
    return (
        lanes.word_of(left < right),
        lanes.word_of(left <= right),
        lanes.word_of(left > right),
        lanes.word_of(left >= right),
        lanes.word_of(left == right),
        lanes.word_of(left != right),
    )


def test_comparisons_of_floats_signed_and_unsigned():
    special = np.array([np.nan, np.inf, -np.inf, -0.0] * 4, np.float32)
    pairs = [
        (FLOATS[0], FLOATS[1]),
        (special, np.roll(special, 1)),
        (special, np.zeros_like(special)),
    ]
    pairs += [(WORDS[0], WORDS[1]), (WORDS[0].view(np.int32), WORDS[1].view(np.int32))]
    places = np.arange(LANES)
    for a, b in pairs:
        found = [[word >> place & 1 for place in places] for word in compared(a, b)]
        expected = [a < b, a <= b, a > b, a >= b, a == b, a != b]
        np.testing.assert_array_equal(found, expected)


@compiled
def converted(floats, halves, out, doubles):
    row = load(floats, 0) * np.float32(100)
    store(out, 0, lanes.to_floats(lanes.to_ints(row)))
    store(out, LANES, lanes.floor(row))
    store(out, 2 * LANES, lanes.floats_of(lanes.bits_of(row)))
    store(out, 3 * LANES, lanes.to_floats(lanes.signed(load(halves, 0))))
    store(out, 4 * LANES, lanes.to_floats(lanes.signed(lanes.counting())))
    store(out, 5 * LANES, lanes.where(lanes.mask_of(np.uint32(0b1010)), row, np.float32(7)))
    store(doubles, 0, lanes.to_doubles(row))
    return lanes.sum_of(lanes.to_doubles(row))


def test_conversions():
    floats, halves = FLOATS[0], WORDS[0].astype(np.uint16)
    out, doubles = np.empty(6 * LANES, np.float32), np.empty(LANES)
    total = converted(floats, halves, out, doubles)
    row = floats * np.float32(100)
    chosen = np.full(LANES, 7, np.float32)
    chosen[[1, 3]] = row[[1, 3]]
    expected = [np.trunc(row), np.floor(row), row, halves, np.arange(LANES), chosen]
    np.testing.assert_array_equal(out.reshape(6, LANES), expected)
    np.testing.assert_array_equal(doubles, row.astype(np.float64))
    in_order = 0.0
    for one in doubles:
        in_order += one
    assert total == in_order


@compiled
def counted(word):
    return lanes.count_ones(word), lanes.leading_zeros(word), lanes.trailing_zeros(word)


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
def test_counts_of_bits(kind):
    size = 8 * kind().itemsize
    for number in [0, 1, 2, 3, 12345, (1 << size) - 1, 1 << (size - 1)]:
        trailing = (number & -number).bit_length() - 1 if number else size
        expected = (number.bit_count(), size - number.bit_length(), trailing)
        assert counted(kind(number)) == expected


def test_narrow_numbers_take_the_low_bits():
    @compiled
    def narrowed(words, out):
        store(out, 0, load(words, 0))

    for kind in (np.uint8, np.uint16):
        out = np.empty(LANES, kind)
        narrowed(WORDS[0], out)
        np.testing.assert_array_equal(out, WORDS[0].astype(kind))


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int8, np.int16])
def test_narrow_numbers_become_wide_ones_of_the_same_value(kind):
    @compiled
    def widened(numbers, out):
        lanes.prefetch(numbers, 1 << 20)  # outside the array, which is allowed
        store(out, 0, load(numbers, 0))

    numbers = WORDS[0].astype(kind)
    out = np.empty(LANES, np.int32 if np.dtype(kind).kind == "i" else np.uint32)
    widened(numbers, out)
    np.testing.assert_array_equal(out, numbers)


def test_a_word_is_eight_bytes_from_the_lowest_on():
    @compiled
    def put(out, at, word):
        lanes.store_word(out, at, word)

    out = np.zeros(12, np.uint8)
    put(out, 3, np.uint64(0x0807060504030201))
    assert out.tolist() == [0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0]


def test_lanes_of_scattered_memory_are_an_error():
    with pytest.raises(TypingError, match="contiguous"):
        arithmetic(np.zeros(64, np.float32)[::2], FLOATS[0], np.float32(1), FLOATS[1])


@pytest.mark.parametrize("length", [0, 1, 3, 4, 63, 64, 255, 256, 257, 1000])
def test_a_checksum_depends_on_every_bit_and_on_the_length(length):
    data = RNG.integers(0, 256, length, np.uint8)
    seen = {checksum(data), checksum(np.append(data, np.uint8(0)))}
    for bit in range(8 * length):
        changed = data.copy()
        changed[bit // 8] ^= 1 << bit % 8
        seen.add(checksum(changed))
        assert checksum(changed) != checksum(data)
    assert len(seen) == 8 * length + 2  # 32 bits, 8,000 sums: a chance of 1% for two alike
