"""Ranks, rows needed, and what is lost by folds."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnable.evaluation import ConformalRegressor
from learnable.evaluation.conformal.base import fold_slack, generator_of, rank_of, rows_needed

levels = st.integers(1, 999).map(lambda thousandths: thousandths / 1000)


@given(levels, st.integers(1, 10**6))
def test_rank_is_the_least_that_covers(level, n):
    exact = Fraction(round(level * 1000), 1000)
    rank = rank_of(level, n)
    assert Fraction(rank, n + 1) >= exact > Fraction(rank - 1, n + 1)


@given(levels)
def test_rows_needed_is_the_first_number_with_a_finite_interval(level):
    n = rows_needed(level)
    assert rank_of(level, n) <= n
    assert n == 1 or rank_of(level, n - 1) > n - 1


def test_a_level_is_read_as_it_is_written():
    assert 0.55 * 100 > 55  # in floating point
    assert rank_of(0.55, 99) == 55
    assert rank_of(np.float64(0.9), 9) == 9


def test_fold_slack_as_published():
    # Theorem 4 of Barber et al. (2021): min{2(1 − 1/K)/(n/K + 1), (1 − K/n)/(K + 1)}, at most sqrt(2/n).
    assert fold_slack(100, 10) == pytest.approx(min(2 * 0.9 / 11, 0.9 / 11))
    assert fold_slack(50, 50) == 0.0
    for n in (20, 100, 1000):
        for k in (2, 5, 10, n):
            assert 0 <= fold_slack(n, k) <= np.sqrt(2 / n)


def test_random_states_of_all_kinds():
    assert generator_of(3).random() == generator_of(3).random()
    shared = np.random.default_rng(0)
    assert generator_of(shared) is shared
    first, second = np.random.RandomState(0), np.random.RandomState(0)
    assert generator_of(first).random() == generator_of(second).random()


@pytest.mark.parametrize(
    ("method", "n", "words"),
    [
        ("split", 40, "with probability at least 0.9"),
        ("jackknife+", 40, "with probability at least 0.8, and typically 0.9"),
        ("cv+", 40, "at least 0.6542 (folds of equal size), and typically 0.9"),
    ],
)
def test_guarantee_in_words(method, n, words):
    rng = np.random.default_rng(0)
    model = ConformalRegressor(method=method, random_state=0).fit(rng.normal(size=(n, 1)), rng.normal(size=n))
    assert model.guarantee_.endswith(words)
