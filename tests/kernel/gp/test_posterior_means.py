"""Mean functions: which columns they use, and that their coefficients are those of generalised least squares."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnable import GaussianProcessRegressor, LinearRegression
from learnable.core.errors import DataError, ModelFileError
from learnable.kernel.gp.posterior import Trend, trend_of
from learnable.risk.kernels import Gaussian

RNG = np.random.default_rng(0)


def test_dependent_and_constant_columns_are_left_out():
    x = RNG.normal(size=(20, 2))
    X = np.column_stack([x[:, 0], np.full(20, 3.0), x[:, 1], 2.0 * x[:, 0] - x[:, 1] + 5.0])
    trend = trend_of("GP", "linear", X)
    assert trend.size == 3 and 1 not in trend.columns
    assert np.linalg.matrix_rank(trend.basis(X)) == 3
    assert trend_of("GP", "constant", X).size == 1
    assert trend_of("GP", "zero", X).size == 0


def test_too_few_rows_for_the_coefficients():
    with pytest.raises(DataError, match="3 coefficients, which 3 rows"):
        trend_of("GP", "linear", RNG.normal(size=(3, 2)))


@given(st.integers(0, 1000), st.sampled_from(["constant", "linear"]))
def test_a_flat_prior_is_the_limit_of_a_wide_one(seed, mean):
    rng = np.random.default_rng(seed)
    X, Q = rng.normal(size=(15, 2)), rng.normal(size=(4, 2))
    y = X @ [1.0, -2.0] + 3.0 + 0.1 * rng.normal(size=15)
    kernel = Gaussian(1.0)
    flat = GaussianProcessRegressor(kernel, alpha=0.1, mean=mean, optimizer=None).fit(X, y)
    h = (lambda A: np.ones((len(A), 1))) if mean == "constant" else (lambda A: np.column_stack([np.ones(len(A)), A]))
    wide = 1e6
    K = kernel(X) + 0.1 * np.eye(15) + wide * h(X) @ h(X).T
    k, own = kernel(X, Q) + wide * h(X) @ h(Q).T, kernel(Q) + wide * h(Q) @ h(Q).T
    m, cov = flat.predict(Q, return_cov=True)
    np.testing.assert_allclose(m, k.T @ np.linalg.solve(K, y), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(cov, own - k.T @ np.linalg.solve(K, k), rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), flat.predict(Q, return_std=True)[1], rtol=1e-9)


def test_a_regressor_is_fitted_first():
    X = RNG.normal(size=(30, 2))
    y = X @ [1.0, 2.0] + 0.1 * RNG.normal(size=30)
    model = GaussianProcessRegressor(0.01 * Gaussian(1.0), alpha=0.01, mean=LinearRegression(), optimizer=None).fit(
        X, y
    )
    line = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.mean_.coef_, line.coef_)
    far = np.full((1, 2), 50.0)  # where the process knows nothing
    np.testing.assert_allclose(model.predict(far), line.predict(far), rtol=1e-10)


def test_a_mean_of_a_file_is_checked():
    good = Trend(2, True, np.array([1]), np.zeros(1), np.ones(1))
    good._check_loaded()
    for bad in (
        Trend(2, True, np.array([2]), np.zeros(1), np.ones(1)),
        Trend(2, True, np.array([1]), np.zeros(2), np.ones(2)),
        Trend(2, True, np.array([1]), np.zeros(1), np.zeros(1)),
    ):
        with pytest.raises(ModelFileError):
            bad._check_loaded()
