"""The checker of k-means catches what is not a fit."""

import numpy as np
import pytest

import learnable as ln
from learnable.core.errors import VerificationError

X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0.0], [6.0]], 100, axis=0)


@pytest.mark.parametrize("metric", ["euclidean", "mahalanobis", "cosine"])
def test_a_fit_is_verified_and_a_changed_one_is_not(metric):
    model = ln.KMeans(3, random_state=0, metric=metric).fit(X)
    assert bool(ln.verify(model, X)), str(ln.verify(model, X))
    model.inertia_ *= 1.001
    assert not ln.verify(model, X)


def test_another_table_is_refused():
    model = ln.KMeans(2, random_state=0).fit(X)
    with pytest.raises(VerificationError, match="2 features"):
        ln.verify(model, X[:, :1])
    assert "fingerprint" in str(ln.verify(model, X[::-1] * 1.01))
    assert bool(
        ln.verify(ln.KMeans(2, random_state=0).fit(X, sample_weight=np.ones(200)), X, sample_weight=np.ones(200))
    )
