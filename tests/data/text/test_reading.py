import gzip
import io
import sys

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.data.text import TextReader
from talka.errors import CorpusError


def read(paths, **options):
    return b"".join(chunk.text for chunk in TextReader(paths, **options).chunks())


class StandardInput:
    def __init__(self, data):
        self.buffer = io.BytesIO(data)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_plain_and_packed_files_read_the_same_whatever_their_names(tmp_path, pack):
    text = b"one two\nthree\n" * 30_000
    path = tmp_path / "file"
    path.write_bytes(pack(text))
    assert read([path]) == text


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_packed_files_in_several_members_are_read_to_the_end(tmp_path, pack):
    path = tmp_path / "file"
    path.write_bytes(pack(b"one\n") + pack(b"two\n" * 9999) + pack(b"three\n"))
    assert read([path]) == b"one\n" + b"two\n" * 9999 + b"three\n"


def test_zeros_after_the_last_gzip_member_are_padding(tmp_path):
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(b"one\n") + bytes(512))
    assert read([path]) == b"one\n"


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_packed_file_that_was_cut_off_is_an_error_that_names_it(tmp_path, pack):
    path = tmp_path / "half.packed"
    path.write_bytes(pack(bytes(range(32, 127)) * 1000)[:-9])
    with pytest.raises(CorpusError, match=r"half\.packed.*damaged"):
        read([path])


@pytest.mark.parametrize("magic", [b"\x1f\x8b", b"\x28\xb5\x2f\xfd"])
def test_a_file_that_only_begins_like_a_packed_one_is_an_error_that_names_it(tmp_path, magic):
    path = tmp_path / "broken"
    path.write_bytes(magic + b"but then it goes on in another way\n" * 9)
    with pytest.raises(CorpusError, match="broken.*damaged"):
        read([path])


def test_folders_are_read_in_the_order_of_paths_without_hidden_files(tmp_path):
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    for name in ("z.txt", "b/c/2.txt", "b/1.txt", "a.txt", ".hidden", ".git/config"):
        (tmp_path / name).write_text(f"{name}\n")
    assert read([tmp_path]).decode().split() == ["a.txt", "b/1.txt", "b/c/2.txt", "z.txt"]


def test_a_dash_is_standard_input_packed_or_not(monkeypatch):
    monkeypatch.setattr(sys, "stdin", StandardInput(gzip.compress(b"from a pipe")))
    reader = TextReader(["-"])
    assert reader.total_bytes is None
    assert [chunk.text for chunk in reader.chunks()] == [b"from a pipe"]


def test_progress_sums_up_to_the_bytes_on_disk(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"text " * 100_000))
    (tmp_path / "b.txt").write_bytes(b"text " * 100_000)
    reader, amounts = TextReader([tmp_path]), []
    assert len(list(reader.chunks(amounts.append))) == 2
    assert sum(amounts) == reader.total_bytes > 500_000


@given(
    st.lists(st.sampled_from(["ab", " ", "\n", "\r\n", "é", "日本", "🙂", "x" * 20]), max_size=80),
    st.integers(8, 40),
)
@settings(deadline=None)
def test_chunks_are_small_valid_and_together_the_whole_text(tmp_path_factory, pieces, chunk_bytes):
    path = tmp_path_factory.mktemp("read") / "file"
    path.write_bytes("".join(pieces).encode())
    chunks = list(TextReader([path], chunk_bytes=chunk_bytes).chunks())
    assert b"".join(chunk.text for chunk in chunks) == path.read_bytes()
    assert all(len(chunk.text) <= chunk_bytes for chunk in chunks)
    assert [chunk.ends_file for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    for chunk in chunks:
        chunk.text.decode()


def test_a_chunk_ends_at_a_line_end_else_at_a_space_else_between_characters(tmp_path):
    path = tmp_path / "file"
    path.write_text("one two\nthree four five six " + "é" * 10)
    texts = [chunk.text.decode() for chunk in TextReader([path], chunk_bytes=13).chunks()]
    assert texts == ["one two\n", "three four ", "five six ", "éééééé", "éééé"]


def test_a_huge_line_is_read_in_bounded_pieces(tmp_path):
    path = tmp_path / "line.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(b"word " * 209_715)
    sizes = [len(chunk.text) for chunk in TextReader([path]).chunks()]
    assert sum(sizes) == 64 * 5 * 209_715
    assert max(sizes) <= 1 << 20


def test_a_byte_order_mark_is_no_part_of_the_first_word(tmp_path):
    for name, pack in (("a", bytes), ("b.gz", gzip.compress), ("c.zst", zstandard.compress)):
        (tmp_path / name).write_bytes(pack(b"\xef\xbb\xbfword\n"))
    assert read([tmp_path]) == b"word\n" * 3


def test_invalid_places_are_replaced_and_counted_by_file(tmp_path):
    (tmp_path / "good").write_text("gut genug \ufffd\n")
    (tmp_path / "bad").write_bytes(b"caf\xe9 cr\xe8me and a good one: \xef\xbf\xbd\n" * 2)
    reader = TextReader([tmp_path])
    text = b"".join(chunk.text for chunk in reader.chunks()).decode()
    assert text.startswith("caf\ufffd cr\ufffdme")
    assert reader.num_replaced == {str(tmp_path / "bad"): 4}


@pytest.mark.parametrize(
    "data, problem",
    [
        (b"text, then \0\0\0 rubbish", "NUL"),
        ("UTF-16 text".encode("utf-16"), "NUL"),
        ("Русский текст".encode("cp1251"), "not UTF-8"),
        (bytes(range(128, 256)) * 20, "not UTF-8"),
    ],
)
def test_what_is_not_text_is_an_error_that_names_the_file(tmp_path, data, problem):
    path = tmp_path / "rubbish.bin"
    path.write_bytes(data)
    with pytest.raises(CorpusError, match=problem) as caught:
        read([path])
    assert caught.value.source == str(path)
    assert caught.value.exit_code == 2


def test_a_missing_file_is_found_before_anything_is_read(tmp_path):
    with pytest.raises(CorpusError, match=r"missing\.txt.*does not exist"):
        TextReader([tmp_path / "missing.txt"])


def test_a_folder_without_files_is_an_error(tmp_path):
    with pytest.raises(CorpusError, match="folder without files"):
        TextReader([tmp_path])


def test_a_file_that_vanishes_before_it_is_read_is_an_error_that_names_it(tmp_path):
    path = tmp_path / "soon.txt"
    path.write_text("gone")
    reader = TextReader([path])
    path.unlink()
    with pytest.raises(CorpusError, match=r"soon\.txt.*cannot be read"):
        list(reader.chunks())


def test_an_empty_file_is_one_empty_chunk(tmp_path):
    (tmp_path / "empty").touch()
    assert list(TextReader([tmp_path / "empty"]).chunks()) == [(b"", True)]
