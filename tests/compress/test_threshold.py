"""Threshold: the worked example, forms and sizes, what the adaptive one aims at and stays below."""

import numpy as np
import pytest
import torch

from talka.compress import ErrorFeedback, compressor, cut, layout_of
from talka.compress.threshold import Threshold
from talka.errors import InvalidValueError, SpecError
from tests.compress.sparse_cases import vector, whole_piece


def density(payload):
    """Return the density of a payload of one section, whose body begins after both heads."""
    count = payload.data[32 + 4 : 32 + 8].numpy().view(np.uint32)[0]
    return count / payload.header.num_values


def tau(payload):
    return float(payload.data[32:36].numpy().view(np.float32)[0])


def test_the_worked_example():
    values = torch.tensor([1.0, 2, 0, 0, -1, -1])
    one, out = compressor("threshold:0.001+ef"), torch.empty(6)
    layout = layout_of({"w": (6,)})
    one.decode(one.encode(values, layout), out, layout)
    small = np.float32(0.001)
    assert out.tolist() == [small, small, 0, 0, -small, -small]
    left = np.float32([0.999, 1.999, 0, 0, -0.999, -0.999])
    assert np.allclose(one.residuals["w"].numpy(), left, rtol=1e-7, atol=0)


def test_an_entry_that_equals_tau_is_sent_and_leaves_nothing():
    one, out = ErrorFeedback(Threshold(0.5)), torch.empty(4)
    one.decode(one.encode(torch.tensor([0.5, -0.5, 0.49999997, 0])), out)
    assert out.tolist() == [0.5, -0.5, 0, 0]
    assert one.residuals[""].tolist() == [0, 0, np.float32(0.49999997), 0]


@pytest.mark.parametrize("share, most_bits", [(0.01, 9.3), (0.1, 5.8), (0.5, 3.1), (1.0, 2.01)])
def test_sizes_from_sparse_to_dense(share, most_bits):
    """A gap and a sign each; when dense, a bit for every value and a sign for those sent."""
    rng = np.random.default_rng(4)
    values = np.where(rng.random(200_000) < share, 1, 0) * rng.choice([-1, 1], 200_000)
    one, out = Threshold(0.5), torch.empty(200_000)
    payload = one.encode(torch.from_numpy(values.astype(np.float32)))
    one.decode(payload, out)
    assert (out.numpy() == values * np.float32(0.5)).all()
    assert 8 * payload.num_bytes / np.count_nonzero(values) < most_bits
    assert payload.num_bytes <= one.max_bytes(200_000) < 200_000 / 4 + 60
    assert one.expected_bytes(200_000) == pytest.approx(payload.num_bytes, rel=0.01)


def test_no_density_is_larger_than_was_said():
    one = Threshold(0.5)
    for num_values in [1, 31, 32, 33, 100]:
        for count in range(num_values + 1):
            values = torch.zeros(num_values)
            values[num_values - count :] = 1
            assert one.encode(values).num_bytes <= one.max_bytes(num_values)


