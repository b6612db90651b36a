"""LinearSVR: a quadratic program and LIBLINEAR as oracles, duality, scales."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.linear.svm_tables import numbers, weights_of
from tests.oracles.svm import augmented, hinge_program, svr_objective

import learnable as ln
from learnable import LinearSVR, verify
from learnable.core.errors import DataError, ParameterError

LOSSES = {"epsilon_insensitive": 1, "squared_epsilon_insensitive": 2}


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("C", [0.1, 3.0])
def test_the_quadratic_program(epsilon, C):
    X, y = numbers(20, 3)
    model = LinearSVR(epsilon=epsilon, C=C).fit(X, y)
    Z, cost = augmented(X, 1.0), np.full(20, C)
    w = hinge_program(np.vstack([Z, -Z]), np.r_[y - epsilon, -y - epsilon], np.r_[cost, cost])
    ours, oracle = (svr_objective(v, X, y, cost, 1.0, epsilon, 1) for v in (weights_of(model), w))
    assert ours <= oracle * (1 + 1e-9)
    np.testing.assert_allclose(weights_of(model), w, atol=1e-3 * np.abs(w).max())


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("epsilon", [0.0, 0.5])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_objective_is_not_above_liblinears(loss, epsilon, intercept):
    X, y = numbers(150, 4)
    parameters = {"loss": loss, "epsilon": epsilon, "C": 0.5, "fit_intercept": intercept}
    ours = LinearSVR(**parameters).fit(X, y)
    theirs = sklearn.svm.LinearSVR(**parameters, tol=1e-9, max_iter=2_000_000, dual=True).fit(X, y)
    cost, bias = np.full(150, 0.5), float(intercept)
    values = [svr_objective(weights_of(m), X, y, cost, bias, epsilon, LOSSES[loss]) for m in (ours, theirs)]
    assert values[0] <= values[1] * (1 + 1e-8)
    assert ours.coef_.shape == theirs.coef_.shape and np.shape(ours.intercept_) == np.shape(theirs.intercept_)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=2e-3)


@pytest.mark.parametrize("loss, solver", [
    ("epsilon_insensitive", "interior-point"), ("epsilon_insensitive", "dual"),
    ("squared_epsilon_insensitive", "newton"), ("squared_epsilon_insensitive", "dual"),
])  # fmt: skip
@pytest.mark.parametrize("sparse", [False, True])
def test_every_solver_ends_at_the_optimum(loss, solver, sparse):
    X, y = numbers(100, 4)
    table = sp.csr_array(X) if sparse else X
    model = LinearSVR(loss=loss, solver=solver, epsilon=0.1, C=0.2, max_iter=20_000).fit(table, y)
    best = LinearSVR(loss=loss, epsilon=0.1, C=0.2).fit(X, y)
    values = [svr_objective(weights_of(m), X, y, np.full(100, 0.2), 1.0, 0.1, LOSSES[loss]) for m in (model, best)]
    assert model.certificate_.holds and verify(model, table, y)
    assert values[0] <= values[1] * (1 + 1.5e-6)


def test_kkt_conditions():
    X, y = numbers(100, 3)
    model = LinearSVR(epsilon=0.4, C=0.7).fit(X, y)
    beta, residual = model.dual_coef_[0], y - model.predict(X)
    np.testing.assert_allclose(augmented(X, 1.0).T @ beta, weights_of(model), atol=1e-8)
    assert (beta[np.abs(residual) < 0.4 - 1e-6] == 0).all()
    outside = np.abs(residual) > 0.4 + 1e-6
    np.testing.assert_allclose(beta[outside], 0.7 * np.sign(residual[outside]), rtol=1e-12)


def test_a_wide_tube_needs_no_weights():
    X, y = numbers(50, 3)
    for loss in LOSSES:
        model = LinearSVR(loss=loss, epsilon=np.abs(y).max()).fit(X, y)
        assert not model.coef_.any() and model.certificate_.value == 0 and verify(model, X, y)


def test_weights_are_repetitions():
    X, y = numbers(60, 3)
    s = np.random.default_rng(0).integers(0, 3, 60)
    weighted, repeated = LinearSVR().fit(X, y, s), LinearSVR().fit(X.repeat(s, 0), y.repeat(s))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7, atol=1e-9)
    assert verify(weighted, X, y, s)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 30),
    d=st.integers(1, 5),
    scale=st.sampled_from([1e-8, 1.0, 1e8]),
    y_scale=st.sampled_from([1e-8, 1.0, 1e8]),
    loss=st.sampled_from(sorted(LOSSES)),
    constant=st.booleans(),
)
def test_any_table_is_certified(seed, n, d, scale, y_scale, loss, constant):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)) * scale, rng.normal(size=n) * y_scale
    if constant:
        X[:, 0] = 3.0
        X[:, -1] = X[:, 0]
    model = LinearSVR(loss=loss, epsilon=0.01 * y_scale).fit(X, y)
    assert model.certificate_.holds, model.certificate_
    assert verify(model, X, y), str(verify(model, X, y))


def test_prostate_against_least_absolute_deviations(reference_data):
    from scipy.optimize import linprog

    table = np.genfromtxt(reference_data / "prostate.csv", delimiter=",", names=True)
    names = ["lcavol", "lweight", "age", "lbph", "svi", "lcp", "gleason", "pgg45"]
    X = np.column_stack([table[name] for name in names])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y, n = table["lpsa"], len(table)
    model = LinearSVR(C=1e4, intercept_scaling=100.0).fit(X, y)
    Z = np.column_stack([np.ones(n), X])
    A = np.hstack([np.vstack([Z, -Z]), -np.vstack([np.eye(n), np.eye(n)])])
    bounds = [(None, None)] * 9 + [(0, None)] * n
    program = linprog(np.r_[np.zeros(9), np.ones(n)], A_ub=A, b_ub=np.r_[y, -y], bounds=bounds)
    assert np.abs(y - model.predict(X)).sum() <= program.fun * (1 + 1e-3)


def test_refusals():
    X, y = numbers()
    with pytest.raises(ParameterError, match="LinearSVR: epsilon must be"):
        LinearSVR(epsilon=-1.0).fit(X, y)
    with pytest.raises(ParameterError, match="LinearSVR: solver='newton'"):
        LinearSVR(solver="newton").fit(X, y)
    with pytest.raises(DataError, match="LinearSVR"):
        LinearSVR().fit(X, np.where(y > 0, np.nan, y))


def test_a_file_gives_the_same_predictions(tmp_path):
    X, y = numbers()
    model = LinearSVR().fit(X, y)
    ln.save(model, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    assert np.array_equal(loaded.predict(X), model.predict(X)) and verify(loaded, X, y)
