"""Significance: what is large against the others is sent whole, at least the largest."""

import numpy as np
import pytest
import torch

from talka.compress import ErrorFeedback, compressor, layout_of
from talka.compress.significance import Significance
from talka.errors import InvalidValueError, SpecError
from tests.compress.sparse_cases import KINDS, vector


def test_an_example():
    """The root mean square of these is 2."""
    values = torch.tensor([0.0, 0, -4, 0, 1, 1, 1, 1, 2, 2, 2, 1]) * np.sqrt(48 / 33).item()
    root = values.square().mean().sqrt()
    assert root == pytest.approx(2)
    out = torch.empty(12)
    one = Significance(1.1)
    one.decode(one.encode(values), out)
    expected = torch.where(values.abs() >= 1.1 * root, values, 0)
    assert out.tolist() == expected.tolist()
    assert (out != 0).sum() == 4


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("ratio", [0.1, 1.0, 1.5, 4.0, 1000.0])
def test_at_least_the_largest_is_sent_and_no_more_than_was_said(kind, ratio):
    values = vector(kind, 3_001, 5)
    one, out = Significance(ratio), torch.empty(3_001)
    payload = one.encode(torch.from_numpy(values))
    one.decode(payload, out)
    if values.any():
        place = int(np.argmax(np.abs(values)))
        assert out[place] == values[place]
        most = min(max(3_001 / ratio**2 * 1.00001, 1), 3_001)
        assert 1 <= (out != 0).sum() <= most
    else:
        assert not out.any()
    assert payload.num_bytes <= one.max_bytes(3_001)


def test_as_many_as_can_be_that_large():
    """A quarter of the values, all alike, are just twice the root mean square."""
    values = torch.zeros(4_000)
    values[::4] = -3
    one, out = Significance(2.0), torch.empty(4_000)
    payload = one.encode(values)
    one.decode(payload, out)
    assert (out == values).all()
    assert payload.num_bytes <= one.max_bytes(4_000)


def test_small_changes_wait_until_they_have_become_large():
    one, out = ErrorFeedback(Significance(3.0)), torch.empty(1000)
    layout = layout_of({"w": (1000,)})
    rng = np.random.default_rng(2)
    rates = np.linspace(0.01, 1, 1000)
    given, sent = np.zeros(1000), np.zeros(1000)
    for _ in range(1000):
        gradient = (rates * rng.standard_normal(1000)).astype(np.float32)
        given += gradient
        one.decode(one.encode(torch.from_numpy(gradient), layout), out, layout)
        sent += out.numpy()
    left = one.residuals["w"].numpy()
    assert np.abs(given - sent - left).max() < 1e-3
    assert np.sqrt(np.mean(left**2)) < 20
    assert (sent != 0).mean() > 0.5


def test_residuals_stay_bounded_over_a_thousand_steps():
    rng = np.random.default_rng(3)
    one, sizes = ErrorFeedback(Significance(3.0)), []
    for _ in range(1000):
        one.encode(torch.from_numpy(rng.standard_t(3, 2000).astype(np.float32)))
        sizes.append(float(one.residuals[""].square().mean().sqrt()))
    assert max(sizes[500:]) < 1.3 * max(sizes[:500])


def test_the_size_is_expected_from_the_last():
    one = Significance(2.0)
    first = one.expected_bytes(100_000)
    payload = one.encode(torch.from_numpy(vector("gaussian", 100_000, 1)))
    assert first == pytest.approx(payload.num_bytes, rel=0.05)  # a gaussian is the first guess
    assert one.expected_bytes(100_000) == pytest.approx(payload.num_bytes, rel=0.01)


@pytest.mark.parametrize(
    "spec", ["significance", "significance:0", "significance:-2", "significance:inf"]
)
def test_short_forms_that_are_none(spec):
    with pytest.raises(SpecError, match="above 0"):
        compressor(spec)


def test_a_ratio_that_cannot_be():
    with pytest.raises(InvalidValueError):
        Significance(0.0)
