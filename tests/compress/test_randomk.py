"""Random-k: without bias, the same indices everywhere, sums that go round a ring."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.compress import ErrorFeedback, compressor, layout_of
from talka.compress.bits.strides import one_in_each
from talka.compress.randomk import RandomK
from talka.errors import InvalidValueError, NonFiniteError, PayloadError, SpecError
from tests.compress import sparse_twins as twin


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 2000), st.integers(1, 2000), st.integers(0, (1 << 64) - 1))
def test_one_index_in_each_stride(num_values, count, key):
    count = min(num_values, count)
    indices = one_in_each(num_values, count, key).tolist()
    assert indices == twin.one_in_each(num_values, count, key)
    assert indices == sorted(set(indices))
    assert indices[-1] < num_values


@pytest.mark.parametrize("num_values, count", [(12, 4), (11, 4), (7, 7), (10, 1), (64, 9)])
def test_the_mean_is_the_value(num_values, count):
    """All places of a stride come up equally often, so the scaled mean has no bias."""
    one = RandomK(count / num_values)
    values = torch.linspace(-1, 2, num_values)
    total, out = torch.zeros(num_values, dtype=torch.float64), torch.empty(num_values)
    num_draws = 4000
    for _ in range(num_draws):
        one.decode(one.encode(values), out)
        total += out
    length = -(-num_values // count)
    error = values.abs() * (length - 1) ** 0.5 / num_draws**0.5  # standard error of the mean
    assert ((total / num_draws - values).abs() <= 4.5 * error + 1e-6).all()


def test_draws_of_neighbours_are_independent():
    indices = np.array([one_in_each(200, 2, key) for key in range(20_000)])
    counts = np.zeros((100, 100))
    np.add.at(counts, (indices[:, 0], indices[:, 1] - 100), 1)
    expected = 2.0
    chi = ((counts - expected) ** 2 / expected).sum()
    assert abs(chi - 9999) < 5 * (2 * 9999) ** 0.5


def test_workers_with_one_seed_choose_alike():
    values = [torch.randn(1000), torch.randn(1000)]
    workers = [RandomK(0.1, seed=3).for_worker(index) for index in range(2)]
    outs = [torch.empty(1000) for _ in workers]
    for worker, given_values, out in zip(workers, values, outs, strict=True):
        worker.decode(worker.encode(given_values), out)
    assert ((outs[0] != 0) == (outs[1] != 0)).all()
    other = RandomK(0.1, seed=4)
    other.decode(other.encode(values[0]), outs[1])
    assert ((outs[0] != 0) != (outs[1] != 0)).any()


def test_the_next_encoding_chooses_others():
    one, outs = RandomK(0.1), [torch.empty(1000), torch.empty(1000)]
    for out in outs:
        one.decode(one.encode(torch.ones(1000)), out)
    assert ((outs[0] != 0) != (outs[1] != 0)).any()


def test_with_feedback_values_are_sent_as_they_are():
    one, out = ErrorFeedback(RandomK(0.25)), torch.empty(400)
    values = torch.randn(400)
    one.decode(one.encode(values), out)
    sent = out != 0
    assert sent.sum() == 100
    assert (out[sent] == values[sent]).all()
    residual = one.residuals[""]
    assert (residual[sent] == 0).all()
    assert (residual[~sent] == values[~sent]).all()


@pytest.mark.parametrize("feedback", [False, True])
def test_sums_of_wires_are_wires_of_sums(feedback):
    layout = layout_of({"a": (40, 25), "tiny": (3,), "b": (777,)})
    workers = [
        RandomK(0.05, seed=1, min_compressed_values=10).for_worker(index) for index in range(3)
    ]
    workers = [ErrorFeedback(one) if feedback else one for one in workers]
    gradients = [torch.randn(1780) for _ in workers]
    out, alone = torch.empty(1780), torch.zeros(1780)
    for _ in range(2):
        wires = [one.to_wire(g, layout) for one, g in zip(workers, gradients, strict=True)]
        assert len({len(wire) for wire in wires}) == 1
        assert len(wires[0]) == 50 + 3 + 39
        for one in workers:
            one.from_wire(sum(wires), out, layout)
            places = out != 0
            assert places.sum() == len(wires[0])
    for one, wire in zip(workers, wires, strict=True):
        single = torch.empty(1780)
        one.from_wire(wire, single, layout)
        alone += single
    assert torch.allclose(out, alone, atol=1e-6)


def test_wire_and_payload_decode_to_the_same_values():
    values = torch.randn(5000)
    one, other = RandomK(0.02, seed=9), RandomK(0.02, seed=9)
    outs = [torch.empty(5000), torch.empty(5000, dtype=torch.float64)]
    one.decode(one.encode(values), outs[0])
    other.from_wire(other.to_wire(values), outs[1])
    assert (outs[0] == outs[1]).all()


def test_wires_that_do_not_fit():
    one, out = RandomK(0.1), torch.empty(100)
    with pytest.raises(InvalidValueError, match="layout"):
        one.from_wire(torch.zeros(10), out)
    wire = one.to_wire(torch.randn(100))
    for wrong in (wire[:-1], torch.cat([wire, wire])):
        with pytest.raises(PayloadError):
            one.from_wire(wrong, out)


def test_a_wire_of_what_is_not_finite():
    values = torch.ones(100)
    values[50] = torch.inf
    layout = layout_of({"w": (100,)})
    one = ErrorFeedback(RandomK(1.0))
    with pytest.raises(NonFiniteError, match="'w'"):
        one.to_wire(values, layout)
    assert (one.residuals["w"] == 0).all()
    passing, out = RandomK(1.0, nonfinite="pass"), torch.empty(100)
    passing.from_wire(passing.to_wire(values, layout), out, layout)
    assert out[50] == torch.inf


def test_sizes_are_exact():
    one = RandomK(0.01)
    for num_values in (1, 99, 1000, 12_345):
        payload = one.encode(torch.randn(num_values))
        assert payload.num_bytes == one.max_bytes(num_values) == one.expected_bytes(num_values)


@pytest.mark.parametrize("spec", ["randomk", "randomk:0", "randomk:2", "randomk:0.1/0.2"])
def test_short_forms_that_are_none(spec):
    with pytest.raises(SpecError, match="above 0 and up to 1"):
        compressor(spec)
