"""Every way to solve a logistic problem ends at the same optimum, with a gap that is proven."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model as peer
from tests.oracles.logistic import Likelihood

from learnable import LogisticRegression, verify
from learnable.core.estimator import no_progress
from learnable.data import Blocks, Part
from learnable.linear import descent
from learnable.linear.logistic.regression import SOLVERS
from learnable.risk.classes import ClassRisk, class_sums
from learnable.solvers.smooth import shapes
from learnable.solvers.smooth.shapes import solve

pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")


def all_scores(problem, x):
    """Return the scores of all rows, (n, K), or (n, 1) for two classes."""
    scores = np.concatenate(problem.over_scores(x, lambda scores, codes: [scores], lambda a, b: a + b))
    return scores[:, 1:] if problem.n_scores == 1 else scores


def draw(n, d, n_classes=2, seed=0, shift=0.5, storage=np.asarray):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[rng.random(X.shape) < 0.5] = 0.0
    codes = (X[:, : min(d, 4)] @ rng.normal(size=(min(d, 4), n_classes)) + rng.gumbel(size=(n, n_classes))).argmax(1)
    codes[:n_classes] = np.arange(n_classes)
    X = X + shift if shift and storage is np.asarray else X
    return storage(X), codes.astype(np.int64)


def make_problem(X, codes, C=1.0, intercept=True, weight=None):
    blocks = Blocks([Part(X, codes, weight)])
    sums = class_sums(blocks, int(codes.max()) + 1, intercept=intercept, n_jobs=1)
    return ClassRisk.of(blocks, sums, C, intercept=intercept, n_jobs=1)


def objective(model, X, codes):
    X = X.toarray() if sp.issparse(X) else X
    exact = Likelihood(X, codes, model.C, intercept=model.fit_intercept)
    return float(exact.value(np.column_stack([model.intercept_, model.coef_])))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "sgd"])  # which comes near, no more
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [0.05, 20.0])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_every_solver_ends_at_the_optimum(solver, n_classes, intercept, C, storage):
    X, codes = draw(70, 4, n_classes, storage=storage)
    problem = make_problem(X, codes, C, intercept)
    if solver in descent.SOLVERS:
        start = np.zeros(problem.n_scores * problem.width)
        limits = {"tol": 1e-10, "max_iter": 500, "progress": no_progress}
        solution = descent.descend_likelihood(problem, start, solver, **limits)
    else:
        solution = solve(problem, None, solver, tol=1e-10, max_iter=500)
    dense = X.toarray() if sp.issparse(X) else X
    exact = Likelihood(dense - problem.sums.centre, codes, C, intercept=intercept)
    best, least = exact.optimum()
    assert solution.converged and solution.measure <= 1e-10
    assert solution.value - float(least) <= solution.measure * float(least) + 1e-13 * float(least)
    np.testing.assert_allclose(solution.x.reshape(problem.shape)[:, 1:], best[:, 1:], atol=1e-4)
    assert solution.value == pytest.approx(problem.evaluate(solution.x).value, rel=1e-14)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_more_columns_than_rows_are_solved_in_the_space_of_the_rows(monkeypatch, n_classes, intercept, C, storage):
    used = []
    inner = shapes._solve_in_row_space
    monkeypatch.setattr(shapes, "_solve_in_row_space", lambda *a, **k: used.append(1) or inner(*a, **k))
    X, codes = draw(30, 90, n_classes, storage=storage)
    model = LogisticRegression(C=C, fit_intercept=intercept).fit(X, codes)
    assert used and model.certificate_.holds and verify(model, X, codes)
    direct = LogisticRegression(C=C, fit_intercept=intercept, solver="newton-cholesky").fit(X, codes)
    assert objective(model, X, codes) <= objective(direct, X, codes) * (1 + 1e-8)
    # ½‖W − W*‖² ≤ gap for each of the two
    distance = np.linalg.norm(model.coef_ - direct.coef_)
    assert distance**2 <= 8 * 1e-8 * objective(direct, X, codes)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weighted_wide_rows(n_classes):
    X, codes = draw(30, 90, n_classes)
    weight = np.random.default_rng(1).uniform(0.1, 3.0, 30)
    model = LogisticRegression(tol=1e-12).fit(X, codes, weight)
    direct = LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(X, codes, weight)
    np.testing.assert_allclose(model.coef_, direct.coef_, atol=1e-5)
    assert verify(model, X, codes, weight)


@pytest.mark.parametrize("repeat", [2, 5])
def test_wide_rows_of_low_rank(repeat):
    X, codes = draw(20, 60, 2)
    X, codes = np.repeat(X[:8], repeat, axis=0), np.arange(8 * repeat) % 2
    model = LogisticRegression().fit(X, codes)
    assert model.certificate_.holds and verify(model, X, codes)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_many_parameters_are_solved_with_products_of_the_hessian_alone(monkeypatch, storage):
    def refuse(self, x):
        raise AssertionError("the Hessian was formed")

    monkeypatch.setattr(ClassRisk, "hessian", refuse)
    X, codes = draw(520, 510, 3, storage=storage)
    assert 3 * 511 > 1500
    model = LogisticRegression(C=0.1).fit(X, codes)
    assert model.certificate_.holds and verify(model, X, codes)
    if storage is sp.csr_array:
        other = peer.LogisticRegression(C=0.1, tol=1e-6, max_iter=1000).fit(X, codes)
        assert objective(model, X, codes) <= objective(other, X, codes) * (1 + 1e-8)
        np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_hessian_products_cope_with_columns_of_very_different_scale(scale):
    X, codes = draw(200, 6)
    X = X * np.r_[np.ones(3), np.full(3, scale)]
    model = LogisticRegression(solver="newton-cg").fit(X, codes)
    assert model.certificate_.holds and verify(model, X, codes)


def from_thinned(problem, stride=8, tol=1e-8, max_iter=100, progress=no_progress):
    return shapes._solve_from_thinned(problem, stride, tol=tol, max_iter=max_iter, progress=progress)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4, np.inf])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_thinned_start_ends_at_the_optimum_of_all_rows(n_classes, C, intercept, storage):
    X, codes = draw(2000, 4, n_classes, storage=storage)
    weight = np.random.default_rng(1).uniform(0.1, 3.0, 2000)
    problem = make_problem(X, codes, C, intercept, weight)
    solution = from_thinned(problem)
    direct = solve(problem, None, "newton-cholesky", tol=1e-12, max_iter=100)
    assert solution.converged and solution.measure <= 1e-8
    assert solution.value <= direct.value * (1 + 1e-8)
    found, expected = all_scores(problem, solution.x), all_scores(problem, direct.x)
    if n_classes > 2:  # the softmax does not see a common shift of all scores
        found, expected = found - found.mean(axis=1, keepdims=True), expected - expected.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-2)


def test_many_rows_are_solved_from_a_thinned_start(monkeypatch):
    used = []
    inner = shapes._solve_from_thinned
    monkeypatch.setattr(shapes, "_solve_from_thinned", lambda *a, **k: used.append(1) or inner(*a, **k))
    X, codes = draw(36_000, 32)
    for table in (X, X.astype(np.float32)):
        model = LogisticRegression().fit(table, codes)
        assert model.certificate_.holds and verify(model, table, codes)
    assert len(used) == 2
    other = LogisticRegression(solver="newton-cholesky").fit(X, codes)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-3)


@pytest.mark.parametrize("order", ["sorted", "periodic"])
def test_a_thinned_start_that_misleads_still_ends_at_the_optimum(order):
    """Rows sorted by class, or with a period that the stride hits, make the thinned problem unlike the whole."""
    X, codes = draw(4000, 4)
    rows = np.argsort(codes, kind="stable")
    if order == "periodic":
        thin = np.arange(4000) % 8 == 0
        mostly = np.r_[np.flatnonzero(codes == 0)[:497], np.flatnonzero(codes == 1)[:3]]
        rows = np.empty(4000, dtype=int)
        rows[thin], rows[~thin] = mostly, np.setdiff1d(np.arange(4000), mostly)
    problem = make_problem(X[rows], codes[rows])
    solution = from_thinned(problem)
    assert solution.converged
    assert solution.value <= solve(problem, None, "newton-cholesky", tol=1e-12, max_iter=100).value * (1 + 1e-8)


def test_a_rare_class_that_thinning_would_lose():
    X, codes = draw(2000, 4)
    codes[[5, 77, 1003]] = 2
    solution = from_thinned(make_problem(X, codes))
    assert solution.converged and solution.measure <= 1e-8


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_a_thinned_start_spends_no_more_iterations_than_allowed(max_iter):
    X, codes = draw(2000, 4)
    seen = []
    solution = from_thinned(
        make_problem(X, codes), tol=1e-15, max_iter=max_iter, progress=lambda i, value: seen.append(i) and False
    )
    assert seen == list(range(1, max_iter + 1))
    assert solution.n_iter == max_iter and not solution.converged


def test_a_thinned_start_reports_the_iterations_of_both_phases():
    X, codes = draw(2000, 4)
    thin = np.arange(2000) % 8 == 0
    X[thin, 0] *= -30.0  # the thinned optimum is far from that of all rows
    seen = []
    solution = from_thinned(
        make_problem(X, codes), tol=1e-14, max_iter=200, progress=lambda i, value: seen.append(i) and False
    )
    assert seen == list(range(1, solution.n_iter + 1))


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton-cg", "newton-cholesky"])
@pytest.mark.parametrize("shape", [(60, 4), (20, 50)], ids=["tall", "wide"])
def test_progress_counts_the_iterations_and_ends_at_the_reported_measure(solver, shape):
    X, codes = draw(*shape)
    problem = make_problem(X, codes)
    seen = []
    solution = solve(
        problem, None, solver, tol=1e-9, max_iter=200, progress=lambda i, value: seen.append((i, value)) and False
    )
    assert [i for i, _ in seen] == list(range(1, solution.n_iter + 1))
    assert solution.converged and solution.measure <= 1e-9


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton-cg", "newton-cholesky"])
@pytest.mark.parametrize("shape", [(60, 4), (20, 50)], ids=["tall", "wide"])
def test_progress_that_says_stop_is_obeyed_at_once(solver, shape):
    X, codes = draw(*shape)
    problem = make_problem(X, codes)
    solution = solve(problem, None, solver, tol=1e-15, max_iter=200, progress=lambda i, value: i >= 2)
    assert solution.n_iter == 2 and not solution.converged
    assert solution.measure == problem.evaluate(solution.x).measure


def test_a_start_at_the_optimum_needs_no_iteration():
    X, codes = draw(60, 4)
    problem = make_problem(X, codes)
    best = solve(problem, None, tol=1e-12, max_iter=100)
    for solver in ("auto", "lbfgs", "newton-cg", "newton-cholesky"):
        again = solve(problem, best.x, solver, tol=1e-9, max_iter=100)
        assert again.n_iter == 0 and again.converged


def test_the_function_never_rises():
    X, codes = draw(80, 4, 3)
    for solver in ("lbfgs", "newton-cg", "newton-cholesky"):
        problem = make_problem(X, codes, C=100.0)
        values = []
        for max_iter in range(1, 8):
            values.append(solve(problem, None, solver, tol=0.0, max_iter=max_iter).value)
        assert (np.diff(values) <= 1e-12 * values[0]).all()
