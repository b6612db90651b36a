"""The kernels of Gaussian mixtures against their definitions, over more rows than one strip."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from learnable.mixtures._kernels import (
    add_moments,
    add_moments_diagonal,
    invert_lower,
    log_normals,
    log_normals_diagonal,
    normalise_columns,
)

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


def test_columns_are_normalised_whatever_their_size():
    logs = RNG.normal(size=(3, 16)) * 100.0 + np.repeat([0.0, -1e4], 8)
    logs[1, ::3] = -np.inf
    found, tops, inverse = logs.copy(), np.empty(16), np.empty(16)
    normalise_columns(found, tops, inverse)
    np.testing.assert_allclose(found, softmax(logs, axis=0), rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(tops - np.log(inverse), logsumexp(logs, axis=0), rtol=1e-15)


def test_triangles_are_inverted():
    factors = np.tril(RNG.normal(size=(3, 6, 6))) + 3 * np.eye(6)
    inverses = np.zeros((3, 6, 6))
    invert_lower(factors, inverses)
    np.testing.assert_allclose(factors @ inverses, np.broadcast_to(np.eye(6), (3, 6, 6)), atol=1e-13)
    assert (np.triu(inverses, 1) == 0).all()
