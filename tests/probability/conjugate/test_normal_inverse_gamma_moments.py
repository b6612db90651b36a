"""Moments without cancellation."""

import numpy as np
import pytest

from learnable.core.errors import DataError
from learnable.probability.conjugate.normal_inverse_gamma import moments, moments_of_sums, vector_moments


def test_a_large_mean():
    x, w = 1e12 + np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, 1.0])
    weight, mean, scatter = moments(x, w)
    assert weight == 4.0 and mean - 1e12 == pytest.approx(1.25, abs=1e-3)
    assert scatter == pytest.approx(4.75, rel=1e-12)


def test_vectors_and_scalars_agree():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(9, 3)), rng.random(9)
    np.testing.assert_allclose(np.diagonal(vector_moments(x, w)[2]), moments(x, w)[2], rtol=1e-12)
    np.testing.assert_allclose(vector_moments(x, w)[2], 9 * np.cov(x.T, aweights=w, bias=True) * w.mean(), rtol=1e-10)


def test_sums_of_no_data():
    with pytest.raises(DataError, match="statistics must have"):
        moments_of_sums(object(), np.asarray(2.0), np.asarray(10.0), np.asarray(1.0))
