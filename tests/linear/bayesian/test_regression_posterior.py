"""What a posterior answers: distributions, intervals, draws of coefficients and of functions."""

import numpy as np
import pytest

from learnable.linear import BayesianLinearRegression
from learnable.probability import InverseGamma, MultivariateNormal, MultivariateStudentT, Normal, StudentT


def rows(n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 1.0
    return X, X @ rng.normal(size=d) + 0.5 * rng.normal(size=n) + 2.0


@pytest.mark.parametrize("noise", ["evidence", "known", "unknown"])
@pytest.mark.parametrize("d", [3, 60])
def test_draws_have_the_stated_distribution(noise, d):
    X, y = rows(d=d)
    model = BayesianLinearRegression(noise).fit(X, y)
    new = X[:4] + 0.1
    values = model.sample_functions(new, 20_000, random_state=0)
    assert values.shape == (20_000, 4)
    stated = model.predict_function(new)
    np.testing.assert_allclose(values.std(axis=0), stated.std, rtol=0.05)
    assert np.all(np.abs(values.mean(axis=0) - model.predict(new)) < 5.0 * stated.std / np.sqrt(20_000))
    coef, intercept = model.sample_coefficients(20_000, random_state=1)
    std = model.coef_dist().std
    np.testing.assert_allclose(coef.std(axis=0), std, rtol=0.05)
    np.testing.assert_allclose(np.cov(coef.T), model.sigma_, atol=0.05 * std.max() ** 2 * 3)
    assert intercept.shape == (20_000,)
    low, high = model.coef_interval(0.8)
    np.testing.assert_allclose(((coef > low) & (coef < high)).mean(axis=0), 0.8, atol=0.015)


def test_distributions_by_noise():
    X, y = rows()
    normal, student = BayesianLinearRegression("known").fit(X, y), BayesianLinearRegression("unknown").fit(X, y)
    assert isinstance(normal.predict_dist(X), Normal) and isinstance(student.predict_dist(X), StudentT)
    assert isinstance(normal.posterior(), MultivariateNormal) and isinstance(student.posterior(), MultivariateStudentT)
    assert isinstance(student.noise_dist(), InverseGamma)
    with pytest.raises(AttributeError, match="noise='unknown' only"):
        normal.noise_dist()
    mean, std = normal.predict(X, return_std=True)
    np.testing.assert_allclose(mean, normal.predict(X))
    np.testing.assert_allclose(std, normal.predict_dist(X).std)
    low, high = student.predict_interval(X, 0.9)
    np.testing.assert_allclose(student.predict_dist(X).cdf(low), 0.05)
    assert np.all(high > low)
    np.testing.assert_allclose(student.posterior().covariance, student.sigma_, rtol=1e-12)


def test_directions_that_no_row_has_keep_the_prior():
    X = np.zeros((5, 3))
    X[:, 0] = np.arange(5.0)
    model = BayesianLinearRegression("known", noise_std=0.5, prior_std=2.0, fit_intercept=False).fit(X, X[:, 0])
    np.testing.assert_allclose(model.coef_dist().std[1:], 2.0)
    assert model.coef_dist().std[0] < 0.2
    np.testing.assert_allclose(np.diagonal(model.sigma_)[1:], 4.0)
    assert model.predict_dist([[0.0, 1.0, 0.0]]).variance[0] == pytest.approx(4.0 + 0.25)


def test_intervals_of_wide_tables_cover():
    """Coverage of 80 % intervals of the coefficients when there are more of them than rows."""
    rng, inside = np.random.default_rng(3), []
    for _ in range(200):
        X, beta = rng.normal(size=(10, 20)), rng.normal(size=20)
        y = X @ beta + 0.5 * rng.normal(size=10)
        model = BayesianLinearRegression("known", noise_std=0.5, prior_std=1.0, fit_intercept=False).fit(X, y)
        low, high = model.coef_interval(0.8)
        inside.append(np.mean((low < beta) & (beta < high)))
    assert abs(np.mean(inside) - 0.8) < 4.0 * np.std(inside) / np.sqrt(200)
