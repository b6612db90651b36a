"""The kernels of Gaussian mixtures against their definitions, over more rows than one strip."""

import numpy as np
import pytest

from learnable.mixtures._normal_kernels import add_moments, add_moments_diagonal, log_normals, log_normals_diagonal

RNG = np.random.default_rng(0)
X, MEANS = RNG.normal(size=(300, 4)), RNG.normal(size=(3, 4))
ROOTS = np.tril(RNG.normal(size=(3, 4, 4)))
R = RNG.random((3, 300))
GAPS = X - MEANS[:, None]


def test_log_densities():
    out, constants = np.empty((3, 300)), np.array([0.0, 1.0, -2.0])
    log_normals(np.ascontiguousarray(X.T), MEANS, ROOTS, constants, out)
    expected = constants[:, None] - 0.5 * ((GAPS @ ROOTS.transpose(0, 2, 1)) ** 2).sum(axis=2)
    np.testing.assert_allclose(out, expected, rtol=1e-12)
    precisions = RNG.random((3, 4))
    log_normals_diagonal(np.ascontiguousarray(X.T), MEANS, precisions, constants, out)
    np.testing.assert_allclose(out, constants[:, None] - 0.5 * (GAPS**2 * precisions[:, None]).sum(axis=2), rtol=1e-12)


@pytest.mark.parametrize("diagonal", [False, True])
def test_moments(diagonal):
    first, full = np.zeros((3, 4)), np.einsum("ki,kia,kib->kab", R, GAPS, GAPS)
    second = np.zeros((3, 4)) if diagonal else np.zeros((3, 4, 4))
    (add_moments_diagonal if diagonal else add_moments)(np.ascontiguousarray(X.T), MEANS, R, first, second)
    np.testing.assert_allclose(first, np.einsum("ki,kia->ka", R, GAPS), rtol=1e-10)
    np.testing.assert_allclose(
        second, np.einsum("kaa->ka", full) if diagonal else np.tril(full), rtol=1e-10, atol=1e-12
    )
