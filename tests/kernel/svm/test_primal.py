"""The machine in the primal: it is the dual's, to its tolerance."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from tests.kernel.svm_tables import gaussian, noisy

from learnable.core.errors import DataError, ParameterError
from learnable.kernel import SVC
from learnable.kernel.svm import primal as module
from learnable.kernel.svm.primal import primal_newton
from learnable.solvers import quadratic_program


def dual_optimum(K, y, cost, fit_intercept):
    """Return the optimum of the dual by the general quadratic program."""
    equality = {"A": y[None], "b": [0.0]} if fit_intercept else {}
    return -quadratic_program(K * np.outer(y, y), -np.ones(len(y)), lower=0.0, upper=cost, **equality).value


@settings(max_examples=20)
@given(st.integers(0, 1000), st.sampled_from([1e-3, 1.0, 30.0]), st.booleans())
def test_primal_equals_dual(seed, C, fit_intercept):
    X, y = noisy(50, 2, seed)
    cost = C * np.random.default_rng(seed).uniform(0.5, 2.0, len(y))
    K = gaussian(X, 0.5)
    fit = primal_newton(K, y, cost, fit_intercept=fit_intercept, tol=1e-6)
    assert fit.violation <= 1e-6
    optimum = dual_optimum(K, y, cost, fit_intercept)
    assert fit.dual <= optimum * (1 + 1e-12) + 1e-15
    assert fit.primal >= optimum * (1 - 1e-12)
    assert fit.primal - fit.dual <= 1e-5 * optimum


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_the_fit_is_feasible_for_the_dual_and_within_its_tolerance(tol):
    X, y = noisy(100)
    cost = np.full(100, 2.0)
    fit = primal_newton(gaussian(X, 0.3), y, cost, tol=tol)
    assert (y * fit.beta >= 0).all() and (y * fit.beta <= cost).all()
    assert abs(fit.beta.sum()) <= 1e-12
    assert fit.violation <= tol
    np.testing.assert_allclose(fit.f, gaussian(X, 0.3) @ fit.beta, atol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "precomputed"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_estimators_two_solvers_agree(kernel, fit_intercept):
    X, y = noisy(80)
    X = gaussian(X, 0.4) if kernel == "precomputed" else X
    one, other = (
        SVC(kernel=kernel, solver=solver, fit_intercept=fit_intercept, tol=1e-6).fit(X, y)
        for solver in ("primal", "decomposition")
    )
    bound = one.certificate_.bound  # of a given matrix nobody knows whether it is positive semidefinite
    assert one.certificate_.holds and bound <= 1e-5
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-4)


def test_several_classes_and_weights():
    X, y = noisy(90)
    y = np.where(X[:, 1] > 0.6, 2.0, y)
    weight = np.random.default_rng(1).uniform(0.0, 2.0, 90)
    weight[:5] = 0.0
    one, other = (SVC(solver=s, tol=1e-6, class_weight="balanced").fit(X, y, weight) for s in ("primal", "auto"))
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-4)
    assert not np.isin(one.support_, np.arange(5)).any()


@pytest.mark.parametrize("C", [1e-12, 1e-6, 1e6, 1e12])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_extreme_costs(C, fit_intercept):
    X, y = noisy(40)
    K = gaussian(X, 1.0)
    fit = primal_newton(K, y, np.full(40, C), fit_intercept=fit_intercept, tol=1e-6)
    assert fit.violation <= 1e-6
    assert fit.dual == pytest.approx(dual_optimum(K, y, C, fit_intercept), rel=1e-5)


def test_duplicates_and_constant_columns():
    X, y = noisy(30)
    X, y = np.concatenate([X, X, np.zeros((4, 3))]), np.concatenate([y, y, [1.0, -1.0, 1.0, -1.0]])
    fit = primal_newton(gaussian(X, 0.5), y, np.ones(len(y)), tol=1e-6)
    assert fit.violation <= 1e-6
    same = primal_newton(np.ones((6, 6)), np.array([1.0, -1.0] * 3), np.ones(6))
    assert same.violation <= 1e-3 and same.primal == pytest.approx(6.0)


def test_it_stops_when_it_is_told_to_and_says_how_far_it_is():
    X, y = noisy(200)
    seen = []
    fit = primal_newton(gaussian(X, 0.5), y, np.full(200, 10.0), progress=lambda i, v: seen.append(v) or len(seen) >= 2)
    assert fit.n_steps == 2
    assert fit.violation > 1e-3 and np.isfinite(fit.primal) and fit.primal >= fit.dual
    with pytest.warns(ConvergenceWarning, match="SVC"):
        SVC(solver="primal", max_iter=1).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="SVC"):
        late = SVC(solver="primal", max_seconds=1e-9).fit(X, y)
    assert late.n_iter_[0] == 1 and late.certificate_.bound is not None


def test_what_it_cannot_do_is_said(monkeypatch):
    X, y = noisy(20)
    with pytest.raises(ParameterError, match="finite C"):
        SVC(solver="primal", C=np.inf).fit(X, y)
    monkeypatch.setattr(module, "_MOST_ROWS", 10)
    with pytest.raises(DataError, match="decomposition"):
        SVC(solver="primal").fit(X, y)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_costs_that_rounding_blurs_leave_a_right_function_and_an_honest_bound(fit_intercept):
    X, y = noisy(120)
    for kernel in ({"gamma": 1.0}, {"gamma": 0.01}, {"kernel": "linear"}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            huge, large = (
                SVC(C=C, solver="primal", fit_intercept=fit_intercept, **kernel).fit(X, y) for C in (1e12, 1e6)
            )
        assert huge.certificate_.holds or huge.certificate_.bound > 1e-6
        assert huge.certificate_.bound < (np.inf if "gamma" in kernel and kernel["gamma"] < 1.0 else 0.2)
        assert huge.score(X, y) >= large.score(X, y) - 0.05
    tiny = SVC(C=1e-12, solver="primal", fit_intercept=fit_intercept).fit(X, y)
    assert tiny.certificate_.holds and tiny.certificate_.bound < 1e-9


def test_a_hard_margin_does_not_depend_on_the_cost():
    X, y = noisy(80)
    K = gaussian(X, 20.0)
    low, high = (primal_newton(K, y, np.full(80, C), tol=1e-4) for C in (1e5, 1e13))
    assert high.violation <= 1e-4 and high.primal - high.dual <= 1e-3 * high.dual
    np.testing.assert_allclose(high.f + high.b, low.f + low.b, atol=5e-3)
