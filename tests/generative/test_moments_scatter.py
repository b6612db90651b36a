"""Scatter matrices: pooled or not, weighted or not, near zero or far from it."""

import numpy as np
import pytest

from learnable.core.errors import DataError
from learnable.data.blocks import Blocks, Part
from learnable.generative.moments import class_scatter


@pytest.mark.parametrize("order", ["mixed", "sorted"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("far", [0.0, 1e8])
def test_scatter_is_that_of_centred_rows(order, weighted, far):
    rng = np.random.default_rng(0)
    n, K, d = 3000, 3, 5
    y = rng.integers(0, K, n) if order == "mixed" else np.sort(rng.integers(0, K, n))
    X = rng.normal(size=(n, d)) + far * np.arange(1, K + 1)[y][:, None]
    w = rng.uniform(0.5, 2.0, n) if weighted else None
    blocks = Blocks([Part(X, y, w)], rows=256)
    each = class_scatter("test", blocks, K, pooled=False, n_jobs=2)
    together = class_scatter("test", blocks, K, pooled=True, n_jobs=1)
    for k in range(K):
        weight = np.ones((y == k).sum()) if w is None else w[y == k]
        mean = np.average(X[y == k].astype(np.longdouble), axis=0, weights=weight)
        Z = (X[y == k] - mean).astype(float)
        np.testing.assert_allclose(each.scatter[k], Z.T @ (weight[:, None] * Z), rtol=1e-6, atol=1e-4)
        np.testing.assert_allclose(each.mean[k], mean.astype(float), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(together.within, each.within, rtol=1e-8, atol=1e-6)


def test_constant_columns_have_no_scatter_and_overflow_is_named():
    X = np.column_stack([np.full(100, 0.1), np.arange(100.0)])
    found = class_scatter("test", Blocks([Part(X, np.arange(100) % 2)]), 2, pooled=True, n_jobs=1)
    assert not found.within[0].any() and found.within[1, 1] > 0
    with pytest.raises(DataError, match="overflow"):
        class_scatter("test", Blocks([Part(X * 1e200, np.arange(100) % 2)]), 2, pooled=True, n_jobs=1)
