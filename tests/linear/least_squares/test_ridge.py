"""Ridge against normal equations in fifty digits, scikit-learn, its own laws, and what its certificate claims."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from sklearn import linear_model as peer
from sklearn.exceptions import ConvergenceWarning
from tests.oracles.ridge import exact_ridge, objective

from learnable import LinearRegression, Ridge, verify
from learnable.core import ParameterError

pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")

SOLVERS = ("auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs")
DIRECT = ("auto", "svd", "cholesky")


def draw(n=60, d=5, targets=None, seed=0, offset=3.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + offset
    y = X @ rng.normal(size=(d, targets or 1)) + rng.normal(size=(n, targets or 1)) - 2.0
    return X, y if targets else y[:, 0]


def sparse_rows(n, d, seed=0, density=0.1):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=density, rng=rng, format="csr")
    return X, np.asarray(X.sum(axis=1)).ravel() + rng.normal(size=n)


def assert_same_fit(model, other, rtol=1e-9):
    assert np.shape(model.coef_) == np.shape(other.coef_)
    assert np.shape(model.intercept_) == np.shape(other.intercept_)
    size = np.abs(other.coef_).max()
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=rtol, atol=rtol * size)
    np.testing.assert_allclose(
        model.intercept_, other.intercept_, rtol=rtol, atol=rtol * (1 + np.abs(other.intercept_).max())
    )


SHAPES = pytest.mark.parametrize(
    ("n", "d"), [(60, 5), (8, 20), (12, 12), (700, 60), (60, 300)], ids=lambda size: str(size)
)


# ---- against scikit-learn ----


@SHAPES
@pytest.mark.parametrize(("targets", "weighted"), [(None, False), (None, True), (3, True)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_dense_fits_agree_with_scikit_learn(n, d, targets, fit_intercept, weighted):
    X, y = draw(n, d, targets)
    weight = np.random.default_rng(1).uniform(0.1, 3.0, n) if weighted else None
    model = Ridge(alpha=0.7, fit_intercept=fit_intercept).fit(X, y, weight)
    other = peer.Ridge(alpha=0.7, fit_intercept=fit_intercept, solver="svd").fit(X, y, weight)
    assert_same_fit(model, other)
    np.testing.assert_allclose(model.predict(X), other.predict(X), rtol=1e-9, atol=1e-9)
    assert model.score(X, y, weight) == pytest.approx(other.score(X, y, weight), rel=1e-10)
    assert model.certificate_.holds and verify(model, X, y, weight)


def test_a_single_column_of_targets_gets_the_shapes_of_scikit_learn():
    X, y = draw(30, 4, 1)
    model, other = Ridge().fit(X, y), peer.Ridge().fit(X, y)
    assert_same_fit(model, other)
    assert model.predict(X).shape == other.predict(X).shape


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_every_solver_name_gives_the_one_minimiser(solver, storage, fit_intercept):
    X, y = sparse_rows(150, 40, density=0.2)
    weight = np.random.default_rng(1).uniform(0.1, 3.0, 150)
    exact = peer.Ridge(alpha=2.0, fit_intercept=fit_intercept, solver="svd").fit(X.toarray(), y, weight)
    # A relative gap g leaves the coefficients off by at most √(g·P/α): 1e-20 gives ten digits.
    model = Ridge(alpha=2.0, solver=solver, fit_intercept=fit_intercept, tol=1e-20)
    model.fit(X if storage == "sparse" else X.toarray(), y, weight)
    assert_same_fit(model, exact, rtol=1e-8)
    assert model.certificate_.holds
    assert model.certificate_.kind == ("closed-form" if solver in DIRECT else "gap")


@pytest.mark.parametrize("solver", ["auto", "sparse_cg"])
@pytest.mark.parametrize("shape", [(300, 30), (30, 150)], ids=["tall", "wide"])
def test_sparse_fits_agree_with_dense_ones(solver, shape):
    X, y = sparse_rows(*shape)
    for storage in (sp.csr_matrix, sp.csc_array):
        model = Ridge(alpha=1.0, solver=solver, tol=1e-18).fit(storage(X), y)
        assert_same_fit(model, peer.Ridge(alpha=1.0, solver="svd").fit(X.toarray(), y), rtol=1e-8)
        np.testing.assert_allclose(model.predict(storage(X)), model.predict(X.toarray()), rtol=1e-13)


@pytest.mark.parametrize("solver", ["auto", "svd", "sparse_cg"])
def test_float32_data_are_solved_as_the_float64_numbers_they_are(solver):
    X, y = draw(500, 8)
    X = X.astype(np.float32)
    model = Ridge(alpha=0.5, solver=solver, tol=1e-18).fit(X, y)
    assert model.coef_.dtype == np.float32
    assert_same_fit(model, Ridge(alpha=0.5).fit(X.astype(np.float64), y), rtol=np.finfo(np.float32).eps)
    assert model.certificate_.holds and verify(model, X, y)


def test_every_target_has_max_iter_steps_of_its_own():
    X, y = draw(60, 8, 3)
    with pytest.warns(ConvergenceWarning):
        together = Ridge(solver="lsqr", max_iter=2, tol=1e-12).fit(X, y)
    for k in range(3):
        with pytest.warns(ConvergenceWarning):
            alone = Ridge(solver="lsqr", max_iter=2, tol=1e-12).fit(X, y[:, k])
        np.testing.assert_allclose(together.coef_[k], alone.coef_, rtol=1e-10)


@pytest.mark.parametrize("solver", ["lsqr", "sparse_cg", "sag", "saga"])
@pytest.mark.parametrize("tol", [1e-8, 1e-12, 1e-15, 1e-18])
def test_iterative_solvers_end_at_the_shortest_of_several_solutions_whatever_the_tolerance(solver, tol):
    for seed in range(25):
        rng = np.random.default_rng(seed)
        n, d = rng.integers(2, 40, size=2).tolist()
        rank = int(rng.integers(1, min(n, d) + 1))
        X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) * 10.0 ** rng.integers(-3, 4)
        y = X @ rng.normal(size=d) if rng.random() < 0.5 else rng.normal(size=n)
        model = Ridge(alpha=0, solver=solver, tol=tol, max_iter=100_000).fit(X, y)
        expected = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=1e-10)[0]
        assert model.certificate_.holds
        np.testing.assert_allclose(model.coef_, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_one_alpha_a_target_equals_separate_fits(fit_intercept, storage):
    X, y = draw(40, 6, 3)
    X = sp.csr_array(X) if storage == "sparse" else X
    alphas = np.array([0.1, 5.0, 0.1])
    model = Ridge(alpha=alphas, fit_intercept=fit_intercept).fit(X, y)
    for k, alpha in enumerate(alphas):
        one = Ridge(alpha=float(alpha), fit_intercept=fit_intercept).fit(X, y[:, k])
        np.testing.assert_allclose(model.coef_[k], one.coef_, rtol=1e-10)
        np.testing.assert_allclose(np.broadcast_to(model.intercept_, 3)[k], one.intercept_, rtol=1e-10, atol=1e-12)
    other = peer.Ridge(alpha=alphas, fit_intercept=fit_intercept, solver="cholesky").fit(
        X.toarray() if storage == "sparse" else X, y
    )
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-8)
    assert verify(model, X, y)


@pytest.mark.parametrize("alpha", [[1.0, 2.0], np.ones(4)])
def test_a_wrong_number_of_alphas_is_an_error(alpha):
    X, y = draw(20, 3, 3)
    with pytest.raises(ParameterError, match=r"Ridge: alpha must be .* one per target. .* correspond: \d != 3"):
        Ridge(alpha=alpha).fit(X, y)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("n", "d"), [(60, 6), (10, 25)])
@pytest.mark.parametrize("weighted", [False, True])
def test_positive_fits_satisfy_kkt_and_agree_with_scikit_learn(fit_intercept, n, d, weighted):
    X, y = draw(n, d)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, n) if weighted else None
    model = Ridge(alpha=1.3, positive=True, fit_intercept=fit_intercept).fit(X, y, weight)
    assert (model.coef_ >= 0).all() and (model.coef_ == 0).any() and (model.coef_ > 0).any()
    w = np.ones(n) if weight is None else weight
    residual = y - model.predict(X)
    centre = np.average(X, axis=0, weights=w) if fit_intercept else 0.0
    push = (X - centre).T @ (w * residual) - 1.3 * model.coef_
    size = np.abs((X - centre).T @ (w * (y - y.mean() * fit_intercept))).max()
    assert (np.abs(push[model.coef_ > 0]) <= 1e-10 * size).all()
    assert (push <= 1e-10 * size).all()
    other = peer.Ridge(alpha=1.3, positive=True, fit_intercept=fit_intercept, tol=1e-12, max_iter=100_000)
    other.fit(X, y, weight)
    ours = objective(X, y, model.coef_, model.intercept_, 1.3, weight)
    theirs = objective(X, y, other.coef_, other.intercept_, 1.3, weight)
    assert float(ours) <= float(theirs) * (1 + 1e-9)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-3, atol=1e-3 * np.abs(model.coef_).max())
    assert model.certificate_.kind == "stationarity" and model.certificate_.holds
    assert verify(model, X, y, weight)


def test_positive_fits_of_several_targets_are_separate_fits():
    X, y = draw(50, 6, 3)
    model = Ridge(positive=True).fit(X, y)
    for k in range(3):
        np.testing.assert_allclose(model.coef_[k], Ridge(positive=True).fit(X, y[:, k]).coef_, rtol=1e-10, atol=1e-13)


# ---- against fifty digits ----


@pytest.mark.parametrize("solver", DIRECT)
@pytest.mark.parametrize("alpha", [1e-8, 0.3, 1e5])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_direct_solvers_give_nearly_all_digits(solver, alpha, fit_intercept):
    X, y = draw(30, 4)
    weight = np.random.default_rng(1).uniform(0.1, 3.0, 30)
    coef, intercept = exact_ridge(X, y, alpha, weight, fit_intercept)
    model = Ridge(alpha=alpha, solver=solver, fit_intercept=fit_intercept).fit(X, y, weight)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-13)
    np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-13)


@pytest.mark.parametrize("solver", ["auto", "cholesky"])
def test_the_gram_path_gives_nearly_all_digits(solver):
    X, y = draw(700, 60)
    assert 700 * 60 * 60 > 2e6
    reference = Ridge(alpha=1.0, solver="svd").fit(X, y)
    model = Ridge(alpha=1.0, solver=solver).fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-11)


@pytest.mark.parametrize("solver", DIRECT)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_wildly_scaled_columns_keep_their_digits(solver, fit_intercept):
    X, y = draw(30, 5)
    scale = np.array([1e-120, 1e-8, 1.0, 1e9, 1e120])
    coef, _ = exact_ridge(X * scale, y, 0.5, intercept=fit_intercept)
    model = Ridge(alpha=0.5, solver=solver, fit_intercept=fit_intercept).fit(X * scale, y)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-9)
    assert model.certificate_.holds and verify(model, X * scale, y)


@pytest.mark.parametrize("solver", DIRECT)
def test_nearly_collinear_columns_keep_the_digits_that_the_penalty_leaves(solver):
    X, y = draw(40, 3)
    X = np.column_stack([X, X[:, 0] + 1e-9 * np.cos(np.arange(40.0))])
    coef, intercept = exact_ridge(X, y, 1e-6)
    model = Ridge(alpha=1e-6, solver=solver).fit(X, y)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-10)
    np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-10)


@pytest.mark.parametrize("solver", DIRECT)
def test_a_mean_that_dwarfs_the_spread_costs_no_digits_of_the_slope(solver):
    rng = np.random.default_rng(0)
    X = 1e9 + np.round(rng.normal(size=(50, 3)) * 16) / 16
    y = rng.normal(size=50)
    coef, _ = exact_ridge(X, y, 1.0)
    model = Ridge(alpha=1.0, solver=solver).fit(X, y)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-9)
    np.testing.assert_allclose(model.predict(X), y.mean() + (X - X.mean(axis=0)) @ coef, atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_duplicated_columns_share_their_weight_equally(solver):
    X, y = draw(40, 2)
    model = Ridge(alpha=1.0, solver=solver, tol=1e-20).fit(np.column_stack([X, X[:, 0], X[:, 0]]), y)
    np.testing.assert_allclose(model.coef_[[0, 2, 3]], model.coef_[0], rtol=1e-8)
    assert model.certificate_.holds


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_constant_column_gets_no_weight(solver):
    X, y = draw(40, 3)
    model = Ridge(alpha=1.0, solver=solver, tol=1e-20).fit(np.column_stack([X, np.full(40, 7.0)]), y)
    assert abs(model.coef_[3]) <= 1e-12 and model.certificate_.holds
    np.testing.assert_allclose(model.coef_[:3], Ridge(alpha=1.0).fit(X, y).coef_, rtol=1e-8)


# ---- laws ----


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    y_shift=st.floats(-1e4, 1e4),
    x_shift=st.floats(-1e4, 1e4),
    solver=st.sampled_from(["auto", "svd", "sparse_cg"]),
    positive=st.booleans(),
)
def test_shifting_y_or_X_moves_only_the_intercept(seed, y_shift, x_shift, solver, positive):
    X, y = draw(25, 3, seed=seed, offset=0.0)
    options = {"alpha": 2.0, "solver": "auto" if positive else solver, "positive": positive, "tol": 1e-20}
    model = Ridge(**options).fit(X, y)
    moved = Ridge(**options).fit(X + x_shift, y + y_shift)
    size = np.abs(model.coef_).max() + 1e-3
    # Rounding the shifted data is worth eps·|shift| in every row.
    np.testing.assert_allclose(moved.coef_, model.coef_, rtol=1e-9, atol=1e-9 * size)
    expected = model.intercept_ + y_shift - x_shift * model.coef_.sum()
    assert moved.intercept_ == pytest.approx(expected, abs=1e-9 * (abs(y_shift) + abs(x_shift) * (size + 1) + 1))


@pytest.mark.parametrize("solver", SOLVERS)
def test_residuals_sum_to_zero_because_the_intercept_is_free(solver):
    X, y = draw(80, 4)
    weight = np.random.default_rng(2).uniform(0.1, 2.0, 80)
    model = Ridge(alpha=50.0, solver=solver).fit(X, y, weight)
    assert abs(weight @ (y - model.predict(X))) <= 1e-9 * weight.sum() * np.abs(y).max()


@pytest.mark.parametrize("solver", DIRECT)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("n", "d"), [(40, 5), (6, 20), (700, 60)])
def test_alpha_zero_is_least_squares(solver, fit_intercept, n, d):
    X, y = draw(n, d)
    model = Ridge(alpha=0.0, solver=solver, fit_intercept=fit_intercept).fit(X, y)
    assert_same_fit(model, LinearRegression(fit_intercept=fit_intercept).fit(X, y), rtol=1e-10)
    assert model.certificate_.holds


@pytest.mark.parametrize("solver", ["sparse_cg", "lsqr", "lbfgs"])
def test_alpha_zero_by_conjugate_gradients_is_least_squares(solver):
    X, y = draw(60, 5)
    model = Ridge(alpha=0.0, solver=solver, tol=1e-13).fit(X, y)
    assert model.certificate_.kind == "stationarity" and model.certificate_.holds
    assert model.certificate_.bound is None
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, y).coef_, rtol=1e-7)
    assert verify(model, X, y)


@given(
    n=st.integers(3, 30),
    d=st.integers(2, 30),
    rank=st.integers(1, 20),
    spread=st.sampled_from([1.0, 10.0, 1e3]),
    alpha=st.sampled_from([0.0, 1e-17]),
    fit_intercept=st.booleans(),
    solver=st.sampled_from(SOLVERS),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=150, deadline=None)
def test_of_several_minimisers_every_solver_gives_the_shortest(n, d, rank, spread, alpha, fit_intercept, solver, seed):
    rng = np.random.default_rng(seed)
    rank = min(rank, n - 1, d)
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) * np.geomspace(1.0, spread, d)
    y = rng.normal(size=n)
    centre, level = (X.mean(axis=0), y.mean()) if fit_intercept else (0.0, 0.0)
    U, s, Vt = np.linalg.svd(X - centre, full_matrices=False)
    assume(s[rank - 1] > 1e-4 * s[0])
    shortest = Vt[:rank].T @ ((U[:, :rank].T @ (y - level)) / s[:rank])
    if solver in DIRECT:
        alpha = 0.0  # a penalty below rounding is the direct solvers' own problem, and no question of norms
    model = Ridge(alpha=alpha, solver=solver, fit_intercept=fit_intercept, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_, shortest, rtol=0, atol=1e-5 * np.abs(shortest).max())
    assert verify(model, X, y)


@pytest.mark.parametrize("solver", ["sparse_cg", "lsqr", "sag", "saga"])
@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-8, 1e-10])
def test_coefficients_are_as_exact_as_in_scikit_learn_at_the_same_tolerance(solver, tol):
    for seed in range(5):
        X, y = draw(40, 25, seed=seed)
        X = X * np.geomspace(1.0, 30.0, 25)
        exact = Ridge(alpha=0.3).fit(X, y).coef_
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            other = peer.Ridge(alpha=0.3, solver=solver, tol=tol, random_state=0).fit(X, y).coef_
        model = Ridge(alpha=0.3, solver=solver, tol=tol).fit(X, y)
        size = np.abs(exact).max()
        assert np.abs(model.coef_ - exact).max() <= max(np.abs(other - exact).max(), 1e-13 * size)


@pytest.mark.parametrize("solver", ["svd", "cholesky", "sparse_cg", "lsqr", "sag", "saga", "gd", "sgd"])
def test_a_solver_that_knows_no_bounds_is_refused_with_positive(solver):
    X, y = draw(20, 3)
    with pytest.raises(ParameterError, match="does not support positive fitting"):
        Ridge(positive=True, solver=solver).fit(X, y)


def test_the_solver_that_was_used_has_scikit_learns_name():
    X, y = draw(20, 3)
    for solver in SOLVERS[1:]:
        assert Ridge(solver=solver).fit(X, y).solver_ == solver
    assert Ridge().fit(X, y).solver_ == peer.Ridge().fit(X, y).solver_ == "cholesky"
    assert Ridge(positive=True).fit(X, y).solver_ == peer.Ridge(positive=True).fit(X, y).solver_ == "lbfgs"
    X, y = sparse_rows(3000, 2000, density=0.01)
    assert Ridge().fit(X, y).solver_ == "sparse_cg"


@pytest.mark.parametrize("solver", DIRECT)
@pytest.mark.parametrize("alpha", [1e12, 1e100])
def test_an_infinite_penalty_leaves_the_mean(solver, alpha):
    X, y = draw(40, 4)
    model = Ridge(alpha=alpha, solver=solver).fit(X, y)
    first_order = (X - X.mean(axis=0)).T @ (y - y.mean()) / alpha
    np.testing.assert_allclose(model.coef_, first_order, rtol=1e-6)
    assert model.intercept_ == pytest.approx(y.mean(), rel=1e-9)
    assert model.certificate_.holds


@pytest.mark.parametrize("alpha", [1e12, 1e100])
def test_an_infinite_penalty_leaves_conjugate_gradients_at_the_mean(alpha):
    X, y = draw(40, 4)
    model = Ridge(alpha=alpha, solver="sparse_cg").fit(X, y)
    np.testing.assert_allclose(model.predict(X), y.mean(), rtol=1e-6)
    assert model.certificate_.holds


def test_the_norm_falls_and_the_residual_rises_with_alpha():
    X, y = draw(40, 8)
    fits = [Ridge(alpha=alpha).fit(X, y) for alpha in 10.0 ** np.arange(-3, 5)]
    norms = [np.linalg.norm(model.coef_) for model in fits]
    residuals = [np.sum((y - model.predict(X)) ** 2) for model in fits]
    assert (np.diff(norms) < 0).all() and (np.diff(residuals) > 0).all()


@pytest.mark.parametrize("solver", ["auto", "svd", "sparse_cg"])
def test_integer_weights_repeat_rows(solver):
    X, y = draw(20, 3)
    counts = np.random.default_rng(3).integers(0, 4, 20)
    weighted = Ridge(alpha=1.0, solver=solver, tol=1e-20).fit(X, y, counts)
    repeated = Ridge(alpha=1.0, solver=solver, tol=1e-20).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert_same_fit(weighted, repeated, rtol=1e-9)


def test_weights_and_penalty_scale_together():
    X, y = draw(30, 4)
    a = Ridge(alpha=1.0).fit(X, y)
    b = Ridge(alpha=1e-6).fit(X, y, np.full(30, 1e-6))
    assert_same_fit(a, b, rtol=1e-12)


# ---- certificates ----


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_bound_of_conjugate_gradients_really_bounds(tol, alpha, fit_intercept):
    X, y = draw(60, 12, seed=4)
    weight = np.random.default_rng(5).uniform(0.1, 2.0, 60)
    model = Ridge(alpha=alpha, solver="sparse_cg", tol=tol, fit_intercept=fit_intercept).fit(X, y, weight)
    exact = Ridge(alpha=alpha, solver="svd", fit_intercept=fit_intercept).fit(X, y, weight)
    found = objective(X, y, model.coef_, model.intercept_, alpha, weight)
    least = objective(X, y, exact.coef_, exact.intercept_, alpha, weight)
    certificate = model.certificate_
    assert certificate.kind == "gap" and certificate.holds and certificate.bound == certificate.value <= tol
    assert float(found - least) <= certificate.bound * float(least) + 1e-15 * float(least)


@pytest.mark.parametrize("max_iter", [1, 2, 4, 8])
@pytest.mark.parametrize("alpha", [1e-4, 1.0])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_a_fit_cut_short_says_so_and_its_bound_still_bounds(max_iter, alpha, storage):
    X, y = draw(60, 20, seed=6)
    table = sp.csr_array(X) if storage == "sparse" else X
    with pytest.warns(ConvergenceWarning, match=rf"Ridge: stopped after {max_iter} iteration.*; raise max_iter"):
        model = Ridge(alpha=alpha, solver="sparse_cg", tol=1e-12, max_iter=max_iter).fit(table, y)
    exact = Ridge(alpha=alpha, solver="svd").fit(X, y)
    found, least = (objective(X, y, m.coef_, m.intercept_, alpha) for m in (model, exact))
    assert model.n_iter_ == max_iter
    assert not model.certificate_.holds
    assert float(found - least) <= model.certificate_.bound * float(least)
    assert "above the tolerance" in str(verify(model, table, y))


def test_the_warning_names_value_tolerance_and_remedy():
    X, y = draw(60, 20)
    with pytest.warns(ConvergenceWarning) as caught:
        model = Ridge(solver="sparse_cg", tol=1e-12, max_iter=2).fit(X, y)
    [message] = [str(w.message) for w in caught]
    certificate = model.certificate_
    assert f"gap {certificate.value:.3g}" in message and "tolerance 1e-12" in message and "max_iter" in message
    assert "DOES NOT HOLD" in repr(certificate)


@pytest.mark.parametrize("targets", [2, 3])
def test_every_target_of_a_cut_fit_is_covered_by_the_bound(targets):
    X, y = draw(60, 20, targets, seed=7)
    with pytest.warns(ConvergenceWarning):
        model = Ridge(alpha=0.1, solver="sparse_cg", tol=1e-12, max_iter=3 * targets).fit(X, y)
    exact = Ridge(alpha=0.1, solver="svd").fit(X, y)
    for k in range(targets):
        found = objective(X, y[:, k], model.coef_[k], model.intercept_[k], 0.1)
        least = objective(X, y[:, k], exact.coef_[k], exact.intercept_[k], 0.1)
        assert float(found - least) <= model.certificate_.bound * float(least)


@pytest.mark.parametrize("tol", [0.0, 1e-16])
def test_a_tolerance_below_rounding_ends_in_an_honest_certificate(tol):
    X, y = sparse_rows(80, 120, density=0.2)
    model = Ridge(alpha=1e-3, solver="sparse_cg", tol=tol)
    model.fit(X, y)
    exact = Ridge(alpha=1e-3, solver="svd").fit(X, y)
    np.testing.assert_allclose(model.coef_, exact.coef_, rtol=1e-5, atol=1e-6)
    assert verify(model, X, y)


def test_a_direct_fit_leaves_a_closed_form_certificate_of_one_iteration():
    X, y = draw(50, 4)
    model = Ridge().fit(X, y)
    assert model.n_iter_ == 1
    assert model.certificate_.kind == "closed-form" and model.certificate_.tolerance == 1e-12


def test_conjugate_gradients_report_their_iterations():
    X, y = draw(200, 12)
    model = Ridge(solver="sparse_cg").fit(X, y)
    assert model.n_iter_ == model.certificate_.n_iter > 1


@pytest.mark.parametrize("solver", ["auto", "sparse_cg"])
def test_a_target_of_zeros_is_solved_by_zero(solver):
    X, y = draw(20, 3)
    model = Ridge(solver=solver).fit(X, 0 * y)
    assert (model.coef_ == 0).all() and model.intercept_ == 0 and model.certificate_.holds


def test_the_fit_leaves_the_data_as_they_were():
    X, y = draw(30, 4)
    before = X.copy(), y.copy()
    for solver in SOLVERS:
        Ridge(solver=solver).fit(X, y)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


# ---- published numbers ----


def test_prostate_ridge_of_the_elements_of_statistical_learning(reference_data):
    """Hastie, Tibshirani and Friedman, 2nd ed., table 3.3: ridge with five effective degrees of freedom.

    The table prints three decimals, and its α is known only through those five degrees of freedom.
    """
    frame = pd.read_csv(reference_data / "prostate.csv")
    train = (frame["train"] == "T").to_numpy()
    X = frame.drop(columns=["train", "lpsa"]).to_numpy(dtype=float)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1), frame["lpsa"].to_numpy()
    squares = np.linalg.svd(X[train] - X[train].mean(axis=0), compute_uv=False) ** 2
    alpha = brentq(lambda a: (squares / (squares + a)).sum() - 5.0, 1e-6, 1e6)
    model = Ridge(alpha=alpha).fit(X[train], y[train])
    printed = [0.420, 0.238, -0.046, 0.162, 0.227, 0.000, 0.040, 0.133]
    np.testing.assert_allclose(model.coef_, printed, atol=2.5e-3)
    assert np.mean((model.predict(X[~train]) - y[~train]) ** 2) == pytest.approx(0.492, abs=3e-3)


def test_prostate_least_squares_as_the_limit(reference_data):
    """Table 3.2 of the same book, through reference_results.csv: OLS test error 0.521274."""
    frame = pd.read_csv(reference_data / "prostate.csv")
    train = (frame["train"] == "T").to_numpy()
    X, y = frame.drop(columns=["train", "lpsa"]).to_numpy(dtype=float), frame["lpsa"].to_numpy()
    model = Ridge(alpha=0.0).fit(X[train], y[train])
    assert np.mean((model.predict(X[~train]) - y[~train]) ** 2) == pytest.approx(0.521274, abs=5e-7)
