"""Dual functions in closed form: those that descent finds, below every primal value, equal to it at the optimum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.svm import SVC

from learnable.core.errors import DataError, ParameterError
from learnable.solvers import (
    ConvexProgram,
    QuadraticProgram,
    dual_value,
    duality_gap,
    lasso_duality,
    logistic_duality,
    quadratic_dual,
    quadratic_program,
    ridge_duality,
    sensitivity,
    slater_point,
    svm_duality,
)


def table(seed, n=12, p=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = X @ np.arange(1.0, p + 1) + rng.normal(size=n)
    return X, y, np.where(y > 0, 1.0, -1.0)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_the_quadratic_dual_is_the_numeric_one(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(3, 3))
    program = QuadraticProgram(
        root @ root.T + np.eye(3), rng.normal(size=3), G=rng.normal(size=(2, 3)), h=rng.normal(size=2) + 1.0,
        A=rng.normal(size=(1, 3)), b=[0.2], lower=-np.ones(3), upper=[np.inf, 2.0, np.inf],
    )  # fmt: skip
    lam, nu = rng.exponential(size=6), rng.normal(size=1)
    assert quadratic_dual(program, lam, nu) == pytest.approx(dual_value(program, np.zeros(3), lam, nu).value, rel=1e-7)


def test_linear_programs():
    """max 3x + 5y subject to x <= 4, 2y <= 12, 3x + 2y <= 18: 36 at (2, 6), with multipliers 0, 3/2, 1."""
    program = QuadraticProgram(None, [-3.0, -5.0], G=[[1, 0], [0, 2], [3, 2]], h=[4, 12, 18], lower=[0, 0])
    assert quadratic_dual(program, [0.0, 1.5, 1.0, 0.0, 0.0]) == pytest.approx(-36.0)
    assert quadratic_dual(program, [0.0, 1.0, 1.0, 0.0, 0.0]) == -np.inf
    assert quadratic_dual(program, [1.0, 2.5, 1.0, 1.0, 2.0]) == pytest.approx(-52.0)
    found = linprog([-3.0, -5.0], A_ub=[[1, 0], [0, 2], [3, 2]], b_ub=[4, 12, 18], method="highs")
    report = duality_gap(program, found.x)  # a point from elsewhere
    assert report.strong
    assert quadratic_dual(program, report.inequality) == pytest.approx(found.fun)


def test_a_singular_quadratic_part():
    program = QuadraticProgram([[1.0, 0.0], [0.0, 0.0]], [0.0, 1.0], lower=[0.0, 2.0])
    assert quadratic_dual(program, [0.0, 1.0]) == pytest.approx(2.0)
    assert quadratic_dual(program, [0.0, 0.5]) == -np.inf
    with pytest.raises(ParameterError, match="must be >= 0"):
        quadratic_dual(program, [-1.0, 1.0])
    with pytest.raises(DataError, match="must be 2 finite numbers"):
        quadratic_dual(program, [1.0])


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), size=st.floats(0.0, 3.0))
def test_weak_duality_of_the_problems_of_learning(seed, size):
    X, y, signs = table(seed)
    rng = np.random.default_rng(seed)
    w = size * rng.normal(size=3)
    problems = [ridge_duality(X, y, 0.7), lasso_duality(X, y, 2.0), logistic_duality(X, signs, 0.5)]
    for problem in problems:
        theta = problem.point(size * rng.normal(size=3))
        assert problem.dual(theta) <= problem.primal(w) + 1e-9
        assert problem.gap(w) >= -1e-9
    svm = svm_duality(X, signs, 1.0)
    assert svm.dual(svm.point(np.r_[0.1, w])) <= svm.primal(np.r_[0.3, w]) + 1e-9


def test_strong_duality_at_optima_from_elsewhere():
    X, y, signs = table(0)
    ridge = np.linalg.solve(X.T @ X + 0.7 * np.eye(3), X.T @ y)
    assert ridge_duality(X, y, 0.7).gap(ridge) == pytest.approx(0.0, abs=1e-10)
    lasso = Lasso(alpha=2.0 / len(y), fit_intercept=False, tol=1e-14).fit(X, y).coef_
    assert lasso_duality(X, y, 2.0).gap(lasso) == pytest.approx(0.0, abs=1e-8)
    logistic = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, signs).coef_[0]
    assert logistic_duality(X, signs, 0.5).gap(logistic) == pytest.approx(0.0, abs=1e-8)
    svc = SVC(C=1.0, kernel="linear", tol=1e-12).fit(X, signs)
    theta = np.zeros(len(y))
    theta[svc.support_] = np.abs(svc.dual_coef_[0])
    problem = svm_duality(X, signs, 1.0)
    assert problem.gap(np.r_[svc.intercept_, svc.coef_[0]], theta) == pytest.approx(0.0, abs=1e-6)


def test_the_lasso_dual_is_a_lagrangian_dual():
    """min ½‖z‖² + α‖w‖₁ subject to z = y − Xw: the multipliers of the equations are the dual point."""
    X, y, _ = table(1, n=5, p=2)
    best = lasso_duality(X, y, 1.0)
    walls = [{"type": "ineq", "fun": lambda t, s=sign: 1.0 - s * X.T @ t} for sign in (-1.0, 1.0)]
    answer = minimize(lambda t: 0.5 * t @ t - y @ t, np.zeros(5), constraints=walls)
    weights = Lasso(alpha=1.0 / 5, fit_intercept=False, tol=1e-14).fit(X, y).coef_
    assert best.dual(answer.x * (1 - 1e-9)) == pytest.approx(best.primal(weights), rel=1e-6)


def test_a_textbook_gap_without_slater():
    """min e^(−x) subject to x²/y <= 0, y > 0: p* = 1, and d(λ) = 0 for every λ (Boyd, exercise 5.21)."""

    def ratio(v):
        return np.array([v[0] ** 2 / v[1] if v[1] > 0 else np.inf])

    program = ConvexProgram(lambda v: np.exp(-v[0]), inequality=ratio)
    assert program.objective(np.array([0.0, 1.0])) == 1.0  # feasible points have x = 0
    for strength in (0.1, 1.0, 10.0):
        t = np.array([10.0, 20.0, 40.0])
        along = np.exp(-t) + strength * t**2 / t**4  # the Lagrangian at (t, t⁴)
        assert (np.diff(along) < 0).all() and along[-1] < 0.01
        assert duality_gap(program, [0.0, 1.0], [strength]).gap > 0.1
    assert not slater_point(program, [1.0, 1.0]).holds


def test_sensitivity_bounds_every_change_and_is_its_rate():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    P, q = root @ root.T + np.eye(3), rng.normal(size=3)
    G, h = rng.normal(size=(2, 3)), np.array([-0.5, -0.2])
    A, b = np.ones((1, 3)), np.array([1.0])
    program = QuadraticProgram(P, q, G=G, h=h, A=A, b=b)
    solved = quadratic_program(P, q, G=G, h=h, A=A, b=b)
    found = sensitivity(program, solved.x, tolerance=1e-7)
    assert found.value == pytest.approx(solved.report.value)

    def optimum(u, v):
        return quadratic_program(P, q, G=G, h=h + u, A=A, b=b + v).report.value

    for u, v in ((np.array([1e-4, 0.0]), 0.0), (np.array([0.0, 1e-4]), 0.0), (np.zeros(2), 1e-4)):
        change = (optimum(u, v) - optimum(-u, -v)) / 2
        assert change == pytest.approx(found.bound(u, [v]) - found.bound(), rel=1e-3, abs=1e-9)
    for u, v in ((np.array([1.0, 2.0]), 0.5), (np.array([3.0, -0.1]), -1.0)):
        assert optimum(u, v) >= found.bound(u, [v]) - 1e-7
