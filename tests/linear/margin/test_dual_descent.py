"""Dual coordinate descent and the subgradient method: the dual never falls, every pass is feasible."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from tests.linear.margin.test_problem import task_of
from tests.linear.svm_tables import numbers, two_classes
from tests.oracles.coordinate_passes import dual_pass
from tests.oracles.svm import augmented

from learnable.linear.margin._kernels import dual_pass_dense, dual_pass_sparse
from learnable.linear.margin.dual_descent import as_rows, dual_descent, pieces, subgradient_descent
from learnable.linear.margin.interior_point import interior_point


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_dual_rises_to_the_optimum(squared, regression, sparse):
    X, y = (numbers if regression else two_classes)(80, 4)
    task = task_of(sp.csr_array(X) if sparse else X, y, squared, C=0.3, regression=regression)
    best = dual_descent(task, np.random.default_rng(0), tol=1e-10, max_iter=20_000)
    assert best.gap <= 1e-10
    values = [dual_descent(task, np.random.default_rng(0), tol=0.0, max_iter=m).dual for m in (1, 2, 4, 8, 16)]
    assert all(b >= a - 1e-12 * abs(a) for a, b in pairwise(values))
    assert values[-1] <= best.primal * (1 + 1e-12)


def test_shrinking_does_not_change_the_answer():
    X, y = two_classes(300, 5)
    task = task_of(X, y, C=0.5)
    found, exact = dual_descent(task, np.random.default_rng(3), max_iter=20_000), interior_point(task)
    assert found.gap <= 1e-6
    assert exact.dual * (1 - 1e-12) <= found.primal <= exact.primal * (1 + 1e-6)


def test_a_good_start_needs_one_pass():
    X, y = two_classes(100, 4)
    task = task_of(X, y)
    best = interior_point(task)
    assert dual_descent(task, np.random.default_rng(0), start=best.alpha).n_iter == 1


def test_subgradient_passes_stay_feasible():
    X, y = two_classes(100, 4)
    weight = np.random.default_rng(0).uniform(0.3, 3.0, 100)
    task = task_of(X, y, C=0.05, weight=weight)
    exact = interior_point(task)
    for passes in (1, 3, 30, 300):
        found = subgradient_descent(task, np.random.default_rng(1), max_iter=passes)
        assert (found.alpha >= 0).all() and (found.alpha <= task.cost).all()
        assert found.dual <= exact.primal * (1 + 1e-12) and found.primal >= exact.dual * (1 - 1e-12)
    assert found.gap < 0.01


def test_rows_of_a_dense_table():
    X = np.arange(6.0).reshape(3, 2)
    assert np.array_equal(sp.csr_array(as_rows(X), shape=(3, 2)).toarray(), X)


def test_pieces_are_the_whole_order():
    order = np.arange(1000)
    assert np.array_equal(np.concatenate(pieces(order, 2**20)), order) and len(pieces(order, 2**20)) > 10


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_pass_is_that_of_the_paper(squared, sparse):
    X, y = numbers(40, 4)
    task = task_of(sp.csr_array(X) if sparse else X, y, squared, C=0.3, regression=True)
    constants = [part.reshape(-1) for part in (task.sign, task.offset, task.upper, task.ridge)]
    order, alpha, w = np.random.default_rng(0).permutation(80), np.zeros(80), np.zeros(5)
    expected, u = dual_pass(augmented(X, task.bias), order, *constants, alpha)
    rows = as_rows(X) if sparse else (X,)
    step = dual_pass_sparse if sparse else dual_pass_dense
    kept = np.ones(80, dtype=np.uint8)
    step(*rows, order, *constants, task.row_norms, task.bias, (-np.inf, np.inf), alpha, w, kept)
    np.testing.assert_allclose(alpha, expected, atol=1e-12)
    np.testing.assert_allclose(w, u, atol=1e-12)
