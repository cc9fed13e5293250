"""A sample is the beginning of the text, read from disk once and scanned any number of times."""

import gzip

import pytest

from talka.data.text import TextReader, TextSample, scan_corpus

LINES = "".join(f"line {number} of a text\n" for number in range(20_000))


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(LINES)
    return path


def text_in(source):
    return b"".join(chunk.text for chunk in source.chunks())


def reader_of(path):
    return TextReader([path], chunk_bytes=10_000)


def test_it_is_the_beginning_and_ends_with_the_chunk_that_is_enough(text):
    sample = TextSample.read(reader_of(text), 95_000)
    assert text_in(sample) == LINES.encode()[: len(text_in(sample))]
    assert 95_000 <= len(text_in(sample)) < 105_000
    assert len(list(sample.chunks())) == 10


def test_all_of_a_short_text_is_its_sample(text):
    sample = TextSample.read(reader_of(text), 10**9)
    assert text_in(sample) == LINES.encode()
    assert sample.disk_bytes == text.stat().st_size
    assert list(sample.chunks())[-1].ends_file


def test_the_first_part_of_a_sample_is_a_sample(text):
    sample = TextSample.read(reader_of(text), 95_000)
    assert len(list(sample.first(1).chunks())) == 1
    assert len(list(sample.first(45_000).chunks())) == 5
    assert text_in(sample.first(10**9)) == text_in(sample)
    assert 0 < sample.first(45_000).read_s < sample.read_s


def test_the_file_is_not_read_again(text):
    sample = TextSample.read(reader_of(text), 10**9)
    text.unlink()
    amounts = []
    assert b"".join(chunk.text for chunk in sample.chunks(amounts.append)) == LINES.encode()
    assert sum(amounts) == len(LINES)


def test_bytes_on_disk_are_those_of_the_compressed_file(tmp_path):
    packed = tmp_path / "text.txt.gz"
    packed.write_bytes(gzip.compress(LINES.encode()))
    sample = TextSample.read(reader_of(packed), 10**9)
    assert text_in(sample) == LINES.encode()
    assert sample.disk_bytes == packed.stat().st_size


def test_scanning_it_is_scanning_its_text(text):
    whole = TextSample.read(reader_of(text), 10**9)
    sampled, read = (scan_corpus(source, min_count=1) for source in (whole, [text]))
    assert sampled.vocabulary.words == read.vocabulary.words
    assert sampled.num_tokens == read.num_tokens


def test_reading_a_sample_leaves_the_counts_of_the_reader_alone(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes(b"caf\xe9 " * 100 + b"plain text " * 100)
    reader = reader_of(path)
    TextSample.read(reader, 10**9)
    assert reader.num_replaced == {}
