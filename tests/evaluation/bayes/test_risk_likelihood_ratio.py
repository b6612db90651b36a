"""Neyman and Pearson: the level is met exactly, and no other test has more power."""

import numpy as np
import pytest
from scipy.stats import norm

from learnable.core.errors import ParameterError
from learnable.evaluation import bayes_classifier, likelihood_ratio_test
from learnable.probability import Bernoulli, Gamma, Laplace, MultivariateNormal, Normal, Poisson

PAIRS = {
    "one covariance": (Normal(0.0, 1.0), Normal(2.0, 1.0), "exact"),
    "two scales": (Normal(0.0, 1.0), Normal(0.0, 2.0), "exact"),
    "gammas": (Gamma(2.0, 1.0), Gamma(5.0, 1.0), "exact"),
    "laplace": (Laplace(0.0, 1.0), Normal(1.0, 1.0), "exact"),
    "counts": (Poisson(2.0), Poisson(5.0), "exact"),
    "coins": (Bernoulli(0.3), Bernoulli(0.6), "exact"),
    "plane": (MultivariateNormal([0.0, 0.0], np.eye(2)), MultivariateNormal([1.0, 1.0], 2 * np.eye(2)), "monte carlo"),
    "space": (MultivariateNormal(np.zeros(3), np.eye(3)), MultivariateNormal(np.ones(3), np.eye(3)), "exact"),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("level", [0.01, 0.2])
def test_level_and_power_are_those_of_draws(name, level):
    null, alternative, method = PAIRS[name]
    test = likelihood_ratio_test(null, alternative, level=level)
    assert test.method == method
    rng, n = np.random.default_rng(5), 200_000
    for density, expected in ((null, level), (alternative, test.power)):
        share = test.reject(density.sample(n, rng), random_state=rng).mean()
        error = np.sqrt(expected * (1 - expected) / n) + test.error
        slack = 3 * np.sqrt(level / n) if method == "monte carlo" else 0.0  # the threshold itself was drawn
        assert abs(share - expected) < 4.5 * error + slack


def test_closed_form_of_two_normals():
    test = likelihood_ratio_test(Normal(0.0, 1.0), Normal(2.0, 1.0), level=0.05)
    assert test.power == pytest.approx(norm.cdf(2.0 - norm.ppf(0.95)), abs=1e-14)
    cut = norm.ppf(0.95)
    assert test.reject([cut - 1e-9, cut + 1e-9]).tolist() == [False, True]


def test_no_test_on_a_finite_set_has_more_power():
    """Of all deterministic tests of the level, found by trying every set of outcomes, none is more powerful."""
    null, alternative = Poisson(0.7), Poisson(2.0)
    k = np.arange(9)
    p, q = null.pmf(k), alternative.pmf(k)
    for level in (0.05, 0.3):
        best = max(
            q[[i for i in range(9) if mask >> i & 1]].sum()
            for mask in range(512)
            if p[[i for i in range(9) if mask >> i & 1]].sum() <= level
        )
        assert likelihood_ratio_test(null, alternative, level=level).power >= best - 1e-9


def test_with_the_priors_ratio_as_threshold_it_is_the_bayes_classifier():
    null, alternative = Gamma(2.0, 1.0), Gamma(5.0, 1.0)
    rule = bayes_classifier([null, alternative], [0.7, 0.3])
    test = likelihood_ratio_test(null, alternative)
    x = np.linspace(0.1, 15, 200)
    assert np.array_equal(test.statistic(x) > np.log(0.7 / 0.3), rule.predict(x) == 1)


def test_equal_hypotheses_leave_the_coin_alone():
    test = likelihood_ratio_test(Normal(0.0, 1.0), Normal(0.0, 1.0), level=0.1)
    assert test.power == pytest.approx(0.1) and 0.08 < test.reject(np.zeros(20_000), random_state=0).mean() < 0.12


def test_bad_arguments_are_named():
    with pytest.raises(ParameterError, match=r"level must be in \(0, 1\)"):
        likelihood_ratio_test(Normal(0.0, 1.0), Normal(1.0, 1.0), level=0.0)
    with pytest.raises(ParameterError, match="must be distributions"):
        likelihood_ratio_test(1.0, Normal(1.0, 1.0))
