"""Conjugate gradients: the theorems that define them, and what a caller can steer."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from tests.solvers.functions import definite_matrix

from learnable.solvers import conjugate_gradient


def iterates(A, b, steps, **options):
    """Return x₀ = 0, x₁ … x_steps."""
    limits = range(1, steps + 1)
    return [np.zeros_like(b)] + [
        conjugate_gradient(lambda v: A @ v, b, tol=0.0, max_iter=k, **options).x for k in limits
    ]


def krylov_basis(A, b, k):
    columns = [b / np.linalg.norm(b)]
    for _ in range(k - 1):
        v = A @ columns[-1]
        for u in columns * 2:
            v = v - (u @ v) * u
        columns.append(v / np.linalg.norm(v))
    return np.column_stack(columns)


def test_steps_are_conjugate():
    A, b = definite_matrix(0, [1.0, 2.0, 3.0, 5.0, 8.0]), np.arange(1.0, 6.0)
    steps = np.diff(iterates(A, b, 5), axis=0)
    products = steps @ A @ steps.T
    size = np.sqrt(np.outer(np.diag(products), np.diag(products)))
    np.testing.assert_allclose((products - np.diag(np.diag(products))) / size, 0.0, atol=1e-10)


def test_residuals_are_orthogonal():
    A, b = definite_matrix(1, [1.0, 2.0, 3.0, 5.0, 8.0]), np.arange(1.0, 6.0)
    R = np.array([b - A @ x for x in iterates(A, b, 4)])
    R /= np.linalg.norm(R, axis=1)[:, None]
    np.testing.assert_allclose(R @ R.T, np.eye(5), atol=1e-10)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.floats(1.0, 100.0), min_size=2, max_size=8))
def test_p_steps_are_enough(seed, eigenvalues):
    A = definite_matrix(seed, eigenvalues)
    b = np.random.default_rng(seed).normal(size=len(eigenvalues))
    found = conjugate_gradient(lambda v: A @ v, b, tol=1e-9)
    assert found.converged
    assert found.n_iter <= len(eigenvalues)
    np.testing.assert_allclose(found.x, np.linalg.solve(A, b), rtol=0, atol=1e-6 * np.linalg.norm(b))


def test_as_many_steps_as_distinct_eigenvalues():
    A, b = definite_matrix(2, [1.0] * 10 + [4.0] * 10 + [9.0] * 10), np.ones(30)
    assert conjugate_gradient(lambda v: A @ v, b, tol=1e-10).n_iter == 3


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_each_iterate_is_the_best_of_its_krylov_space(k):
    A, b = definite_matrix(3, [1.0, 3.0, 10.0, 30.0, 100.0]), np.arange(1.0, 6.0)
    V = krylov_basis(A, b, k)
    best = V @ np.linalg.solve(V.T @ A @ V, V.T @ b)
    np.testing.assert_allclose(iterates(A, b, k)[k], best, rtol=0, atol=1e-11 * np.linalg.norm(best))


def test_a_preconditioner_changes_the_way_and_not_the_answer():
    scale = np.logspace(-3, 3, 12)
    A, b = definite_matrix(4, np.linspace(1, 3, 12)) * np.outer(scale, scale), scale * np.ones(12)
    plain = conjugate_gradient(lambda v: A @ v, b, tol=1e-13, max_iter=100_000)
    scaled = conjugate_gradient(lambda v: A @ v, b, preconditioner=lambda v: v / np.diag(A), tol=1e-13)
    np.testing.assert_allclose(scaled.x * scale, np.linalg.solve(A / np.outer(scale, scale), np.ones(12)), rtol=1e-9)
    assert scaled.n_iter < plain.n_iter
    assert scaled.n_iter <= 20


def test_the_perfect_preconditioner_needs_one_step():
    A, b = definite_matrix(5, [1.0, 10.0, 100.0]), np.ones(3)
    found = conjugate_gradient(lambda v: A @ v, b, preconditioner=lambda v: np.linalg.solve(A, v), tol=1e-12)
    assert found.n_iter == 1


def test_a_singular_consistent_system_gets_its_smallest_solution():
    A = definite_matrix(6, [0.0, 0.0, 1.0, 2.0, 3.0])
    b = A @ np.arange(1.0, 6.0)
    found = conjugate_gradient(lambda v: A @ v, b, tol=1e-10)
    assert found.converged
    np.testing.assert_allclose(found.x, np.linalg.pinv(A, rcond=1e-10) @ b, rtol=0, atol=1e-8)


def test_a_right_hand_side_in_the_null_space_ends_without_a_step():
    found = conjugate_gradient(lambda v: np.zeros(2), np.ones(2))
    assert found.n_iter == 0
    assert not found.converged
    assert not found.x.any()


def test_zero_right_hand_side_is_solved_at_once():
    found = conjugate_gradient(lambda v: v, np.zeros(3))
    assert found.converged
    assert found.n_iter == 0
    assert found.measure == 0.0


def test_progress_sees_every_step_and_can_stop_it():
    A, b = definite_matrix(7, np.linspace(1, 100, 20)), np.ones(20)
    seen = []

    def progress(iteration, value):
        seen.append((iteration, value))
        return iteration == 3

    found = conjugate_gradient(lambda v: A @ v, b, progress=progress)
    assert [iteration for iteration, _ in seen] == [1, 2, 3]
    assert seen[-1][1] == found.measure
    assert (found.n_iter, found.converged) == (3, False)


def test_the_measure_is_the_callers():
    A, b = definite_matrix(8, np.linspace(1, 100, 20)), np.ones(20)
    measures = []

    def largest_residual(x, r):
        measures.append(float(np.abs(b - A @ x).max()))
        np.testing.assert_allclose(r, b - A @ x, atol=1e-12)
        return measures[-1]

    found = conjugate_gradient(lambda v: A @ v, b, measure=largest_residual, tol=1e-4)
    assert found.measure == measures[-1] <= 1e-4 < measures[-2]
    assert np.abs(b - A @ found.x).max() <= 1e-4


def test_the_default_measure_is_the_relative_residual():
    A, b = definite_matrix(9, [1.0, 4.0, 9.0]), np.array([100.0, 0.0, 0.0])
    found = conjugate_gradient(lambda v: A @ v, b, max_iter=1)
    assert found.measure == pytest.approx(np.linalg.norm(b - A @ found.x) / 100.0, rel=1e-12)
    np.testing.assert_allclose(found.residual, b - A @ found.x, atol=1e-12)


def test_right_hand_side_is_not_overwritten():
    b = np.ones(3)
    conjugate_gradient(lambda v: 2 * v, b)
    assert np.array_equal(b, np.ones(3))


def test_any_linear_operator_will_do():
    A, b = definite_matrix(10, [1.0, 4.0, 9.0, 16.0]), np.arange(1.0, 5.0)
    expected = conjugate_gradient(lambda v: A @ v, b).x
    for operator in (A, sp.csr_array(A), aslinearoperator(A), LinearOperator((4, 4), matvec=lambda v: A @ v)):
        np.testing.assert_allclose(conjugate_gradient(operator, b).x, expected, rtol=1e-12)
    inverse = np.linalg.inv(A)
    for operator in (inverse, aslinearoperator(inverse)):
        assert conjugate_gradient(A, b, preconditioner=operator, tol=1e-12).n_iter == 1


def flat_problem(seed):
    """Return A = FᵀF of rank 4, b that rounding has moved out of its range, and the shortest solution."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(4, 12))
    b = F.T @ rng.normal(size=4)
    shortest = np.linalg.lstsq(F, np.linalg.lstsq(F.T, b)[0])[0]
    return F.T @ F, b + 1e-16 * rng.normal(size=12), shortest


