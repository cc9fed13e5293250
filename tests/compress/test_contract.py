"""The contract of all compressors, also of two outside of talka: bytes, sizes, types, errors."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from talka.compress import (
    COMPRESSORS,
    ErrorFeedback,
    Payload,
    SummableCompressor,
    compressor,
    cut,
    layout_of,
)
from talka.errors import InvalidValueError, NonFiniteError, PayloadError
from tests.compress import outside, specs
from tests.compress.sparse_cases import layouts, vector, vectors
from tests.compress.specs import BY_DATA

ALL = specs.ALL + outside.SPECS
PLAIN = [*specs.PLAIN, "steps:100", "halved"]
FIXED_SIZE = [*specs.FIXED_SIZE, "steps:100", "halved"]

SHAPES = {"fc.weight": (40, 50), "fc.bias": (50,), "scale": (1,), "conv.weight": (8, 4, 3, 3)}
LAYOUT = layout_of(SHAPES)
NUM_VALUES = LAYOUT[-1].stop
LARGEST = np.array([np.finfo(np.float32).max], np.float32)
LARGE = layout_of({"fc.weight": (400, 500), "fc.bias": (500,), "conv.weight": (64, 32, 3, 3)})


def gradient(seed=0, num_values=NUM_VALUES):
    return torch.from_numpy(vector("gaussian", num_values, seed))


def arrives(one, values, layout=None, **options):
    """Return the values that a receiver decodes from the bytes of a payload."""
    payload = one.encode(values, layout)
    received = Payload.from_bytes(bytes(payload.data.numpy()))
    out = torch.full_like(values, 7.0)
    one.decode(received, out, layout, **options)
    return out


def inner_of(one):
    return one.inner if isinstance(one, ErrorFeedback) else one


@pytest.mark.parametrize("spec", ALL)
def test_a_payload_is_its_bytes(spec):
    one, values = compressor(spec), gradient()
    payload = one.encode(values, LAYOUT)
    assert payload.num_bytes == len(payload.data)
    assert payload.data.dtype == torch.uint8
    received = torch.cat([payload.data, torch.full((100,), 9, dtype=torch.uint8)])
    assert Payload.from_bytes(received).num_bytes == payload.num_bytes
    expected, found = torch.empty(NUM_VALUES), torch.empty(NUM_VALUES)
    one.decode(payload, expected, LAYOUT)
    one.decode(Payload.from_bytes(received), found, LAYOUT)
    assert torch.equal(expected, found)


@pytest.mark.parametrize("spec", ALL)
def test_into_a_buffer_as_into_memory_of_its_own(spec):
    values = gradient()
    one, other = compressor(spec), compressor(spec)
    buffer = torch.full((other.max_bytes(NUM_VALUES, LAYOUT),), 255, dtype=torch.uint8)
    inside = other.encode(values, LAYOUT, out=buffer)
    assert torch.equal(one.encode(values, LAYOUT).data, inside.data)
    assert inside.data.data_ptr() == buffer.data_ptr()
    with pytest.raises(InvalidValueError, match="at least max_bytes"):
        other.encode(values, LAYOUT, out=buffer[:-1])


@pytest.mark.parametrize("spec", ALL)
def test_nothing_becomes_nothing(spec):
    one = compressor(spec)
    assert arrives(one, torch.empty(0)).shape == (0,)
    layout = layout_of({"none": (0, 5), "some": (3,)})
    assert arrives(one, torch.zeros(3), layout).tolist() == [0, 0, 0]


@pytest.mark.parametrize("spec", ALL)
@pytest.mark.parametrize("num_values", [1, 2, 15, 16, 17, 600])
def test_zeros_arrive_as_zeros(spec, num_values):
    one = compressor(spec)
    for _ in range(3):
        assert not arrives(one, torch.zeros(num_values)).any()
    if isinstance(one, ErrorFeedback):
        assert not one.residuals[""].any()


@pytest.mark.parametrize("spec", ALL)
@pytest.mark.parametrize("kind", ["denormals", "huge", "equal", "all scales"])
@pytest.mark.parametrize("num_values", [1, 5, 700])
def test_finite_stays_finite(spec, kind, num_values):
    values = torch.from_numpy(vector(kind, num_values, 1)) / 4
    one = compressor(spec)
    if (
        inner_of(one).name == "randomk"
        and spec == "randomk:0.01"
        and kind in ("huge", "all scales")
    ):
        return  # values times 100 overflow float32 here, which is an error
    for _ in range(2):
        assert arrives(one, values).isfinite().all()


@pytest.mark.parametrize("spec", ALL)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nonfinite_values_are_an_error_that_names_the_tensor(spec, bad):
    one = compressor(spec)
    one.encode(gradient(), LAYOUT)
    for piece in LAYOUT:
        for place in {piece.start, (piece.start + piece.stop) // 2, piece.stop - 1}:
            values = gradient(1)
            values[place] = bad
            with pytest.raises(NonFiniteError, match=piece.name):
                one.encode(values, (piece,))
            if isinstance(one, ErrorFeedback):
                assert one.residuals[piece.name].isfinite().all()


@pytest.mark.parametrize("spec", ALL)
def test_nonfinite_pieces_are_sent_uncompressed_with_pass(spec):
    one = compressor(spec, nonfinite="pass")
    one.encode(gradient(), LAYOUT)
    values = gradient(1)
    bias = LAYOUT[1]
    values[bias.start + 3], values[bias.start + 4] = np.nan, -np.inf
    out = arrives(one, values, LAYOUT)
    torch.testing.assert_close(
        out[bias.start : bias.stop], values[bias.start : bias.stop], rtol=0, atol=0, equal_nan=True
    )
    assert out[: bias.start].isfinite().all()
    assert arrives(one, gradient(2), LAYOUT).isfinite().all()
    if isinstance(one, ErrorFeedback):
        assert all(residual.isfinite().all() for residual in one.residuals.values())


@pytest.mark.parametrize("spec", ALL)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_float_types_are_converted_at_the_rim(spec, dtype):
    values = gradient().to(dtype)
    expected = arrives(compressor(spec), values.float(), LAYOUT)
    payload = compressor(spec).encode(values, LAYOUT)
    out = torch.ones(NUM_VALUES, dtype=dtype)
    compressor(spec).decode(payload, out, LAYOUT)
    assert torch.equal(out, expected.to(dtype))
    strided = torch.ones(2 * NUM_VALUES)[::2]
    compressor(spec).decode(payload, strided, LAYOUT)
    assert torch.equal(strided, expected)


@pytest.mark.parametrize("spec", ALL)
def test_the_input_is_left_alone_and_may_have_any_shape(spec):
    values = gradient(num_values=600).reshape(20, 30)
    before = values.clone()
    out = arrives(compressor(spec), values)
    assert torch.equal(values, before)
    assert torch.equal(out.reshape(-1), arrives(compressor(spec), values.reshape(-1)))
    turned = arrives(compressor(spec), values.T)
    assert turned.shape == (30, 20)


@pytest.mark.parametrize("spec", ALL)
def test_decode_adds_and_scales(spec):
    payload = compressor(spec).encode(gradient(), LAYOUT)
    once, onto = torch.empty(NUM_VALUES), gradient(5)
    one = compressor(spec)
    one.decode(payload, once, LAYOUT)
    added, scaled, both = onto.clone(), onto.clone(), onto.clone()
    one.decode(payload, added, LAYOUT, add=True)
    one.decode(payload, scaled, LAYOUT, scale=-0.3)
    one.decode(payload, both, LAYOUT, add=True, scale=-0.3)
    assert torch.equal(added, onto + once)
    assert torch.equal(scaled, once * np.float32(-0.3))
    assert torch.equal(both, onto + once * np.float32(-0.3))


@pytest.mark.parametrize("spec", ALL)
def test_the_same_calls_make_the_same_bytes_and_another_seed_other_draws(spec):
    one, same, another = (compressor(spec, seed=seed) for seed in (3, 3, 4))
    differs = False
    for step in range(3):
        data = one.encode(gradient(step), LAYOUT).data
        assert torch.equal(data, same.encode(gradient(step), LAYOUT).data)
        differs |= not torch.equal(data, another.encode(gradient(step), LAYOUT).data)
    assert differs == (inner_of(one).name in ("uniform", "qsgd", "terngrad", "randomk"))
    resumed = compressor(spec, seed=3)
    resumed.load_state({name: value.clone() for name, value in one.state().items()})
    for step in range(3):
        expected = one.encode(gradient(step), LAYOUT).data
        assert torch.equal(expected, resumed.encode(gradient(step), LAYOUT).data)


@pytest.mark.parametrize("spec", ALL)
def test_workers_round_each_in_their_own_way_and_are_read_by_all(spec):
    first = compressor(spec).for_worker(0)
    second = compressor(spec).for_worker(1)
    payload = first.encode(gradient(), LAYOUT)
    by_first, by_second = torch.empty(NUM_VALUES), torch.empty(NUM_VALUES)
    first.decode(payload, by_first, LAYOUT)
    second.decode(payload, by_second, LAYOUT)
    assert torch.equal(by_first, by_second)
    if inner_of(first).name in ("uniform", "qsgd", "terngrad"):
        assert not torch.equal(payload.data, second.encode(gradient(), LAYOUT).data)


@pytest.mark.parametrize("spec", ALL)
def test_small_pieces_are_sent_uncompressed_below_the_limit(spec):
    values = gradient()
    out = arrives(compressor(spec, min_compressed_values=60), values, LAYOUT)
    for piece in LAYOUT[1:3]:
        assert torch.equal(out[piece.start : piece.stop], values[piece.start : piece.stop])


@pytest.mark.parametrize("spec", PLAIN)
def test_only_its_own_payloads_are_read(spec):
    one = compressor(spec)
    other = compressor("fp16" if one.name != "fp16" else "bf16")
    payload = other.encode(gradient(), LAYOUT)
    with pytest.raises(PayloadError, match="was made by compressor"):
        one.decode(payload, torch.empty(NUM_VALUES), LAYOUT)
    with pytest.raises(PayloadError, match="values"):
        one.decode(one.encode(gradient(), LAYOUT), torch.empty(NUM_VALUES + 1))


@pytest.mark.parametrize("spec", ALL)
@settings(max_examples=25, deadline=None)
@example(case=(LARGEST, layout_of({"w": (1,)})))
@given(case=vectors(2000).flatmap(lambda one: st.tuples(st.just(one), layouts(len(one)))))
def test_no_payload_is_longer_than_it_may_be(spec, case):
    values, layout = case
    one = compressor(spec, nonfinite="pass")
    for _ in range(2):
        payload = one.encode(torch.from_numpy(values), layout)
        assert payload.num_bytes <= one.max_bytes(len(values), layout)


@pytest.mark.parametrize("spec", ALL)
@pytest.mark.parametrize("layout", [None, LARGE], ids=["flat", "parameters"])
def test_payloads_are_as_long_as_expected(spec, layout):
    num_values = LARGE[-1].stop
    one = compressor(spec)
    fixed = spec.removesuffix("+ef") in FIXED_SIZE
    for step in range(11):
        expected = one.expected_bytes(num_values, layout)
        measured = one.encode(gradient(step, num_values), layout).num_bytes
        if fixed:
            assert measured == pytest.approx(expected, rel=0.03)
    if not fixed:
        assert measured == pytest.approx(expected, rel=0.15)


def test_codes_and_names_are_unique():
    assert len({one.code for one in COMPRESSORS.values()}) == len(COMPRESSORS)
    assert all(0 <= one.code < 256 for one in COMPRESSORS.values())
    assert set(FIXED_SIZE).isdisjoint(BY_DATA)


@pytest.mark.parametrize("spec", [spec for spec in ALL if compressor(spec).summable])
def test_wires_of_summable_compressors_can_be_added(spec):
    workers = [compressor(spec, seed=1).for_worker(index) for index in range(3)]
    gradients = [gradient(index) / 8 for index in range(3)]
    for _ in range(2):
        wires = [one.to_wire(each, LAYOUT) for one, each in zip(workers, gradients, strict=True)]
        assert len({(wire.dtype, wire.shape) for wire in wires}) == 1
        out = torch.empty(NUM_VALUES)
        workers[0].from_wire(sum(wires), out, LAYOUT)
        alone = []
        for one, wire in zip(workers, wires, strict=True):
            alone.append(torch.empty(NUM_VALUES))
            one.from_wire(wire, alone[-1], LAYOUT)
        torch.testing.assert_close(out, sum(alone), rtol=0.02, atol=0.02)
    bad = gradients[0].clone()
    bad[LAYOUT[1].start] = np.nan
    with pytest.raises(NonFiniteError, match=LAYOUT[1].name):
        workers[0].to_wire(bad, LAYOUT)


@pytest.mark.parametrize("spec", [spec for spec in ALL if not compressor(spec).summable])
def test_compressors_that_are_not_summable_are_refused(spec):
    one = compressor(spec)
    assert not isinstance(inner_of(one), SummableCompressor)
    if isinstance(one, ErrorFeedback):
        with pytest.raises(InvalidValueError, match="summable"):
            one.to_wire(gradient(), LAYOUT)


@pytest.mark.parametrize("spec", ALL)
def test_chunks_of_a_vector_are_vectors(spec):
    """An owner of a chunk knows only that chunk of each parameter."""
    one, values = compressor(spec), gradient()
    for start in range(0, NUM_VALUES, 500):
        stop = min(start + 500, NUM_VALUES)
        layout = cut(LAYOUT, start, stop)
        out = torch.empty(stop - start)
        one.decode(one.encode(values[start:stop], layout), out, layout)
        assert out.isfinite().all()
