"""Pairs compared with the twin, and bit-identical for any threads and memory budget."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.data.text import PairOptions, count_pairs
from talka.data.text.pair_kernels import shuffle_block
from talka.errors import InvalidValueError, NothingToLearnError, StorageFullError
from tests.data.text import twin
from tests.data.text.samples import resources, scan, texts


def as_dict(blocks):
    rows, cols = blocks.words()
    counts = blocks.pairs["count"]
    pairs = {
        (int(row), int(col)): count for row, col, count in zip(rows, cols, counts, strict=True)
    }
    assert len(pairs) == blocks.num_pairs, "a pair is there twice"
    return pairs


@given(
    written=st.lists(texts, min_size=1, max_size=3),
    min_count=st.integers(1, 3),
    window=st.integers(1, 12),
    across_lines=st.booleans(),
    block_edge=st.sampled_from([1, 3, 2048]),
    num_threads=st.integers(1, 2),
    memory_bytes=st.sampled_from([1, 10_000, 1 << 30]),
)
@settings(deadline=None, max_examples=200)
def test_equals_the_twin_on_any_text(
    tmp_path_factory,
    written,
    min_count,
    window,
    across_lines,
    block_edge,
    num_threads,
    memory_bytes,
):
    written = [f"one one one\n{text}" for text in written]  # never without a pair
    some = resources(num_threads=num_threads, memory_bytes=memory_bytes)
    folder = tmp_path_factory.mktemp("pairs")
    corpus = scan(folder, written, min_count=min_count, resources=some)
    options = PairOptions(window=window, across_lines=across_lines, block_edge=block_edge)
    blocks = count_pairs(corpus, options, resources=some)
    expected = twin.pairs(
        written, twin.words, corpus.vocabulary.words, window=window, across_lines=across_lines
    )
    assert as_dict(blocks) == expected
    assert blocks.num_pairs == len(expected)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Return about 30,000 words by Zipf's law, in lines of many lengths."""
    random = np.random.default_rng(5)
    words = np.minimum(random.zipf(1.3, 30_000), 3000)
    ends = np.where(random.random(30_000) < 0.05, "\n", " ")
    text = "".join(f"w{word}{end}" for word, end in zip(words, ends, strict=True))
    return scan(tmp_path_factory.mktemp("zipf"), [text], min_count=2, resources=resources())


OPTIONS = PairOptions(block_edge=100, seed=3)


@pytest.fixture(scope="module")
def reference(corpus):
    return count_pairs(corpus, OPTIONS, resources=resources())


@pytest.mark.parametrize("num_threads", [1, 2, 3])
@pytest.mark.parametrize("memory_bytes", [1, 100_000, 1_000_000, 10**9])
def test_bytes_are_the_same_for_any_threads_and_memory(
    corpus, reference, tmp_path, num_threads, memory_bytes
):
    some = resources(num_threads=num_threads, memory_bytes=memory_bytes, work_dir=tmp_path)
    blocks = count_pairs(corpus, OPTIONS, resources=some)
    assert blocks.pairs.tobytes() == reference.pairs.tobytes()
    assert blocks.index.tolist() == reference.index.tolist()
    assert list(tmp_path.iterdir()) == []


def test_another_seed_gives_another_order_of_the_same_pairs(corpus, reference):
    options = PairOptions(block_edge=100, seed=4)
    other = count_pairs(corpus, options, resources=resources())
    assert other.pairs.tobytes() != reference.pairs.tobytes()
    assert as_dict(other) == as_dict(reference)


def test_the_block_edge_does_not_change_the_pairs(corpus, reference):
    options = PairOptions(block_edge=2048, seed=3)
    assert as_dict(count_pairs(corpus, options, resources=resources())) == as_dict(reference)


def test_blocks_lie_one_after_another_and_rows_and_columns_inside_them(corpus, reference):
    assert reference.num_words == len(corpus.vocabulary)
    assert reference.start[0] == 0
    assert reference.stop[-1] == reference.num_pairs
    assert (reference.start[1:] == reference.stop[:-1]).all()
    assert (reference.start < reference.stop).all()
    places = list(zip(reference.row_block.tolist(), reference.col_block.tolist(), strict=True))
    assert places == sorted(set(places))
    assert reference.pairs["row"].max() < reference.block_edge
    assert reference.pairs["col"].max() < reference.block_edge
    assert sum(len(reference.block(number)) for number in range(reference.num_blocks)) == len(
        reference.pairs
    )


