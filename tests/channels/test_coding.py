"""Values as messages and back; forged descriptions are refused."""

import contextlib

import msgpack
import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from talka.channels.coding import check_sendable, decoded, encoded
from talka.errors import FrameError, NotStorableError, PayloadError

REFUSED = (FrameError, PayloadError)
STRUCTURED = np.array([(1, 2.5), (3, -1.0)], [("a", "<i4"), ("b", "<f8")])
ARRAYS = [
    *(np.arange(6).astype(kind) for kind in "bBhHiIlLefdFD?"),
    np.arange(6, dtype=">i4"),
    np.array(2.5),
    np.array(7, np.int16),
    np.zeros(0, np.float32),
    np.zeros((3, 0, 2)),
    np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    np.arange(20)[::3],
    np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1),
    STRUCTURED,
    STRUCTURED.reshape(2, 1),
    np.array(["2026-11-18", "2000-01-01"], "datetime64[s]"),
    np.array([b"ab", b"c"]),
    np.array(["text", "more"]),
]
TENSORS = [
    torch.arange(6, dtype=torch.float32).reshape(2, 3),
    torch.arange(6, dtype=torch.bfloat16),
    torch.arange(6).to(torch.float8_e4m3fn),
    torch.tensor([True, False]),
    torch.tensor(1.5, dtype=torch.bfloat16),
    torch.zeros(0, 3),
    torch.arange(12.0).reshape(3, 4).T,
    torch.arange(4, dtype=torch.float64, requires_grad=True),
    torch.ones(3, dtype=torch.complex64),
    torch.arange(3, dtype=torch.uint8),
]
ARROW = [
    pa.table({"n": [1, 2, None], "s": ["a", "bb", None]}),
    pa.RecordBatch.from_pydict({"d": [1.5, None]}),
    pa.array([1, None, 3]),
    pa.array(["x", "y", "x"]).dictionary_encode(),
    pa.table({"n": pa.array([], pa.int64())}),
]


def sent(value):
    description, body = encoded(value)
    copy = memoryview(bytearray(body))
    return decoded(description, copy)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_arrays_come_back(array):
    check_sendable(array)
    other = sent(array)
    assert other.dtype == array.dtype
    assert other.shape == array.shape
    np.testing.assert_array_equal(other, array)
    if array.dtype.kind in "iuf" and array.size:
        other[...] = 1  # what is received belongs to the receiver


@pytest.mark.parametrize("tensor", TENSORS, ids=lambda tensor: f"{tensor.dtype}{tensor.shape}")
def test_tensors_come_back(tensor):
    check_sendable(tensor)
    other = sent(tensor)
    assert other.dtype == tensor.dtype
    assert other.shape == tensor.shape
    assert not other.requires_grad
    is_float8 = tensor.dtype == torch.float8_e4m3fn
    assert torch.equal(*((t.double() if is_float8 else t) for t in (other, tensor.detach())))


@pytest.mark.parametrize("value", ARROW, ids=lambda value: type(value).__name__)
def test_arrow_values_come_back(value):
    check_sendable(value)
    assert sent(value).equals(value)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary()
    | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)  # fmt: skip


@given(PLAIN)
def test_plain_values_come_back_with_their_types(value):
    other = sent(value)
    assert other == value
    assert repr(other) == repr(value)


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, np.array([object()]), np.array([(1, "x")], [("a", "i4"), ("b", "O")])],
    ids=["object", "set", "object array", "object field"],
)
def test_other_values_are_refused(value):
    with pytest.raises(NotStorableError):
        encoded(value)
    with pytest.raises(NotStorableError):
        check_sendable(value)


def test_tensors_without_a_form_are_refused():
    for tensor in (torch.ones(3).to_sparse(), torch.zeros(2, dtype=torch.float8_e4m3fnuz)):
        with pytest.raises(NotStorableError):
            encoded(tensor)
        with pytest.raises(NotStorableError):
            check_sendable(tensor)


NAMES = ["<f4", "|O", "O", "|S0", "S", "U", "V", "f16", "", "M8[s]", "q" * 5000, "{'names': 1}",
         "float32", "bfloat16", "complex32", "qint8", "float", "Tensor", "bits8", "nn",
         "[('a', '<i4'), ('b', 'O')]", "[('a', '<i4')]", "float8_e4m3fn", "uint4"]  # fmt: skip
LENGTHS = st.sampled_from([0, 1, 2, 3, 2**31, 2**62, 2**63, 2**64 - 1, -1, None, 1.5, "x", True])


@given(
    st.sampled_from(["array", "tensor", "plain", "arrow", "other", 3]),
    st.one_of(st.sampled_from(NAMES), st.text(max_size=6)),
    st.one_of(st.lists(LENGTHS, max_size=5), st.just([1] * 64), st.just([1] * 65)),
    st.binary(max_size=12),
)
def test_forged_descriptions_are_refused_or_small(kind, name, shape, body):
    for fields in ([kind], [kind, name, shape], [kind, name, shape, 1], {"a": kind}):
        try:
            value = decoded(msgpack.packb(fields), memoryview(bytearray(body)))
        except REFUSED:
            continue
        size = getattr(value, "nbytes", 0)
        assert size <= max(64, 8 * len(body)) or kind in ("plain", "arrow")


@pytest.mark.parametrize(
    "fields",
    [
        ["array", "<f4", [0, 2**62, 2**62]],
        ["array", "<f4", [0, 2**64 - 1]],
        ["array", "S", [2**40]],
        ["array", "U", [2**40]],
        ["array", "V", [2**40]],
        ["array", "[]", [2**40]],
        ["tensor", "complex32", [0]],
        ["tensor", "float", [0]],
        ["tensor", "uint4", [0]],
        ["tensor", "float32", [2**63, 0]],
    ],
)
def test_descriptions_of_empty_bodies_allocate_nothing(fields):
    with pytest.raises(REFUSED):
        decoded(msgpack.packb(fields), memoryview(bytearray()))


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_any_bytes_are_a_value_or_refused(description, body):
    with contextlib.suppress(*REFUSED):
        decoded(description, memoryview(bytearray(body)))
