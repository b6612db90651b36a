"""Factors of covariance matrices, in batches that mix regular and singular ones."""

import numpy as np

from learnable.probability.multivariate_normal import compact, condition, factorise


def test_factors_give_back_their_matrices():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 3, 3))
    root[1, 2] = root[1, 0] + root[1, 1]  # rank 2
    root[3] = 0.0
    cov = root @ np.swapaxes(root, 1, 2)
    factor = factorise("test", cov)
    assert np.array_equal(factor.rank, [3, 2, 3, 0, 3])
    np.testing.assert_allclose(factor.matrix @ np.swapaxes(factor.matrix, 1, 2), cov, atol=1e-13)
    for i in (0, 1, 2, 4):
        values = np.linalg.eigvalsh(cov[i])[-factor.rank[i] :]
        np.testing.assert_allclose(factor.log_det[i], np.log(values).sum(), rtol=1e-10)


def test_compact_undoes_broadcasting():
    a = np.broadcast_to(np.arange(6.0).reshape(2, 1, 3), (4, 2, 5, 3))
    assert compact(a, 1).shape == (1, 2, 1, 3)


def test_condition_of_a_wide_factor():
    rng = np.random.default_rng(1)
    F = rng.normal(size=(3, 7))
    cov = F @ F.T
    shift, rest = condition("test", F, 1, np.array([0.5]))
    np.testing.assert_allclose(shift, cov[1:, 0] / cov[0, 0] * 0.5)
    np.testing.assert_allclose(rest, cov[1:, 1:] - np.outer(cov[1:, 0], cov[0, 1:]) / cov[0, 0])
