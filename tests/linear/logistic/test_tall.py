"""The solver of many rows: looks by columns, Hessians from some rows, and the same answers as steps on all of them."""

from __future__ import annotations

import numpy as np
import pytest

import learnable as ln
from learnable.data.blocks import Blocks, Part
from learnable.linear.logistic.sparse import Composite, is_tall, solve_sparse
from learnable.linear.logistic.tall import Looks, add_columns
from learnable.risk.classes import ClassRisk, class_sums
from learnable.solvers.composite.proximal_newton import proximal_newton

N, D = 17_000, 12
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)) @ (np.eye(D) + 0.3) + RNG.normal(size=D)
Y = (X[:, :3] @ [1.0, -1.0, 0.5] + RNG.logistic(size=N) > 0).astype(np.int64)
WEIGHT = RNG.uniform(0.5, 2.0, N)


def composite(order: str, intercept: bool, C: float = 0.003, l2: float = 0.0) -> Composite:
    rows = Blocks([Part(np.require(X, requirements=order), Y, WEIGHT)])
    sums = class_sums(rows, 2, intercept=intercept, n_jobs=1)
    return Composite(ClassRisk.of(rows, sums, np.inf, intercept=intercept, n_jobs=1), C, 1.0, l2)


def test_columns_are_added_to_the_scores() -> None:
    z = np.arange(float(N))
    add_columns(np.ascontiguousarray(X.T), np.array([4, 1], dtype=np.uint64), np.array([2.0, -3.0]), z)
    np.testing.assert_allclose(z, np.arange(float(N)) + 2 * X[:, 4] - 3 * X[:, 1], rtol=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
def test_sums_and_looks_do_not_depend_on_the_memory_order(intercept: bool) -> None:
    by_rows = composite("C", intercept).likelihood
    by_columns = composite("F", intercept).likelihood
    for rows, columns in zip(by_rows.sums, by_columns.sums, strict=True):
        np.testing.assert_allclose(columns, rows, rtol=1e-10, atol=1e-9 * N)
    theta = np.zeros((1, 1 + D))
    theta[0, [2, 5]] = 0.4, -0.2
    theta[0, 0] = 0.3 if intercept else 0.0
    look = Looks(by_columns)
    found, wanted = look(theta), by_rows.evaluate(theta.ravel())
    assert look.by_columns
    assert found.value == pytest.approx(wanted.value, rel=1e-12)
    np.testing.assert_allclose(found.gradient, wanted.gradient, rtol=1e-9, atol=1e-8)
    if intercept:  # without one the whole Hessian has a unit vector in the intercept's place
        columns = np.array([1, 4, 7])
        places = np.ix_(np.r_[0, 1 + columns], np.r_[0, 1 + columns])
        whole = by_rows.hessian(theta.ravel())[places]
        np.testing.assert_allclose(look.hessian(columns, 1), whole, rtol=1e-10, atol=1e-8)
        size = np.sqrt(np.outer(whole.diagonal(), whole.diagonal()))
        assert (np.abs(look.hessian(columns, 3) - whole) <= 0.1 * size).all()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("intercept", "C", "l2"), [(True, 0.003, 0.0), (False, 1.0, 0.0), (True, 0.1, 0.5)])
def test_the_optimum_is_that_of_steps_on_all_rows(order: str, intercept: bool, C: float, l2: float) -> None:
    problem = composite(order, intercept, C, l2)
    assert is_tall(problem.likelihood)
    found = solve_sparse(problem, None, tol=1e-9, max_iter=100)
    whole = composite("C", intercept, C, l2)
    start = whole.at(np.zeros(1 + D))
    wanted = proximal_newton(whole, start, tol=1e-10, max_iter=100)[0]
    assert found.value <= 1e-9
    np.testing.assert_allclose(found.theta.ravel(), wanted.x, rtol=1e-5, atol=1e-6)
    assert np.array_equal(found.theta.ravel() != 0, wanted.x != 0)


def test_threads_change_no_bit_and_a_cut_fit_says_so() -> None:
    table = np.asfortranarray(X)
    one, two = (ln.LogisticRegression(l1_ratio=1.0, C=0.01, n_jobs=jobs).fit(table, Y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.certificate_.holds
    with pytest.warns(match="max_iter"):
        cut = ln.LogisticRegression(l1_ratio=1.0, C=0.01, max_iter=1, tol=1e-12).fit(table, Y)
    assert not cut.certificate_.holds
