"""Columns that repeat each other, do not vary, or have extreme units: good mixtures are verified."""

import warnings

import numpy as np
import pytest

from learnable import GaussianMixture, VariationalGaussianMixture, verify

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(80, 3)), RNG.normal(size=(80, 3)) + 6])
TABLES = {
    "a column twice": np.column_stack([X, X[:, 0]]),
    "a constant": np.column_stack([X, np.ones(160)]),
    "a large constant": np.column_stack([X, np.full(160, 1e6)]),
    "units 1e6 and 1e-6": X * [1e6, 1.0, 1e-6],
    "a column of 1e-300": X * [1e-300, 1.0, 1.0],
    "all of 1e-300": X * 1e-300,
}
KINDS = ["full", "tied", "diag", "spherical"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("model", [GaussianMixture, VariationalGaussianMixture])
def test_a_fit_that_holds_is_verified(model, table, kind):
    rows = TABLES[table]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model(2, covariance_type=kind, random_state=0, max_iter=500).fit(rows)
    assert fitted.certificate_.holds
    verdict = verify(fitted, rows)
    assert verdict.ok, str(verdict)


@pytest.mark.parametrize("scale", [1e-160, 1e-200, 1e-310])
@pytest.mark.parametrize("kind", KINDS)
def test_squares_that_underflow_are_a_clear_error(scale, kind):
    with pytest.raises(ValueError, match="GaussianMixture: squares of X underflow"):
        GaussianMixture(2, covariance_type=kind, reg_covar=0.0, random_state=0).fit(X * scale)
