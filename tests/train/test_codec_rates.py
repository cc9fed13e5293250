import pytest
import torch

from talka.train import codec_rates
from talka.train.codec_rates import MAX_MEASURED_VALUES, measure_codec, square_shape
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


def test_the_first_round_is_not_counted_and_the_median_is_taken(monkeypatch):
    class Clock:
        now_s = 0.0

        def perf_counter(self):
            return self.now_s

    clock, seconds = Clock(), iter([100.0, 3.0, 1.0, 2.0, 50.0, 2.0])
    monkeypatch.setattr(codec_rates, "time", clock)

    def work():
        clock.now_s += next(seconds)

    assert codec_rates._median_s(work) == 2.0


def test_large_vectors_are_measured_by_a_million_values(monkeypatch):
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
