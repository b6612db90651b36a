"""The dual bound of kernel logistic regression at any point, its offsets, and the way there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernel.kernel_tables import rings

from learnable.kernel.logistic.regression import KernelLogisticProblem, fit_logistic
from learnable.kernel.operators import Operator
from learnable.risk.kernels import Gaussian


def problem_of(classes, intercept=True, C=2.0):
    X, y, weight = rings(40, classes)
    return KernelLogisticProblem(Operator(Gaussian(1.0), X, keep=True), y, classes, C * weight, intercept)


def objective(problem, A, b):
    F = problem.operator(A)
    return problem.loss(F + b) + 0.5 * float((A * F).sum())


@given(st.integers(2, 4), st.booleans(), st.integers(0, 10**6))
@settings(max_examples=15)
def test_the_gap_bounds_the_distance_to_the_optimum(classes, intercept, seed):
    problem = problem_of(classes, intercept)
    best = fit_logistic(problem, tol=1e-11, max_iter=50, rank=40)
    optimum = objective(problem, best.coef, best.intercept)
    rng = np.random.default_rng(seed)
    A = best.coef + rng.standard_normal(best.coef.shape) * 10.0 ** rng.uniform(-4, 0)
    F = problem.operator(A)
    b = problem.best_intercept(F, best.intercept)
    above = objective(problem, A, b) - optimum
    assert above + 1e-9 >= 0
    assert problem.gap(A, F, b) * max(optimum, 1e-8 * problem.start) >= above * (1 - 1e-6) - 1e-9


@pytest.mark.parametrize("classes", [2, 3])
def test_the_best_offset_gives_every_class_its_weight(classes):
    problem = problem_of(classes)
    F = np.random.default_rng(0).standard_normal((40, 1 if classes == 2 else classes))
    b = problem.best_intercept(F, np.zeros(F.shape[1]))
    P = problem.probabilities(F + b)
    np.testing.assert_allclose((problem.kappa * P).sum(axis=0), problem.totals, rtol=1e-10)


@pytest.mark.parametrize("classes", [2, 3])
def test_every_step_lowers_the_gap_to_the_tolerance(classes):
    gaps = []
    found = fit_logistic(
        problem_of(classes, C=50.0), tol=1e-9, max_iter=50, rank=10, progress=lambda k, gap: bool(gaps.append(gap))
    )
    assert found.gap <= 1e-9
    assert found.n_iter == len(gaps)


def test_progress_stops_it():
    found = fit_logistic(problem_of(3, C=50.0), tol=1e-9, max_iter=50, rank=40, progress=lambda k, gap: True)
    assert found.n_iter == 1
