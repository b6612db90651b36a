"""Starts: clusters where there are some, draws where rows are too few, missing entries left out."""

import numpy as np

from learnable.sequences.gaussian import centre_and_spread, cluster_rows, draw_means, first_covariance, whole_rows


def test_means_are_clusters():
    rng = np.random.RandomState(0)
    X = np.repeat([[0.0, 0.0], [10.0, 10.0]], 50, axis=0) + rng.normal(size=(100, 2))
    np.testing.assert_allclose(np.sort(draw_means(X, 2, rng), axis=0), [[0, 0], [10, 10]], atol=0.5)


def test_too_few_distinct_rows_have_no_clusters():
    rng = np.random.RandomState(0)
    X = np.repeat([[1.0, 2.0], [3.0, np.nan]], 5, axis=0)
    assert cluster_rows(whole_rows(X), 3, rng) is None
    means = draw_means(X, 3, rng)
    assert means.shape == (3, 2) and np.isfinite(means).all()
    np.testing.assert_allclose(means[:, 1], 2.0)  # the column is constant where it is there


def test_moments_use_what_is_there():
    X = np.array([[1.0, np.nan], [3.0, 5.0], [np.nan, np.nan]])
    centre, spread = centre_and_spread(X)
    np.testing.assert_allclose([centre, spread], [[2, 5], [1, 0]])
    np.testing.assert_allclose(first_covariance(X, 0.1), np.diag([1.1, 0.1]))
    many = np.random.default_rng(0).normal(size=(50_000, 1))
    assert len(whole_rows(many)) == 20_000
