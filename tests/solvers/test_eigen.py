"""Eigenpairs and singular triplets: fifty digits, known spectra, all methods alike, what is proven."""

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import LinearOperator

from learnable.core.errors import ParameterError
from learnable.solvers.eigen import (
    count_below,
    fix_signs,
    gaps_between,
    missed_norm,
    singular_triplets,
    symmetric_pairs,
)


def path_laplacian(n):
    steps = sp.diags_array([np.full(n - 1, -1.0)] * 2, offsets=[-1, 1])
    return sp.csr_array(steps - sp.diags_array(np.asarray(steps.sum(axis=1)).ravel()))


def symmetric(n, seed):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A + A.T


@given(st.integers(2, 6), st.integers(0, 10**6))
def test_every_bound_holds_against_fifty_digits(n, seed):
    A = symmetric(n, seed)
    pairs = symmetric_pairs(A, n)
    with mpmath.workdps(50):
        exact = np.array([float(x) for x in mpmath.eigsy(mpmath.matrix(A.tolist()), eigvals_only=True)])[::-1]
        apart = [
            float(min(abs(mpmath.mpf(value) - x) for x in mpmath.eigsy(mpmath.matrix(A.tolist()), eigvals_only=True)))
            for value in pairs.values.tolist()
        ]
    np.testing.assert_allclose(pairs.values, exact, atol=1e-13 * np.abs(exact).max())
    # The residual itself is computed in double precision.
    assert (np.array(apart) <= pairs.residuals + 4e-16 * n * pairs.size).all()
    assert pairs.worst <= 1e-13


@pytest.mark.parametrize("method", ["dense", "lanczos", "shift-invert"])
def test_a_path_has_its_known_spectrum(method):
    n = 60
    pairs = symmetric_pairs(path_laplacian(n), 5, largest=False, method=method, shift=-0.01)
    np.testing.assert_allclose(pairs.values, 2 - 2 * np.cos(np.pi * np.arange(5) / n), atol=1e-12)
    assert pairs.worst <= 1e-12
    assert not pairs.arbitrary.any()
    assert (pairs.angles < 1e-8).all()


def test_a_cycle_has_pairs_of_equal_eigenvalues_whose_axes_are_arbitrary():
    n = 30
    A = path_laplacian(n).tolil()
    A[0, n - 1] = A[n - 1, 0] = -1.0
    A[0, 0] = A[n - 1, n - 1] = 2.0
    pairs = symmetric_pairs(A.tocsr(), 5, largest=False)
    expected = 2 - 2 * np.cos(2 * np.pi * np.array([0, 1, 1, 2, 2]) / n)
    np.testing.assert_allclose(pairs.values, expected, atol=1e-12)
    assert pairs.arbitrary.tolist() == [False, True, True, True, True]


def test_all_methods_and_containers_give_the_same_pairs():
    A = symmetric(500, 3)
    reference = symmetric_pairs(A, 4, method="dense")
    operator = LinearOperator(A.shape, matvec=lambda v: A @ v, matmat=lambda v: A @ v, dtype=float)
    for other in (A, sp.csr_array(A), operator):
        found = symmetric_pairs(other, 4, method="lanczos")
        np.testing.assert_allclose(found.values, reference.values, rtol=1e-12)
        np.testing.assert_allclose(found.vectors, reference.vectors, atol=1e-9)
        assert found.worst <= 1e-12


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_inertia_counts_the_eigenvalues_below(store):
    A = np.diag(np.arange(300.0)) + 0.01 * symmetric(300, 1)
    A = np.where(np.abs(np.subtract.outer(np.arange(300), np.arange(300))) < 4, A, 0.0)
    values = np.linalg.eigvalsh(A)
    for shift in (-5.0, 10.5, 150.5, 400.0):
        assert count_below(store(A), shift) == (values < shift).sum()


def test_inertia_of_blocks():
    A = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert count_below(np.kron(np.eye(120), A), 0.0) == 120


