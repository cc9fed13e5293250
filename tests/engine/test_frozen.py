"""Stored outputs never change, and memory that no task can change is not copied."""

import numpy as np
import pyarrow as pa
import pytest

from talka.engine import Embedded, storage
from talka.engine.frozen import frozen

MAKERS = {
    "plain": lambda: np.arange(1000.0),
    "reshaped": lambda: np.arange(1000.0).reshape(10, 100),
    "transposed": lambda: np.arange(1000.0).reshape(10, 100).T,
    "reversed": lambda: np.arange(1000.0)[::-1],
    "sliced": lambda: np.arange(1000.0)[100:900],
    "times": lambda: np.arange(1000).astype("datetime64[s]"),
    "records": lambda: np.zeros(1000, [("a", "i4"), ("b", "f8")]),
    "no axis in order": lambda: np.zeros((3, 4, 5)).transpose(1, 0, 2).copy(order="K"),
    "of a buffer": lambda: np.frombuffer(bytearray(80), np.int64),
    "small": lambda: np.arange(10).reshape(2, 5).T,
    "empty": lambda: np.zeros(0),
}


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_frozen_array_is_equal_and_cannot_be_made_writeable(make):
    array = frozen(storage.to_storable(make()))
    np.testing.assert_array_equal(array, make())
    assert array.dtype == make().dtype
    if array.nbytes:
        for view in (array, array[1:], array.T, array.view()):
            with pytest.raises(ValueError, match="cannot set WRITEABLE"):
                view.flags.writeable = True


@pytest.mark.parametrize("name", ["plain", "reshaped", "transposed", "sliced", "times", "records"])
def test_memory_without_other_references_is_not_copied(name):
    array = MAKERS[name]()
    where = address(array)
    storable = storage.to_storable(array)
    del array
    assert address(frozen(storable)) == where


@pytest.mark.parametrize(
    "keep", [lambda a: a, lambda a: a[5:], memoryview], ids=["the array", "a slice", "a view"]
)
def test_memory_with_other_references_is_copied(keep):
    array = np.zeros(1000)
    kept = keep(array)
    storable = storage.to_storable(array)
    del array
    stored = frozen(storable)
    kept[0] = 1.0
    assert not stored.any()


def test_arrays_that_were_stored_before_are_not_copied():
    stored = frozen(storage.to_storable(np.zeros(1000)))
    assert address(frozen(storage.to_storable(stored[1:]))) == address(stored[1:])
    mapped = storage.unpack(storage.pack_whole(np.zeros(1000)))
    assert address(frozen(storage.to_storable(mapped))) == address(mapped)


def test_a_buffer_that_a_task_fills_again_does_not_change_its_output():
    buffer = np.zeros(1000)

    def fill(number):
        buffer[:] = number
        return buffer

    def two():
        buffer[:] = 5
        return buffer[:500], buffer.reshape(10, 100)

    with Embedded(threads=1) as engine:
        refs = [engine.submit(fill, number) for number in range(3)]
        refs += engine.submit(two, num_outputs=2)
        values = engine.fetch(refs)
        buffer[:] = 9
        assert [value.flat[0] for value in values] == [0, 1, 2, 5, 5]


def test_a_task_cannot_change_its_input():
    def change(array):
        array.flags.writeable = True

    with Embedded(threads=1) as engine:
        for make in (lambda: np.zeros(1000), lambda: np.frombuffer(pa.py_buffer(bytes(8000)))):
            ref = engine.submit(make)
            with pytest.raises(Exception, match="cannot set WRITEABLE"):
                engine.fetch(engine.submit(change, ref))
