"""Votes: a row of weight w is w rows; distances; functions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable import KNeighborsClassifier, KNeighborsRegressor
from learnable.core.errors import DataError


@pytest.mark.parametrize("weights", ["uniform", "distance", lambda distance: np.exp(-distance)])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_a_row_of_weight_w_counts_as_w_rows(weights, seed):
    rng = np.random.default_rng(seed)
    n, k = 30, int(rng.integers(1, 9))
    X, y, w = rng.integers(0, 4, (n, 2)).astype(float), rng.normal(size=n), rng.integers(0, 4, n)
    w[:2], y2 = 2, np.r_[0, 1, rng.integers(0, 2, n - 2)]
    if w.sum() < k:
        return
    Q = rng.normal(size=(10, 2)) + 1.5
    for model, target in ((KNeighborsRegressor(k, weights=weights), y), (KNeighborsClassifier(k, weights=weights), y2)):
        weighted = model.fit(X, target, sample_weight=w.astype(float))
        found = weighted.predict_proba(Q) if hasattr(weighted, "predict_proba") else weighted.predict(Q)
        repeated = model.fit(X.repeat(w, axis=0), target.repeat(w))
        expected = repeated.predict_proba(Q) if hasattr(repeated, "predict_proba") else repeated.predict(Q)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_light_rows_fill_the_neighbourhood_by_their_weight():
    X, y = np.arange(8.0)[:, None], np.arange(8.0)
    model = KNeighborsRegressor(n_neighbors=2).fit(X, y, np.full(8, 0.5))
    assert model.predict([[0.0]]).tolist() == [1.5]  # rows 0…3, half a row each
    with pytest.raises(DataError, match="weigh 4 in all"):
        KNeighborsRegressor(n_neighbors=5).fit(X, y, np.full(8, 0.5)).predict(X)


def test_neighbours_at_distance_zero_speak_alone():
    X, y = [[0.0], [0.0], [1e-310], [1.0]], [1.0, 3.0, 5.0, 7.0]
    model = KNeighborsRegressor(n_neighbors=4, weights="distance").fit(X, y)
    assert model.predict([[0.0], [1.0]]).tolist() == [3.0, 7.0]  # 1/1e-310 overflows: as good as zero


def test_functions_of_distances_are_checked():
    X, y = np.arange(5.0)[:, None], np.arange(5.0)
    for function, words in [
        (lambda distance: distance[0], "shape"),
        (lambda distance: -distance, ">= 0"),
        (lambda distance: 0 * distance, "zero weights"),
    ]:
        with pytest.raises(DataError, match=words):
            KNeighborsRegressor(2, weights=function).fit(X, y).predict([[1.0]])
