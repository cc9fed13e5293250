"""Elias codes and packed numbers against strings of bits."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.compress.bits import elias, elias_reading, packing
from talka.compress.bits.levels import Grid


def gamma(number):
    digits = f"{number:b}"
    return "0" * (len(digits) - 1) + digits


def codes_of(levels, largest):
    """The bits of signed levels, as a string."""
    bits, last = "", -1
    for index, level in enumerate(levels):
        if level:
            bits += gamma(index - last) + str(int(level < 0))
            bits += gamma(abs(level)) if largest > 1 else ""
            last = index
    return bits


def packed(numbers, width):
    words = np.zeros(packing.num_words(len(numbers), width), np.uint32)
    full = len(numbers) // packing.BLOCK * packing.BLOCK
    numbers = np.array([*numbers, *[0] * packing.BLOCK], np.uint32)
    for start in range(0, full, packing.BLOCK):
        block = numbers[start : start + packing.BLOCK].copy()
        packing.pack(block, width, words, start * width // 32)
    rest = len(numbers) - packing.BLOCK - full
    if rest:
        packing.pack_rest(numbers[full:].copy(), rest, width, words, full * width // 32)
    return words


def written(levels, largest, limit=1 << 20):
    """The number of levels, then words of codes."""
    width, zero = (2 * largest).bit_length(), np.uint32(largest)
    words = packed([level + largest for level in levels], width)
    codes = np.zeros(limit + elias.MARGIN, np.uint32)
    count = int(np.count_nonzero(levels))
    size = elias.write_codes(elias.EliasCode(words, width, len(levels), zero, count), limit, codes)
    return codes[:size]


def text(codes):
    return "".join(f"{word:032b}" for word in codes)


def read(codes, num_values, largest):
    out = np.full(num_values, 9, np.float32)
    unit = np.full(1, 0.5, np.float32)  # a level is two steps
    grid = Grid(2 * largest, num_values, unit, unit, unit)
    return elias_reading.read_codes(codes, grid, False, np.float32(1), out), out


@pytest.mark.parametrize(
    "number, code", [(1, "1"), (2, "010"), (3, "011"), (4, "00100"), (8, "0001000")]
)
def test_gamma_codes_of_the_book(number, code):
    count, *codes = written([0] * (number - 1) + [1], 1)
    assert count == 1
    assert text(codes).rstrip("0") == code.rstrip("0")  # then a 0 for plus
    _, *codes = written([-number], 8)
    assert text(codes).rstrip("0") == ("1" + "1" + code).rstrip("0")


@settings(max_examples=150, deadline=None)
@given(
    num_values=st.integers(1, 3000),
    largest=st.sampled_from([1, 2, 7, 100, 32767]),
    density=st.sampled_from([0, 0.001, 0.02, 0.3, 1]),
    seed=st.integers(0, 1 << 32),
)
def test_codes_are_those_of_strings(num_values, largest, density, seed):
    levels = some_levels(num_values, largest, density, seed)
    count, *codes = written(levels.tolist(), largest)
    expected = codes_of(levels.tolist(), largest)
    assert count == np.count_nonzero(levels)
    assert text(codes) == expected + "0" * (-len(expected) % 32)
    fits, out = read(np.array([count, *codes], np.uint32), num_values, largest)
    assert fits
    np.testing.assert_array_equal(out, levels)


def some_levels(num_values, largest, density, seed):
    rng = np.random.default_rng(seed)
    levels = rng.integers(-largest, largest + 1, num_values) * (rng.random(num_values) < density)
    levels[rng.integers(num_values)] = largest
    return levels


@pytest.mark.parametrize("place", [65_534, 65_535, 65_536, 131_071, 131_072, 1_500_000])
def test_long_ways(place):
    levels = np.zeros(place + 1, np.int64)
    levels[place] = -5
    codes = written(levels.tolist(), 7)
    expected = gamma(place + 1) + "1" + gamma(5)
    assert text(codes[1:]) == expected + "0" * (-len(expected) % 32)
    fits, out = read(codes, len(levels), 7)
    assert fits
    np.testing.assert_array_equal(out, levels)


@pytest.mark.parametrize("num_others", [8191, 8192, 8193, 16_384, 16_385, 40_000])
@pytest.mark.parametrize("largest", [1, 7, 127, 128])
@pytest.mark.parametrize("way", [1, 3, 40])
def test_marks_say_where_every_8192nd_code_begins(num_others, largest, way):
    levels = many_levels(num_others, largest, way)
    codes = written(levels.tolist(), largest)
    num_marks = (num_others - 1) // 8192
    assert codes[0] == num_others
    others, bits, last = np.flatnonzero(levels), "", 0
    for number in range(num_marks + 1):
        some = others[8192 * number : 8192 * (number + 1)]
        part = codes_of(levels[last : some[-1] + 1].tolist(), largest)
        if number < num_marks:
            mark = codes[1 + 2 * number : 3 + 2 * number].tolist()
            assert mark == [len(part), some[-1] + 1 - last]
        bits, last = bits + part, some[-1] + 1
    assert text(codes[1 + 2 * num_marks :]) == bits + "0" * (-len(bits) % 32)
    fits, out = read(codes, len(levels), largest)
    assert fits
    np.testing.assert_array_equal(out, levels)


def many_levels(num_others, largest, way):
    """Levels with ways of about so long between them, and one that is much longer."""
    rng = np.random.default_rng(num_others + largest + way)
    others = np.cumsum(rng.integers(1, 2 * way, num_others)) - 1
    others[num_others // 3 :] += 9000
    levels = np.zeros(others[-1] + 1 + way, np.int64)
    levels[others] = rng.integers(1, largest + 1, num_others) * rng.choice([-1, 1], num_others)
    return levels


@pytest.mark.parametrize("way", [3, 40])
def test_marks_that_say_something_else_are_refused(way):
    levels = many_levels(30_000, 7, way)
    codes = written(levels.tolist(), 7)
    for place in range(1, 7):
        for change in (1, -1, 1 << 20, -int(codes[place])):
            forged = codes.astype(np.int64)
            forged[place] += change
            if place < 5:  # as if the next one made up for it
                forged[place + 2] -= change
            assert not read(forged.astype(np.uint32), len(levels), 7)[0]


def test_forged_marks_and_codes_stay_in_their_arrays():
    """Also run with NUMBA_BOUNDSCHECK=1, see `hostile.py`, where accesses are checked."""
    refuse_forged_marks(seed=1, repeats=30)


def refuse_forged_marks(seed, repeats):
    rng = np.random.default_rng(seed)
    for way, num_others, largest in itertools.product((1, 3, 8), (9000, 17_000, 30_000), (1, 7)):
        levels = many_levels(num_others, largest, way)
        codes = written(levels.tolist(), largest).astype(np.int64)
        head = 1 + 2 * ((num_others - 1) // 8192)
        for _ in range(repeats):
            forged = codes.copy()
            for place in rng.integers(1, head, rng.integers(1, 4)):
                change = rng.choice([1, -1, 5000, -5000, 1 << 20, 1 << 31, rng.integers(9000)])
                forged[place] += change
                if rng.random() < 0.5 and place + 2 < head:
                    forged[place + 2] -= change
            forged &= 0xFFFFFFFF
            changes_marks = not np.array_equal(forged, codes)
            if changes_codes := rng.random() < 0.5:  # now and then so that they fit the marks again
                forged[rng.integers(head, len(forged))] ^= 1 << rng.integers(32)
            if rng.random() < 0.2:
                forged = forged[: rng.integers(1, len(forged))]
            fits, _ = read(forged.astype(np.uint32), len(levels), largest)
            assert not fits or changes_codes or not changes_marks


def test_more_than_the_limit_is_not_written():
    levels = some_levels(5000, 7, 0.3, 2).tolist()
    size = len(written(levels, 7))
    assert len(written(levels, 7, limit=size)) == size
    assert len(written(levels, 7, limit=size - 1)) == 0


def test_codes_that_do_not_fit_are_refused():
    codes = written([3, 0, 0, -7, 1] * 50, 7)
    assert read(codes, 250, 7)[0]
    assert not read(codes, 249, 7)[0]  # an index beyond the end
    assert not read(codes, 250, 6)[0]  # a level beyond the last
    assert not read(codes[:-1], 250, 7)[0]
    assert not read(np.append(codes, np.uint32(0)), 250, 7)[0]
    assert not read(codes[:0], 250, 7)[0]
    for count in (0, 1, int(codes[0]) + 1, 251, 1 << 31, (1 << 32) - 1):
        assert not read(np.array([count, *codes[1:]], np.uint32), 250, 7)[0]


@settings(max_examples=100, deadline=None)
@given(count=st.integers(1, 2000), width=st.integers(1, 17), seed=st.integers(0, 1 << 32))
def test_numbers_are_packed_and_found_again(count, width, seed):
    numbers = np.random.default_rng(seed).integers(0, 1 << width, count)
    words = packed(numbers.tolist(), width)
    assert len(words) == packing.num_words(count, width)
    assert 32 * len(words) - count * width < 32
    found = np.empty(packing.BLOCK, np.uint32)
    for start in range(0, count, packing.BLOCK):
        num_found = packing.unpack_block(words, width, start, count, found)
        np.testing.assert_array_equal(found[:num_found], numbers[start : start + num_found])
