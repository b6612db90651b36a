"""Intervals cover: exactly where they promise it, by simulation elsewhere; and equal SciPy's where it has them."""

import math

import numpy as np
import pytest
from scipy import stats

from learnable.core import DataError, ParameterError
from learnable.evaluation import (
    Interval,
    binomial_interval,
    corrected_t_interval,
    empirical_bernstein,
    score_interval,
    t_interval,
)


def binomial_coverage(n, p, level):
    """Return the exact probability that the interval holds p."""
    held = [k for k in range(n + 1) if (found := binomial_interval(k, n, level)).low <= p <= found.high]
    return stats.binom.pmf(held, n, p).sum()


# ---- oracles ----


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize(("errors", "n"), [(0, 1), (1, 1), (0, 50), (3, 50), (25, 50), (49, 50), (50, 50), (7, 10_000)])
def test_binomial_intervals_are_those_of_scipy(errors, n, level):
    found = binomial_interval(errors, n, level)
    expected = stats.binomtest(errors, n).proportion_ci(level, method="exact")
    np.testing.assert_allclose(found[:2], expected, rtol=1e-12, atol=4e-12)  # brentq finds its roots to 2e-12
    assert found.method == "exact binomial" and found.level == level


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_t_intervals_are_those_of_scipy(level):
    x = np.random.default_rng(0).normal(size=12)
    expected = stats.ttest_1samp(x, 0.0).confidence_interval(level)
    np.testing.assert_allclose(t_interval(x, level)[:2], expected, rtol=1e-12)


def test_the_corrected_interval_is_the_formula():
    scores, share = np.array([0.7, 0.75, 0.72, 0.8, 0.74]), 0.2
    half = stats.t.ppf(0.975, 4) * math.sqrt((1 / 5 + 20 / 80) * scores.var(ddof=1))
    found = corrected_t_interval(scores, share)
    np.testing.assert_allclose([found.low, found.high], [scores.mean() - half, scores.mean() + half], rtol=1e-12)


def test_empirical_bernstein_is_the_formula():
    x, level = np.random.default_rng(0).uniform(2.0, 5.0, 400), 0.9
    log_term = math.log(4 / (1 - level))
    half = math.sqrt(2 * x.var(ddof=1) * log_term / 400) + 7 * 3.0 * log_term / (3 * 399)
    found = empirical_bernstein(x, 2.0, 5.0, level)
    np.testing.assert_allclose([found.low, found.high], [x.mean() - half, x.mean() + half], rtol=1e-12)


# ---- coverage ----


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("n", [1, 7, 40])
@pytest.mark.parametrize("p", [0.0, 0.01, 0.2, 0.5, 0.87, 1.0])
def test_binomial_intervals_cover_at_least_nominally(n, p, level):
    assert binomial_coverage(n, p, level) >= level - 1e-12


def share_covered(make, truth, draws):
    return np.mean([found.low <= truth <= found.high for found in map(make, draws)])


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("n", [3, 20])
def test_t_intervals_cover_normal_means(n, level):
    draws = np.random.default_rng(1).normal(3.0, 2.0, size=(4000, n))
    covered = share_covered(lambda x: t_interval(x, level), 3.0, draws)
    assert abs(covered - level) < 4 * math.sqrt(level * (1 - level) / 4000)


@pytest.mark.parametrize("n", [5, 50, 500])
@pytest.mark.parametrize(
    ("draw", "mean"),
    [
        (lambda rng, shape: rng.uniform(size=shape), 0.5),
        (lambda rng, shape: (rng.uniform(size=shape) < 0.02).astype(float), 0.02),
        (lambda rng, shape: rng.beta(0.1, 0.4, size=shape), 0.2),
    ],
    ids=["uniform", "rare", "skewed"],
)
def test_empirical_bernstein_covers_bounded_means(draw, mean, n):
    draws = draw(np.random.default_rng(2), (1000, n))
    covered = share_covered(lambda x: empirical_bernstein(x, level=0.9), mean, draws)
    assert covered >= 0.9  # the bound is far from tight: in truth above 0.99


def test_empirical_bernstein_gains_from_a_small_variance():
    calm, wild = np.tile([0.49, 0.51], 5000), np.tile([0.0, 1.0], 5000)
    found = [empirical_bernstein(x) for x in (calm, wild)]
    assert (found[0].high - found[0].low) < 0.2 * (found[1].high - found[1].low)
    assert binomial_interval(5000, 10_000).high < found[1].high  # the exact interval knows more


# ---- which interval ----


def test_the_values_choose_the_interval():
    rng = np.random.default_rng(0)
    assert score_interval([0, 1, 1]) == binomial_interval(2, 3)
    x = rng.uniform(size=30)
    assert score_interval(x, bounds=(0.0, 1.0)) == empirical_bernstein(x)
    assert score_interval(x) == t_interval(x)
    assert score_interval(x, test_share=0.1) == corrected_t_interval(x, 0.1)
    assert score_interval([0.99, 1.0, 0.9], test_share=0.4, bounds=(0, 1)).high == 1.0


def test_one_value_says_nothing_of_its_spread():
    assert t_interval([3.0])[:2] == (-math.inf, math.inf)
    assert corrected_t_interval([3.0], 0.5)[:2] == (-math.inf, math.inf)
    assert empirical_bernstein([0.3])[:2] == (0.0, 1.0)
    assert t_interval([3.0]).to_dict() == {"low": None, "high": None, "level": 0.95, "method": "t"}


def test_intervals_can_be_joined_and_clipped():
    a, b = Interval(0.1, 0.4, 0.95, "a"), Interval(0.3, 1.2, 0.95, "b")
    assert a.hull(b) == Interval(0.1, 1.2, 0.95, "a")
    assert a.hull(b).clipped(0.2, 1.0) == Interval(0.2, 1.0, 0.95, "a")


# ---- refusals ----


@pytest.mark.parametrize("level", [0.0, 1.0, 95, -1, "95%", None])
@pytest.mark.parametrize(
    "make",
    [
        lambda level: binomial_interval(1, 2, level),
        lambda level: t_interval([1, 2], level),
        lambda level: empirical_bernstein([0, 1], level=level),
        lambda level: corrected_t_interval([1, 2], 0.5, level),
    ],
)
def test_a_level_is_between_zero_and_one(make, level):
    with pytest.raises(ParameterError, match="level"):
        make(level)


@pytest.mark.parametrize("values", [[], [[1.0, 2.0]], ["a"], [1.0, np.nan], [np.inf, 0.0], 3.0])
@pytest.mark.parametrize("make", [t_interval, empirical_bernstein, score_interval])
def test_values_are_finite_numbers(make, values):
    with pytest.raises(DataError, match=make.__name__):
        make(values)


@pytest.mark.parametrize(("errors", "n"), [(3, 2), (-1, 2), (1.5, 2), (True, 2)])
def test_counts_are_counts(errors, n):
    with pytest.raises(ParameterError, match="errors"):
        binomial_interval(errors, n)


def test_no_rows_say_nothing_about_a_rate():
    assert binomial_interval(0, 0)[:2] == (0.0, 1.0)


def test_values_outside_their_range_are_refused():
    with pytest.raises(DataError, match=r"outside \[0, 1\]"):
        empirical_bernstein([0.5, 1.5])
    with pytest.raises(ParameterError, match="low must be below high"):
        empirical_bernstein([0.5], 1.0, 0.0)
    with pytest.raises(ParameterError, match="test_share"):
        corrected_t_interval([0.5, 0.6], 1.0)
