import math

import pytest

from talka.data.text.weights import integer_weights


@pytest.mark.parametrize("window", [1, 2, 10, 20])
def test_weights_are_exact_for_usual_windows_and_large_texts(window):
    weights = integer_weights(window, 1_000_000_000)
    assert weights.unit == math.lcm(*range(1, window + 1))
    for distance in range(1, window + 1):
        assert int(weights.by_distance[distance]) * distance == weights.unit


def test_a_window_of_40_is_exact_on_a_small_text():
    assert integer_weights(40, 300).unit == math.lcm(*range(1, 41))


@pytest.mark.parametrize("window, max_count", [(40, 10_000_000), (64, 10**9), (300, 10**9)])
def test_where_exact_weights_do_not_fit_they_are_close_and_their_sums_fit(window, max_count):
    weights = integer_weights(window, max_count)
    total = 2 * max_count * sum(int(weight) for weight in weights.by_distance)
    assert 2**62 < total < 2**64
    for distance in range(1, window + 1):
        assert int(weights.by_distance[distance]) / weights.unit == pytest.approx(
            1 / distance, abs=1e-8
        )
