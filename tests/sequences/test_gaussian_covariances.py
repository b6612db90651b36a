"""Densities of rows against SciPy's, also of rows with missing entries."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from tests.sequences.models import given, holes

from learnable.sequences.gaussian import expand, gaussian_frames, gaussian_statistics


@pytest.mark.parametrize("shape", ["diag", "spherical", "full", "tied"])
def test_frames_are_scipys(shape):
    model = given(shape, d=3)
    X = holes(model.sample(30, random_state=0)[0])
    found = gaussian_frames(X, model.means_, model.covars_, shape)
    full = expand(model.covars_, shape, 3, 3)
    for x, row in zip(X, found, strict=True):
        there = ~np.isnan(x)
        for k in range(3):
            law = multivariate_normal(model.means_[k, there], full[k][np.ix_(there, there)]) if there.any() else None
            assert row[k] == pytest.approx(law.logpdf(x[there]) if law else 0.0, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("shape", ["diag", "full"])
def test_statistics_add_over_rows(shape):
    model = given(shape)
    X = holes(model.sample(50, random_state=0)[0])
    weight = np.random.default_rng(0).random((50, 3))
    whole = gaussian_statistics(X, weight, model.means_, model.covars_, shape)
    parts = [
        gaussian_statistics(X[p], weight[p], model.means_, model.covars_, shape) for p in (slice(20), slice(20, 50))
    ]
    for all_rows, first, second in zip(whole, *parts, strict=True):
        np.testing.assert_allclose(all_rows, first + second, rtol=1e-10, atol=1e-12)
