"""Starts of k-means: different rows where there are any, chances proportional to squared distances."""

import numpy as np
import pytest
import scipy.sparse as sp

from learnable.core.errors import DataError
from learnable.data import Blocks, Part
from learnable.mixtures.lloyd import plus_plus
from learnable.mixtures.starts import check_enough_rows, random_rows, sample_rows


def test_plus_plus_never_repeats_a_point_while_others_are_left():
    X = np.repeat(np.arange(5.0)[:, None], 20, axis=0)
    for seed in range(5):
        centres, rows = plus_plus(X, 5, np.random.default_rng(seed))
        assert sorted(centres.ravel().tolist()) == [0, 1, 2, 3, 4]
        np.testing.assert_array_equal(X[rows], centres)
    centres, _ = plus_plus(X, 7, np.random.default_rng(0))
    assert len(centres) == 7
    sparse, _ = plus_plus(sp.csr_array(X), 5, np.random.default_rng(0))
    assert sorted(sparse.ravel().tolist()) == [0, 1, 2, 3, 4]


def test_the_second_centre_is_drawn_by_squared_distance():
    X, w = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 1e-12, 1e-12])
    second = [plus_plus(X, 2, np.random.default_rng(seed), w, trials=1)[1][1] for seed in range(400)]
    assert np.mean(np.array(second) == 2) == pytest.approx(0.9, abs=0.05)  # 9 : 1


def test_random_rows_are_different_and_samples_are_thinned_evenly():
    X = np.arange(300_000.0)[:, None]
    centres, _ = random_rows(X[:10], 10, np.random.default_rng(0))
    assert len(set(centres.ravel().tolist())) == 10
    rows, weight = sample_rows(Blocks([Part(X)]), len(X))
    assert rows[:3].ravel().tolist() == [0, 4, 8] and len(rows) <= 2**17 and weight.sum() == len(rows)


def test_too_few_rows():
    with pytest.raises(DataError, match="should be >= n_clusters=3"):
        check_enough_rows("KMeans", 2, 3)
