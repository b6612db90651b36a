"""The normal distribution against SciPy, against its own laws, and by simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate, stats

from learnable.core.errors import DataError, ParameterError
from learnable.probability import Normal

MEAN, STD = np.array([0.0, -3.0, 1e3]), np.array([1.0, 0.01, 50.0])
OURS, THEIRS = Normal(MEAN, STD), stats.norm(MEAN, STD)
X = MEAN + STD * np.array([-30.0, -8.0, -1.0, 0.0, 0.3, 5.0, 12.0])[:, None]


def test_moments_and_entropy_against_scipy():
    assert np.array_equal(OURS.mean, MEAN)
    assert np.array_equal(OURS.std, STD)
    np.testing.assert_allclose(OURS.variance, THEIRS.var(), rtol=1e-15)
    np.testing.assert_allclose(OURS.entropy(), THEIRS.entropy(), rtol=1e-15)


def test_functions_against_scipy():
    np.testing.assert_allclose(OURS.logpdf(X), THEIRS.logpdf(X), rtol=1e-14)
    np.testing.assert_allclose(OURS.pdf(X), THEIRS.pdf(X), rtol=1e-13)
    np.testing.assert_allclose(OURS.cdf(X), THEIRS.cdf(X), rtol=1e-14)
    np.testing.assert_allclose(OURS.logcdf(X), THEIRS.logcdf(X), rtol=1e-14)
    p = np.array([1e-300, 1e-10, 0.025, 0.5, 0.7, 1 - 1e-10])[:, None]
    np.testing.assert_allclose(OURS.quantile(p), THEIRS.ppf(p), rtol=1e-14)
    np.testing.assert_allclose(OURS.interval(0.9), THEIRS.interval(0.9), rtol=1e-14)


@given(p=st.floats(1e-300, 0.5))
def test_quantile_inverts_the_cdf_in_the_lower_tail(p):
    # The condition of Φ at x is |x|φ(x)/Φ(x) < x² + 1 ≤ 1400 for these p, which multiplies the rounding of x.
    standard = Normal()
    assert standard.cdf(standard.quantile(p)) == pytest.approx(p, rel=1e-12)


def test_interval_keeps_its_digits_close_to_level_one():
    level = 1.0 - 2.0**-50
    lower, upper = Normal().interval(level)
    assert lower == -upper == pytest.approx(stats.norm.ppf(2.0**-51), rel=1e-14)


def test_logcdf_where_the_probability_underflows():
    # Φ(-x) ≈ φ(x)/x (1 - 1/x²): the next term is 3/x⁴ = 3e-12 of the sum, the logarithm 5e5.
    x = 1e3
    assert Normal().logcdf(-x) == pytest.approx(Normal().logpdf(x) - np.log(x) - 1 / x**2, rel=1e-15)


def test_density_integrates_to_one_and_has_the_stated_moments():
    distribution = Normal(0.3, 1.7)
    total, mean, var, entropy = (
        integrate.quad(lambda x, f=f: f(x) * distribution.pdf(x), -30, 30, epsabs=1e-13)[0]
        for f in (
            lambda x: 1.0,
            lambda x: x,
            lambda x: (x - 0.3) ** 2,
            lambda x: -distribution.logpdf(x),
        )
    )
    np.testing.assert_allclose([total, mean, var], [1.0, 0.3, 1.7**2], atol=1e-12)
    assert entropy == pytest.approx(distribution.entropy(), abs=1e-12)
    assert integrate.quad(distribution.pdf, -30, 1.0)[0] == pytest.approx(distribution.cdf(1.0), abs=1e-12)


def test_log_density_is_that_of_an_exponential_family():
    exponent = np.sum(OURS.natural_parameter * OURS.sufficient_statistic(X), axis=-1)
    density = OURS.log_base_measure(X) + exponent - OURS.log_partition
    # The three terms cancel where μ/σ is large; they are all of the size of the log-partition function.
    np.testing.assert_allclose(density, OURS.logpdf(X), rtol=1e-13, atol=1e-13 * OURS.log_partition.max())


def test_gradient_of_the_log_partition_function_is_the_mean_of_the_statistics():
    def log_partition(eta):
        std = np.sqrt(-0.5 / eta[1])
        return Normal(eta[0] * std**2, std).log_partition

    distribution, h = Normal(0.7, 1.3), 1e-6
    eta = distribution.natural_parameter
    slope = [(log_partition(eta + h * e) - log_partition(eta - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(slope, [0.7, 0.7**2 + 1.3**2], rtol=1e-8)


samples = arrays(np.float64, 7, elements=st.floats(-100, 100)).filter(lambda x: np.ptp(x) > 1e-3)
integer_weights = arrays(np.int64, 7, elements=st.integers(1, 5))


@given(x=samples)
def test_fit_matches_the_mean_statistics(x):
    fit = Normal.fit_mle(x)
    statistics = fit.sufficient_statistic(x).mean(axis=0)
    expected = [fit.mean, fit.variance + fit.mean**2]
    np.testing.assert_allclose(statistics, expected, rtol=1e-12, atol=1e-12)


@given(x=samples, shift=st.floats(-0.1, 0.1), factor=st.floats(0.9, 1.1))
def test_fit_has_the_greatest_likelihood(x, shift, factor):
    fit = Normal.fit_mle(x)
    other = Normal(fit.mean + shift * fit.std, fit.std * factor)
    assert fit.logpdf(x).sum() >= other.logpdf(x).sum() - 1e-12 * np.abs(fit.logpdf(x)).sum()


@given(x=samples, weights=integer_weights)
def test_weights_are_repetitions(x, weights):
    weighted, repeated = Normal.fit_mle(x, weights), Normal.fit_mle(np.repeat(x, weights))
    np.testing.assert_allclose(weighted.mean, repeated.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(weighted.std, repeated.std, rtol=1e-12)


def test_fit_of_columns_and_of_weight_zero():
    x = np.random.default_rng(0).normal(size=(50, 3))
    fit = Normal.fit_mle(x)
    np.testing.assert_allclose(fit.mean, x.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(fit.std, x.std(axis=0), rtol=1e-13)
    spoiled = np.vstack([x, [[np.nan, np.inf, 0.0]]])
    assert np.array_equal(Normal.fit_mle(spoiled, np.append(np.ones(50), 0.0)).std, fit.std)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_fit_does_not_over_or_underflow(scale):
    fit = Normal.fit_mle(scale * np.array([1.0, 2.0, 3.0, 6.0]))
    assert fit.std == pytest.approx(scale * np.sqrt(3.5), rel=1e-14)


@pytest.mark.parametrize(
    "x, weights, message",
    [
        ([], None, r"at least one sample, got shape \(0,\)"),
        (3.0, None, r"at least one sample, got shape \(\)"),
        ([0.1, 0.1, 0.1], None, "two distinct values of positive weight"),
        ([1.0, 2.0], [1.0, 0.0], "two distinct values of positive weight"),
        ([1.0, np.nan], None, "samples must be finite"),
        ([1.0, 2.0], [1.0], r"one entry per sample, shape \(2,\), got \(1,\)"),
        ([1.0, 2.0], [1.0, -1.0], "weights must be finite, >= 0 and not all zero"),
        ([1.0, 2.0], [0.0, 0.0], "weights must be finite, >= 0 and not all zero"),
    ],
)
def test_fit_refuses_data_without_an_answer(x, weights, message):
    with pytest.raises(DataError, match=f"Normal: .*{message}"):
        Normal.fit_mle(x, weights)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_bad_std(bad):
    with pytest.raises(ParameterError, match=f"Normal: std must be > 0 and finite, got {bad!r}."):
        Normal(0.0, [1.0, bad])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_mean(bad):
    with pytest.raises(ParameterError, match=f"Normal: mean must be finite, got {bad!r}."):
        Normal(bad)


def test_samples_follow_the_distribution():
    distribution = Normal(2.0, 3.0)
    assert stats.kstest(distribution.sample(20_000, random_state=0), distribution.cdf).pvalue > 0.01


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_interval_covers_as_often_as_it_says(level):
    distribution = Normal([2.0, -1.0], [3.0, 0.1])
    n = 40_000
    x = distribution.sample(n, random_state=1)
    lower, upper = distribution.interval(level)
    covered = ((lower <= x) & (x <= upper)).mean(axis=0)
    below = (x < lower).mean(axis=0)
    assert np.all(np.abs(covered - level) < 4 * np.sqrt(level * (1 - level) / n))
    tail = (1 - level) / 2
    assert np.all(np.abs(below - tail) < 4 * np.sqrt(tail * (1 - tail) / n))


def test_extreme_arguments():
    x = np.array([-1e300, 1e300])
    assert np.array_equal(Normal().logpdf(x), [-np.inf, -np.inf])
    assert np.array_equal(Normal().cdf(x), [0.0, 1.0])
