"""The dense compressors against their slow twins, bit for bit: what arrives, and what is left."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.compress import ErrorFeedback, compressor, cut, layout_of
from talka.errors import NonFiniteError, SpecError
from tests.compress.sparse_cases import KINDS, vector, vectors
from tests.compress.twins import TWINS

SPECS = [
    "none",
    "fp16",
    "bf16",
    "trunc16",
    "onebit",
    "onebit:64",
    "onebit:512",
    "onebit:all",
    "uniform:1",
    "uniform:3",
    "uniform:3/max/512",
    "uniform:5/l2/37",
    "uniform:16/max/512",
    "qsgd:1/16",
    "qsgd:7",
    "qsgd:7/fixed",
    "qsgd:4/max/512",
    "qsgd:1000/l2/all",
    "qsgd:32767/max/100",
    "terngrad",
]


@st.composite
def matrices(draw, num_values):
    """Matrices, vectors and kernels side by side, or a chunk of them that begins anywhere."""
    before, after = draw(st.integers(0, 40)), draw(st.integers(0, 40))
    left, shapes = before + num_values + after, {}
    while left > 0:
        row = draw(st.sampled_from([(), (1,), (7,), (8,), (9,), (33,), (100,), (3, 3, 3)]))
        rows = max(1, min(left // max(1, int(np.prod(row))), draw(st.integers(1, 200))))
        shapes[f"p{len(shapes)}"] = (rows, *row)
        left -= rows * int(np.prod(row))
    return cut(layout_of(shapes), before, before + num_values)


def with_zero_rows(values, layout, seed):
    """Some rows of matrices become zero, as embeddings of words that do not occur."""
    rng = np.random.default_rng(seed)
    for piece in layout:
        row = int(np.prod(piece.shape[1:]))
        rows = (np.arange(piece.num_values) + piece.offset) // row
        gone = rng.random(rows.max() + 1) < rng.choice([0, 0.3, 0.97])
        values[piece.start : piece.stop][gone[rows]] = 0
    return values


@pytest.mark.parametrize("spec", SPECS)
@settings(max_examples=30, deadline=None)
@given(
    case=vectors().flatmap(lambda first: st.tuples(st.just(first), matrices(len(first)))),
    kind=st.sampled_from(sorted(KINDS)),
    seed=st.integers(0, 1 << 32),
    feedback=st.booleans(),
    add=st.booleans(),
    scale=st.sampled_from([1.0, 0.25, -1.5]),
)
def test_agrees_with_its_twin(spec, case, kind, seed, feedback, add, scale):
    first, layout = case
    one, drawing = compressor(spec, seed=seed), compressor(spec, seed=seed)
    if feedback:
        try:
            one = ErrorFeedback(one)
        except SpecError:
            feedback = False
    drawing.has_feedback = feedback
    residual = np.zeros_like(first)
    for step in range(3):
        values = with_zero_rows(vector(kind, len(first), seed + step), layout, seed)
        if step == 0:
            values = first
        with np.errstate(over="ignore"):
            wanted = values + residual if feedback else values  # -0.0 + 0.0 is 0.0
        if not np.isfinite(wanted).all():
            with pytest.raises(NonFiniteError):
                one.encode(torch.from_numpy(values), layout)
            return
        sent = np.zeros_like(values)
        for piece in layout:
            part = slice(piece.start, piece.stop)
            draw = drawing._draw(piece)
            sent[part] = TWINS[drawing.name](drawing, wanted[part], piece, draw)
        check_decoded(one, values, layout, sent, add=add, scale=scale)
        if feedback:
            residual = wanted - sent
            for piece in layout:
                np.testing.assert_array_equal(one.of(piece), residual[piece.start : piece.stop])


def check_decoded(one, values, layout, sent, *, add, scale):
    payload = one.encode(torch.from_numpy(values.copy()), layout)
    assert payload.num_bytes <= one.max_bytes(len(values), layout)
    onto = np.arange(len(values), dtype=np.float32)
    out = torch.from_numpy(onto.copy())
    one.decode(payload, out, layout, add=add, scale=scale)
    with np.errstate(over="ignore"):
        expected = np.float32(scale) * sent
    np.testing.assert_array_equal(out.numpy(), onto + expected if add else expected)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("num_values", [4096 * 3, 4096 * 3 + 1, 30_000])
def test_agrees_where_sums_take_many_blocks(spec, num_values):
    values = vector("heavy", num_values, 1)
    one, drawing = compressor(spec), compressor(spec)
    [piece] = layout_of({"w": (num_values,)})
    sent = TWINS[one.name](drawing, values, piece, drawing._draw(piece))
    check_decoded(one, values, (piece,), sent, add=False, scale=1.0)
