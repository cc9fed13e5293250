"""Vocabulary and ids compared with the twin, for every tokenizer."""

import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from talka.data.text import FILE_END, LINE_END, scan_corpus
from talka.data.text.tokens import char_map_of
from talka.data.text.word_table import WordTable
from talka.errors import InvalidValueError, NothingToLearnError, TokenizerError, UnknownNameError
from tests.data.text import twin
from tests.data.text.samples import WORDS, resources, scan, texts, write_files


def stream_of(corpus):
    return np.concatenate(list(corpus.id_chunks())).tolist()


def without_repeated_line_ends(stream):
    """Merge adjacent line ends: blank lines and the halves of CR LF may or may not give a mark."""
    kept = []
    for number in stream:
        if number != LINE_END or not kept or kept[-1] != LINE_END:
            kept.append(number)
    return kept


def assert_same_as_twin(corpus, written, tokenize, min_count):
    expected = twin.vocabulary(written, tokenize, min_count)
    known = [word for word, _ in expected]
    assert corpus.vocabulary.words == known
    assert corpus.vocabulary.counts.tolist() == [count for _, count in expected]
    stream = without_repeated_line_ends(twin.ids(written, tokenize, known))
    assert without_repeated_line_ends(stream_of(corpus)) == stream
    assert corpus.num_tokens == sum(number >= -1 for number in stream)


@given(
    written=st.lists(texts, min_size=1, max_size=3),
    tokenizer=st.sampled_from(sorted(twin.TOKENIZERS)),
    min_count=st.integers(1, 3),
    num_threads=st.integers(1, 2),
    chunk_bytes=st.sampled_from([128, 1000, 1 << 20]),
)
@settings(deadline=None, max_examples=200)
def test_equals_the_twin_on_any_text(
    tmp_path_factory, written, tokenizer, min_count, num_threads, chunk_bytes
):
    written = [f"one one one\n{text}" for text in written]  # never without a word
    runs = (run for text in written for run in re.split("[ \t\r\n]", text))
    assume(max(len(run.encode()) for run in runs) < chunk_bytes)  # otherwise a word may be cut
    corpus = scan(
        tmp_path_factory.mktemp("scan"),
        written,
        chunk_bytes=chunk_bytes,
        tokenizer=tokenizer,
        min_count=min_count,
        resources=resources(num_threads=num_threads),
    )
    assert_same_as_twin(corpus, written, twin.TOKENIZERS[tokenizer], min_count)


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
@settings(deadline=None, max_examples=300)
@pytest.mark.parametrize("tokenizer", sorted(twin.TOKENIZERS))
def test_equals_the_twin_on_any_characters(tmp_path_factory, tokenizer, text):
    written = [f"one\n{text}"]
    corpus = scan(
        tmp_path_factory.mktemp("scan"),
        written,
        tokenizer=tokenizer,
        min_count=1,
        resources=resources(),
    )
    assert_same_as_twin(corpus, written, twin.TOKENIZERS[tokenizer], 1)


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("tokenizer", sorted(twin.TOKENIZERS))
def test_tables_grow_with_the_number_of_words(tmp_path, tokenizer, num_threads):
    numbers = [f"w{'x' * (number % 30)}{number}" for number in range(60_000)]
    written = ["\n".join(numbers + numbers[::3])]
    options = {"min_count": 2, "resources": resources(num_threads=num_threads)}
    corpus = scan(tmp_path, written, chunk_bytes=10_000, tokenizer=tokenizer, **options)
    assert_same_as_twin(corpus, written, twin.TOKENIZERS[tokenizer], 2)


@pytest.mark.parametrize("length", [7, 8, 9, 16, 999, 1000, 1001, 5000])
def test_words_of_any_length_are_whole_and_rubbish_is_outside(tmp_path, length):
    written = ["a" * length + " b " + "a" * length + " b"]
    corpus = scan(tmp_path, written, tokenizer="letters", min_count=2, resources=resources())
    assert_same_as_twin(corpus, written, twin.letters, 2)


def test_every_sample_word_is_cut_as_the_twin_cuts_it(tmp_path):
    written = [f" {word} " for word in WORDS]
    corpus = scan(tmp_path, written, tokenizer="words", min_count=1, resources=resources())
    assert_same_as_twin(corpus, written, twin.words, 1)


