"""Rows with gaps: moments given the observed entries, by brute-force integration."""

import numpy as np
import pytest

from learnable.mixtures.normals import Density, Mixture, add_incomplete, log_joint_incomplete

COV = np.array([[[2.0, 0.7], [0.7, 1.0]], [[1.0, -0.4], [-0.4, 3.0]]])
MIXTURE = Mixture(np.array([0.3, 0.7]), np.array([[0.0, 1.0], [2.0, -1.0]]), COV)


def test_density_and_moments_are_integrals_over_the_gap():
    x = 0.8
    grid = np.linspace(-25, 25, 20_001)
    full = np.column_stack([np.full(grid.size, x), grid])
    joint = np.exp(Density("full", MIXTURE).log_joint(np.ascontiguousarray(full.T)))
    step = grid[1] - grid[0]
    X = np.array([[x, np.nan]])
    np.testing.assert_allclose(np.exp(log_joint_incomplete("full", MIXTURE, X))[:, 0], joint.sum(axis=1) * step)
    counts, first, second = np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2, 2))
    total = add_incomplete("full", MIXTURE, X, np.ones(1), None, counts, first, second)
    assert total == pytest.approx(np.log(joint.sum() * step))
    share = joint * step / (joint.sum() * step)
    np.testing.assert_allclose(counts, share.sum(axis=1))
    for k in range(2):
        gaps = full - MIXTURE.means[k]
        np.testing.assert_allclose(first[k], share[k] @ gaps, atol=1e-9)
        np.testing.assert_allclose(second[k], (gaps.T * share[k]) @ gaps, atol=1e-9)


def test_without_gaps_it_is_the_plain_density():
    X = np.random.default_rng(0).normal(size=(9, 2))
    plain = Density("full", MIXTURE).log_joint(np.ascontiguousarray(X.T))
    np.testing.assert_allclose(log_joint_incomplete("full", MIXTURE, X), plain)
    blank = log_joint_incomplete("full", MIXTURE, np.full((1, 2), np.nan))
    np.testing.assert_allclose(blank[:, 0], np.log(MIXTURE.weights))
