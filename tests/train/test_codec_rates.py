import pytest
import torch

from talka.profile import Profile
from talka.train import codec_rates
from talka.train.codec_rates import (
    MAX_MEASURED_VALUES,
    measure_codec,
    profiled_rates,
    square_shape,
)
from talka.train.predictions import DEFAULT_SPECS


@pytest.mark.parametrize("spec", DEFAULT_SPECS)
def test_every_default_spec_can_be_measured(spec):
    threads = torch.get_num_threads()
    rates = measure_codec(spec, 5000)
    assert rates.encode_s > 0
    assert rates.decode_s > 0
    assert (rates.convert_s > 0) == (spec in ("fp16", "bf16", "randomk:0.01+ef"))
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("spec", ["onebit+ef", "powersgd:4"])
def test_few_values_are_enough(spec):
    assert measure_codec(spec, 1).encode_s > 0


def test_large_vectors_are_measured_by_four_million_values(monkeypatch):
    seen = []
    monkeypatch.setattr(
        codec_rates, "_measure_compressor", lambda values, spec: seen.append(values.numel())
    )
    measure_codec("none", 10**12)
    assert seen == [MAX_MEASURED_VALUES]


@pytest.mark.parametrize("num_values", [1, 2, 3, 7, 99, 2_900_000, 10**12])
def test_a_square_is_filled_up_to_less_than_a_row(num_values):
    rows, columns = square_shape(num_values)
    assert 0 <= num_values - rows * columns < rows
    assert rows <= columns


def test_the_profile_keeps_the_rates_of_a_compressor(tmp_path, monkeypatch):
    profile = Profile(tmp_path / "profile.json")
    monkeypatch.setattr(codec_rates, "this_machine", lambda: profile)
    monkeypatch.setattr(codec_rates, "MAX_MEASURED_VALUES", 1000)
    rates = profiled_rates("fp16")
    assert rates.convert_s > 0
    monkeypatch.setattr(codec_rates, "measure_codec", None)
    assert profiled_rates("fp16") == rates
