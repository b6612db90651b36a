"""Kernels against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from learnable.generative import _kernels as kernels


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 4)), rng.integers(0, 3, 50)
    return X, y, y.view(np.uint64), rng.uniform(0.5, 2.0, 50), rng.normal(size=(3, 4))


def test_moments_of_each_class(rows):
    X, y, codes, w, shift = rows
    count, first, second, observed = np.zeros(3), np.zeros((3, 4)), np.zeros((3, 4)), np.zeros((3, 4))
    kernels.add_moments(X, codes, w, shift, count, first, second)
    for k in range(3):
        Z = X[y == k] - shift[k]
        np.testing.assert_allclose([count[k]], [w[y == k].sum()])
        np.testing.assert_allclose(first[k], w[y == k] @ Z)
        np.testing.assert_allclose(second[k], w[y == k] @ Z**2)
    holes = X.copy()
    holes[::3, 1] = np.nan
    count[:], first[:], second[:] = 0, 0, 0
    kernels.add_observed_moments(holes, codes, w, shift, count, first, second, observed)
    kept = ~np.isnan(holes[:, 1])
    for k in range(3):
        mine = kept & (y == k)
        assert observed[k, 1] == pytest.approx(w[mine].sum())
        assert first[k, 1] == pytest.approx(w[mine] @ (X[mine, 1] - shift[k, 1]))


def test_scores_are_log_densities(rows):
    X, _, _, _, mean = rows
    var, df = np.abs(mean) + 0.5, np.full((3, 4), 3.5)
    out, log_prior = np.empty((50, 3)), np.log([0.2, 0.3, 0.5])
    half_log = 0.5 * np.log(2 * np.pi * var)
    expected = np.stack([stats.norm.logpdf(X, mean[k], np.sqrt(var[k])).sum(axis=1) for k in range(3)], 1) + log_prior
    kernels.normal_scores(X, mean, 0.5 / var, log_prior - half_log.sum(axis=1), out)
    np.testing.assert_allclose(out, expected)
    kernels.observed_normal_scores(X, mean, 0.5 / var, log_prior, half_log, out)
    np.testing.assert_allclose(out, expected)
    each = stats.t.logpdf(0.0, df, 0.0, np.sqrt(var))
    kernels.student_scores(X, mean, np.sqrt(var), df, log_prior, each, out)
    t = np.stack([stats.t.logpdf(X, 3.5, mean[k], np.sqrt(var[k])).sum(axis=1) for k in range(3)], 1)
    np.testing.assert_allclose(out, t + log_prior)


def test_sums_of_dense_and_sparse_rows(rows):
    X, y, codes, w, _ = rows
    X = np.where(X > 0, X, 0.0)
    expected = np.stack([w[y == k] @ X[y == k] for k in range(3)])
    dense, sparse, csr = np.zeros((3, 4)), np.zeros((3, 4)), sp.csr_array(X)
    assert kernels.add_rows(X, codes, w, dense) == 0.0
    kernels.add_sparse_rows(csr.data, csr.indices.view(np.uint32), csr.indptr.view(np.uint32), codes, w, sparse)
    np.testing.assert_allclose(dense, expected)
    np.testing.assert_allclose(sparse, expected)
    assert kernels.add_rows(X - 1.0, codes, w, np.zeros((3, 4))) == (X - 1.0).min()
    out = np.zeros((50, 2))
    weights = np.array([[1.0, 2.0], [3.0, 4.0], [-np.inf, 5.0], [0.0, 1.0]])
    csr.data[csr.indices == 2] = 0.0  # zeros that are stored
    kernels.sparse_scores(csr.data, csr.indices.view(np.uint32), csr.indptr.view(np.uint32), weights, out)
    X[:, 2] = 0.0
    np.testing.assert_allclose(out, X @ np.where(np.isinf(weights), 0.0, weights))


def test_presence_and_categories(rows):
    X, y, codes, w, _ = rows
    holes = X.copy()
    holes[::4, 0] = np.nan
    ones, gaps = np.zeros((2, 3, 4))
    kernels.add_exceeding(holes, codes, w, 0.2, ones, gaps)
    for k in range(3):
        np.testing.assert_allclose(ones[k], w[y == k] @ (holes[y == k] > 0.2))
        np.testing.assert_allclose(gaps[k], w[y == k] @ np.isnan(holes[y == k]))
    C = np.floor(np.abs(X))
    C[::5, 1] = np.nan
    sizes = np.nanmax(C, axis=0).astype(int) + 1
    offset = np.r_[0, np.cumsum(sizes)[:-1]]
    counts = np.zeros(3 * sizes.sum())
    kernels.add_categories(C, codes, w, (3 * offset).astype(np.uint64), 3, counts)
    table = counts.reshape(-1, 3)
    for j in range(4):
        for c in range(sizes[j]):
            for k in range(3):
                assert table[offset[j] + c, k] == pytest.approx(w[(C[:, j] == c) & (y == k)].sum())
    out = np.zeros((50, 3))
    kernels.category_scores(C, offset.astype(np.uint64), table, out)
    i = int(np.flatnonzero(np.isnan(C[:, 1]))[0])
    np.testing.assert_allclose(out[i], sum(table[offset[j] + int(C[i, j])] for j in (0, 2, 3)))
