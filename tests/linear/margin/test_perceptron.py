"""Perceptron: the mistake bound, separability, scikit-learn."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import linear_model
from tests.linear.svm_tables import several_classes, two_classes
from tests.oracles.coordinate_passes import perceptron_pass

import learnable as ln
from learnable import Perceptron, verify
from learnable.core.errors import DataError, ParameterError, VerificationError
from learnable.linear.margin.dual_descent import as_rows
from learnable.linear.margin.perceptron import perceptron_dense, perceptron_sparse


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 60),
    d=st.integers(1, 6),
    scale=st.sampled_from([1e-8, 1.0, 1e8]),
    intercept=st.booleans(),
)
def test_mistakes_obey_novikoffs_bound(seed, n, d, scale, intercept):
    rng = np.random.default_rng(seed)
    u = rng.normal(size=d)
    u /= np.linalg.norm(u)
    y = np.where(np.arange(n) % 2, 1, -1)
    X = rng.normal(size=(n, d))
    X += np.outer(y * np.maximum(0.2 - y * (X @ u), 0), u)  # y·uᵀx ≥ 0.2
    X *= scale
    model = Perceptron(fit_intercept=intercept, tol=None, max_iter=100_000, random_state=seed).fit(X, y)
    augmented = np.column_stack([X, np.full(n, float(intercept))])
    gamma, R = (y * (X @ u)).min(), np.linalg.norm(augmented, axis=1).max()
    assert model.n_mistakes_[0] <= (R / gamma) ** 2
    assert model.n_mistakes_[0] <= model.mistake_bound_[0] * (1 + 1e-9)
    if model.n_iter_ == 100_000:  # tiny columns beside the intercept: the bound allows a mistake in every pass
        assert (R / gamma) ** 2 > 100_000
        return
    assert (y * model.decision_function(X) > 0).all()
    assert model.certificate_.holds and model.certificate_.kind == "stationarity" and verify(model, X, y)
    w = np.r_[model.coef_[0], model.intercept_]
    np.testing.assert_allclose(model.margin_[0], (y * (augmented @ w)).min() / np.linalg.norm(w), rtol=1e-9)


def test_weights_are_a_sum_of_mistaken_rows():
    X, y = np.array([[1.0, 2.0], [-1.0, 1.0], [2.0, -1.0]]), np.array([1, 0, 1])
    model = Perceptron(shuffle=False, tol=None).fit(X, y)
    w, b, mistakes = np.zeros(2), 0.0, 0
    for _ in range(100):
        wrong = 0
        for x, t in zip(X, np.where(y == 1, 1, -1), strict=True):
            if t * (w @ x + b) <= 0:
                w, b, wrong = w + t * x, b + t, wrong + 1
        mistakes += wrong
        if wrong == 0:
            break
    assert np.array_equal(model.coef_[0], w) and model.intercept_[0] == b and model.n_mistakes_[0] == mistakes


def test_without_shuffling_it_is_scikit_learns():
    X, y = two_classes(300, 5, noise=0.5)
    parameters = {"shuffle": False, "tol": None, "max_iter": 7}
    ours, theirs = Perceptron(**parameters).fit(X, y), sklearn.linear_model.Perceptron(**parameters).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-9)


def test_overlapping_classes_prove_nothing():
    X, y = two_classes(300, 3, noise=3.0)
    model = Perceptron().fit(X, y)
    assert model.certificate_.kind == "none" and model.mistake_bound_[0] == np.inf and model.margin_[0] < 0
    with pytest.raises(VerificationError, match="proves nothing"):
        verify(model, X, y)


def test_averaging_helps_where_classes_overlap():
    X, y = two_classes(2000, 10, noise=2.0)
    last, mean = (Perceptron(average=average).fit(X[:1000], y[:1000]) for average in (False, True))
    assert mean.score(X[1000:], y[1000:]) > last.score(X[1000:], y[1000:])


@pytest.mark.parametrize("sparse", [False, True])
def test_several_classes(sparse):
    X, y = several_classes(200, 6, 4)
    table = sp.csr_array(X) if sparse else X
    model = Perceptron(shuffle=False, tol=None, max_iter=5).fit(table, y)
    assert model.coef_.shape == (4, 6) and model.n_mistakes_.shape == (4,)
    for k in range(4):
        alone = Perceptron(shuffle=False, tol=None, max_iter=5).fit(X, y == k)
        np.testing.assert_allclose(model.coef_[k], alone.coef_[0], rtol=1e-9, atol=1e-12)


def test_the_step_only_scales():
    X, y = two_classes(100, 3)
    one, ten = (Perceptron(eta0=eta, tol=None, max_iter=5).fit(X, y) for eta in (1.0, 16.0))
    np.testing.assert_allclose(ten.coef_, 16 * one.coef_, rtol=1e-12)
    assert ten.n_mistakes_[0] == one.n_mistakes_[0]


def test_warm_start_goes_on():
    X, y = (rows[2:] for rows in two_classes(202, 4, noise=0.0))  # the first two have arbitrary labels
    model = Perceptron(warm_start=True, tol=None, max_iter=2000).fit(X, y)
    assert model.certificate_.holds
    assert model.fit(X, y).n_mistakes_[0] == 0


def test_runs_of_rows_visit_every_row_once():
    from learnable.linear.margin.perceptron import random_order

    for n in (5, 100, 70_001):
        order = random_order(np.random.default_rng(0), n, 50)
        assert np.array_equal(np.sort(order), np.arange(n))


def test_refusals():
    X, y = two_classes()
    with pytest.raises(ParameterError, match="Perceptron: penalty must be"):
        Perceptron(penalty="l3").fit(X, y)
    with pytest.raises(ParameterError, match="average=True needs penalty=None"):
        Perceptron(penalty="l2", average=True).fit(X, y)
    with pytest.raises(DataError, match="Perceptron"):
        Perceptron().fit(X, np.ones(len(X)))


def test_a_file_gives_the_same_predictions(tmp_path):
    X, y = several_classes()
    model = Perceptron().fit(X, y)
    ln.save(model, tmp_path / "m.safetensors")
    assert np.array_equal(ln.load(tmp_path / "m.safetensors").predict(X), model.predict(X))


PENALTIES = [None, "l1", "l2", "elasticnet"]


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("sparse", [False, True])
def test_passes_in_the_same_order_are_those_of_scikit_learn(penalty, sparse):
    X, y = several_classes()
    settings = {"penalty": penalty, "alpha": 0.01, "shuffle": False, "max_iter": 7, "tol": None}
    start = {"coef_init": np.ones((len(set(y)), X.shape[1])), "intercept_init": np.arange(float(len(set(y))))}
    for initial in ({}, start):
        ours = Perceptron(**settings).fit(sp.csr_array(X) if sparse else X, y, **initial)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = linear_model.Perceptron(**settings).fit(X, y, **initial)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-12)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-12)
        assert penalty is None or ours.certificate_.kind == "none"


@pytest.mark.parametrize("penalty", PENALTIES)
def test_partial_fits_are_those_of_scikit_learn(penalty):
    X, y = several_classes()
    ours, theirs = (cls(shuffle=False, penalty=penalty) for cls in (Perceptron, linear_model.Perceptron))
    for part in np.array_split(np.arange(len(X)), 5):
        for model in (ours, theirs):
            model.partial_fit(X[part], y[part], classes=np.unique(y))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-12)
    assert np.array_equal(ours.predict(X), theirs.predict(X)) and ours.certificate_.kind == "none"


def test_a_partial_fit_that_is_refused_changes_nothing():
    X, y = several_classes()
    with pytest.raises(ParameterError, match="classes must be passed on the first call"):
        Perceptron().partial_fit(X, y)
    model = Perceptron().partial_fit(X, y, classes=np.unique(y))
    before = model.coef_.copy()
    with pytest.raises(ParameterError, match="not the same as on the last call"):
        model.partial_fit(X, y, classes=[*np.unique(y), "another"])
    with pytest.raises(DataError, match="none of `classes`"):
        model.partial_fit(X, np.full(len(X), "another"))
    with pytest.raises(DataError, match="Provided coef_init does not match dataset"):
        model.fit(X, y, coef_init=np.ones((1, X.shape[1] + 1)))
    assert np.array_equal(model.coef_, before)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_pass_is_rosenblatts(sparse):
    X, y = two_classes(60, 3)
    label, step = np.where(np.asarray(y) == np.unique(y)[1], 1.0, -1.0), np.full(60, 0.7)
    order, w, total, done = np.random.default_rng(0).permutation(60), np.zeros(4), np.zeros(4), np.zeros(1)
    expected, mistakes, mean = perceptron_pass(X, order, label, step, w)
    rows = as_rows(X) if sparse else (X,)
    walk = perceptron_sparse if sparse else perceptron_dense
    found, _ = walk(*rows, order, label, step, True, True, w, total, done)
    assert found == mistakes
    np.testing.assert_allclose(w, expected, atol=1e-12)
    np.testing.assert_allclose(w - total / done, mean, atol=1e-12)
