"""Kernel logistic regression: its optimum, its dual, the linear case, weights, limits, files."""

import time

import numpy as np
import pytest
from scipy.special import log_softmax
from tests.kernel.kernel_tables import peak_bytes, rings
from tests.oracles.kernel import gaussian_matrix, logistic_optimum

from learnable import KernelLogisticRegression, LogisticRegression, load, save, verify
from learnable.core.errors import DataError, ParameterError

TWO, THREE = rings(), rings(classes=3)
each = pytest.mark.parametrize("data", [TWO, THREE], ids=["two", "three"])


def objective(model, X, y, weight, gamma):
    """Return C Σ s ℓ + ½ tr AᵀKA of a fitted model, from its coefficients."""
    K = gaussian_matrix(X, X, gamma)
    A = model.dual_coef_.reshape(len(X), -1)
    Z = K @ A + model.intercept_
    Z = np.column_stack([np.zeros(len(X)), Z]) if Z.shape[1] == 1 else Z
    losses = -log_softmax(Z, axis=1)[np.arange(len(X)), y]
    return float(model.C * (weight * losses).sum() + 0.5 * (A * (K @ A)).sum())


@each
@pytest.mark.parametrize("intercept", [True, False])
def test_it_reaches_the_optimum(data, intercept):
    X, y, weight = data
    model = KernelLogisticRegression(C=3.0, gamma=0.5, fit_intercept=intercept).fit(X, y, weight)
    reached = objective(model, X, y, weight, 0.5)
    share = 0.5 if len(model.classes_) == 2 else 1.0  # one score z stands for two, ±z/2, with half the squared norm
    best = logistic_optimum(share * gaussian_matrix(X, X, 0.5), y, 3.0, weight, intercept)
    assert abs(reached - best) <= 2e-6 * best
    assert reached <= best * (1 + 1e-8)
    assert model.certificate_.holds
    assert verify(model, X, y, weight)


@each
def test_linear_kernel_is_logistic_regression(data):
    X, y, weight = data
    kernel = KernelLogisticRegression(C=0.7, kernel="linear", tol=1e-11).fit(X, y, weight)
    linear = LogisticRegression(C=0.7, tol=1e-11).fit(X, y, weight)
    np.testing.assert_allclose(kernel.predict_proba(X), linear.predict_proba(X), atol=2e-6)


@each
def test_probabilities_have_the_class_totals_and_sum_to_one(data):
    X, y, weight = data
    model = KernelLogisticRegression(C=2.0).fit(X, y, weight)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(weight @ p, np.bincount(y, weight), rtol=1e-6)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])


@each
def test_coefficients_are_the_slopes_of_the_losses(data):
    """The optimum's equations: c = C s (e_y − p)."""
    X, y, weight = data
    model = KernelLogisticRegression(C=2.0, tol=1e-12).fit(X, y, weight)
    own = (y[:, None] == model.classes_).astype(float)
    slopes = 2.0 * weight[:, None] * (own - model.predict_proba(X))
    slopes = slopes[:, 1] if len(model.classes_) == 2 else slopes
    np.testing.assert_allclose(model.dual_coef_, slopes, atol=1e-4)


@pytest.mark.parametrize("C", [1e-12, 1e4])
def test_extreme_penalties(C):
    X, y, weight = TWO
    model = KernelLogisticRegression(C=C).fit(X, y, weight)
    assert model.certificate_.holds
    assert verify(model, X, y, weight)


def test_class_weights_and_rows_without_weight():
    X, y, weight = TWO
    some = np.where(np.arange(len(X)) % 4 == 0, 0.0, weight)
    model = KernelLogisticRegression(class_weight={1: 2.0}).fit(X, y, some)
    kept = some > 0
    other = KernelLogisticRegression().fit(X[kept], y[kept], (some * np.where(y == 1, 2.0, 1.0))[kept])
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), atol=1e-6)
    assert verify(model, X, y, some)
    balanced = KernelLogisticRegression(class_weight="balanced").fit(X, y)
    assert verify(balanced, X, y)


def test_a_given_matrix_is_the_kernel():
    X, y, _ = THREE
    K = gaussian_matrix(X, X, 0.5)
    given, own = (
        KernelLogisticRegression(kernel="precomputed").fit(K, y),
        KernelLogisticRegression(gamma=0.5).fit(X, y),
    )
    np.testing.assert_allclose(given.predict_proba(K), own.predict_proba(X), atol=1e-6)
    assert verify(given, K, y)


def test_a_matrix_in_tiles_gives_the_same(monkeypatch):
    from learnable.kernel.logistic import regression as logistic

    X, y, _ = TWO
    kept = KernelLogisticRegression(tol=1e-10).fit(X, y)
    monkeypatch.setattr(logistic, "MOST_ROWS_KEPT", 10)
    tiles = KernelLogisticRegression(tol=1e-10).fit(X, y)
    np.testing.assert_allclose(kept.predict_proba(X), tiles.predict_proba(X), atol=1e-6)