@pytest.mark.parametrize("shape", [(40, 7), (7, 40), (600, 450)], ids=str)
@pytest.mark.parametrize("method", ["auto", "dense", "gram", "lanczos", "randomized"])
def test_triplets_are_lapacks(shape, method):
    A = np.random.default_rng(0).normal(size=shape) @ np.diag(0.97 ** np.arange(shape[1]))
    found = singular_triplets(A, 3, method=method)
    _, s, Vt = np.linalg.svd(A, full_matrices=False)
    np.testing.assert_allclose(found.values, s[:3], rtol=1e-11)
    np.testing.assert_allclose(np.abs((found.right * Vt[:3]).sum(axis=1)), 1.0, atol=1e-11)
    assert (found.residuals <= 1e-11 * s[0]).all()
    np.testing.assert_allclose(A @ found.right.T, found.left * found.values, atol=1e-10 * s[0])
    largest = np.abs(found.right).argmax(axis=1)
    assert (found.right[np.arange(3), largest] > 0).all()


def test_an_ill_conditioned_gram_matrix_is_given_up():
    U = np.linalg.qr(np.random.default_rng(0).normal(size=(200, 6)))[0]
    A = U * 10.0 ** -np.arange(0, 12, 2)
    found = singular_triplets(A, 6, method="gram")
    assert found.method == "dense"
    np.testing.assert_allclose(found.values, 10.0 ** -np.arange(0, 12, 2), rtol=1e-4)


@given(st.integers(3, 8), st.integers(3, 8), st.integers(0, 10**6))
def test_no_other_matrix_of_the_rank_is_nearer(n, d, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d))
    found = singular_triplets(A, 2)
    best = np.linalg.norm(A - found.left * found.values @ found.right)
    for _ in range(10):
        basis = np.linalg.qr(rng.normal(size=(d, 2)))[0]
        assert best <= np.linalg.norm(A - A @ basis @ basis.T) + 1e-12


def test_the_bound_of_what_a_random_subspace_missed_holds():
    A = np.random.default_rng(0).normal(size=(80, 50))
    found = singular_triplets(A, 4, method="randomized", n_power=1)
    missed = np.linalg.norm(A - found.left @ (found.left.T @ A), 2)
    assert missed <= missed_norm(A, found.left, np.random.default_rng(1)) <= 100 * missed


def test_signs_and_gaps():
    V = np.array([[1.0, 0.6], [-2.0, 0.6 + 1e-13]])
    W = V.copy()
    fix_signs(V, W)
    assert V.tolist() == [[-1.0, 0.6], [2.0, 0.6 + 1e-13]]
    assert W.tolist() == V.tolist()
    assert gaps_between(np.array([5.0, 3.0, 2.5])).tolist() == [2.0, 0.5, 0.5]
    assert gaps_between(np.array([1.0])).tolist() == [np.inf]


@pytest.mark.parametrize("k", [0, 4])
def test_more_pairs_than_rows_are_refused(k):
    with pytest.raises(ParameterError, match="were asked of a matrix of shape"):
        symmetric_pairs(np.eye(3), k)
    with pytest.raises(ParameterError, match="were asked of a matrix of shape"):
        singular_triplets(np.ones((3, 5)), k)


def test_blocks_find_what_stands_out_and_leave_the_rest_to_lanczos():
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.normal(size=(500, 500)))[0]
    values = np.concatenate([[-90.0, 80.0, 60.0, 59.0], np.linspace(1.0, -1.0, 496)])
    A = (Q * values) @ Q.T
    A = (A + A.T) / 2.0
    found = symmetric_pairs(A, 3, method="block")
    np.testing.assert_allclose(found.values, [80.0, 60.0, 59.0], rtol=1e-12)
    assert found.worst < 1e-12
    assert found.gaps[2] == pytest.approx(1.0)
    flat = Q @ np.diag(np.linspace(1.0, 1.01, 500)) @ Q.T  # nothing stands out
    flat = (flat + flat.T) / 2.0
    found = symmetric_pairs(flat, 2, method="block")
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(flat)[::-1][:2], rtol=1e-12)


@pytest.mark.parametrize("budget", [0, 1, 300])
def test_a_budget_of_restarts_changes_only_the_way(budget):
    n = 600
    L = sp.diags_array([np.full(n - 1, -1.0), np.full(n, 2.0), np.full(n - 1, -1.0)], offsets=[-1, 0, 1])
    L = sp.csr_array(L)
    L[0, 0] = L[n - 1, n - 1] = 1.0  # a path
    found = symmetric_pairs(L, 3, largest=False, shift=-1e-4, budget=budget)
    np.testing.assert_allclose(found.values, 2.0 - 2.0 * np.cos(np.pi * np.arange(3) / n), atol=1e-12)
    assert found.worst < 1e-12
