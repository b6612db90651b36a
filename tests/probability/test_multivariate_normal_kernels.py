"""The whitening kernel against LAPACK, at sizes around its tile."""

import numpy as np
import pytest

from learnable.probability.multivariate_normal import squared_lengths


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("d", [1, 3, 20])
def test_forward_substitution(n, d):
    rng = np.random.default_rng(n + d)
    X, mean = rng.normal(size=(n, d)), rng.normal(size=d)
    L = np.tril(rng.normal(size=(d, d)), -1) / d + np.diag(rng.uniform(0.5, 2.0, d))
    out = np.full(n, np.nan)
    squared_lengths(X, mean, L, out)
    np.testing.assert_allclose(out, np.square(np.linalg.solve(L, (X - mean).T)).sum(axis=0), rtol=1e-11)


def test_nan_stays_in_its_row():
    X = np.zeros((70, 2))
    X[5, 0] = np.nan
    out = np.empty(70)
    squared_lengths(X, np.zeros(2), np.eye(2), out)
    assert np.isnan(out[5]) and np.isnan(out).sum() == 1
