"""Top-k: the worked example, exactness at any size, sizes of payloads."""

import numpy as np
import pytest
import torch

from talka.compress import compressor, layout_of
from talka.compress.topk import COUNTED_UP_TO, TopK, pick_largest
from talka.errors import InvalidValueError, SpecError
from tests.compress.sparse_cases import KINDS, vector, whole_piece


def test_the_worked_example():
    values = torch.tensor([-2.0, 3, 10, 1, -100, 15, -1])
    one = TopK(3 / 7)
    out = torch.empty(7)
    one.decode(one.encode(values), out)
    assert {place: value for place, value in enumerate(out.tolist()) if value} == {
        2: 10,
        4: -100,
        5: 15,
    }


def test_of_equal_values_the_first_are_sent():
    out = torch.empty(6)
    one = TopK(0.5)
    one.decode(one.encode(torch.tensor([1.0, -2, 2, -2, 2, 1])), out)
    assert out.tolist() == [0, -2, 2, -2, 0, 0]


def test_zeros_are_not_sent():
    values = torch.zeros(10_000)
    values[77] = 3
    payload = TopK(0.1).encode(values)
    assert payload.num_bytes < 60
    assert TopK(0.1).encode(torch.zeros(10_000)).num_bytes < 40


@pytest.mark.parametrize("share", [0.0005, 0.01, 0.3, 0.999])
@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("feedback", [False, True])
def test_a_sample_only_saves_time(kind, share, feedback):
    """The k largest are found for any sample."""
    num_values = 3 * COUNTED_UP_TO
    count = round(share * num_values)
    values = vector(kind, num_values, 8)
    residual = vector("gaussian", num_values, 9) if feedback else None
    wanted = values + residual if feedback else values
    order = np.lexsort((np.arange(num_values), -np.abs(wanted.astype(np.float64))))[:count]
    expected = np.sort(order[wanted[order] != 0])
    for key in range(3):
        left = residual.copy() if feedback else None
        picked = pick_largest(values, left, count, key)
        assert picked.indices.tolist() == expected.tolist()
        assert picked.values.tolist() == wanted[expected].tolist()
        if feedback:
            kept = wanted.copy()
            kept[expected] = 0
            assert left.tobytes() == kept.tobytes()


def test_a_sample_that_misleads():
    """Large values stand just where the sample does not look; or there are far more than it saw."""
    from talka.compress.bits.strides import one_in_each

    num_values, key = 2 * COUNTED_UP_TO, 11
    seen = one_in_each(num_values, 1 << 12, key)
    for inside, outside in [(1.0, 2.0), (2.0, 1.0), (0.0, 1.0), (1.0, 0.0)]:
        values = np.full(num_values, outside, np.float32)
        values[seen] = inside
        residual = np.zeros(num_values, np.float32)
        picked = pick_largest(values, residual, 300, key)
        assert picked.indices.tolist() == np.argsort(-values, kind="stable")[:300].tolist()
        assert (residual[picked.indices] == 0).all()
        assert residual.sum() == values.sum() - picked.values.sum()


@pytest.mark.parametrize("num_values", [1, 10, 5_000, 300_000])
@pytest.mark.parametrize("share", [1e-6, 0.001, 0.01, 0.5, 1.0])
def test_sizes(num_values, share):
    one = TopK(share)
    count = max(round(share * num_values), 1)
    payload = one.encode(torch.from_numpy(vector("gaussian", num_values, 2)))
    assert payload.num_bytes <= one.max_bytes(num_values)
    slack = 12 if count < 100 else 0  # words of 4 bytes
    assert payload.num_bytes == pytest.approx(one.expected_bytes(num_values), rel=0.03, abs=slack)
    fewest = 4 * count + count * np.log2(num_values / count) / 8
    assert one.max_bytes(num_values) <= 1.1 * fewest + num_values / 8 + 60


def test_the_size_of_what_is_clustered():
    values = torch.zeros(100_000)
    values[40_000:41_000] = 1 + torch.rand(1000)
    one = TopK(0.01)
    payload = one.encode(values)
    assert payload.num_bytes <= one.max_bytes(100_000)
    assert payload.num_bytes == pytest.approx(one.expected_bytes(100_000), rel=0.03)


def test_every_piece_keeps_its_share():
    values = torch.cat([torch.full((1000,), 1e-6), torch.full((1000,), 1e6)])
    layout = layout_of({"small": (1000,), "large": (1000,)})
    one, out = TopK(0.1), torch.empty(2000)
    one.decode(one.encode(values, layout), out, layout)
    assert (out[:1000] != 0).sum() == (out[1000:] != 0).sum() == 100


def test_what_is_lost_shrinks():
    one = TopK(0.1)
    values, residual = vector("gaussian", 1000, 1), np.zeros(1000, np.float32)
    room = np.empty(one.section_max_bytes(1000), np.uint8)
    piece = whole_piece(1000)
    one.encode_section(values, residual, piece, one._draw(piece), room)
    assert (residual**2).sum() <= 0.9 * (values**2).sum()


@pytest.mark.parametrize("spec", ["topk", "topk:0", "topk:1.5", "topk:nan", "topk:a", "topk:.1/2"])
def test_short_forms_that_are_none(spec):
    with pytest.raises(SpecError, match="above 0 and up to 1"):
        compressor(spec)


def test_a_share_that_cannot_be():
    with pytest.raises(InvalidValueError):
        TopK(2.0)