GRADIENTS = {
    "gaussian": lambda rng, step, fixed: rng.standard_normal(len(fixed)),
    "heavy": lambda rng, step, fixed: rng.standard_t(2, len(fixed)),
    "always the same": lambda rng, step, fixed: fixed,
    "growing and shrinking": lambda rng, step, fixed: fixed * 10.0 ** (step // 7 % 5 * 2 - 4),
}


@pytest.mark.parametrize("kind", GRADIENTS)
@pytest.mark.parametrize("feedback", [False, True])
@pytest.mark.parametrize("aim", [0.01, 0.1])
def test_the_density_is_what_was_aimed_at(kind, feedback, aim):
    rng = np.random.default_rng(6)
    fixed = rng.standard_normal(60_000)
    one = Threshold(density=aim)
    one = ErrorFeedback(one) if feedback else one
    seen = []
    for step in range(30):
        gradient = GRADIENTS[kind](rng, step, fixed).astype(np.float32)
        seen.append(density(one.encode(torch.from_numpy(gradient))))
    assert np.mean(seen) == pytest.approx(aim, rel=0.15)
    assert max(seen) < 2 * aim


@pytest.mark.parametrize("kind", ["gaussian", "heavy", "always the same", "one outlier"])
def test_residuals_stay_bounded_over_a_thousand_steps(kind):
    rng = np.random.default_rng(7)
    fixed = rng.standard_normal(2_000)
    outlier = fixed.copy()
    outlier[5] = 300
    one, largest, sizes = ErrorFeedback(Threshold()), 0.0, []
    layout = (whole_piece(2_000),)
    for step in range(1000):
        gradient = outlier if kind == "one outlier" else GRADIENTS[kind](rng, step, fixed)
        largest = max(largest, np.abs(gradient).max())
        one.encode(torch.from_numpy(gradient.astype(np.float32)), layout)
        sizes.append(float(one.residuals["w"].square().mean().sqrt()))
    assert one.residuals["w"].abs().max() < 260 * largest
    if kind != "one outlier":  # whose own part is what grows at first
        assert max(sizes[500:]) < 1.3 * max(sizes[:500])


def test_a_fixed_tau_is_bounded_while_gradients_are_smaller():
    one = ErrorFeedback(Threshold(0.1))
    rng = np.random.default_rng(8)
    for _ in range(1000):
        gradient = rng.uniform(-0.09, 0.09, 500).astype(np.float32)
        one.encode(torch.from_numpy(gradient))
        assert one.residuals[""].abs().max() < 0.2


def test_zeros_send_nothing_and_mostly_zeros_something():
    one, out = Threshold(), torch.empty(50_000)
    assert one.encode(torch.zeros(50_000)).num_bytes < 50
    values = torch.zeros(50_000)
    values[123], values[45_000] = 3, -2
    one.decode(one.encode(values), out)
    assert out[123] > 0 > out[45_000]
    assert (out != 0).sum() == 2


def test_after_zeros_and_a_fall_it_finds_its_level_again():
    one = ErrorFeedback(Threshold())
    rng = np.random.default_rng(9)
    seen = []
    for scale in [1.0, 0.0, 0.0, 1e-6, 1e-6] + [1e-6] * 40:
        gradient = scale * rng.standard_normal(5000)
        one.inner.encode(torch.from_numpy(gradient.astype(np.float32)))  # without the residual
        seen.append(max(one.inner._floors.values()))
    assert seen[-1] < 1e-5


def test_every_slice_has_a_level_of_its_own():
    """The order in which slices are encoded changes nothing."""
    layout = layout_of({"w": (20_000,)})
    values = torch.randn(20_000)
    values[10_000:] *= 100
    halves = [cut(layout, 0, 10_000), cut(layout, 10_000, 20_000)]
    seen = []
    for order in ([0, 1], [1, 0]):
        one, sent = ErrorFeedback(Threshold()), {}
        for _ in range(3):
            for half in order:
                part = values[10_000 * half : 10_000 * (half + 1)]
                sent[half] = one.encode(part, halves[half]).data.tolist()
        seen.append((sent, one.residuals["w"].tolist(), sorted(one.inner.state())))
    assert seen[0] == seen[1]


def test_workers_begin_afresh():
    one = Threshold()
    one.encode(torch.randn(100))
    assert one.state()
    assert not one.for_worker(1).state()


def test_tau_grows_with_what_waits():
    one = compressor("threshold:auto+ef")
    values = torch.from_numpy(vector("gaussian", 30_000, 3))
    taus = [tau(one.encode(values)) for _ in range(20)]
    assert taus == sorted(taus)


@pytest.mark.parametrize(
    "spec",
    ["", ":0", ":-1", ":1e-60", ":nan", ":1/2", ":auto/0", ":auto/2", ":auto/0.1/3"],
)
def test_short_forms_that_are_none(spec):
    with pytest.raises(SpecError, match="threshold:0.001"):
        compressor(f"threshold{spec}")


def test_numbers_that_cannot_be():
    with pytest.raises(InvalidValueError):
        Threshold(0.0)
    with pytest.raises(InvalidValueError):
        Threshold(density=0.0)


@pytest.mark.parametrize(
    "given, canonical",
    [
        ("threshold:auto/0.01", "threshold:auto"),
        ("threshold:auto/1e-3", "threshold:auto/0.001"),
        ("threshold:1e-3+ef", "threshold:0.001+ef"),
    ],
)
def test_the_canonical_short_form(given, canonical):
    assert compressor(given).spec == canonical
