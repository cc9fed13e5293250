"""One bit a value: the worked examples, rows of zeros, sizes."""

import numpy as np
import pytest
import torch

from talka.compress import Payload, compressor, cut, layout_of
from talka.compress.payload import HEADER, SECTION
from talka.errors import PayloadError, SpecError
from tests.hostile.payloads import wrapped

HEAD_BYTES = HEADER.size + SECTION.size


def arrives(values, layout=None, one=None):
    one = one or compressor("onebit")
    given = torch.tensor(values, dtype=torch.float32).reshape(-1)
    out = torch.full_like(given, 9.0)
    one.decode(one.encode(given, layout), out, layout)
    return out


def test_the_worked_examples():
    assert arrives([5, -1, 1, 3, -3]).tolist() == [3, -2, 3, 3, -2]
    out = arrives([0.1, 0.15, -0.2, 20, 15.3, -1.222])
    upper, lower = np.float32(8.8875), np.float32(-0.711)
    assert out.tolist() == [upper, upper, lower, upper, upper, lower]


def test_the_mean_of_an_empty_side_is_zero_and_zero_counts_as_positive():
    assert arrives([-1, -2, -3]).tolist() == [-2, -2, -2]
    assert arrives([1, 2, 3]).tolist() == [2, 2, 2]
    assert arrives([4, 0, -1]).tolist() == [2, 2, -1]
    assert arrives([4, -0.0, -1]).tolist() == [2, 2, -1]


@pytest.mark.parametrize("num_values", [1, 32, 33, 1000, 100_000])
def test_its_size_is_a_bit_a_value_and_two_floats(num_values):
    payload = compressor("onebit").encode(torch.randn(num_values))
    assert payload.num_bytes == HEAD_BYTES + 12 + -(-num_values // 32) * 4


def test_rows_of_zeros_stay_zero_and_count_for_no_mean():
    layout = layout_of({"embedding": (6, 10)})
    one = compressor("onebit+ef")
    values = np.zeros((6, 10))
    for step in range(5):
        values[1], values[4] = np.arange(10) - 4.0, np.arange(10) + step
        out = arrives(values, layout, one).reshape(6, 10)
        assert not out[[0, 2, 3, 5]].any()
        assert not one.residuals["embedding"].reshape(6, 10)[[0, 2, 3, 5]].any()
    first = arrives(values, layout)
    dense = arrives(values[[1, 4]], layout_of({"dense": (2, 10)}))
    assert torch.equal(first.reshape(6, 10)[[1, 4]].reshape(-1), dense)


def test_signs_of_masked_rows_are_not_sent():
    values = torch.randn(1000, 64)
    values[torch.randperm(1000)[:900]] = 0
    layout = layout_of({"embedding": (1000, 64)})
    payload = compressor("onebit").encode(values.reshape(-1), layout)
    mask_words = -(-1000 // 32)
    assert payload.num_bytes == HEAD_BYTES + 20 + 4 * mask_words + 100 * 64 // 8


def test_no_mask_is_sent_if_no_row_is_zero():
    values = torch.randn(50, 8)
    values[:, 3] = 0
    payload = compressor("onebit").encode(values.reshape(-1), layout_of({"w": (50, 8)}))
    assert payload.num_bytes == HEAD_BYTES + 12 + -(-400 // 32) * 4


@pytest.mark.parametrize("shape", [(40,), (5, 7), (40, 1)])
def test_short_rows_and_vectors_have_no_mask(shape):
    values = torch.zeros(shape)
    values[0] = 1
    out = arrives(values.tolist(), layout_of({"w": shape}))
    assert (out == values.mean()).all()


def test_rows_that_are_cut_are_judged_by_what_is_there():
    layout = cut(layout_of({"w": (4, 10)}), 5, 32)
    values = np.ones(27, np.float32)
    values[:5] = 0  # the end of the first row
    values[25:] = 0  # the beginning of the last
    out = arrives(values, layout)
    assert out.tolist() == values.tolist()


def test_it_remembers_how_large_masked_sections_were():
    one, layout = compressor("onebit"), layout_of({"w": (1000, 50)})
    values = torch.zeros(1000, 50)
    for _ in range(10):
        values[::10] = torch.randn(100, 50)
        payload = one.encode(values.reshape(-1), layout)
    assert one.expected_bytes(50_000, layout) == pytest.approx(payload.num_bytes, rel=0.03)


def test_under_feedback_512_values_share_two_means_unless_said_otherwise():
    values = torch.cat([torch.full((512,), 8.0), torch.ones(512)])
    assert arrives(values.tolist()).tolist() == [4.5] * 1024
    assert arrives(values.tolist(), one=compressor("onebit+ef")).tolist() == values.tolist()
    assert arrives(values.tolist(), one=compressor("onebit:all+ef")).tolist() == [4.5] * 1024
    assert arrives(values.tolist(), one=compressor("onebit:512")).tolist() == values.tolist()
    size = compressor("onebit+ef").encode(torch.randn(10_000)).num_bytes
    assert size == HEAD_BYTES + 4 + 8 * 20 + 4 * 313


@pytest.mark.parametrize(
    "spec", ["onebit:0", "onebit:33", "onebit:x", "onebit:512/3", "onebit:-32"]
)
def test_blocks_that_are_none_are_refused(spec):
    with pytest.raises(SpecError, match="multiple of 32, or all"):
        compressor(spec)


MASKED = 0x80000000


@pytest.mark.parametrize(
    "words",
    [
        [MASKED, 0, 0, 1, 0, 0, 0],  # rows of no values
        [MASKED, 7, 0, 1, 0, 0, 0],  # rows too short for a mask
        [MASKED, 10, 10, 1, 0, 0, 0],  # from beyond the first row on
        [MASKED, 10],  # cut
        [MASKED, 8, 0],  # no mask
        [MASKED, 10, 0, 0b10, 0, 0, 0],  # fewer signs than rows that are not masked
        [MASKED, 10, 0, 0b11111, 0, 0, 0],  # more
        [0, 0, 0],
        [0, 0, 0, 0, 0, 0],
        [33, 0, 0, 0, 0, 0, 0],  # blocks that end inside a word
        [32, 0, 0, 0, 0],  # fewer means than blocks
        [0x7FFFFFE0, 0, 0],
        [0],
        [],
    ],
)
def test_forged_masks_are_errors(words):
    body = b"".join(word.to_bytes(4, "little") for word in words)
    one = compressor("onebit")
    payload = Payload.from_bytes(wrapped(one.code, 50, body))
    with pytest.raises(PayloadError):
        one.decode(payload, torch.zeros(50))
