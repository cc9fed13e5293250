"""The storage form: every value comes back unchanged, and without a copy where possible."""

import errno
import os

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from talka.engine import parcels, storage
from talka.engine.segments import StorageSegment
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
    assert same_type_and_value(storage.unpack(storage.to_storable(value)), value)


@given(ARRAYS)
@settings(deadline=None)
def test_arrays_keep_shape_dtype_and_every_byte(array):
    again = storage.from_buffer(storage.to_buffer(storage.to_storable(array)))
    assert again.dtype == array.dtype
    assert again.shape == array.shape
    assert again.tobytes() == array.tobytes()
    assert not again.flags.writeable


@given(st.floats().map(np.float64) | st.integers(0, 99).map(np.uint8) | TEXT.map(np.str_))
def test_numpy_scalars_stay_numpy_scalars(value):
    again = storage.unpack(storage.to_storable(value))
    assert type(again) is type(value)
    assert again.tobytes() == value.tobytes()


@pytest.mark.parametrize("table", TABLES, ids=lambda t: str(t.schema.names))
def test_arrow_keeps_kind_and_value(table):
    values = [table, *table.columns[:1], *table.to_batches()[:1]]
    for value in values:
        again = storage.from_buffer(storage.to_buffer(storage.to_storable(value)))
        assert type(again) is type(value)
        assert again.equals(value) or again.to_pylist() == value.to_pylist()


def test_fortran_order_and_strides_are_read_by_value():
    matrix = np.arange(12).reshape(3, 4)
    for view in (matrix.T, matrix[:, ::2], np.asfortranarray(matrix)):
        np.testing.assert_array_equal(storage.from_buffer(storage.to_buffer(view)), view)


def test_a_small_slice_does_not_keep_the_whole_array_alive():
    whole = np.zeros(1000)
    assert (
        storage.to_storable(whole[:10]).base is None
        or storage.to_storable(whole[:10]).base.nbytes <= 160
    )
    assert np.shares_memory(storage.to_storable(whole[:900]), whole)


def test_a_file_in_shared_memory_is_read_without_a_copy_and_has_no_name():
    before = set(os.listdir("/dev/shm"))
    file = storage.into_file(np.arange(100_000), StorageSegment.create())
    mapped = storage.read_file(file)
    assert set(os.listdir("/dev/shm")) == before
    allocated = pa.total_allocated_bytes()
    again = storage.read_file(file)
    assert pa.total_allocated_bytes() == allocated
    descriptor = file.segment.descriptor
    del file
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    np.testing.assert_array_equal(mapped, again)  # the mapping is valid without the descriptor


def test_a_file_on_disk_has_no_name(tmp_path):
    segment = StorageSegment.create(tmp_path)
    file = storage.into_file(pa.table({"a": [1]}), segment)
    assert list(tmp_path.iterdir()) == []
    assert storage.read_file(file)["a"].to_pylist() == [1]
    packed = storage.into_file(storage.pack("x" * 10), StorageSegment.create())
    assert storage.read_file(storage.into_file(packed, segment)) == "x" * 10
    assert storage.read_file(file)["a"].to_pylist() == [1]


def test_a_full_disk_leaves_the_segment_as_it_was(monkeypatch):
    segment = StorageSegment.create()
    first = storage.into_file(np.arange(1000), segment)
    size = segment.num_bytes

    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space left"):
        storage.into_file(np.arange(1000), segment)
    monkeypatch.undo()
    assert segment.num_bytes == size
    np.testing.assert_array_equal(storage.read_file(first), np.arange(1000))


def test_arrays_of_2_gib_and_more_can_be_written():
    """The pages of `np.zeros` are never touched, so neither side needs memory."""
    sink = pa.MockOutputStream()
    storage.write(np.zeros(2**31 + 5, np.uint8), sink)
    assert sink.size() > 2**31


def test_a_write_that_is_cut_short_continues(monkeypatch):
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: real(file, data[:7], at))
    file = storage.into_file(np.arange(100), StorageSegment.create())
    monkeypatch.undo()
    np.testing.assert_array_equal(storage.read_file(file), np.arange(100))


def test_parcels_arrive_as_they_were_sent():
    large = np.arange(100_000)
    contents = [storage.pack(1), storage.pack("x" * 200_000), np.arange(5), large]
    wrapped = parcels.wrap(contents)
    assert len(wrapped.segments) == 1
    arrived = parcels.unwrap(wrapped.labels, [os.dup(fd) for fd in wrapped.descriptors])
    values = [parcels.value_of(content) for content in arrived]
    assert values[:2] == [1, "x" * 200_000]
    np.testing.assert_array_equal(values[2], np.arange(5))
    np.testing.assert_array_equal(values[3], large)


def test_large_values_have_separate_segments_and_small_ones_share():
    large, small = np.zeros(2_000_000, np.uint8), np.zeros(100_000, np.uint8)
    assert len(parcels.wrap([large, large, large]).segments) == 3
    assert len(parcels.wrap([small] * 10).segments) == 1


def test_a_message_has_few_segments_for_any_size(monkeypatch):
    monkeypatch.setattr("talka.engine.segments.MIN_SEGMENT_BYTES", 1)
    monkeypatch.setattr("talka.engine.segments.max_in_message", lambda: 4)
    values = [np.full(100_000, i, np.uint8) for i in range(100)]
    wrapped = parcels.wrap(values)
    assert len(wrapped.segments) <= 5
    arrived = parcels.unwrap(wrapped.labels, [os.dup(fd) for fd in wrapped.descriptors])
    assert [parcels.value_of(content)[0] for content in arrived] == list(range(100))


def test_more_small_values_than_a_frame_takes_go_into_a_segment(monkeypatch):
    monkeypatch.setattr(parcels, "MAX_INLINE_BYTES", 500)
    wrapped = parcels.wrap([storage.pack("x" * 100)] * 10)
    assert sum(len(label) for label in wrapped.labels if isinstance(label, bytes)) <= 500
    assert len(wrapped.segments) == 1
    arrived = parcels.unwrap(wrapped.labels, [os.dup(fd) for fd in wrapped.descriptors])
    assert [parcels.value_of(content) for content in arrived] == ["x" * 100] * 10


@pytest.mark.parametrize(
    "value",
    [{1}, object(), 2**64, [object()], np.array([object()]), print],
    ids=lambda value: type(value).__name__,
)
def test_an_error_for_other_types_names_allowed_types(value):
    with pytest.raises(NotStorableError, match="Return Arrow"):
        storage.to_storable(value)


def nested(depth, *wrappers):
    value = 0
    for level in range(depth):
        value = wrappers[level % len(wrappers)](value)
    return value


@pytest.mark.parametrize(
    "wrappers",
    [
        [lambda value: (1, value)],
        [lambda value: [value]],
        [lambda value: {"key": value}],
        [lambda value: (value,), lambda value: [value], lambda value: {1: value}],
    ],
    ids=["tuples", "lists", "dicts", "mixed"],
)
def test_plain_values_of_100_levels_come_back(wrappers):
    value = nested(100, *wrappers)
    assert same_type_and_value(storage.unpack(storage.to_storable(value)), value)


@pytest.mark.parametrize("depth", [250, 100_000])
def test_a_value_nested_too_deep_is_refused_without_a_crash(depth):
    with pytest.raises(NotStorableError, match="a value of type tuple .nested more than 128"):
        storage.to_storable(nested(depth, lambda value: (1, value)))


def test_a_list_that_contains_itself_is_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(NotStorableError):
        storage.to_storable(endless)
