"""Ledoit and Wolf's shrinkage from sums over blocks is scikit-learn's from rows."""

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf, shrunk_covariance

from learnable.data.blocks import Blocks, Part
from learnable.generative.moments import auto_shrunk, class_scatter, shrink


@pytest.mark.parametrize("n", [6, 40, 5000])
def test_shrinkage_of_each_class(n):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 8)) @ rng.normal(size=(8, 8)), np.arange(n) % 2
    blocks = Blocks([Part(X, y)], rows=16)
    sums = class_scatter("test", blocks, 2, pooled=False, n_jobs=1)
    cov = sums.scatter / sums.weight[:, None, None]
    found = auto_shrunk(blocks, sums.weight, sums.mean, cov, by_class=True, n_jobs=1)
    for k in range(2):
        own = X[y == k]
        std = own.std(axis=0)
        expected = ledoit_wolf(own / std)[0] * np.outer(std, std)
        np.testing.assert_allclose(found[k], expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(cov[k], np.cov(own.T, bias=True), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(shrink(cov[k], 0.3), shrunk_covariance(cov[k], 0.3), rtol=1e-12)
