"""Real text: Shakespeare compared with the twin, Wikipedia with known figures."""

import os
from pathlib import Path

import pytest

from talka.data.text import PairOptions, count_pairs, scan_corpus
from tests.data.text import twin
from tests.data.text.samples import resources

DATA = Path(os.environ.get("TALKA_DATA", "../shared/data")) / "text"


def data_file(name):
    if not (DATA / name).exists():
        pytest.skip(f"{DATA / name} does not exist (set TALKA_DATA to its folder)")
    return DATA / name


def test_shakespeare_equals_the_twin():
    path = data_file("tinyshakespeare.txt")
    written = [path.read_text()]
    limits = resources(num_threads=2, memory_bytes=10_000_000)
    corpus = scan_corpus([path], tokenizer="letters", resources=limits)
    expected = twin.vocabulary(written, twin.letters, 5)
    known = [word for word, _ in expected]
    assert corpus.vocabulary.words == known
    assert corpus.vocabulary.counts.tolist() == [count for _, count in expected]
    blocks = count_pairs(corpus, PairOptions(window=4), resources=limits)
    pairs = twin.pairs(written, twin.letters, known, window=4, across_lines=False)
    rows, cols = blocks.words()
    assert blocks.num_pairs == len(pairs)
    counts = dict(
        zip(zip(rows.tolist(), cols.tolist(), strict=True), blocks.pairs["count"], strict=True)
    )
    assert counts == pairs


def test_wikipedia_has_the_words_and_pairs_that_glove_finds():
    path = data_file("enwiki_plain_AA.txt.gz")
    limits = resources(num_threads=2)
    corpus = scan_corpus([path], tokenizer="letters", resources=limits)
    assert corpus.num_tokens == 16_306_168
    assert len(corpus.vocabulary) == 69_152
    assert count_pairs(corpus, resources=limits).num_pairs == 45_076_790
