import numpy as np
import pytest

from talka.data.text.pair_file import PairFile
from talka.data.text.spool import OnDisk, Spool


@pytest.mark.parametrize("memory_bytes", [0, 40, 10**6])
def test_arrays_come_back_from_memory_and_from_disk(tmp_path, memory_bytes):
    spool = Spool(tmp_path, memory_bytes=memory_bytes)
    arrays = [np.arange(5), np.array([], np.uint8), np.arange(7, dtype=np.float32)]
    stored = [spool.add(array) for array in arrays]
    for array, kept in zip(arrays, stored, strict=True):
        assert len(kept) == len(array)
        assert kept[:].tolist() == array.tolist()
        assert kept[2:4].tolist() == array[2:4].tolist()
        assert kept[:].dtype == array.dtype
    assert list(tmp_path.iterdir()) == []


def test_what_is_beyond_the_budget_goes_to_disk(tmp_path):
    spool = Spool(tmp_path, memory_bytes=80)
    stored = [spool.add(np.arange(5)) for _ in range(3)]
    assert [isinstance(kept, OnDisk) for kept in stored] == [False, False, True]


@pytest.mark.parametrize("memory_bytes", [0, 10_000, 10**6])
def test_a_file_of_pairs_keeps_what_was_written_when_it_grows_and_moves(tmp_path, memory_bytes):
    file = PairFile(tmp_path, memory_bytes=memory_bytes)
    dtype = np.dtype(np.uint64)
    for number in range(5):
        file.extend(8 * 700)
        file.mapped(8 * 700 * number, file.num_bytes, dtype)[:] = number
    whole = file.mapped(0, file.num_bytes, dtype)
    del file
    assert whole.tolist() == np.repeat(np.arange(5), 700).tolist()


def test_an_empty_file_of_pairs_is_an_empty_array(tmp_path):
    file = PairFile(tmp_path, memory_bytes=0)
    file.extend(0)
    assert len(file.mapped(0, 0, np.dtype(np.uint64))) == 0
