"""One storage form: whatever goes in comes out, without a copy where there is one to save."""

import os

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from talka.engine import parcels, storage
from talka.errors import NotStorableError

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(-100, 100), inner)
    ),
    max_leaves=20,
)
ARRAYS = npst.arrays(
    dtype=npst.scalar_dtypes() | npst.array_dtypes(max_size=3),
    shape=npst.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4),
)
TEXT = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"])
)  # numpy pads by NUL
TABLES = [
    pa.table({}),
    pa.table({"a": pa.array([], pa.int32())}),
    pa.table({"a": [1, None], "b": ["x", "y"], "c": [[1, 2], []], "d": [{"e": 1}, None]}),
    pa.table({"d": pa.chunked_array([pa.array(["a"]).dictionary_encode(), pa.array(["b", "a"]).dictionary_encode()])}),
    pa.table({"a": range(1000)}).slice(990, 5),
]  # fmt: skip


def same_type_and_value(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same_type_and_value, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same_type_and_value(a[k], b[k]) for k in a)
    return a == b


@given(PLAIN)
def test_plain_values_keep_value_and_type(value):
    assert same_type_and_value(storage.unpack(storage.settle(value)), value)


@given(ARRAYS)
@settings(deadline=None)
def test_arrays_keep_shape_dtype_and_every_byte(array):
    again = storage.from_buffer(storage.to_buffer(storage.settle(array)))
    assert again.dtype == array.dtype
    assert again.shape == array.shape
    assert again.tobytes() == array.tobytes()
    assert not again.flags.writeable


@given(st.floats().map(np.float64) | st.integers(0, 99).map(np.uint8) | TEXT.map(np.str_))
def test_numpy_scalars_stay_numpy_scalars(value):
    again = storage.unpack(storage.settle(value))
    assert type(again) is type(value)
    assert again.tobytes() == value.tobytes()


@pytest.mark.parametrize("table", TABLES, ids=lambda t: str(t.schema.names))
def test_arrow_keeps_kind_and_value(table):
    values = [table, *table.columns[:1], *table.to_batches()[:1]]
    for value in values:
        again = storage.from_buffer(storage.to_buffer(storage.settle(value)))
        assert type(again) is type(value)
        assert again.equals(value) or again.to_pylist() == value.to_pylist()


def test_fortran_order_and_strides_are_read_by_value():
    matrix = np.arange(12).reshape(3, 4)
    for view in (matrix.T, matrix[:, ::2], np.asfortranarray(matrix)):
        np.testing.assert_array_equal(storage.from_buffer(storage.to_buffer(view)), view)


def test_a_thin_slice_does_not_keep_the_whole_alive():
    whole = np.zeros(1000)
    assert storage.settle(whole[:10]).base is None or storage.settle(whole[:10]).base.nbytes <= 160
    assert np.shares_memory(storage.settle(whole[:900]), whole)


def test_a_file_in_shared_memory_is_read_without_a_copy_and_has_no_name():
    before = set(os.listdir("/dev/shm"))
    file = storage.in_shared_memory(np.arange(100_000))
    mapped = storage.read_file(file)
    assert set(os.listdir("/dev/shm")) == before
    allocated = pa.total_allocated_bytes()
    again = storage.read_file(file)
    assert pa.total_allocated_bytes() == allocated
    descriptor = file.descriptor
    del file
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    np.testing.assert_array_equal(mapped, again)  # the mapping outlives the descriptor


def test_a_file_on_disk_has_no_name(tmp_path):
    file = storage.on_disk(pa.table({"a": [1]}), tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert storage.read_file(file)["a"].to_pylist() == [1]
    packed = storage.moved_to_disk(storage.in_shared_memory(storage.pack("x" * 10)), tmp_path)
    assert storage.read_file(packed) == "x" * 10


def test_parcels_arrive_as_they_were_sent():
    contents = [storage.pack(1), storage.pack("x" * 200_000), np.arange(5)]
    wrapped = parcels.wrap(contents)
    assert len(wrapped.files) == 2
    arrived = parcels.unwrap(wrapped.labels, [os.dup(fd) for fd in wrapped.descriptors])
    values = [parcels.value_of(content) for content in arrived]
    assert values[:2] == [1, "x" * 200_000]
    np.testing.assert_array_equal(values[2], np.arange(5))


@pytest.mark.parametrize(
    "value",
    [{1}, object(), 2**64, [object()], np.array([object()]), print],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_stored_says_what_can(value):
    with pytest.raises(NotStorableError, match="Return Arrow"):
        storage.settle(value)


def test_a_list_that_holds_itself_is_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(NotStorableError):
        storage.settle(endless)
