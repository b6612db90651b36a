"""The fast way to predict gives the sums of the plain walk, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from learnable.trees.histogram.bins import BinnedTable
from learnable.trees.histogram.grower import HistogramGrower, HistogramRule
from learnable.trees.layout import concatenate
from learnable.trees.predict import Predictor, questions, walk_rows

RNG = np.random.default_rng(0)


def ensemble(leaves, n=3000, d=6, missing=True, categorical=None):
    X = RNG.normal(size=(n, d))
    if missing:
        X[RNG.random((n, d)) < 0.1] = np.nan
    if categorical is not None:
        X[:, categorical] = RNG.integers(0, 9, n)
    mask = None if categorical is None else np.arange(d) == categorical
    grower = HistogramGrower(BinnedTable.build(X, categorical=mask), HistogramRule(leaves, min_samples_leaf=5))
    y = np.nansum(X[:, :3], axis=1) * np.nan_to_num(X[:, 0], nan=2.0)
    trees = [grower.grow(y + RNG.normal(size=n), np.ones(n), seed=s).tree for s in range(6)]
    return X, concatenate(trees)


def walked(trees, X):
    out = np.zeros((len(X), trees.value.shape[1]))
    walk_rows(X, None, 0, len(X), trees.start, questions(trees), None, trees.value, out, None, None)
    return out


@pytest.mark.parametrize("leaves", [1, 2, 20, 32, 33, 64])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_equals_the_walk(leaves, dtype):
    X, trees = ensemble(leaves)
    prepared = Predictor.build(trees)
    assert prepared.is_prepared
    for n in (3000, 257, 65, 3):
        part = X[:n].astype(dtype)
        assert np.array_equal(prepared.sum(part), walked(trees, part))
    assert np.array_equal(prepared.sum(np.asfortranarray(X), 2), walked(trees, X))
    assert np.array_equal(trees.sum(X, 2), walked(trees, X))


def test_values_on_a_threshold_go_left():
    X, trees = ensemble(16, missing=False)
    edges = trees.threshold[trees.feature >= 0]
    at = RNG.choice(edges, (500, X.shape[1]))
    assert np.array_equal(Predictor.build(trees).sum(at), walked(trees, at))
    both = np.where(RNG.random(at.shape) < 0.5, np.inf, -np.inf)
    assert np.array_equal(Predictor.build(trees).sum(both), walked(trees, both))


def test_what_cannot_be_prepared_is_left_to_the_walk():
    X, many = ensemble(65, n=4000)
    _, levels = ensemble(8, categorical=1)
    for trees in (many, levels):
        prepared = Predictor.build(trees)
        assert not prepared.is_prepared
        assert np.array_equal(prepared.sum(np.abs(X[:300]).round()), trees.sum(np.abs(X[:300]).round()))
    X, trees = ensemble(8, missing=False)
    sparse = sp.csr_array(np.where(X > 0, X, 0.0))
    assert np.allclose(Predictor.build(trees).sum(sparse), walked(trees, sparse.toarray()))
