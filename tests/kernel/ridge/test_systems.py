"""The solvers of (K + D)C = Y: accuracy of every preconditioner, singular and indefinite matrices."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.kernel.kernel_tables import curved

from learnable.kernel.operators import Operator
from learnable.kernel.ridge.systems import relative_size, solve_by_eigenvectors, solve_dense, solve_iteratively
from learnable.risk.kernels import Gaussian, Linear, Precomputed

X, Y, weight = curved(90, 3, targets=2)


@pytest.mark.parametrize("alpha", [1e-8, 1e-2, 1e4])
def test_dense_solution_is_that_of_the_matrix(alpha):
    d = alpha / weight
    found = solve_dense(Operator(Gaussian(1.5), X, keep=True), d, Y)
    A = Gaussian(1.5)(X) + np.diag(d)
    assert found.value <= 1e-12
    np.testing.assert_allclose(A @ found.coef, Y, atol=1e-12 * max(1.0, np.abs(found.coef).max() * 100))


def test_iterations_reach_their_tolerance_on_kept_recomputed_and_linear_matrices():
    d = 0.1 / weight
    for kernel, keep in ((Gaussian(1.0), True), (Gaussian(1.0), False), (Linear(), False)):
        found = solve_iteratively(Operator(kernel, X, keep=keep), d, Y, tol=1e-10)
        exact = np.linalg.solve(kernel(X) + np.diag(d), Y)
        assert found.value <= 1e-10
        np.testing.assert_allclose(found.coef, exact, atol=1e-7 * np.abs(exact).max())


def test_wide_sparse_linear_kernel_is_never_formed():
    S = sp.random_array((60, 5000), density=0.01, format="csr", rng=np.random.default_rng(0))
    operator = Operator(Linear(), S, keep=False)
    found = solve_iteratively(operator, np.full(60, 0.5), Y[:60], tol=1e-10)
    exact = np.linalg.solve((S @ S.T).toarray() + 0.5 * np.eye(60), Y[:60])
    np.testing.assert_allclose(found.coef, exact, rtol=1e-7, atol=1e-9)


def test_an_indefinite_matrix_is_solved_by_eigenvectors():
    K = np.array([[1.0, 3.0, 0.0], [3.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    y = np.array([[1.0], [2.0], [3.0]])
    found = solve_dense(Operator(Precomputed(), K, keep=True), np.full(3, 0.5), y)
    np.testing.assert_allclose(found.coef, np.linalg.solve(K + 0.5 * np.eye(3), y), atol=1e-14)
    assert not found.definite


def test_a_singular_matrix_gets_weighted_least_squares():
    operator = Operator(Linear(), X, keep=True)
    found = solve_by_eigenvectors(operator, np.zeros(len(X)), Y, weight)
    best = np.linalg.lstsq(np.sqrt(weight)[:, None] * X, np.sqrt(weight)[:, None] * Y, rcond=None)[0]
    np.testing.assert_allclose(X @ (X.T @ found.coef), X @ best, rtol=1e-8)
    assert found.value <= 1e-12


def test_relative_size_of_nothing_is_zero_and_of_something_infinite():
    zero = np.zeros((3, 1))
    assert relative_size(zero, zero, zero, np.ones(3), np.ones(3), 1e-12) == 0.0
    assert relative_size(zero + 1.0, zero, zero, np.ones(3), np.ones(3), 1e-12) == np.inf


def test_progress_can_stop_the_steps():
    d = np.full(len(X), 1e-6)
    steps = []
    found = solve_iteratively(
        Operator(Gaussian(0.2), X, keep=False), d, Y, tol=1e-15, progress=lambda k, value: steps.append(k) or True
    )
    assert steps and found.n_iter == steps[-1]


@pytest.mark.parametrize("alpha", [5.0, 1e-7], ids=["steps suffice", "steps give up"])
def test_a_factor_of_low_rank_is_tried_first(monkeypatch, alpha):
    monkeypatch.setattr("learnable.kernel.ridge.systems._SMALLEST_PARTIAL", 50)
    monkeypatch.setattr("learnable.kernel.ridge.systems._PARTIAL_RANK", 20)
    monkeypatch.setattr("learnable.kernel.ridge.systems._ROWS_A_STEP", 3)
    operator, d = Operator(Gaussian(0.5), X, keep=True), np.full(len(X), alpha)
    found, whole = solve_dense(operator, d, Y), solve_dense(operator, d, Y, whole=True)
    assert max(found.value, whole.value) <= 1e-12
    assert (found.n_iter > 3) == (alpha == 5.0)
    np.testing.assert_allclose(found.coef, whole.coef, rtol=1e-6, atol=1e-8 * np.abs(whole.coef).max())
