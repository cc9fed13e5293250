import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.jobs.embeddings.statistics import Z_95, ranks, spearman, spearman_interval, wilson

numbers = st.lists(st.integers(-5, 5), min_size=2, max_size=30)


class TestWilson:
    @given(st.integers(0, 500), st.integers(1, 500))
    def test_its_bounds_solve_the_quadratic_that_defines_them(self, num_hits, num_tries):
        num_hits = min(num_hits, num_tries)
        share = num_hits / num_tries
        for bound in wilson(num_hits, num_tries):
            distance = (share - bound) ** 2
            assert distance == pytest.approx(Z_95**2 * bound * (1 - bound) / num_tries, abs=1e-9)

    @given(st.integers(0, 500), st.integers(1, 500))
    def test_holds_the_share_and_stays_between_zero_and_one(self, num_hits, num_tries):
        low, high = wilson(min(num_hits, num_tries), num_tries)
        share = min(num_hits, num_tries) / num_tries
        assert 0 <= low <= share + 1e-12
        assert share - 1e-12 <= high <= 1

    def test_without_tries_it_knows_nothing(self):
        assert wilson(0, 0) == (0, 1)


def plain_ranks(values):
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
        for value in values
    ]


def plain_correlation(left, right):
    mean_left, mean_right = sum(left) / len(left), sum(right) / len(right)
    product = sum((a - mean_left) * (b - mean_right) for a, b in zip(left, right, strict=True))
    squares = sum((a - mean_left) ** 2 for a in left) * sum((b - mean_right) ** 2 for b in right)
    return product / math.sqrt(squares) if squares else None


class TestSpearman:
    @given(numbers)
    def test_ranks_are_those_counted_by_hand(self, values):
        assert ranks(values).tolist() == plain_ranks(values)

    @given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=30))
    def test_is_the_correlation_of_ranks_ties_included(self, pairs):
        left, right = zip(*pairs, strict=True)
        expected = plain_correlation(plain_ranks(left), plain_ranks(right))
        rho = spearman(left, right)
        assert rho is expected is None or rho == pytest.approx(expected, abs=1e-12)

    def test_a_textbook_example(self):
        """IQ and hours of television: rho = -29/165."""
        iq = [106, 100, 86, 101, 99, 103, 97, 113, 112, 110]
        hours = [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]
        assert spearman(iq, hours) == pytest.approx(-29 / 165)

    def test_of_nothing_there_is_none(self):
        assert spearman([], []) is None

    def test_the_interval_by_formula(self):
        low, high = spearman_interval(0.6, 103)
        half = 1.959963984540054 * math.sqrt(1.18 / 100)
        assert low == pytest.approx(math.tanh(math.atanh(0.6) - half))
        assert high == pytest.approx(math.tanh(math.atanh(0.6) + half))

    def test_too_few_pairs_have_no_interval(self):
        assert spearman_interval(0.5, 3) is None
        assert spearman_interval(1.0, 10) == (1, 1)

    def test_the_interval_covers_the_truth_about_as_often_as_it_says(self):
        random = np.random.default_rng(0)
        truth = 6 / math.pi * math.asin(0.6 / 2)  # Spearman's of a normal pair with Pearson's 0.6
        hits = 0
        for _ in range(400):
            left = random.normal(size=60)
            right = 0.6 * left + 0.8 * random.normal(size=60)
            low, high = spearman_interval(spearman(left, right), 60)
            hits += low <= truth <= high
        assert 0.92 <= hits / 400 <= 0.98
