"""Error feedback: nothing is lost, nothing grows without bound, residuals survive new chunks."""

import numpy as np
import pytest
import torch

from talka.compress import ErrorFeedback, compressor, cut, layout_of
from talka.errors import InvalidValueError, NonFiniteError, SpecError
from tests.compress.sparse_cases import vector
from tests.compress.specs import FEEDBACK

LAYOUT = layout_of({"a": (30, 40), "b": (77,), "c": (5, 10, 3)})
NUM_VALUES = LAYOUT[-1].stop


def kept(one, layout=LAYOUT):
    """The residuals as one vector."""
    return np.concatenate([one.of(piece).copy() for piece in layout])


@pytest.mark.parametrize("spec", FEEDBACK)
@pytest.mark.parametrize("kind", ["gaussian", "heavy", "few", "ties"])
def test_what_was_sent_and_what_is_left_is_what_was_put_in(spec, kind):
    one, out = compressor(spec), torch.empty(NUM_VALUES)
    for step in range(10):
        values = vector(kind, NUM_VALUES, step)
        wanted = values + kept(one)
        one.decode(one.encode(torch.from_numpy(values), LAYOUT), out, LAYOUT)
        np.testing.assert_array_equal(kept(one), wanted - out.numpy())  # in float32, exactly


@pytest.mark.parametrize("spec", FEEDBACK)
def test_over_many_steps_only_rounding_is_lost(spec):
    one, out = compressor(spec), torch.empty(NUM_VALUES)
    put_in, sent = np.zeros(NUM_VALUES), np.zeros(NUM_VALUES)
    largest = 0.0
    for step in range(100):
        values = vector("gaussian", NUM_VALUES, step)
        largest = max(largest, np.abs(values + kept(one)).max())
        put_in += values
        one.decode(one.encode(torch.from_numpy(values), LAYOUT), out, LAYOUT)
        sent += out.numpy()
    # A sum and a difference in float32 each step, each off by half a unit in its last place.
    assert np.abs(sent + kept(one) - put_in).max() <= 100 * 2 * 2.0**-24 * largest


def residual_norms(spec, steps):
    """Return the norms of the residual over the largest norm of a gradient so far."""
    one, [piece] = compressor(spec), layout_of({"w": (4, 500)})
    norms, seen = [], 0.0
    for values in steps:
        one.encode(torch.from_numpy(values.astype(np.float32)), (piece,))
        seen = max(seen, float(np.linalg.norm(values)))
        norms.append(float(np.linalg.norm(one.of(piece))) / seen)
    return norms


def noises(kind):
    rng = np.random.default_rng(0)
    for _ in range(1000):
        yield rng.standard_normal(2000) if kind == "gaussian" else rng.standard_t(2.5, 2000)


@pytest.mark.parametrize("spec", FEEDBACK)
@pytest.mark.parametrize("kind", ["gaussian", "heavy"])
def test_residuals_stay_bounded(spec, kind):
    spec = "threshold:4+ef" if spec == "threshold:0.5+ef" else spec  # it sends at most tau per step
    norms = residual_norms(spec, noises(kind))
    assert max(norms) < 12  # without sending, 1,000 steps of noise would be 31
    assert max(norms[500:]) < 1.5 * max(norms[:500]) + 1e-6


@pytest.mark.parametrize("spec", [spec for spec in FEEDBACK if not spec.startswith("significance")])
def test_residuals_stay_bounded_where_all_steps_push_alike(spec):
    """Residuals would be 700 times a gradient if nothing were sent.

    This leaves out significance: entries that all grow alike are never large among each other.
    """
    spec = "threshold:4+ef" if spec == "threshold:0.5+ef" else spec
    direction = np.random.default_rng(1).standard_normal(2000)
    norms = residual_norms(spec, (direction + noise for noise in noises("gaussian")))
    assert max(norms) < 120


@pytest.mark.parametrize(
    "spec", ["uniform:3+ef", "qsgd:7+ef", "terngrad+ef", "uniform:2/max/512+ef"]
)
def test_feedback_around_what_does_not_contract_is_an_error_that_names_alternatives(spec):
    with pytest.raises(SpecError, match=r"uniform:3/max/512\+ef"):
        compressor(spec)


def test_around_such_a_grid_residuals_would_grow_without_bound():
    """Why that is an error: the design's own example, uniform:3 with the norm of all values."""
    inner = compressor("uniform:3")
    inner.contracts = True
    one, norms = ErrorFeedback(inner), []
    for values in list(noises("gaussian"))[:12]:
        one.encode(torch.from_numpy(values.astype(np.float32)))
        norms.append(float(one.residuals[""].norm()))
    assert norms[-1] > 1e6 * norms[0]


@pytest.mark.parametrize("spec", FEEDBACK)
def test_residuals_survive_new_buckets_and_chunks(spec):
    """Parameters come in another order, then in chunks: each finds what it left behind."""
    one, out = compressor(spec), torch.zeros(NUM_VALUES)
    values = [torch.from_numpy(vector("gaussian", NUM_VALUES, step)) for step in range(3)]
    sent = np.zeros(NUM_VALUES)
    one.decode(one.encode(values[0], LAYOUT), out, LAYOUT)
    sent += out.numpy()
    turned = tuple(reversed(LAYOUT))
    one.decode(one.encode(values[1], turned), out, turned)
    sent += out.numpy()
    for start in range(0, NUM_VALUES, 333):
        chunk = slice(start, min(start + 333, NUM_VALUES))
        layout = cut(LAYOUT, chunk.start, chunk.stop)
        part = torch.empty(chunk.stop - chunk.start)
        one.decode(one.encode(values[2][chunk], layout), part, layout)
        sent[chunk] += part.numpy()
    assert set(one.residuals) == {"a", "b", "c"}
    put_in = sum(values).double().numpy()
    np.testing.assert_allclose(sent + kept(one), put_in, rtol=0, atol=1e-5)


def test_residuals_can_be_kept_and_rescaled():
    one = compressor("onebit+ef")
    one.encode(torch.from_numpy(vector("gaussian", NUM_VALUES, 0)), LAYOUT)
    before = kept(one)
    other = compressor("onebit+ef")
    other.load_state(one.state())
    one.rescale(0.5)
    np.testing.assert_array_equal(kept(one), before / 2)
    np.testing.assert_array_equal(kept(other), before)  # a copy, not the same memory
    fresh = one.for_worker(1)
    assert not fresh.residuals


@pytest.mark.parametrize("spec", FEEDBACK)
@pytest.mark.parametrize("place", [0, 700, NUM_VALUES - 1])
def test_a_sum_beyond_float32_is_an_error_and_residuals_stay_finite(spec, place):
    one, [piece] = compressor(spec), layout_of({"w": (NUM_VALUES,)})
    before = vector("gaussian", NUM_VALUES, 0)
    before[place] = 3e38
    one.of(piece)[:] = before
    values = vector("gaussian", NUM_VALUES, 1)
    values[place] = 3e38
    with pytest.raises(NonFiniteError, match="'w'"):
        one.encode(torch.from_numpy(values), (piece,))
    assert np.isfinite(one.of(piece)).all()


def test_a_parameter_that_became_longer_is_an_error():
    one = compressor("onebit+ef")
    one.encode(torch.ones(5), layout_of({"w": (5,)}))
    with pytest.raises(InvalidValueError, match="'w'"):
        one.encode(torch.ones(6), layout_of({"w": (6,)}))
