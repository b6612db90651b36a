"""Lasso and elastic net: λ_max, scikit-learn, files, hostile numbers, the prostate data."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as sk
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from tests.linear.sparse_tables import sparse_tables
from tests.oracles.sparse import best_dual, centred, lasso_homotopy

from learnable import ElasticNet, Lasso, load, save, verify
from learnable.core.errors import DataError, ParameterError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 120)) + RNG.standard_normal(120)
Y = X[:, :6] @ RNG.standard_normal(6) + RNG.standard_normal(80) + 3.0
WEIGHT = RNG.integers(0, 3, 80).astype(float)


def largest_alpha(X, y, weight=None, intercept=True):
    A, b = centred(X, y, weight, intercept)
    return np.abs(A.T @ b).max() / (len(y) if weight is None else weight.sum())


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_all_coefficients_are_zero_at_the_largest_penalty_and_not_just_below(weight):
    top = largest_alpha(X, Y, weight)
    assert not Lasso(alpha=top * (1 + 1e-12)).fit(X, Y, weight).coef_.any()
    assert Lasso(alpha=top * (1 - 1e-6), tol=1e-14).fit(X, Y, weight).coef_.any()


@pytest.mark.parametrize("table", ["dense", "fortran", "sparse", "float32"])
@pytest.mark.parametrize("parameters", [{}, {"positive": True}, {"fit_intercept": False}, {"l1_ratio": 0.3}])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_scikit_learn_agrees(table, parameters, weight):
    T = {"dense": X, "fortran": np.asfortranarray(X), "sparse": sp.csr_array(X), "float32": X.astype(np.float32)}[table]
    parameters = {"l1_ratio": 1.0} | parameters
    ours = ElasticNet(alpha=0.1, tol=1e-12, **parameters).fit(T, Y, weight)
    dense = T.toarray() if sp.issparse(T) else T.astype(float)
    theirs = sk.ElasticNet(alpha=0.1, tol=1e-12, max_iter=100_000, **parameters).fit(dense, Y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-7)
    assert verify(ours, T, Y, weight)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.6, 0.05])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_the_certificate_is_confirmed_by_a_general_solver(l1_ratio, positive, weight):
    """The value claimed is above the optimum by no more than the bound claims, and the optimum is not above it."""
    model = ElasticNet(alpha=0.2, l1_ratio=l1_ratio, positive=positive, tol=1e-4).fit(X, Y, weight)
    A, b = centred(X, Y, weight)
    total = len(Y) if weight is None else weight.sum()
    l1, l2 = 0.2 * total * l1_ratio, 0.2 * total * (1 - l1_ratio)
    w = model.coef_
    primal = 0.5 * np.sum((b - A @ w) ** 2) + l1 * np.abs(w).sum() + 0.5 * l2 * w @ w
    optimum = best_dual(A, b, l1, l2, positive)
    assert -1e-8 <= (primal - optimum) / optimum <= model.certificate_.bound * (1 + 1e-6) + 1e-8
    assert verify(model, X, Y, weight)


def test_verify_catches_a_changed_coefficient_other_data_and_a_sign():
    model = Lasso(alpha=0.1).fit(X, Y)
    assert verify(model, X, Y)
    assert not verify(model, X, Y + 1e-3)
    model.coef_[np.argmax(np.abs(model.coef_))] *= 1.001
    assert not verify(model, X, Y)
    positive = Lasso(alpha=0.1, positive=True).fit(X, Y)
    positive.coef_[np.argmax(positive.coef_)] *= -1
    assert not verify(positive, X, Y)


def test_the_lasso_is_the_map_estimate_under_a_laplace_prior():
    """No nearby point has a larger posterior density: N(Xβ, σ²) noise, Laplace(σ²/(nα)) prior."""
    A, b = centred(X[:, :5], Y)
    sigma2, alpha, n = 0.7, 0.15, len(b)
    model = Lasso(alpha=alpha, tol=1e-14).fit(A, b)
    scale = sigma2 / (n * alpha)

    def log_posterior(w):
        return -0.5 * np.sum((b - A @ w) ** 2) / sigma2 - np.abs(w).sum() / scale

    best = log_posterior(model.coef_)
    for _ in range(200):
        assert log_posterior(model.coef_ + 1e-3 * RNG.standard_normal(5)) < best


def test_several_targets_are_independent_problems():
    both = Lasso(alpha=0.1).fit(X, np.column_stack([Y, -2 * Y]))
    one = Lasso(alpha=0.1).fit(X, Y)
    np.testing.assert_allclose(both.coef_[0], one.coef_, atol=1e-12)
    assert both.coef_.shape == (2, 120) and len(both.n_iter_) == 2
    assert verify(both, X, np.column_stack([Y, -2 * Y]))


def test_without_an_l1_part_it_is_least_squares_or_ridge():
    few = X[:, :10]
    assert Lasso(alpha=0.0).fit(few, Y).certificate_.kind == "closed-form"
    ridge = ElasticNet(alpha=0.3, l1_ratio=0.0).fit(few, Y)
    np.testing.assert_allclose(ridge.coef_, sk.Ridge(alpha=0.3 * 80).fit(few, Y).coef_, rtol=1e-9)
    assert verify(ridge, few, Y)
    nonnegative = Lasso(alpha=0.0, positive=True).fit(few, Y)
    assert (nonnegative.coef_ >= 0).all()


def test_a_warm_start_at_the_solution_takes_one_look():
    model = Lasso(alpha=0.05, warm_start=True).fit(X, Y)
    first = model.coef_.copy()
    model.fit(X, Y)
    assert model.n_iter_ == 0  # as in scikit-learn
    np.testing.assert_array_equal(model.coef_, first)


@pytest.mark.threaded
def test_the_number_of_threads_does_not_change_a_bit():
    wide = RNG.standard_normal((300, 4000))
    y = wide[:, :20].sum(axis=1) + RNG.standard_normal(300)
    one, two = (Lasso(alpha=0.05, n_jobs=n).fit(wide, y) for n in (1, 2))
    assert (one.coef_ == two.coef_).all() and one.intercept_ == two.intercept_


def test_an_early_stop_warns_and_says_how_far_it_is():
    with pytest.warns(ConvergenceWarning, match=r"Lasso: stopped after 1 iterations at gap"):
        model = Lasso(alpha=1e-5, max_iter=1, tol=1e-12).fit(X, Y)
    assert not model.certificate_.holds


def test_files_and_dask_give_the_same_fit(tmp_path):
    dd = pytest.importorskip("dask.array")
    few = np.ascontiguousarray(X[:, :20])
    expected = Lasso(alpha=0.1).fit(few, Y)
    lazy = Lasso(alpha=0.1).fit(dd.from_array(few, chunks=(30, 20)), dd.from_array(Y, chunks=30))
    np.testing.assert_allclose(lazy.coef_, expected.coef_, atol=1e-9)
    assert lazy.certificate_.holds and verify(lazy, dd.from_array(few, chunks=(30, 20)), dd.from_array(Y, chunks=30))


def test_a_saved_model_predicts_the_same(tmp_path):
    model = ElasticNet(alpha=0.1).fit(X, Y)
    save(model, tmp_path / "m.safetensors")
    assert (load(tmp_path / "m.safetensors").predict(X) == model.predict(X)).all()
    assert model.sparse_coef_.nnz == np.count_nonzero(model.coef_)


def test_bad_parameters_are_named():
    for parameters, words in (({"alpha": -1.0}, "alpha must be"), ({"selection": "x"}, "selection must be")):
        with pytest.raises(ParameterError, match=f"Lasso: {words}"):
            Lasso(**parameters).fit(X, Y)
    with pytest.raises(ParameterError, match="ElasticNet: l1_ratio must be"):
        ElasticNet(l1_ratio=1.5).fit(X, Y)
    with pytest.raises(DataError):
        Lasso().fit(X, np.full(80, np.nan))


@given(sparse_tables(), st.floats(0.01, 1.1), st.sampled_from([1.0, 0.5]), st.booleans(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_nothing_breaks_and_every_certificate_is_verified(table, share, l1_ratio, positive, intercept):
    T, y, weight, dense = table
    alpha = share * largest_alpha(dense, y, weight, intercept) / l1_ratio
    model = ElasticNet(alpha=alpha, l1_ratio=l1_ratio, positive=positive, fit_intercept=intercept, max_iter=100_000)
    model.fit(T, y, weight)
    assert model.certificate_.holds
    assert verify(model, T, y, weight), str(verify(model, T, y, weight))


@given(sparse_tables())
@settings(max_examples=40, deadline=None)
def test_the_largest_penalty_is_where_coefficients_begin(table):
    T, y, weight, dense = table
    top = largest_alpha(dense, y, weight)
    assert not Lasso(alpha=top * (1 + 1e-6)).fit(T, y, weight).coef_.any()
    assert Lasso(alpha=top * (1 - 1e-3), tol=1e-14).fit(T, y, weight).coef_.any()


def test_the_prostate_lasso_of_the_book(reference_data):
    """ESL table 3.3. The book's software penalises columns of equal norm on the training rows; its table shows the
    coefficients of columns standardised over all rows. The level is where the norms of both solutions agree.
    """
    table = np.genfromtxt(reference_data / "prostate.csv", delimiter=",", names=True, dtype=None, encoding=None)
    names = ["lcavol", "lweight", "age", "lbph", "svi", "lcp", "gleason", "pgg45"]
    T = np.column_stack([table[name] for name in names]).astype(float)
    T = (T - T.mean(axis=0)) / T.std(axis=0, ddof=1)
    train = table["train"] == "T"
    scale = T[train].std(axis=0)
    published = np.array([0.533, 0.169, 0.0, 0.002, 0.094, 0.0, 0.0, 0.0])
    A, b = centred(T[train] / scale, table["lpsa"][train])
    knots, points = lasso_homotopy(A, b, 1.0)
    level = np.interp((published * scale).sum(), np.abs(points).sum(axis=1), knots)
    model = Lasso(alpha=level / train.sum(), tol=1e-12).fit(T[train] / scale, table["lpsa"][train])
    np.testing.assert_allclose(model.coef_ / scale, published, atol=0.002)
    assert model.intercept_ == pytest.approx(2.468, abs=0.001)
    error = np.mean((table["lpsa"][~train] - model.predict(T[~train] / scale)) ** 2)
    assert error == pytest.approx(0.479, abs=0.001)


def test_a_gram_matrix_of_other_rows_is_refused_and_one_of_uncentred_rows_warns():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)) + 1.0, rng.normal(size=40)
    Z = X - X.mean(axis=0)
    plain = ElasticNet(alpha=0.1).fit(X, y)
    np.testing.assert_allclose(ElasticNet(alpha=0.1, precompute=Z.T @ Z).fit(Z, y).coef_, plain.coef_, rtol=1e-9)
    with pytest.warns(UserWarning, match="Gram matrix was provided but X was centered to fit intercept"):
        ElasticNet(alpha=0.1, precompute=X.T @ X).fit(X, y)
    for wrong in (np.eye(5), np.eye(4), 1.01 * Z.T @ Z):
        with pytest.raises(ParameterError, match="did not pass validation"):
            ElasticNet(alpha=0.1, precompute=wrong).fit(Z, y)


def test_scikit_learns_switch_of_checks_is_accepted_and_the_data_are_checked_all_the_same():
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20.0)
    np.testing.assert_array_equal(Lasso().fit(X, y, check_input=False).coef_, Lasso().fit(X, y).coef_)
    X[3, 1] = np.nan
    with pytest.raises(DataError):
        Lasso().fit(X, y, check_input=False)
