"""The independent check of Bayesian regression catches every kind of change."""

import numpy as np
import pytest

import learnable as ln
from learnable.core.errors import VerificationError
from learnable.linear import BayesianLinearRegression


def rows(n=50, d=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) + 1.0
    return X, X @ rng.normal(size=d) + 0.5 * rng.normal(size=n)


CHANGES = ("coef_", "intercept_", "alpha_", "lambda_", "ratio_", "basis_", "eigenvalues_", "x_mean_", "weight_sum_",
           "log_marginal_likelihood_")  # fmt: skip


@pytest.mark.parametrize("noise", ["evidence", "known", "unknown"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_a_thousandth_is_caught(noise, name):
    X, y = rows()
    model = BayesianLinearRegression(noise).fit(X, y)
    assert ln.verify(model, X, y)
    setattr(model, name, getattr(model, name) * 1.001)
    assert not ln.verify(model, X, y)


@pytest.mark.parametrize("name", ["shape_", "rate_"])
def test_the_posterior_of_the_noise_is_checked(name):
    X, y = rows()
    model = BayesianLinearRegression("unknown").fit(X, y)
    setattr(model, name, getattr(model, name) * 1.001)
    assert not ln.verify(model, X, y)


def test_other_data_are_caught():
    X, y = rows()
    model = BayesianLinearRegression().fit(X, y)
    assert not ln.verify(model, X, y + 1e-9 * np.arange(50))
    with pytest.raises(VerificationError, match="one target"):
        ln.verify(model, X, np.column_stack([y, y]))


@pytest.mark.parametrize(("n", "d"), [(8, 30), (4, 4), (300, 2)])
def test_other_shapes_are_verified(n, d):
    X, y = rows(n, d)
    for noise in ("evidence", "known", "unknown"):
        assert ln.verify(BayesianLinearRegression(noise).fit(X, y), X, y)
