"""Working sets: the same answer as without them, with safe screening, in any order of penalties."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.oracles.sparse import centred

from learnable.data.blocks import Blocks, Part
from learnable.solvers import coordinate_descent
from learnable.solvers.composite.coordinate import Penalty
from learnable.solvers.composite.designs import DenseDesign, SparseDesign
from learnable.solvers.composite.working_set import MomentDesign, WorkingSet, design_of

RNG = np.random.default_rng(1)
X = RNG.standard_normal((60, 400))
Y = X[:, :10] @ RNG.standard_normal(10) + RNG.standard_normal(60)


def largest():
    A, b = centred(X, Y)
    return float(np.abs(A.T @ b).max())


@pytest.mark.parametrize("ridge", [0.0, 1.0])
@pytest.mark.parametrize("make", [DenseDesign, lambda *a: SparseDesign(sp.csr_array(a[0]), *a[1:])])
def test_a_path_in_any_order_gives_the_solutions_of_the_whole_problem(make, ridge):
    A, b = centred(X, Y)
    solver = WorkingSet(make(X, Y, None))
    for share in (0.9, 0.3, 0.05, 0.5, 0.02):
        l1 = share * largest()
        found = solver.solve(Penalty(np.full(400, l1), np.full(400, ridge)), tol=1e-12, max_iter=20000)
        whole = coordinate_descent(A.T @ A, A.T @ b, float(b @ b), l1, ridge, tol=1e-12, max_iter=20000)
        assert found.converged
        np.testing.assert_allclose(found.W[:, 0], whole.x, atol=1e-6)


def test_the_gap_is_recomputed_from_the_residual():
    A, b = centred(X, Y)
    l1 = 0.1 * largest()
    found = WorkingSet(DenseDesign(X, Y, None)).solve(Penalty(np.full(400, l1), np.zeros(400)), tol=1e-3)
    w = found.W[:, 0]
    r = b - A @ w
    theta = min(l1 / np.abs(A.T @ r).max(), b @ r / (r @ r)) * r
    primal = 0.5 * r @ r + l1 * np.abs(w).sum()
    assert found.gap.gap == pytest.approx(primal - (b @ theta - 0.5 * theta @ theta), rel=1e-6)


def test_it_stops_when_told():
    found = WorkingSet(DenseDesign(X, Y, None)).solve(
        Penalty(np.full(400, 1e-3 * largest()), np.zeros(400)), tol=0.0, progress=lambda i, v: True
    )
    assert found.n_iter == 5 and not found.converged


def test_the_design_follows_the_shape():
    assert isinstance(design_of(Blocks([Part(X, Y)])), DenseDesign)
    assert isinstance(design_of(Blocks([Part(sp.csr_array(X), Y)])), SparseDesign)
    assert isinstance(design_of(Blocks([Part(X[:, :5], Y)])), MomentDesign)


def test_the_next_solution_is_foreseen_where_the_support_stays():
    """Coefficients are linear in λ between two changes of the support, so that no epoch is needed there."""
    rng = np.random.default_rng(2)
    A = np.linalg.qr(rng.standard_normal((80, 30)))[0]
    b = A[:, :4] @ np.array([5.0, -4.0, 3.0, 2.5]) + 1e-3 * rng.standard_normal(80)
    solver = WorkingSet(DenseDesign(np.asfortranarray(A), b[:, None], None, intercept=False))
    epochs = []
    for l1 in (2.0, 1.5, 1.2, 0.3):
        penalty = Penalty(np.full(30, l1), np.zeros(30))
        found = solver.solve(penalty, tol=1e-10)
        wanted = np.sign(A.T @ b) * np.maximum(np.abs(A.T @ b) - l1, 0.0)
        np.testing.assert_allclose(found.W[:, 0], wanted, atol=1e-8)
        epochs.append(found.n_iter)
    assert epochs[0] > 0 and epochs[2:] == [0, 0]
    other = Penalty(np.full(30, 0.2), np.full(30, 0.1))  # another family: no line leads there
    assert solver.solve(other, tol=1e-10).n_iter > 0