def test_a_fit_that_is_cut_keeps_its_bound():
    X, y, weight = THREE
    model = KernelLogisticRegression(C=100.0, max_iter=1)
    with pytest.warns(UserWarning, match="stopped after"):
        model.fit(X, y, weight)
    best = logistic_optimum(gaussian_matrix(X, X, 0.5), y, 100.0, weight, True)
    above = objective(model, X, y, weight, 0.5) - best
    assert 0 < above <= model.certificate_.bound * best * (1 + 1e-6)


def test_verify_notices_changes():
    X, y, _ = TWO
    model = KernelLogisticRegression().fit(X, y)
    model.dual_coef_ = model.dual_coef_ * 1.001
    assert not verify(model, X, y)
    model = KernelLogisticRegression().fit(X, y)
    model.intercept_ = model.intercept_ + 1e-3
    assert not verify(model, X, y)
    assert not verify(KernelLogisticRegression().fit(X, y), X + 1e-9, y)


def test_refusals():
    X, y, _ = TWO
    with pytest.raises(DataError, match="two classes"):
        KernelLogisticRegression().fit(X, np.zeros(len(X), dtype=int))
    with pytest.raises(ParameterError, match="C must be"):
        KernelLogisticRegression(C=np.inf).fit(X, y)


def test_round_trip(tmp_path):
    X, y, _ = THREE
    model = KernelLogisticRegression().fit(X, y)
    save(model, tmp_path / "m.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "m.safetensors").predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("C", [1e-12, 1e6, 1e9])
def test_any_cost_converges(classes, C):
    X, y, _ = rings(90, classes)
    assert KernelLogisticRegression(C=C, gamma=0.5).fit(X, y).certificate_.holds


@pytest.mark.parametrize("classes", [2, 3])
def test_without_the_whole_matrix_it_is_the_same_and_the_gap_is_right(monkeypatch, classes):
    X, y, weight = rings(200, classes)
    whole = KernelLogisticRegression(C=5.0, gamma=0.5, tol=1e-10).fit(X, y, weight)
    monkeypatch.setattr("learnable.kernel.logistic.regression.MOST_ROWS_KEPT", 10)
    monkeypatch.setattr("learnable.kernel.logistic.regression._TWO_CLASSES_RANK", 20)
    monkeypatch.setattr("learnable.kernel.logistic.regression._MANY_CLASSES_RANK", 60)
    monkeypatch.setattr("learnable.kernel.logistic.regression._SMALLEST_RANK", 20)
    tiles = KernelLogisticRegression(C=5.0, gamma=0.5, tol=1e-10).fit(X, y, weight)
    assert tiles.certificate_.holds
    np.testing.assert_allclose(tiles.predict_proba(X), whole.predict_proba(X), atol=1e-4)
    with pytest.warns(UserWarning, match="stopped after"):
        rough = KernelLogisticRegression(C=5.0, gamma=0.5, max_iter=2).fit(X, y, weight)
    best, above = (objective(model, X, y, 5.0 * weight, 0.5) for model in (whole, rough))
    assert above - best <= rough.certificate_.bound * best * (1 + 1e-6)


def test_memory_is_what_the_docstring_says():
    X, y, _ = rings(1200, 2)
    model = KernelLogisticRegression().fit(X[:50], y[:50])
    assert peak_bytes(lambda: model.fit(X, y)) <= 8 * 1200**2 + 72e6 + 12_000 * 1200


@pytest.mark.parametrize("kernel", ["sigmoid", "precomputed"])
def test_a_kernel_with_negative_eigenvalues_is_refused(kernel):
    X, y, _ = rings(60)
    with pytest.raises(DataError, match="negative eigenvalue"):
        KernelLogisticRegression(kernel=kernel).fit(X @ X.T - 9.0 if kernel == "precomputed" else X, y)


TIMED = {
    "several classes": ((2500, 10, 5), {"C": 1e4}),
    "whole factor": ((2900, 10, 2), {}),
    "a function": ((1500, 100, 3), {"kernel": "laplacian"}),
    "no matrix": ((13_000, 5, 2), {}),
}


@pytest.mark.sampled(6)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", TIMED)
@pytest.mark.parametrize("limit", [0.05, 0.4])
def test_the_time_limit_is_kept(name, limit):
    (n, d, n_classes), settings = TIMED[name]
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)), rng.integers(0, n_classes, size=n)
    model = KernelLogisticRegression(max_seconds=limit, n_jobs=1, **settings)
    model.fit(X[:600], y[:600])  # compiles what has to be compiled
    start = time.process_time()  # what others do on this machine does not count
    model.fit(X, y)
    assert time.process_time() - start <= 1.5 * limit + 0.5
    assert model.predict(X[:5]).shape == (5,) and model.certificate_.value >= 0