def test_greek_and_turkish_capitals_become_the_right_small_letters(tmp_path):
    corpus = scan(tmp_path, ["ΟΔΟΣ ΣΟΦΟΣ İSTANBUL"], min_count=1, resources=resources())
    assert sorted(corpus.vocabulary.words) == ["i\u0307stanbul", "οδος", "σοφος"]


def test_a_table_of_one_thread_takes_the_counts_of_another():
    one, other = (WordTable(char_map_of("words")) for _ in range(2))
    one.count(b"a b b c")
    other.count(b"c d b")
    numbers = one.add(other)
    assert one.words(np.arange(4)) == ["a", "b", "c", "d"]
    assert one.counts.tolist() == [1, 3, 2, 1]
    assert numbers.tolist() == [2, 3, 1]


def test_the_stream_is_the_same_from_disk(tmp_path):
    written = ["a b c\nb c d e\n" * 500]
    in_memory = scan(tmp_path, written, chunk_bytes=100, resources=resources())
    options = resources(memory_bytes=1, work_dir=tmp_path)
    on_disk = scan(tmp_path, written, chunk_bytes=100, resources=options)
    assert stream_of(on_disk) == stream_of(in_memory)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text0.txt"]


def test_a_function_of_ones_own_cuts_lines(tmp_path):
    def syllables(line):
        return line.replace(" ", "-").split("-") if line else []

    written = ["ta-ka ta-la\nka\r\nta ka", "la"]
    corpus = scan(tmp_path, written, tokenizer=syllables, min_count=1, resources=resources())
    assert_same_as_twin(corpus, written, syllables, 1)


@pytest.mark.parametrize(
    "tokens, shown", [(["new york"], "'new york'"), ([""], "''"), ([7], "7"), ("ab", "a str")]
)
def test_a_function_that_returns_no_words_is_an_error(tmp_path, tokens, shown):
    with pytest.raises(TokenizerError, match=f"returned {shown}"):
        scan(tmp_path, ["text"], tokenizer=lambda line: tokens)


def test_an_error_of_the_function_is_raised(tmp_path):
    with pytest.raises(ZeroDivisionError):
        scan(tmp_path, ["text"], tokenizer=lambda line: [str(1 // 0)])


def test_each_file_ends_the_stream_of_its_lines(tmp_path):
    corpus = scan(tmp_path, ["a b", "b\n"], min_count=1, resources=resources())
    assert stream_of(corpus) == [1, 0, FILE_END, 0, LINE_END, FILE_END]


@pytest.mark.parametrize("text", ["", "\n\n", " ... \n"])
def test_a_text_without_words_is_an_error(tmp_path, text):
    with pytest.raises(NothingToLearnError, match="no words"):
        scan(tmp_path, [text])


def test_a_text_of_rare_words_is_an_error_that_names_the_commonest(tmp_path):
    with pytest.raises(
        NothingToLearnError, match="no word occurs 5 times .'b' is the most frequent, 2"
    ):
        scan(tmp_path, ["a b b c"])


def test_an_unknown_tokenizer_is_an_error_with_a_hint(tmp_path):
    with pytest.raises(UnknownNameError, match="'words'"):
        scan(tmp_path, ["a"], tokenizer="wrods")


@pytest.mark.parametrize("options", [{"num_threads": 0}, {"memory_bytes": -5}])
def test_resources_below_one_are_errors(options):
    with pytest.raises(InvalidValueError):
        resources(**options)


def test_a_minimum_count_below_one_is_an_error(tmp_path):
    with pytest.raises(InvalidValueError, match="min_count is 0"):
        scan(tmp_path, ["a"], min_count=0)


def test_progress_counts_the_bytes_read(tmp_path):
    amounts = []
    scan_corpus(
        write_files(tmp_path, ["a b " * 100]), resources=resources(), advance=amounts.append
    )
    assert sum(amounts) == 400


def test_invalid_places_are_reported(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"good words \xff and good words again")
    corpus = scan_corpus([path], min_count=2, resources=resources())
    assert corpus.num_replaced == {str(path): 1}
    assert corpus.vocabulary.words == ["good", "words"]
