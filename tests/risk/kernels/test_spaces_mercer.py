"""Positive semidefiniteness with its most negative eigenvalue, and the expansion in eigenfunctions."""

import numpy as np
import pytest

from learnable.core.errors import DataError, ParameterError
from learnable.risk.kernels import FunctionKernel, Gaussian, Polynomial, is_mercer, mercer_expansion

RNG = np.random.default_rng(1)
X = RNG.standard_normal((30, 2))


def test_the_most_negative_eigenvalue_is_reported():
    report = is_mercer([[1.0, 2.0], [2.0, 1.0]])
    assert not report and report.smallest == pytest.approx(-1.0) and report.largest == pytest.approx(3.0)
    assert not is_mercer([[1.0, 0.5], [0.0, 1.0]])
    assert is_mercer(np.zeros((3, 3)))
    distance = FunctionKernel(lambda A, B: np.abs(A[:, None] - B[None]).sum(axis=-1))
    assert is_mercer(distance, X).smallest < -1.0


def test_rounding_is_no_negative_eigenvalue():
    assert is_mercer(Gaussian(50.0), X)  # of rank six, numerically
    assert is_mercer(1e8 * Polynomial(3)(X))


def test_the_expansion_is_exact_on_the_sample_and_orthonormal():
    found = mercer_expansion(Gaussian(1.0), X)
    phi = found.functions(X)
    np.testing.assert_allclose(phi.T @ phi / 30, np.eye(phi.shape[1]), atol=1e-6)
    np.testing.assert_allclose(phi * found.eigenvalues @ phi.T, Gaussian(1.0)(X), atol=1e-10)
    Z = X[:4] + 0.1
    features, other = found.features(X), found.features(Z)
    np.testing.assert_allclose(other @ features.T, Gaussian(1.0)(Z, X), atol=1e-6)
    assert (np.diff(found.eigenvalues) <= 0).all() and found.eigenvalues.sum() == pytest.approx(1.0)


def test_a_polynomial_kernel_has_as_many_functions_as_monomials():
    assert len(mercer_expansion(Polynomial(2), X).eigenvalues) == 6
    assert len(mercer_expansion(Polynomial(2), X, n_components=3).eigenvalues) == 3


def test_eigenvalues_of_the_gaussian_kernel_and_normal_points():
    """Rasmussen and Williams, Gaussian Processes for Machine Learning, §4.3.1: geometric, with ratio b/(a + b + c)."""
    points = np.random.default_rng(2).standard_normal((1500, 1))
    values = mercer_expansion(Gaussian(1.0), points, n_components=4).eigenvalues
    a, b = 0.25, 0.5
    c = np.sqrt(a * a + 2 * a * b)
    total = a + b + c
    np.testing.assert_allclose(values, np.sqrt(2 * a / total) * (b / total) ** np.arange(4), rtol=0.08)


def test_bad_matrices_are_refused():
    with pytest.raises(DataError):
        is_mercer(np.zeros((2, 3)))
    with pytest.raises(DataError):
        is_mercer([[np.nan]])
    with pytest.raises(ParameterError):
        is_mercer(Gaussian())
