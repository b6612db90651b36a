"""Coordinates in which a distance is Euclidean, and the moments of the rows in them."""

import numpy as np
import pytest
import scipy.sparse as sp

from learnable.core.errors import DataError
from learnable.data import Blocks, Part
from learnable.mixtures.spaces import directions_of_rows, space_of, whitening_of

RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(200, 3)) @ RNG.normal(size=(3, 3)) + 5.0, RNG.uniform(0.5, 2.0, 200)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_moments_are_those_of_the_definition(make):
    rows = make(X)
    space = space_of(rows, Blocks([Part(rows, None, W)]), W)
    mean = np.average(X, axis=0, weights=W)
    np.testing.assert_allclose(space.mean, mean, rtol=1e-12)
    assert space.scatter == pytest.approx(W @ ((X - mean) ** 2).sum(axis=1), rel=1e-10)
    assert space.variance == pytest.approx(np.average((X - mean) ** 2, axis=0, weights=W).mean(), rel=1e-10)
    assert space.unit == 1.0


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_the_unit_keeps_squares_finite_and_is_exact(scale):
    rows = X * scale
    space = space_of(rows, Blocks([Part(rows)]), None)
    assert 0.25 < np.abs(space.X).max() <= 1.0 and np.isfinite(space.scatter) and space.scatter > 0
    np.testing.assert_array_equal(space.X / space.unit, rows)


def test_whitened_rows_have_the_identity_as_covariance():
    Z = X @ whitening_of("KMeans", X, W)
    np.testing.assert_allclose(np.cov(Z.T, bias=True, aweights=W), np.eye(3), atol=1e-10)
    with pytest.raises(DataError, match="singular"):
        whitening_of("KMeans", np.column_stack([X, X[:, 0]]), None)
    with pytest.raises(DataError, match="two rows"):
        whitening_of("KMeans", X[:1], None)


def test_directions_have_length_one():
    rows = X * np.array([[1e200]])
    np.testing.assert_allclose(np.linalg.norm(directions_of_rows("KMeans", rows), axis=1), 1.0)
    sparse = directions_of_rows("KMeans", sp.csr_array(X)).toarray()
    np.testing.assert_allclose(sparse, X / np.linalg.norm(X, axis=1, keepdims=True))
    with pytest.raises(DataError, match="row 1 of X is zero"):
        directions_of_rows("KMeans", np.array([[1.0, 0.0], [0.0, 0.0]]))
