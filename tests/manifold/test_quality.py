"""Trustworthiness and continuity: scikit-learn's numbers, the two sides of a picture, bad input."""

import numpy as np
import pytest
from sklearn import manifold

from learnable.core.errors import DataError, ParameterError
from learnable.manifold import continuity, trustworthiness

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 6))


@pytest.mark.parametrize("k", [1, 5, 40])
def test_they_are_scikit_learns(k):
    shown = X[:, :2]
    expected = manifold.trustworthiness(X, shown, n_neighbors=k)
    assert trustworthiness(X, shown, n_neighbors=k) == pytest.approx(expected, abs=1e-12)
    assert continuity(X, shown, n_neighbors=k) == pytest.approx(
        manifold.trustworthiness(shown, X, n_neighbors=k), abs=1e-12
    )


def test_a_similarity_keeps_all_and_a_torn_line_loses_continuity():
    turn = np.linalg.qr(RNG.normal(size=(6, 6)))[0]
    assert trustworthiness(X, 2.0 * X @ turn + 1.0) == continuity(X, 2.0 * X @ turn + 1.0) == 1.0
    circle = np.linspace(0.0, 2 * np.pi, 100, endpoint=False)
    cut = circle[:, None]
    ring = np.column_stack([np.cos(circle), np.sin(circle)])
    assert trustworthiness(ring, cut) == pytest.approx(1.0, abs=0.01)
    assert continuity(ring, cut) < trustworthiness(ring, cut)


def test_bad_input_is_refused():
    with pytest.raises(ParameterError, match="less than n_samples / 2"):
        trustworthiness(X[:10], X[:10], n_neighbors=5)
    with pytest.raises(DataError, match="the same rows"):
        continuity(X, X[:5])
