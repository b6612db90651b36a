"""Kernels of the logistic likelihood against their formulas, at moderate and at extreme scores."""

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.risk.classes import logistic_dense, logistic_point, logistic_sparse, softmax_rows


@settings(max_examples=200, deadline=None, derandomize=True)
@given(z=st.one_of(st.floats(-50, 50), st.floats(-700, 700)), y=st.sampled_from([0.0, 1.0]))
def test_loss_slope_and_curvature_keep_their_digits(z, y):
    with mpmath.workdps(700):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(z)))
        expected = [mpmath.log(1 + mpmath.exp(mpmath.mpf(z))) - y * mpmath.mpf(z), p - y, p * (1 - p)]
        expected = [float(value) for value in expected]
    np.testing.assert_allclose(logistic_point(z, y), expected, rtol=1e-14, atol=1e-305)


@pytest.mark.parametrize("z", [1e4, 1e200, 1.7e308])
def test_endless_scores_stay_finite(z):
    assert logistic_point(z, 1.0) == (0.0, 0.0, 0.0)
    assert logistic_point(-z, 0.0) == (0.0, 0.0, 0.0)
    assert logistic_point(z, 0.0) == (z, 1.0, 0.0)
    assert logistic_point(-z, 1.0) == (z, -1.0, 0.0)


def draw(n=30, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[rng.random(X.shape) < 0.4] = 0.0
    return X, rng.integers(0, 2, n).astype(float), rng.uniform(0.1, 2.0, n), rng.normal(size=d), rng


def test_one_sweep_over_dense_rows_gives_all_sums():
    X, y, weight, w, rng = draw()
    centre, b = rng.normal(size=4), 0.3
    gradient, curvature = rng.normal(size=4), np.empty(30)
    start = gradient.copy()
    loss, total = logistic_dense(X, centre, y, weight, w, b, gradient, curvature)
    z = b + (X - centre) @ w
    p = 1 / (1 + np.exp(-z))
    assert loss == pytest.approx(weight @ (np.logaddexp(0, z) - y * z), rel=1e-13)
    assert total == pytest.approx(weight @ (p - y), rel=1e-12)
    np.testing.assert_allclose(gradient - start, (X - centre).T @ (weight * (p - y)), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(curvature, weight * p * (1 - p), rtol=1e-13)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_one_sweep_over_sparse_rows_gives_the_same_sums(index):
    X, y, weight, w, _ = draw()
    rows = sp.csr_array(X)
    data, indices, indptr = rows.data, rows.indices.astype(index), rows.indptr.astype(index)
    found, expected = np.zeros(4), np.zeros(4)
    curvature, dense_curvature = np.empty(30), np.empty(30)
    sums = logistic_sparse(data, indices, indptr, y, weight, w, 0.3, found, curvature)
    dense_sums = logistic_dense(X, np.zeros(4), y, weight, w, 0.3, expected, dense_curvature)
    np.testing.assert_allclose(sums, dense_sums, rtol=1e-13)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(curvature, dense_curvature, rtol=1e-14)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("size", [1.0, 30.0, 1e4])
def test_softmax_rows_become_loss_slopes_and_probabilities(n_classes, size):
    rng = np.random.default_rng(1)
    scores, y = size * rng.normal(size=(20, n_classes)), rng.integers(0, n_classes, 20)
    weight, probability = rng.uniform(0.1, 2.0, 20), np.empty((20, n_classes))
    z = scores.astype(np.longdouble)
    z = z - z.max(axis=1, keepdims=True)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    own = np.arange(20), y
    expected_loss = (weight * (np.log(np.exp(z).sum(axis=1)) - z[own])).sum()
    slopes = p.copy()
    slopes[own] = -(p.sum(axis=1) - p[own])
    others = p.copy()
    others[own] = 0
    slopes[own] = -others.sum(axis=1)
    loss = softmax_rows(scores, y, weight, probability)
    assert loss == pytest.approx(float(expected_loss), rel=1e-13)
    # The exponential of a difference of scores has the rounding of that difference.
    np.testing.assert_allclose(probability, p.astype(float), rtol=1e-14 * (1 + size), atol=1e-300)
    np.testing.assert_allclose(scores, (weight[:, None] * slopes).astype(float), rtol=1e-14 * (1 + size), atol=1e-300)


def test_two_softmax_classes_are_the_logistic_loss():
    z = np.linspace(-40, 40, 33)
    for y in (0, 1):
        scores, probability = np.column_stack([np.zeros(33), z]), np.empty((33, 2))
        softmax_rows(scores, np.full(33, y), np.ones(33), probability)
        expected = np.array([logistic_point(value, float(y)) for value in z])
        np.testing.assert_allclose(scores[:, 1], expected[:, 1], rtol=1e-14)
        np.testing.assert_allclose(probability[:, 0] * probability[:, 1], expected[:, 2], rtol=1e-14)
