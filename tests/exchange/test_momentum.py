import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.compress import StateKey, layout_of
from talka.compress.layout import cut
from talka.errors import InvalidValueError
from talka.exchange.merging import mean_of
from talka.exchange.momentum import Momentum, only_momentum

LAYOUT = layout_of({"w": (3, 4), "b": (3,)})


def gradient(step):
    return torch.randn(15, generator=torch.Generator().manual_seed(step))


@settings(deadline=None)
@given(st.floats(0, 0.99), st.integers(1, 14), st.integers(1, 6))
def test_it_is_the_sum_of_all_gradients_each_forgotten_a_little_more(factor, place, num_steps):
    """Also where a vector comes in two parts, which need not be those of parameters."""
    momentum = Momentum(factor)
    for step in range(num_steps):
        values = gradient(step)
        for start, stop in ((0, place), (place, 15)):
            momentum.add_to(values[start:stop], cut(LAYOUT, start, stop))
    expected = sum(factor ** (num_steps - 1 - step) * gradient(step) for step in range(num_steps))
    torch.testing.assert_close(values, expected, rtol=1e-4, atol=1e-5)


def test_without_any_nothing_is_kept():
    momentum, values = Momentum(0.0), gradient(1)
    momentum.add_to(values, LAYOUT)
    assert torch.equal(values, gradient(1))
    assert momentum.state() == {}


@pytest.mark.parametrize("factor", [-0.1, 1.0, 1.5, float("nan")])
def test_a_factor_that_would_never_forget_is_refused(factor):
    with pytest.raises(InvalidValueError, match="at least 0 and below 1"):
        Momentum(factor)


def test_saved_momentum_continues():
    straight, before, after = Momentum(0.9), Momentum(0.9), Momentum(0.9)
    straight.add_to(gradient(0), LAYOUT)
    before.add_to(gradient(0), LAYOUT)
    after.load_state({**before.state(), StateKey("residual", "w", side="worker"): torch.zeros(12)})
    one, other = gradient(1), gradient(1)
    straight.add_to(one, LAYOUT)
    after.add_to(other, LAYOUT)
    assert torch.equal(one, other)


def test_the_mean_over_workers_stays_the_same():
    states = []
    for rank in range(3):
        momentum = Momentum(0.5)
        momentum.add_to(gradient(rank), LAYOUT)
        states.append({**momentum.state(), StateKey("residual", "w", side="owner"): torch.ones(12)})
    merged = mean_of(states, "momentum")
    assert merged.keys() == only_momentum(states[0]).keys()
    mean = sum(gradient(rank) for rank in range(3)) / 3
    torch.testing.assert_close(merged[StateKey("momentum", "w", side="worker")], mean[:12])
    torch.testing.assert_close(merged[StateKey("momentum", "b", side="worker")], mean[12:])


def test_momentum_of_another_length_is_refused_by_name():
    momentum = Momentum(0.9)
    momentum.load_state({StateKey("momentum", "w", side="worker"): torch.zeros(7)})
    with pytest.raises(InvalidValueError, match="length of 'w' is 12, but must be 7"):
        momentum.add_to(gradient(0), LAYOUT)
