"""The loops of stumps against sums written out."""

import numpy as np
import pytest
import scipy.sparse as sp

from learnable.ensembles.adaboost.stumps import (
    Codes,
    add_votes,
    cut_by_confidence,
    cut_by_error,
    cut_many_classes,
    cut_two_classes,
    sum_classes,
)
from learnable.trees import Columns


def codes_of(X):
    c = Columns.build(X)
    return Codes(c.codes, c.entries, c.rows, c.start, c.zero, c.n_codes)


def table(seed=0, n=60, distinct=7):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, distinct - 2, (n, 4)).astype(float)
    D = rng.random(n)
    return X, rng.integers(3, size=n), D / D.sum()


@pytest.mark.parametrize("distinct", [2, 7, 1000])
@pytest.mark.parametrize("sparse", [False, True])
def test_sums_by_code_and_class(sparse, distinct):
    X, y, D = table(distinct=distinct)
    codes = codes_of(sp.csr_array(X) if sparse else X)
    total = np.bincount(y, weights=D, minlength=3)
    for j in range(4):
        values, expected = np.unique(X[:, j]), []
        sums = np.empty((codes.n_codes[j], 3))
        sum_classes(codes, j, D, y, total, sums, np.empty(3))
        expected = [[D[(X[:, j] == v) & (y == k)].sum() for k in range(3)] for v in values]
        np.testing.assert_allclose(sums, expected, atol=1e-15)


@pytest.mark.parametrize("sparse", [False, True])
def test_two_classes_cut_like_many(sparse):
    X, y, D = table(n=80)
    y = (y > 0).astype(np.int64)
    codes = codes_of(sp.csr_array(X) if sparse else X)
    gain, cut, many, at = np.empty(4), np.empty(4, np.int64), np.empty(4), np.empty(4, np.int64)
    cut_two_classes(codes, np.where(y == 1, D, -D), 0, 4, np.empty(99), gain, cut)
    cut_many_classes(codes, D, y, np.bincount(y, weights=D), 0.0, 0, 4, many, at)
    np.testing.assert_allclose((1 + gain) / 2, many, rtol=1e-12)
    np.testing.assert_array_equal(cut, at)


def test_a_cut_by_error_and_by_confidence_is_the_best_one():
    sums = np.random.default_rng(3).random((9, 2))
    sums /= sums.sum()
    total, left = sums.sum(axis=0), np.cumsum(sums, axis=0)[:-1]
    merit = left.max(axis=1) + (total - left).max(axis=1)
    best, at = cut_by_error(sums, total, np.empty(9), np.empty(2))
    constant = total.max()
    assert best == pytest.approx(max(merit.max(), constant))
    assert at == (-1 if merit.max() <= constant + 1e-12 else merit.argmax())
    Z = 2 * (np.sqrt((left + 0.01).prod(axis=1)) + np.sqrt((total - left + 0.01).prod(axis=1)))
    best, at = cut_by_confidence(sums, total, 0.01)
    constant = 2 * np.sqrt((total + 0.01).prod())
    assert -best == pytest.approx(min(Z.min(), constant))
    assert at == (-1 if Z.min() >= constant - 1e-12 else Z.argmin())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_votes_add_up(dtype):
    rng = np.random.default_rng(1)
    X, value = rng.standard_normal((20, 3)).astype(dtype), rng.standard_normal((5, 2, 2))
    column, threshold = rng.integers(3, size=5), rng.standard_normal(5)
    scores = np.zeros((20, 2))
    add_votes(X, column, threshold, value, scores)
    side = (X[:, column] > threshold).astype(int)
    np.testing.assert_allclose(scores, sum(value[t, side[:, t]] for t in range(5)), atol=1e-14)
