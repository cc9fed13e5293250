"""Every sparse compressor against its slow twin: payloads, residuals, state and decoded values."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.compress import ErrorFeedback, Payload
from talka.compress.layout import nameless
from talka.compress.randomk import RandomK
from talka.compress.significance import Significance
from talka.compress.threshold import Threshold
from talka.compress.topk import TopK
from talka.errors import PayloadError
from tests.compress import sparse_twins as twins
from tests.compress.sparse_cases import KINDS, layouts, run, vector, vectors, whole_piece

PAIRS = [
    (TopK, twins.SlowTopK, {"share": 0.01}),
    (TopK, twins.SlowTopK, {"share": 0.4}),
    (TopK, twins.SlowTopK, {"share": 1.0}),
    (RandomK, twins.SlowRandomK, {"share": 0.03}),
    (RandomK, twins.SlowRandomK, {"share": 0.7}),
    (Threshold, twins.SlowThreshold, {"tau": 0.25}),
    (Threshold, twins.SlowThreshold, {"tau": 2.0}),
    (Threshold, twins.SlowThreshold, {}),
    (Threshold, twins.SlowThreshold, {"density": 0.3}),
    (Significance, twins.SlowSignificance, {"ratio": 2.5}),
    (Significance, twins.SlowSignificance, {"ratio": 0.5}),
]
IDS = [f"{fast.name}-{next(iter(options.values()), 'auto')}" for fast, _, options in PAIRS]


def decoded(one, data, layout, *, add, scale, onto):
    out = torch.from_numpy(onto.copy())
    one.decode(data, out, layout, add=add, scale=scale)
    return out.numpy().tobytes()


@pytest.mark.parametrize("fast, slow, options", PAIRS, ids=IDS)
@settings(max_examples=25, deadline=None)
@given(
    steps=vectors().flatmap(
        lambda first: st.tuples(
            st.just(first),
            st.integers(0, 1 << 32),
            st.sampled_from(sorted(KINDS)),
            layouts(len(first)),
        )
    ),
    feedback=st.booleans(),
    seed=st.integers(0, 1 << 40),
    add=st.booleans(),
    scale=st.sampled_from([1.0, 0.25, -1.5]),
)
def test_agrees_with_its_twin(fast, slow, options, steps, feedback, seed, add, scale):
    first, other, kind, layout = steps
    second = vector(kind, len(first), other)
    both = [one(**options, seed=seed, min_compressed_values=3) for one in (fast, slow)]
    both = [ErrorFeedback(one) if feedback else one for one in both]
    for values in (first, second, first):
        seen = [run(one, values, layout) for one in both]
        assert seen[0] == seen[1]
        if isinstance(seen[0][0], bytes):
            assert len(seen[0][0]) <= both[0].max_bytes(len(values), layout)
            payload, onto = Payload.from_bytes(seen[0][0]), vector("gaussian", len(first), other)
            outs = [decoded(one, payload, layout, add=add, scale=scale, onto=onto) for one in both]
            assert outs[0] == outs[1]


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("fast, slow, options", PAIRS, ids=IDS)
def test_agrees_with_its_twin_where_samples_are_taken(fast, slow, options, kind):
    values = [vector(kind, 20_011, seed) for seed in range(2)]
    for feedback in (False, True):
        both = [one(**options) for one in (fast, slow)]
        both = [ErrorFeedback(one) if feedback else one for one in both]
        for step in values:
            seen = [run(one, step, nameless(len(step))) for one in both]
            assert seen[0] == seen[1]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("num_values", [1, 700, 20_000])
@pytest.mark.parametrize("fast, slow, options", PAIRS, ids=IDS)
def test_what_is_not_finite_is_an_error_before_anything_changes(
    fast, slow, options, num_values, bad
):
    good = vector("gaussian", num_values, 3)
    one = ErrorFeedback(fast(**options))
    layout = (whole_piece(num_values),)
    run(one, good, layout)
    before = run(one, good, layout)[1]
    for place in (0, num_values // 2, num_values - 1):
        values = good.copy()
        values[place] = bad
        error, after, _ = run(one, values, layout)
        assert "'w' holds NaN or infinity" in error
        assert after == before
        assert "'w' holds NaN or infinity" in run(fast(**options), values, layout)[0]


@pytest.mark.parametrize("fast, slow, options", PAIRS, ids=IDS)
def test_a_sum_that_overflows_is_an_error_before_anything_changes(fast, slow, options):
    values = np.full(600, 3e38, np.float32)
    one = fast(**options)
    residual = values.copy()
    room = np.empty(one.section_max_bytes(600), np.uint8)
    with pytest.raises(FloatingPointError):
        one.encode_section(values, residual, whole_piece(600), one._draw(whole_piece(600)), room)
    assert (residual == values).all()


@pytest.mark.parametrize("fast, slow, options", PAIRS, ids=IDS)
def test_with_feedback_nothing_is_lost(fast, slow, options):
    """What was sent and what is left add up to what was given, over many steps."""
    num_values = 3_000
    one = ErrorFeedback(fast(**options))
    layout = (whole_piece(num_values),)
    given, sent = np.zeros(num_values), torch.zeros(num_values)
    total = np.zeros(num_values)
    for step in range(30):
        values = vector("gaussian", num_values, step)
        given += values
        one.decode(one.encode(torch.from_numpy(values), layout), sent, layout)
        total += sent.numpy()
    left = one.residuals["w"].numpy()
    assert np.abs(total + left - given).max() < 1e-4


@pytest.mark.parametrize("fast, slow, options", PAIRS, ids=IDS)
def test_state_survives_a_checkpoint(fast, slow, options):
    values = [vector("gaussian", 500, seed) for seed in range(4)]
    layout = (whole_piece(500),)
    one, other = ErrorFeedback(fast(**options)), ErrorFeedback(fast(**options))
    for step in values[:2]:
        run(one, step, layout)
    other.load_state(one.state())
    for step in values[2:]:
        assert run(one, step, layout) == run(other, step, layout)


@pytest.mark.parametrize("fast, slow, options", PAIRS, ids=IDS)
def test_the_short_form_makes_it_again(fast, slow, options):
    from talka.compress import compressor

    one = fast(**options)
    again = compressor(one.spec)
    assert type(again) is fast
    assert again.spec == one.spec
    assert run(one, vector("gaussian", 300, 1), nameless(300)) == run(
        again, vector("gaussian", 300, 1), nameless(300)
    )


@pytest.mark.parametrize("fast, slow, options", PAIRS, ids=IDS)
@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 1 << 32),
    num_values=st.sampled_from([1, 5, 40, 700]),
    random=st.booleans(),
    add=st.booleans(),
)
def test_a_forged_body_is_refused_before_anything_is_written(
    fast, slow, options, seed, num_values, random, add
):
    rng, one = np.random.default_rng(seed), fast(**options)
    room = np.zeros(one.section_max_bytes(num_values) + 40, np.uint8)
    piece = whole_piece(num_values)
    size = one.encode_section(
        vector("gaussian", num_values, seed), None, piece, one._draw(piece), room
    )
    size += 4 * int(rng.integers(-3, 4))
    body = room[: max(size, 0)]
    if random:
        body[:] = rng.integers(0, 256, len(body))
    for place in rng.integers(0, max(len(body), 1), 3)[: len(body)]:
        body[place] ^= 1 << rng.integers(8)
    out = np.full(num_values, 7, np.float32)
    try:
        one.decode_section(body, out, add=add, scale=1.0)
    except PayloadError:
        assert (out == 7).all()