def test_flat_directions_are_not_followed():
    A, b, shortest = flat_problem(0)
    solution = conjugate_gradient(A, b, tol=0.0, flat=1e-15, max_iter=1000)
    np.testing.assert_allclose(solution.x, shortest, atol=1e-10)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("noise", [1e-15, 1e-12, 1e-9])
def test_the_noise_of_a_matrix_is_not_followed_in_any_unit(unit, noise):
    for seed in range(20):
        A, b, shortest = flat_problem(seed)
        E = np.random.default_rng(seed).normal(size=A.shape)
        A = A + noise * np.linalg.norm(A, 2) * (E @ E.T) / np.linalg.norm(E @ E.T, 2)
        solution = conjugate_gradient(unit * A, unit * b, tol=0.0, flat=10 * noise, max_iter=1000)
        np.testing.assert_allclose(solution.x, shortest, atol=1e4 * noise + 1e-10)


def test_without_the_guard_some_runs_follow_them():
    """Rounding decides which ones do."""
    growth = []
    for seed in range(40):
        A, b, shortest = flat_problem(seed)
        wild = conjugate_gradient(A, b, tol=0.0, max_iter=1000)
        growth.append(np.linalg.norm(wild.x) / np.linalg.norm(shortest))
    assert max(growth) > 10
