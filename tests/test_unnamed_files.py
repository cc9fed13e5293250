import os

import numpy as np
import pytest

from talka.files import UnnamedFile, temporary_folder, unnamed_file


@pytest.fixture(params=["in memory", "on disk"])
def file(request, tmp_path):
    if request.param == "in memory":
        return UnnamedFile(os.memfd_create("talka-test"))
    return UnnamedFile(unnamed_file(tmp_path))


def read(file, num_bytes, offset=0):
    buffer = bytearray(num_bytes)
    file.read_into(buffer, offset)
    return bytes(buffer)


def test_bytes_are_read_where_they_were_written(file):
    assert file.write_at(b"abc", 0) == 3
    assert file.write_at(np.array([1, 2], "<u2"), 3) == 7
    assert read(file, 4, offset=2) == b"c\x01\x00\x02"


def test_empty_data_is_written_and_read(file):
    assert file.write_at(np.empty(0), 5) == 5
    file.read_into(np.empty(0), 5)


def test_a_write_in_several_pieces_is_complete(file, monkeypatch):
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda handle, data, at: real(handle, data[:2], at))
    assert file.write_at(b"abcdefg", 0) == 7
    assert read(file, 7) == b"abcdefg"


def test_reading_past_the_end_fails(file):
    file.write_at(b"abc", 0)
    with pytest.raises(EOFError, match="2 bytes are missing"):
        read(file, 5)


def test_a_copy_has_the_same_bytes(file, tmp_path):
    file.write_at(b"abcdef", 0)
    target = UnnamedFile(unnamed_file(tmp_path))
    file.copy_to(target, 4)
    assert os.fstat(target.descriptor).st_size == 4
    assert read(target, 4) == b"abcd"


def test_copying_more_than_there_is_fails(file, tmp_path):
    file.write_at(b"abc", 0)
    with pytest.raises(EOFError, match="2 bytes are missing"):
        file.copy_to(UnnamedFile(unnamed_file(tmp_path)), 5)


def test_the_descriptor_is_closed_with_the_owner(file):
    descriptor = file.descriptor
    with file:
        os.fstat(descriptor)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    file.close()


def test_an_unnamed_file_leaves_no_name(tmp_path):
    with UnnamedFile(unnamed_file(tmp_path)):
        assert list(tmp_path.iterdir()) == []


def test_the_folder_for_temporary_files_is_found_without_writing(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    monkeypatch.setenv("TEMP", str(tmp_path))
    monkeypatch.setattr(os, "open", lambda *_, **__: pytest.fail("SIGKILL would leave a file"))
    assert temporary_folder() == tmp_path
