"""The decomposition behind ridge paths: coefficients, fitted values, leverages and leave-one-out by brute force."""

import numpy as np
import pytest
from tests.oracles.ridge import augmented_ridge, exact_ridge, hat_matrix, leave_one_out_predictions

from learnable.linear.least_squares.ridge import ridge_spectrum

ALPHAS = np.array([1e-3, 0.5, 1.0, 40.0])
CASES = [
    (n, d, weighted, intercept)
    for n, d in [(25, 4), (6, 15), (10, 10)]
    for weighted in (False, True)
    for intercept in (True, False)
]
case = pytest.mark.parametrize(("n", "d", "weighted", "intercept"), CASES)


def draw(n, d, weighted, seed=0):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)) + 1.0, rng.normal(size=(n, 2)) + 3.0
    return X, y, rng.uniform(0.3, 2.0, n) if weighted else None


def decompose(X, y, weight, intercept, alphas=ALPHAS):
    return ridge_spectrum(X, y, weight, intercept=intercept, smallest_alpha=float(alphas.min()))


@case
def test_coefficients_are_those_of_each_penalty(n, d, weighted, intercept):
    X, y, weight = draw(n, d, weighted)
    coefficients = decompose(X, y, weight, intercept).coefficients(ALPHAS)
    assert coefficients.shape == (4, d, 2)
    for alpha, found in zip(ALPHAS, coefficients, strict=True):
        np.testing.assert_allclose(found, augmented_ridge(X, y, alpha, weight, intercept)[0], rtol=1e-9, atol=1e-11)


@case
def test_leverages_are_the_diagonal_of_the_hat_matrix(n, d, weighted, intercept):
    X, y, weight = draw(n, d, weighted)
    leverages = 1.0 - decompose(X, y, weight, intercept).freedom(ALPHAS)
    for alpha, found in zip(ALPHAS, leverages.T, strict=True):
        np.testing.assert_allclose(found, np.diag(hat_matrix(X, alpha, weight, intercept)), rtol=1e-10, atol=1e-12)


@case
def test_fitted_values_are_the_hat_matrix_times_y(n, d, weighted, intercept):
    X, y, weight = draw(n, d, weighted)
    spectrum = decompose(X, y, weight, intercept)
    root = np.ones(n) if weight is None else np.sqrt(weight)
    fitted = spectrum.y[:, :, None] - spectrum.residuals(ALPHAS)
    for number, alpha in enumerate(ALPHAS):
        predicted = hat_matrix(X, alpha, weight, intercept) @ y
        np.testing.assert_allclose(
            fitted[:, :, number] / root[:, None] + spectrum.y_mean, predicted, rtol=1e-9, atol=1e-11
        )


@case
def test_leave_one_out_errors_are_those_of_n_refits(n, d, weighted, intercept):
    X, y, weight = draw(n, d, weighted)
    errors = decompose(X, y, weight, intercept).leave_one_out(ALPHAS)
    for number, alpha in enumerate(ALPHAS):
        refitted = y - leave_one_out_predictions(X, y, alpha, weight, intercept)
        np.testing.assert_allclose(errors[:, :, number], refitted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("alpha", [1e-12, 1e-10, 1e-6])
@pytest.mark.parametrize(("n", "d"), [(30, 5), (8, 20)], ids=["tall", "wide"])
def test_directions_far_below_the_largest_survive_a_tiny_penalty(alpha, n, d):
    rng = np.random.default_rng(1)
    U, _ = np.linalg.qr(rng.normal(size=(n, min(n, d))))
    V, _ = np.linalg.qr(rng.normal(size=(d, min(n, d))))
    X = (U * np.geomspace(1e3, 1e-3, min(n, d))) @ V.T
    y = rng.normal(size=n)
    coef, _ = exact_ridge(X, y, alpha, intercept=False)
    found = decompose(X, y[:, None], None, False, np.array([alpha])).coefficients(np.array([alpha]))[0, :, 0]
    # The condition number of X, 1e6, leaves ten digits of the coefficients.
    np.testing.assert_allclose(found, coef, rtol=1e-8, atol=1e-8 * np.abs(coef).max())


@pytest.mark.parametrize("alpha", [1e-13, 1e-12, 1e-9, 1e-6, 1e-3])
def test_leave_one_out_of_wide_rows_survives_a_tiny_penalty(alpha):
    X, y, _ = draw(8, 20, False, seed=2)
    # With G = XXᵀ + αI, which is well conditioned here, the error is (G⁻¹y)ᵢ/(G⁻¹)ᵢᵢ.
    inverse = np.linalg.inv(X @ X.T + alpha * np.eye(8))
    expected = (inverse @ y) / np.diag(inverse)[:, None]
    errors = decompose(X, y, None, False, np.array([alpha])).leave_one_out(np.array([alpha]))[:, :, 0]
    np.testing.assert_allclose(errors, expected, rtol=1e-6)


@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 1.0])
def test_a_row_that_alone_determines_a_coefficient_is_left_out_exactly(alpha):
    X, y, _ = draw(12, 3, False, seed=3)
    X = np.column_stack([X, np.eye(12)[:, 0]])
    errors = decompose(X, y, None, True, np.array([alpha])).leave_one_out(np.array([alpha]))[:, :, 0]
    np.testing.assert_allclose(errors, y - leave_one_out_predictions(X, y, alpha), rtol=1e-7)


def test_a_row_of_leverage_one_has_no_error_of_zero():
    """Below rounding the left-out error cannot be known; it must not come out small."""
    X, y, _ = draw(12, 3, False, seed=3)
    X = np.column_stack([X, 100.0 * np.eye(12)[:, 0]])
    errors = decompose(X, y, None, True, np.array([1e-14])).leave_one_out(np.array([1e-14]))[0, :, 0]
    expected = (y - leave_one_out_predictions(X, y, 1e-14))[0]
    assert not np.isnan(errors).any()
    assert (np.isinf(errors) | np.isclose(errors, expected, rtol=1e-3)).all()