def test_pairs_inside_a_block_are_in_no_order(reference):
    """About half of the steps between neighbours are ascending, in rows and in columns."""
    block = reference.block(0)
    assert len(block) > 1000
    for name in ("row", "col"):
        steps = np.diff(block[name].astype(int))
        rising = (steps > 0).sum() / np.count_nonzero(steps)
        assert 0.4 < rising < 0.6


def test_every_pair_is_as_likely_in_every_place():
    """Over 4,000 seeds each of 8 pairs is at each of 8 places about 500 times."""
    times = np.zeros((8, 8), int)
    for seed in range(4000):
        records = np.arange(8, dtype=np.uint64)
        shuffle_block(records, 0, 5, seed, 1, 2)
        shuffle_block(records, 5, 8, seed, 1, 2)
        times[np.arange(8), records.astype(int)] += 1
    assert times.sum() == 8 * 4000
    assert abs(times - 500).max() < 6 * 500**0.5


def test_words_outside_take_no_place_in_a_window(tmp_path):
    corpus = scan(tmp_path, ["a x b\na y b\n"], min_count=2, resources=resources())
    blocks = count_pairs(corpus, PairOptions(window=1), resources=resources())
    assert as_dict(blocks) == {(0, 1): 2.0, (1, 0): 2.0}


def test_a_word_next_to_itself_counts_in_both_directions(tmp_path):
    corpus = scan(tmp_path, ["a a"], min_count=1, resources=resources())
    assert as_dict(count_pairs(corpus, resources=resources())) == {(0, 0): 2.0}


def test_windows_reach_over_lines_on_demand_but_never_over_files(tmp_path):
    corpus = scan(tmp_path, ["a\nb", "c"], min_count=1, resources=resources())
    across = count_pairs(corpus, PairOptions(across_lines=True), resources=resources())
    assert as_dict(across) == {(0, 1): 1.0, (1, 0): 1.0}


def test_a_line_that_spans_chunks_is_one_line(tmp_path):
    written = ["alpha beta gamma delta " * 40]
    corpus = scan(tmp_path, written, chunk_bytes=50, min_count=1, resources=resources())
    known = corpus.vocabulary.words
    expected = twin.pairs(written, twin.words, known, window=10, across_lines=False)
    assert as_dict(count_pairs(corpus, resources=resources())) == expected


@pytest.mark.parametrize("window", [40, 64])
def test_wide_windows_match_the_twin_within_half_a_unit_of_float32(tmp_path, window):
    written = ["a b c d e " * 600]
    corpus = scan(tmp_path, written, min_count=1, resources=resources())
    known = corpus.vocabulary.words
    expected = twin.pairs(written, twin.words, known, window=window, across_lines=False)
    counted = as_dict(count_pairs(corpus, PairOptions(window=window), resources=resources()))
    assert counted.keys() == expected.keys()
    for pair, count in counted.items():
        assert count == pytest.approx(expected[pair], rel=1.2e-7)


def test_progress_sums_up_to_the_known_words(corpus):
    for memory_bytes in (100_000, 10**9):
        amounts = []
        some = resources(memory_bytes=memory_bytes)
        count_pairs(corpus, resources=some, advance=amounts.append)
        assert sum(amounts) == pytest.approx(corpus.num_known_tokens)


def test_an_interrupt_stops_the_work_and_leaves_nothing(corpus, tmp_path):
    def interrupt(amount):
        raise KeyboardInterrupt

    some = resources(num_threads=2, memory_bytes=100_000, work_dir=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        count_pairs(corpus, OPTIONS, resources=some, advance=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_text_of_one_word_a_line_is_an_error(tmp_path):
    corpus = scan(tmp_path, ["a\nb\na\n"], min_count=1, resources=resources())
    with pytest.raises(NothingToLearnError, match="no two words"):
        count_pairs(corpus, resources=resources())


def test_a_folder_that_vanished_is_an_error_that_names_it(corpus, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    some = resources(memory_bytes=1, work_dir=folder)
    folder.rmdir()
    with pytest.raises(StorageFullError, match="work"):
        count_pairs(corpus, OPTIONS, resources=some)


@pytest.mark.parametrize(
    "options", [{"window": 0}, {"block_edge": 0}, {"block_edge": 65_537}, {"seed": -1}]
)
def test_options_out_of_range_are_errors(options):
    with pytest.raises(InvalidValueError):
        PairOptions(**options)
