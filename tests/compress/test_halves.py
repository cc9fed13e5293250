"""Two bytes a value, over all 65,536 of them and all there is between."""

import numpy as np
import pytest
import torch

from talka.compress import compressor
from talka.compress.payload import HEADER, SECTION

TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


def arrives(spec, values):
    one, out = compressor(spec), torch.empty(len(values))
    one.decode(one.encode(values), out)
    return out


def all_finite_halves(kind):
    every = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(kind).float()
    return every[every.isfinite()]


@pytest.mark.parametrize("spec", TYPES)
def test_what_is_a_half_arrives_as_it_is(spec):
    values = all_finite_halves(TYPES[spec])
    out = arrives(spec, values)
    assert torch.equal(out.view(torch.int32), values.view(torch.int32))


@pytest.mark.parametrize("spec", TYPES)
def test_what_lies_between_is_rounded_as_torch_does(spec):
    halves = all_finite_halves(TYPES[spec]).unique().double()
    middles = ((halves[1:] + halves[:-1]) / 2).float()  # ties
    near = torch.cat([middles, middles.nextafter(torch.tensor(9e38)), middles.nextafter(-middles)])
    assert torch.equal(arrives(spec, near), near.to(TYPES[spec]).float())


@pytest.mark.parametrize("spec", TYPES)
def test_random_floats_are_rounded_as_torch_does(spec):
    bits = np.random.default_rng(0).integers(0, 1 << 32, 300_000, np.uint32)
    values = torch.from_numpy(bits.view(np.float32))
    limit = torch.finfo(TYPES[spec]).max
    values = values[values.isfinite() & (values.abs() <= limit)]
    assert torch.equal(arrives(spec, values), values.to(TYPES[spec]).float())


def test_what_is_too_large_becomes_the_largest():
    values = torch.tensor([65504.0, 65519.0, 65520.0, 1e9, -1e30, 3.4e38, -3.4e38])
    assert arrives("fp16", values).tolist() == [65504.0] * 4 + [-65504.0, 65504.0, -65504.0]
    largest = torch.finfo(torch.bfloat16).max
    assert arrives("bf16", values).tolist()[5:] == [largest, -largest]


def test_with_feedback_the_rest_of_what_is_too_large_comes_later():
    one, out, total = compressor("fp16+ef"), torch.empty(3), torch.zeros(3)
    one.decode(one.encode(torch.tensor([100_000.0, 1.0, 0.0])), out)
    total += out
    one.decode(one.encode(torch.zeros(3)), out)
    assert (total + out).tolist() == [100_000.0, 1.0, 0.0]


def test_the_low_half_is_cut_and_zeros_arrive():
    bits = np.random.default_rng(1).integers(0, 1 << 32, 100_000, np.uint32)
    values = torch.from_numpy(bits.view(np.float32))
    values = values[values.isfinite()]
    out = arrives("trunc16", values)
    assert not (out.view(torch.int32) & 0xFFFF).any()
    assert torch.equal(out.view(torch.int32), values.view(torch.int32) & ~0xFFFF)
    assert (out.abs() <= values.abs()).all()


@pytest.mark.parametrize("spec", ["fp16", "bf16", "trunc16"])
def test_two_bytes_a_value(spec):
    payload = compressor(spec).encode(torch.randn(1000))
    assert payload.num_bytes == HEADER.size + SECTION.size + 2000


@pytest.mark.parametrize("spec", ["none", *TYPES])
def test_the_wire_is_a_tensor_of_its_own_type(spec):
    values = torch.randn(77)
    wire = compressor(spec).to_wire(values)
    assert wire.dtype == TYPES.get(spec, torch.float32)
    assert torch.equal(wire, values.to(wire.dtype))
    out = torch.empty(7, 11, dtype=torch.float64)
    compressor(spec).from_wire(wire + wire, out)
    assert torch.equal(out.reshape(-1), (wire + wire).double())


@pytest.mark.parametrize("spec", ["none", *TYPES])
def test_nonfinite_values_pass_over_the_wire_with_pass(spec):
    values = torch.tensor([np.nan, np.inf, -np.inf, 1e30, 1.0])
    wire = compressor(spec, nonfinite="pass").to_wire(values).float()
    assert wire[:3].tolist()[1:] == [np.inf, -np.inf]
    assert wire[0].isnan()
    assert wire[3:].isfinite().all()
    one = compressor(f"{spec}+ef", nonfinite="pass")
    one.to_wire(values)
    assert not one.residuals[""].any()
