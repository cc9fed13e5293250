"""Gradients that are not finite: refused by name, or passed on without any trace in the state."""

import math

import pytest
import torch

from talka.compress import compressor, layout_of
from talka.engine import Embedded
from talka.errors import GangError, NonFiniteError
from talka.exchange import open_exchange

LAYOUT = layout_of({"w": (30, 40), "b": (30,)})
SPECS = ["topk:0.1+ef", "onebit+ef", "randomk:0.05+ef", "fp16+ef", "none", "powersgd:2"]


def gradient(step, rank=0):
    return torch.randn(1230, generator=torch.Generator().manual_seed(10 * step + rank))


def poisoned(step, *, at=700, value=math.inf):
    values = gradient(step)
    values[at] = value
    return values


def kept(exchange):
    """Momentum and residuals; other state only counts draws, or is where powersgd starts from."""
    state = exchange.state().items()
    return {key: value.clone() for key, value in state if key.kind in ("momentum", "residual")}


def is_same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_step_that_is_passed_on_leaves_momentum_and_residuals_as_they_were(alone, spec, value):
    exchange = open_exchange(spec, nonfinite="pass", momentum=0.9)
    exchange.average(gradient(0), LAYOUT).wait()
    before = kept(exchange)
    assert not exchange.average(poisoned(1, value=value), LAYOUT).wait().isfinite().all()
    assert is_same(kept(exchange), before)
    assert exchange.average(gradient(2), LAYOUT).wait().isfinite().all()
    exchange.close()


@pytest.mark.parametrize("spec", ["topk:0.1+ef", "powersgd:2"])
def test_a_first_step_that_is_passed_on_leaves_zeros(alone, spec):
    exchange = open_exchange(spec, nonfinite="pass", momentum=0.9)
    exchange.average(poisoned(0), LAYOUT).wait()
    assert not any(value.count_nonzero() for value in kept(exchange).values())
    exchange.close()


@pytest.mark.parametrize("at", [700, 1210])
@pytest.mark.parametrize("steps_before", [0, 1])
def test_powersgd_names_the_tensor_before_anything_is_sent(alone, at, steps_before):
    exchange = open_exchange("powersgd:2")
    for _ in range(steps_before):
        exchange.average(torch.zeros(1230), LAYOUT).wait()
    name = "w" if at < 1200 else "b"
    with pytest.raises(NonFiniteError, match=f"'{name}' holds NaN"):
        exchange.average(poisoned(0, at=at), LAYOUT).wait()
    assert exchange.meter.sent_bytes == 0
    assert exchange.average(gradient(1), LAYOUT).wait().isfinite().all()
    exchange.close()


@pytest.mark.parametrize("spec", ["onebit+ef", "randomk:0.05"])
def test_small_uncompressed_tensors_are_checked_too(alone, spec):
    exchange = open_exchange(spec, min_compressed_values=256)
    with pytest.raises(NonFiniteError, match="'b' holds NaN"):
        exchange.average(poisoned(0, at=1210), LAYOUT).wait()
    exchange.close()


def test_randomk_passes_on_that_a_tensor_is_not_finite_where_it_does_not_look():
    one = compressor("randomk:0.01", nonfinite="pass")
    for at in range(0, 1200, 100):
        assert not one.to_wire(poisoned(0, at=at), LAYOUT).isfinite().all()


def one_of_two(worker, specs):
    """By spec: whether a step that is not finite on rank 0 alone left no trace here."""
    results = []
    for spec in specs:
        exchange = open_exchange(spec, nonfinite="pass", momentum=0.9)
        exchange.average(gradient(0, worker.rank), LAYOUT).wait()
        before = kept(exchange)
        values = poisoned(1) if worker.rank == 0 else gradient(1, 1)
        passed_on = not exchange.average(values, LAYOUT).wait().isfinite().all()
        results.append([passed_on, is_same(kept(exchange), before)])
        exchange.close()
    return results


def refused_by_one_of_two(worker):
    exchange = open_exchange("powersgd:2")
    exchange.average(poisoned(1) if worker.rank == 0 else gradient(1, 1), LAYOUT).wait()


def test_all_workers_drop_a_step_that_one_of_them_spoiled():
    specs = [*SPECS, "uniform:3/max/512+ef"]
    with Embedded() as engine:
        for results in engine.gang(one_of_two, specs, size=2):
            assert results == [[True, True]] * len(specs)
        with pytest.raises(GangError, match="'w' holds NaN or infinity"):
            engine.gang(refused_by_one_of_two, size=2)
