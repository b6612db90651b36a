"""The laws that every family obeys: of densities, moments, divergences, samples, and exponential families."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from tests.probability.families import (
    ALL,
    CONTINUOUS_LINE,
    COUNTS,
    EXPONENTIAL,
    OVERCOMPLETE,
    PAIRS,
    VECTORS,
    stacked,
)

from learnable.core.errors import DataError, ParameterError
from learnable.probability import Categorical, ExponentialFamily

#: Eleven tests at this level let a right sampler fail once in a hundred choices of the seed.
GOODNESS_OF_FIT = 1e-3

each = pytest.mark.parametrize("name", PAIRS)
each_exponential = pytest.mark.parametrize("name", EXPONENTIAL)


def z_score(values, expected):
    return abs(values.mean(axis=0) - expected) / (values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def expectation(distribution, f):
    """E f(x) by quadrature, in pieces that follow the quantiles."""
    p = np.r_[1e-300, 10.0 ** -np.arange(14, 0, -1), 0.3, 0.5, 0.7, 1 - 10.0 ** -np.arange(1, 15)]
    knots = np.unique(np.r_[distribution.quantile(0.0), distribution.quantile(p), distribution.quantile(1.0)])

    def integrand(x):
        density = distribution.pdf(x)
        return f(x) * density if density < np.inf else 0.0  # an infinite peak at the very end has no width

    wide = [(a, b) for a, b in pairwise(knots) if not b - a < 1e-12 * abs(b)]
    return sum(integrate.quad(integrand, a, b, limit=200)[0] for a, b in wide)


@pytest.mark.parametrize("name", CONTINUOUS_LINE)
def test_density_integrates_to_one_and_has_the_stated_moments_and_entropy(name):
    d = PAIRS[name][0]
    assert expectation(d, lambda x: 1.0) == pytest.approx(1.0, abs=1e-9)
    assert expectation(d, lambda x: x) == pytest.approx(d.mean, rel=1e-7)
    assert expectation(d, lambda x: (x - d.mean) ** 2) == pytest.approx(d.variance, rel=1e-4)
    assert expectation(d, lambda x: -d.logpdf(x) if np.isfinite(d.logpdf(x)) else 0.0) == pytest.approx(
        d.entropy(), abs=1e-7
    )


@pytest.mark.parametrize("name", CONTINUOUS_LINE)
def test_divergence_is_the_mean_log_ratio(name):
    p, q = PAIRS[name]

    def log_ratio(x):
        difference = p.logpdf(x) - q.logpdf(x)
        return difference if np.isfinite(difference) else 0.0

    assert p.kl(q) == pytest.approx(expectation(p, log_ratio), rel=1e-6)


@pytest.mark.parametrize("name", CONTINUOUS_LINE)
def test_cdf_is_the_integral_and_the_quantile_its_inverse(name):
    d = PAIRS[name][0]
    p = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999])
    x = d.quantile(p)
    np.testing.assert_allclose(d.cdf(x), p, rtol=1e-9)
    for a, b in pairwise(x[1:]):
        assert integrate.quad(d.pdf, a, b)[0] == pytest.approx(d.cdf(b) - d.cdf(a), abs=1e-9)


@pytest.mark.parametrize("name", COUNTS)
def test_probabilities_sum_to_one_and_have_the_stated_moments_entropy_divergence(name):
    d, other = PAIRS[name]
    x = np.arange(60.0)
    p = d.pmf(x)
    assert p.sum() == pytest.approx(1.0, abs=1e-13)
    assert p @ x == pytest.approx(d.mean, rel=1e-12)
    assert p @ (x - d.mean) ** 2 == pytest.approx(d.variance, rel=1e-12)
    possible = p > 0
    assert -p[possible] @ d.logpmf(x)[possible] == pytest.approx(d.entropy(), rel=1e-12)
    log_ratio = d.logpmf(x[possible]) - other.logpmf(x[possible])
    assert p[possible] @ log_ratio == pytest.approx(d.kl(other), rel=1e-12)
    np.testing.assert_allclose(d.cdf(x), np.minimum(np.cumsum(p), 1.0), rtol=1e-12)
    assert np.all(d.logpmf([-1.0, 0.5, np.inf]) == -np.inf)


def test_probabilities_of_count_vectors_sum_to_one():
    d, other = PAIRS["Multinomial"]
    cells = np.array([(i, j, 5 - i - j) for i in range(6) for j in range(6 - i)], dtype=float)
    p = d.pmf(cells)
    assert p.sum() == pytest.approx(1.0, abs=1e-13)
    np.testing.assert_allclose(p @ cells, d.mean, rtol=1e-13)
    np.testing.assert_allclose((cells.T * p) @ cells - np.outer(d.mean, d.mean), d.covariance, atol=1e-13)
    assert -p @ d.logpmf(cells) == pytest.approx(d.entropy(), rel=1e-12)
    assert p @ (d.logpmf(cells) - other.logpmf(cells)) == pytest.approx(d.kl(other), rel=1e-12)


@pytest.mark.parametrize("name", ["Dirichlet", "MultivariateNormal", "Wishart", "InverseWishart"])
def test_density_of_vectors_and_matrices_integrates_to_one(name):
    # ∫ p = E_q[p/q] for any q that covers p.
    p, q = PAIRS[name]
    if name in ("MultivariateNormal", "Wishart", "InverseWishart"):
        q = {
            "MultivariateNormal": lambda: type(p)(p.mean, 2.0 * p.cov),
            "Wishart": lambda: type(p)(p.df - 1.5, 1.5 * p.scale),
            "InverseWishart": lambda: type(p)(p.df - 3.0, 0.8 * p.scale),
        }[name]()
    x = q.sample(200_000, random_state=0)
    ratio = np.exp(p.logpdf(x) - q.logpdf(x))
    assert ratio.std() < 3.0
    assert z_score(ratio, 1.0) < 4


@pytest.mark.parametrize("name", VECTORS)
def test_moments_entropy_and_divergence_of_vectors_by_simulation(name):
    p, q = PAIRS[name]
    x = p.sample(100_000, random_state=1)
    assert np.all(z_score(x, p.mean) < 4.5)
    assert np.all(z_score(np.square(x - p.mean), p.variance) < 4.5)
    assert z_score(-p.logpdf(x), p.entropy()) < 4.5
    assert z_score(p.logpdf(x) - q.logpdf(x), p.kl(q)) < 4.5


@pytest.mark.parametrize("name", CONTINUOUS_LINE)
def test_samples_follow_the_cdf(name):
    d = PAIRS[name][0]
    assert stats.kstest(d.sample(50_000, random_state=0), d.cdf).pvalue > GOODNESS_OF_FIT


@pytest.mark.parametrize("name", COUNTS)
def test_samples_follow_the_probabilities(name):
    d = PAIRS[name][0]
    counts = np.bincount(d.sample(200_000, random_state=0).astype(int), minlength=12)[:12]
    expected = 200_000 * d.pmf(np.arange(12.0))
    rare = expected < 5
    observed = np.r_[counts[~rare], 200_000 - counts[~rare].sum()]
    expected = np.r_[expected[~rare], 200_000 - expected[~rare].sum()]
    keep = expected > 1e-6
    assert stats.chisquare(observed[keep], expected[keep], sum_check=False).pvalue > GOODNESS_OF_FIT


@each
def test_divergence_is_positive_and_zero_from_itself(name):
    one, other = PAIRS[name]
    assert one.kl(one) == pytest.approx(0.0, abs=1e-13)
    assert one.kl(other) > 1e-3
    with pytest.raises(ParameterError, match=f"{name}: other must be a {name}"):
        one.kl("not a distribution")


@each
def test_an_array_of_distributions_is_its_members(name):
    one, other = PAIRS[name]
    many = stacked(name)
    assert many.batch_shape == (2,) and many.event_shape == one.event_shape
    x = one.sample(7, random_state=3)
    rank = len(one.event_shape)
    table = many.logpdf(x.reshape(7, 1, *x.shape[1:]))
    assert table.shape == (7, 2)
    np.testing.assert_allclose(table[:, 0], one.logpdf(x), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(table[:, 1], other.logpdf(x), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(many.entropy(), [one.entropy(), other.entropy()], rtol=1e-13)
    np.testing.assert_allclose(many.kl(other), [one.kl(other), 0.0], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(many.variance, [one.variance, other.variance], rtol=1e-13)
    assert many.sample(5, random_state=0).shape == (5, 2, *one.event_shape)
    assert many[1].batch_shape == () and many[:1].batch_shape == (1,)
    np.testing.assert_array_equal(many[1].mean, other.mean)
    assert np.ndim(one.logpdf(x[0])) == 0 and np.ndim(x[0]) == rank


@each
def test_immutable_and_copies_are_equal(name):
    one = PAIRS[name][0]
    with pytest.raises(AttributeError, match=f"{name} is immutable"):
        one.anything = 1.0
    for values in one.parameters.values():
        if np.ndim(values):
            with pytest.raises(ValueError, match="read-only"):
                values[...] = 0.0
    x = one.sample(3, random_state=0)
    for twin in (copy.deepcopy(one), pickle.loads(pickle.dumps(one)), type(one)(**one.parameters)):
        assert np.array_equal(twin.logpdf(x), one.logpdf(x))
    assert np.array_equal(one.sample(4, random_state=5), one.sample(4, random_state=5))


@each
def test_nan_is_nan_and_scalars_stay_scalars(name):
    one = PAIRS[name][0]
    x = np.full(one.event_shape, np.nan)
    assert np.isnan(one.logpdf(x))
    assert isinstance(one.entropy(), float)
    np.testing.assert_allclose(one.entropy(base=2), one.entropy() / np.log(2), rtol=1e-15)


@each_exponential
def test_log_density_is_that_of_an_exponential_family(name):
    d = PAIRS[name][0]
    x = d.sample(200, random_state=0)
    value = d.log_base_measure(x) + d.sufficient_statistic(x) @ d.natural_parameter - d.log_partition
    np.testing.assert_allclose(value, d.logpdf(x), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", [name for name in EXPONENTIAL if name not in OVERCOMPLETE])
def test_slope_of_the_log_partition_function_is_the_mean_statistic(name):
    one, other = EXPONENTIAL[name]
    eta, step = one.natural_parameter, other.natural_parameter - one.natural_parameter
    h = 1e-5

    def log_partition(s):
        return type(one).from_natural_parameter(eta + s * step, **one.known).log_partition

    slope = (log_partition(h) - log_partition(-h)) / (2 * h)
    assert slope == pytest.approx(one.mean_statistic @ step, rel=1e-6)


@each_exponential
def test_both_parametrisations_come_back(name):
    one = EXPONENTIAL[name][0]
    for twin in (
        type(one).from_natural_parameter(one.natural_parameter, **one.known),
        type(one).from_mean_statistic(one.mean_statistic, **one.known),
    ):
        for key, value in one.parameters.items():
            np.testing.assert_allclose(twin.parameters[key], value, rtol=1e-11, err_msg=key)
    many = stacked(name)
    back = type(one).from_mean_statistic(many.mean_statistic, **many.known)
    for key, value in many.parameters.items():
        np.testing.assert_allclose(back.parameters[key], value, rtol=1e-11, err_msg=key)


@each_exponential
def test_mean_statistic_by_simulation(name):
    d = EXPONENTIAL[name][0]
    assert np.all(z_score(d.sufficient_statistic(d.sample(50_000, random_state=2)), d.mean_statistic) < 4.5)


@each_exponential
def test_statistics_suffice(name):
    # Factorisation: the log-likelihood ratio of two members is a function of the sum of the statistics alone.
    one, other = EXPONENTIAL[name]
    x = one.sample(40, random_state=4)
    n, total = one.sum_statistic(x)
    ratio = (one.logpdf(x) - other.logpdf(x)).sum()
    by_statistic = total @ (one.natural_parameter - other.natural_parameter)
    assert ratio == pytest.approx(by_statistic - n * (one.log_partition - other.log_partition), rel=1e-10)


@pytest.mark.threaded
@each_exponential
def test_sums_over_blocks_add_and_give_the_fit(name):
    d = EXPONENTIAL[name][0]
    x = d.sample(60, random_state=5)
    w = np.random.default_rng(0).integers(1, 4, 60).astype(float)
    n, total = d.sum_statistic(x, w)
    parts = [d.sum_statistic(x[rows], w[rows]) for rows in np.array_split(np.arange(60), 4)]
    assert n == sum(part[0] for part in parts)
    np.testing.assert_allclose(total, sum(part[1] for part in parts), rtol=1e-12)
    merged = type(d).from_mean_statistic(total / n, **d.known)
    direct = fit(d, x, w)
    for key in d.parameters:
        np.testing.assert_allclose(merged.parameters[key], direct.parameters[key], rtol=1e-8)


def fit(d, x, w=None):
    known = {"n_categories": d.n_categories} if isinstance(d, Categorical) else getattr(d, "known", {})
    return type(d).fit_mle(x, w, **known)


@each_exponential
def test_fit_matches_the_mean_statistics(name):
    d = EXPONENTIAL[name][0]
    x = d.sample(80, random_state=6)
    np.testing.assert_allclose(fit(d, x).mean_statistic, d.sufficient_statistic(x).mean(axis=0), rtol=1e-8, atol=1e-12)


@each
def test_fit_has_a_greater_likelihood_than_its_neighbours(name):
    one, other = PAIRS[name]
    x = one.sample(50, random_state=7)
    best = fit(one, x)
    here = best.logpdf(x).sum()
    for share in (1e-3, 1e-2, 0.3):
        mixed = {
            key: (1 - share) * value + share * np.asarray(other.parameters[key])
            for key, value in best.parameters.items()
        }
        assert here >= type(one)(**mixed).logpdf(x).sum()


@each
def test_weights_are_repetitions_and_weight_zero_is_absence(name):
    d = PAIRS[name][0]
    x = d.sample(30, random_state=8)
    w = np.random.default_rng(1).integers(0, 4, 30)
    weighted, repeated, scaled = fit(d, x, w), fit(d, np.repeat(x, w, axis=0)), fit(d, x, w * 1e-200)
    for key, value in repeated.parameters.items():
        np.testing.assert_allclose(weighted.parameters[key], value, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(scaled.parameters[key], value, rtol=1e-6, atol=1e-9)


@each
def test_fit_recovers_the_truth(name):
    d = PAIRS[name][0]
    best = fit(d, d.sample(5000, random_state=9))
    assert d.kl(best) < 20.0 / 5000  # twice the divergence times n is χ² with at most four degrees of freedom


@pytest.mark.sampled(6)
@each
@pytest.mark.parametrize("bad", ["empty", "nan", "weights", "length"])
def test_fit_refuses_bad_data(name, bad):
    d = PAIRS[name][0]
    x, w = d.sample(5, random_state=0), None
    if bad == "empty":
        x = x[:0]
    elif bad == "nan":
        x = x.copy()
        x[2] = np.nan
    else:
        w = np.ones(4) if bad == "length" else -np.ones(5)
    with pytest.raises(DataError, match=f"{name}: "):
        fit(d, x, w)


@pytest.mark.parametrize("name", ["Exponential", "Gamma", "InverseGamma", "Beta", "Bernoulli", "Binomial", "Poisson",
                                  "Categorical", "Multinomial", "Dirichlet", "Wishart", "InverseWishart"])  # fmt: skip
def test_impossible_samples(name):
    d = PAIRS[name][0]
    x = -d.sample(5, random_state=0) - 1.0
    assert np.all(d.logpdf(x) == -np.inf)
    assert np.all(d.log_base_measure(x) == -np.inf)
    with pytest.raises(DataError, match=f"{name}: samples must be"):
        fit(d, x)


@pytest.mark.parametrize("distribution", [d for d in ALL if not isinstance(d, ExponentialFamily)], ids=repr)
def test_plain_distributions_say_so(distribution):
    with pytest.raises(AttributeError, match="is no exponential family"):
        distribution.natural_parameter  # noqa: B018
    assert not hasattr(distribution, "natural_parameter")


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), name=st.sampled_from(sorted(EXPONENTIAL)))
def test_divergence_is_the_bregman_divergence_of_the_log_partition_function(seed, name):
    one, other = EXPONENTIAL[name]
    rng = np.random.default_rng(seed)
    share = rng.uniform(0.05, 1.0)
    mixed = {key: (1 - share) * np.asarray(value) + share * np.asarray(other.parameters[key])
             for key, value in one.parameters.items()}  # fmt: skip
    q = type(one)(**mixed)
    bregman = ExponentialFamily._kl(one, q)
    assert one.kl(q) >= 0.0
    assert one.kl(q) == pytest.approx(bregman, rel=1e-6, abs=1e-10)
