"""LogisticRegression against an independent optimum, scikit-learn, published errors, and its own promises."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit, logsumexp, softmax
from sklearn import linear_model as peer
from sklearn.callback import ScoringMonitor
from sklearn.exceptions import ConvergenceWarning
from tests.oracles.logistic import Likelihood

from learnable import LogisticRegression, verify
from learnable.core import DataError, ParameterError
from learnable.linear.logistic.regression import SOLVERS

pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")

PENALTIES = [1e-4, 1e-2, 1.0, 100.0, 1e6]


def draw(n=60, d=4, n_classes=2, seed=0, noise=2.0):
    """Return rows of overlapping classes, with class codes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 1.0
    scores = X @ rng.normal(size=(d, n_classes)) + noise * rng.gumbel(size=(n, n_classes))
    codes = scores.argmax(axis=1)
    codes[:n_classes] = np.arange(n_classes)
    return X, codes


def parameters(model):
    return np.column_stack([model.intercept_, model.coef_])


def assert_optimal(model, X, codes, weight=None):
    """Check the certificate against the optimum found by SciPy: what it proves is true, and it is enough."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    exact = Likelihood(X, codes, model.C, weight=weight, intercept=model.fit_intercept)
    best, least = exact.optimum()
    excess = float(exact.value(parameters(model)) - least)
    certificate = model.certificate_
    assert certificate.holds and certificate.value <= certificate.tolerance
    if np.isinf(model.C):
        assert certificate.kind == "stationarity" and certificate.bound is None
        shift = 0.0 if exact.n_scores == 1 else best.mean(axis=0)
        np.testing.assert_allclose(parameters(model), best - shift, rtol=1e-4, atol=1e-4)
        assert excess <= 1e-8 * float(least)
        return
    assert certificate.kind == "gap" and certificate.bound == certificate.value
    assert excess <= certificate.bound * float(least) + 1e-13 * float(least)
    # P is strongly convex in W: ½‖W − W*‖² ≤ P − P*.
    distance = np.linalg.norm(model.coef_ - best[:, 1:])
    assert distance**2 <= 2 * certificate.bound * float(least) + 1e-12 * (1 + np.linalg.norm(best))


# ---- the optimum ----


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("C", PENALTIES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_fit_is_the_optimum_for_every_penalty(n_classes, C, fit_intercept):
    X, codes = draw(n_classes=n_classes)
    model = LogisticRegression(C=C, fit_intercept=fit_intercept).fit(X, codes)
    assert_optimal(model, X, codes)
    assert verify(model, X, codes)
    if not fit_intercept:
        assert (model.intercept_ == 0).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_maximum_likelihood_without_a_penalty(n_classes, fit_intercept):
    X, codes = draw(150, 3, n_classes)
    model = LogisticRegression(C=np.inf, fit_intercept=fit_intercept).fit(X, codes)
    assert_optimal(model, X, codes)
    if fit_intercept:
        shares = np.bincount(codes) / len(codes)
        np.testing.assert_allclose(model.predict_proba(X).mean(axis=0), shares, rtol=1e-7)
    assert verify(model, X, codes)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [0.01, 1.0, 1e4])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients_agree_with_scikit_learn(n_classes, C, fit_intercept, weighted):
    X, codes = draw(120, 4, n_classes, seed=1)
    weight = np.random.default_rng(2).uniform(0.1, 3.0, 120) if weighted else None
    model = LogisticRegression(C=C, fit_intercept=fit_intercept, tol=1e-13).fit(X, codes, weight)
    other = peer.LogisticRegression(C=C, fit_intercept=fit_intercept, solver="newton-cholesky", tol=1e-12, max_iter=500)
    other.fit(X, codes, weight)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-5, atol=1e-6 * np.abs(other.coef_).max())
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(
        model.intercept_ - model.intercept_.mean() * (n_classes > 2),
        other.intercept_ - other.intercept_.mean() * (n_classes > 2),
        rtol=1e-5,
        atol=1e-6,
    )
    assert model.coef_.shape == other.coef_.shape and model.intercept_.shape == other.intercept_.shape
    assert model.decision_function(X).shape == other.decision_function(X).shape


def test_maximum_likelihood_agrees_with_scikit_learn():
    for n_classes in (2, 3):
        X, codes = draw(150, 3, n_classes)
        model = LogisticRegression(C=np.inf, tol=1e-12).fit(X, codes)
        other = peer.LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10).fit(X, codes)
        np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_repeat_rows_and_zero_leaves_them_out(n_classes):
    X, codes = draw(50, 3, n_classes)
    counts = np.random.default_rng(1).integers(0, 4, 50)
    counts[: 2 * n_classes] = 1
    weighted = LogisticRegression(tol=1e-13).fit(X, codes, counts)
    repeated = LogisticRegression(tol=1e-13).fit(np.repeat(X, counts, axis=0), np.repeat(codes, counts))
    np.testing.assert_allclose(parameters(weighted), parameters(repeated), rtol=1e-6, atol=1e-8)
    assert_optimal(LogisticRegression().fit(X, codes, counts), X[counts > 0], codes[counts > 0], counts[counts > 0])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_class_weights_multiply_the_sample_weights(n_classes, weighted):
    X, codes = draw(80, 3, n_classes)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 80) if weighted else np.ones(80)
    by_class = {0: 0.3, 1: 4.0}  # a class that is not named weighs one
    full = weight * np.array([0.3, 4.0, 1.0])[codes]
    model = LogisticRegression(class_weight=by_class).fit(X, codes, weight if weighted else None)
    assert_optimal(model, X, codes, full)
    assert verify(model, X, codes, weight if weighted else None)
    plain = LogisticRegression(tol=1e-13).fit(X, codes, full)
    tight = LogisticRegression(class_weight=by_class, tol=1e-13).fit(X, codes, weight if weighted else None)
    np.testing.assert_allclose(parameters(tight), parameters(plain), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_balanced_class_weights_are_those_of_scikit_learn(n_classes, weighted):
    X, codes = draw(90, 3, n_classes, seed=5)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 90) if weighted else None
    model = LogisticRegression(class_weight="balanced", tol=1e-13).fit(X, codes, weight)
    other = peer.LogisticRegression(class_weight="balanced", solver="newton-cholesky", tol=1e-12)
    other.fit(X, codes, weight)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-5, atol=1e-7)
    assert verify(model, X, codes, weight)


def test_class_weights_name_the_labels_themselves():
    X, codes = draw(60, 3)
    names = np.array(["no", "yes"])[codes]
    model = LogisticRegression(class_weight={"yes": 5.0}, tol=1e-13).fit(X, names)
    other = LogisticRegression(tol=1e-13).fit(X, codes, np.where(codes == 1, 5.0, 1.0))
    np.testing.assert_allclose(parameters(model), parameters(other), rtol=1e-7)


@pytest.mark.parametrize(
    "class_weight", [{0: -1.0}, {0: 0.0, 1: 0.0}, {0: np.nan}, {0: "heavy"}, {0: None}, "balance", 3]
)
def test_class_weights_that_cannot_be_are_a_clear_error(class_weight):
    X, codes = draw()
    with pytest.raises(ParameterError, match="LogisticRegression: class_weight must be"):
        LogisticRegression(class_weight=class_weight).fit(X, codes)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("storage", [sp.csr_array, sp.csc_matrix, sp.coo_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sparse_rows_have_the_same_optimum(n_classes, storage, fit_intercept):
    rng = np.random.default_rng(3)
    X = sp.random_array((90, 6), density=0.3, rng=rng, format="csr")
    codes = np.r_[np.arange(n_classes), rng.integers(0, n_classes, 90 - n_classes)]
    model = LogisticRegression(C=5.0, fit_intercept=fit_intercept).fit(storage(X), codes)
    assert_optimal(model, X, codes)
    assert verify(model, storage(X), codes)
    np.testing.assert_allclose(model.predict_proba(storage(X)), model.predict_proba(X.toarray()), rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e4])
def test_float32_rows_reach_the_promised_gap(n_classes, C):
    X, codes = draw(200, 5, n_classes)
    X = X.astype(np.float32)
    model = LogisticRegression(C=C).fit(X, codes)
    assert model.certificate_.tolerance == 1e-6 and model.certificate_.value <= 1e-6
    assert_optimal(model, X, codes)
    assert verify(model, X, codes)
    assert LogisticRegression(C=C, tol=1e-3).fit(X, codes).certificate_.tolerance == 1e-3


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_columns_of_very_different_scale_reach_the_gap(scale):
    X, codes = draw(100, 4)
    X = X * [1.0, scale, 1.0, 1.0]
    model = LogisticRegression(C=10.0).fit(X, codes)
    assert_optimal(model, X, codes)


def test_a_mean_that_dwarfs_the_spread_changes_only_the_intercept():
    X, codes = draw(100, 3)
    X = np.round(X * 64) / 64
    plain, moved = LogisticRegression().fit(X, codes), LogisticRegression().fit(X + 2.0**20, codes)
    np.testing.assert_allclose(moved.coef_, plain.coef_, rtol=1e-3)
    np.testing.assert_allclose(moved.predict_proba(X + 2.0**20), plain.predict_proba(X), atol=1e-3)
    assert moved.certificate_.holds and verify(moved, X + 2.0**20, codes)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_constant_and_duplicated_columns_are_no_obstacle(n_classes):
    X, codes = draw(80, 3, n_classes)
    X = np.column_stack([X, X[:, 0], np.full(80, 5.0), np.zeros(80)])
    model = LogisticRegression(tol=1e-12).fit(X, codes)
    np.testing.assert_allclose(model.coef_[:, 0], model.coef_[:, 3], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.coef_[:, 4:], 0.0, atol=1e-6)
    assert_optimal(model, X, codes)


def test_softmax_coefficients_and_intercepts_sum_to_zero():
    X, codes = draw(80, 3, 4)
    for C in (1.0, np.inf):
        model = LogisticRegression(C=C).fit(X, codes)
        np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-7)
        np.testing.assert_allclose(
            (model.intercept_ + model.coef_ @ X.mean(axis=0)).sum(), 0.0, atol=1e-9
        )  # a common shift of all scores is not seen


def test_the_order_of_the_classes_is_only_a_name():
    X, codes = draw(80, 3)
    a = LogisticRegression(tol=1e-13).fit(X, codes)
    b = LogisticRegression(tol=1e-13).fit(X, 1 - codes)
    np.testing.assert_allclose(parameters(a), -parameters(b), rtol=1e-7)


# ---- labels ----


@pytest.mark.parametrize(
    "labels",
    [
        ["zebra", "ape"],
        [True, False],
        [-3, 7],
        [-1, 1],
        [0.0, 1.0],
        ["c", "a", "b"],
        [10, -20, 5],
        np.array([255, 3], dtype=np.uint8),
        np.array(["x", "yy"], dtype=object),
    ],
    ids=repr,
)
@pytest.mark.parametrize("container", [np.asarray, list, pd.Series], ids=["array", "list", "series"])
def test_labels_may_be_anything_and_come_back_as_they_were(labels, container):
    labels = np.asarray(labels)
    X, codes = draw(80, 3, len(labels))
    y = labels[codes]
    model = LogisticRegression(tol=1e-12).fit(X, container(y))
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    predicted = model.predict(X)
    assert predicted.dtype.kind == np.asarray(container(y)).dtype.kind
    assert set(predicted.tolist()) <= set(labels.tolist())
    order = np.argsort(np.argsort(labels))
    plain = LogisticRegression(tol=1e-12).fit(X, order[codes])
    np.testing.assert_allclose(parameters(model), parameters(plain), rtol=1e-9)
    np.testing.assert_array_equal(predicted, np.unique(labels)[plain.predict(X)])
    assert model.score(X, container(y)) == np.mean(predicted == y)
    assert verify(model, X, container(y))


def test_one_class_is_an_error():
    X, _ = draw()
    with pytest.raises(DataError, match=r"LogisticRegression: needs at least two classes .* got 1 class"):
        LogisticRegression().fit(X, np.ones(60, dtype=int))


def test_the_share_of_the_l1_penalty_is_between_zero_and_one():
    X, codes = draw()
    with pytest.raises(ParameterError, match="LogisticRegression: l1_ratio must be"):
        LogisticRegression(l1_ratio=1.5).fit(X, codes)


# ---- predictions ----


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_sum_to_one_and_follow_the_scores(n_classes):
    X, codes = draw(100, 4, n_classes)
    model = LogisticRegression().fit(X, codes)
    for rows in (X, 1e4 * X):
        proba, scores = model.predict_proba(rows), model.decision_function(rows)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-14)
        assert ((proba >= 0) & (proba <= 1)).all() and proba.shape == (100, n_classes)
        np.testing.assert_array_equal(model.predict(rows), model.classes_[proba.argmax(axis=1)])
        assert scores.shape == ((100,) if n_classes == 2 else (100, n_classes))
        full = np.column_stack([np.zeros(100), scores]) if n_classes == 2 else scores
        np.testing.assert_allclose(
            model.predict_log_proba(rows), full - logsumexp(full, axis=1, keepdims=True), rtol=1e-9, atol=1e-15
        )


def test_log_probabilities_keep_their_digits_where_probabilities_round_to_zero_or_one():
    model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    model.coef_, model.intercept_ = np.array([[1.0]]), np.array([0.0])
    z = np.array([-1e6, -800.0, -40.0, 40.0, 800.0, 1e6])
    logs = model.predict_log_proba(z[:, None])
    np.testing.assert_allclose(logs[:3, 1], z[:3], rtol=1e-14)
    np.testing.assert_allclose(logs[3:, 0], -z[3:], rtol=1e-14)
    np.testing.assert_allclose(logs[2, 0], -np.exp(-40.0), rtol=1e-12)
    np.testing.assert_allclose(logs[3, 1], -np.exp(-40.0), rtol=1e-12)


# ---- iterations, tolerance, warm starts ----


@pytest.mark.parametrize("solver", SOLVERS)
def test_too_few_iterations_warn_with_value_tolerance_and_remedy(solver):
    X, codes = draw(100, 5)
    with pytest.warns(ConvergenceWarning) as caught:
        model = LogisticRegression(max_iter=1, solver=solver).fit(X, codes)
    [message] = [str(w.message) for w in caught if w.category is ConvergenceWarning]
    certificate = model.certificate_
    assert message.startswith("LogisticRegression: stopped after 1 iteration")
    assert f"gap {certificate.value:.3g}" in message and "tolerance 1e-08" in message and "max_iter" in message
    assert not certificate.holds and "DOES NOT HOLD" in repr(certificate)
    assert model.n_iter_[0] == certificate.n_iter == 1
    exact = Likelihood(X, codes, 1.0)
    _, least = exact.optimum()
    assert float(exact.value(parameters(model)) - least) <= certificate.bound * float(least)
    assert not verify(model, X, codes)


def test_a_fit_cut_short_has_a_bound_that_really_bounds():
    for seed in range(10):
        X, codes = draw(60, 4, 2 + seed % 2, seed=seed)
        C = 10.0 ** (seed % 5 - 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(C=C, max_iter=1 + seed % 3, tol=1e-13).fit(X, codes)
        exact = Likelihood(X, codes, C)
        _, least = exact.optimum()
        excess = float(exact.value(parameters(model)) - least)
        assert excess <= model.certificate_.bound * float(least) + 1e-13 * float(least)


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6, 1e-10, 1e-12])
@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton-cg"])
def test_any_tolerance_is_reached_and_proven(tol, solver):
    X, codes = draw(100, 4, 3)
    model = LogisticRegression(tol=tol, solver=solver, max_iter=500).fit(X, codes)
    assert model.certificate_.value <= tol == model.certificate_.tolerance
    assert_optimal(model, X, codes)


@pytest.mark.parametrize("shape", [(200, 4), (25, 60)], ids=["tall", "wide"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton-cg", "newton-cholesky"])
def test_a_warm_start_needs_fewer_iterations_and_finds_the_same(shape, n_classes, solver):
    codes = draw(*shape, n_classes)[1]
    X = np.random.default_rng(9).normal(size=shape) + 0.5 * codes[:, None]
    cold = LogisticRegression(C=1.1, solver=solver, max_iter=500).fit(X, codes)
    warm = LogisticRegression(C=1.0, solver=solver, max_iter=500, warm_start=True).fit(X, codes)
    first = int(warm.n_iter_[0])
    again = warm.fit(X, codes)
    assert again.n_iter_[0] <= 1 and again.certificate_.holds
    warm.set_params(C=1.1).fit(X, codes)
    assert warm.n_iter_[0] < min(first, cold.n_iter_[0])
    assert warm.certificate_.holds
    np.testing.assert_allclose(warm.predict_proba(X), cold.predict_proba(X), atol=1e-3)


def test_a_warm_start_of_another_shape_is_a_cold_start():
    X, codes = draw(80, 4, 3)
    model = LogisticRegression(warm_start=True).fit(X, codes)
    model.fit(X[:, :2], codes)
    np.testing.assert_array_equal(model.coef_, LogisticRegression().fit(X[:, :2], codes).coef_)
    model.fit(X, codes > 0)
    np.testing.assert_array_equal(model.coef_, LogisticRegression().fit(X, codes > 0).coef_)


def test_a_warm_start_with_other_labels_still_finds_the_optimum():
    X, codes = draw(80, 4)
    model = LogisticRegression(warm_start=True).fit(X, codes)
    model.fit(X, np.array(["b", "a"])[codes])
    assert_optimal(model, X, 1 - codes)


# ---- published numbers ----


def standardised(frame, test):
    X = frame.iloc[:, :-1].to_numpy(dtype=float)
    X = (X - X[~test].mean(axis=0)) / X[~test].std(axis=0)
    return X, frame.iloc[:, -1].to_numpy()


@pytest.mark.parametrize(
    ("file", "errors", "n_test"),
    [("breast_cancer_wdbc.csv", 4, 114), ("iris.csv", 1, 30), ("wine.csv", 0, 36), ("spambase.csv.gz", 76, 921)],
)
def test_errors_of_standardised_data_with_every_fifth_row_held_out(reference_data, file, errors, n_test):
    """reference_results.csv, logistic regression, C = 1: 0.035088, 0.033333, 0, 0.082519."""
    frame = pd.read_csv(reference_data / file)
    test = np.arange(len(frame)) % 5 == 0
    X, y = standardised(frame, test)
    model = LogisticRegression().fit(X[~test], y[~test])
    assert test.sum() == n_test
    assert (model.predict(X[test]) != y[test]).sum() == errors
    assert model.certificate_.holds and verify(model, X[~test], y[~test])


def test_error_of_the_pima_data_of_ripley(reference_data):
    """reference_results.csv: 67 of 332 test rows, logistic regression on standardised columns."""
    train = pd.read_csv(reference_data / "pima_ripley_train.csv")
    test = pd.read_csv(reference_data / "pima_ripley_test.csv")
    X, y = standardised(pd.concat([train, test]), np.arange(532) >= 200)
    model = LogisticRegression().fit(X[:200], y[:200])
    assert (model.predict(X[200:]) != y[200:]).sum() == 67
    assert len(y[200:]) == 332


@pytest.mark.long
def test_error_of_softmax_regression_on_digits(reference_data):
    """reference_results.csv: 0.0967 ± 0.2 % of the 10,000 MNIST test digits, trained on 5,000, pixels/255, C = 0.1."""
    train = pd.read_parquet(reference_data / "mnist_train5k.parquet")
    test = pd.read_parquet(reference_data / "mnist_t10k.parquet")
    X, y = train.iloc[:, :-1].to_numpy() / 255.0, train.iloc[:, -1].to_numpy()
    model = LogisticRegression(C=0.1, tol=1e-3).fit(X, y)  # a gap of 3e-7: the labels are those of 1e-14
    assert model.certificate_.holds
    error = np.mean(model.predict(test.iloc[:, :-1].to_numpy() / 255.0) != test.iloc[:, -1].to_numpy())
    assert error == pytest.approx(0.0967, abs=5e-4)


TOLERANCES = [1e-4, 1e-6, 1e-8, 1e-10]


@pytest.mark.parametrize("solver", ["lbfgs", "newton-cholesky", "newton-cg"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_explicit_tolerance_is_kept_as_scikit_learn_keeps_it(solver, n_classes):
    """Its `tol` bounds the gradient of the mean loss; a gap of `tol` alone would leave far more of it."""
    for seed, tol in enumerate(TOLERANCES):
        X, codes = draw(300, 5, n_classes, seed=seed)
        model = LogisticRegression(solver=solver, tol=tol, max_iter=2000, C=0.7).fit(X, codes)
        W, b = model.coef_, model.intercept_
        scores = X @ W.T + b
        p = np.column_stack([1 - expit(scores), expit(scores)]) if n_classes == 2 else softmax(scores, axis=1)
        r = (p - np.eye(n_classes)[codes])[:, 1:] if n_classes == 2 else p - np.eye(n_classes)[codes]
        gradient = r.T @ X / len(X) + W / (0.7 * len(X))
        assert np.abs(gradient).max() <= tol and np.abs(r.mean(axis=0)).max() <= tol


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_coefficients_can_be_kept_sparse(n_classes, sparse):
    X, codes = draw(80, 6, n_classes)
    rows = sp.csr_array(X) if sparse else X
    model = LogisticRegression(C=0.05, l1_ratio=1.0).fit(X, codes)
    before = model.predict_proba(X)
    assert sp.issparse(model.sparsify().coef_) and verify(model, X, codes)
    np.testing.assert_allclose(model.predict_proba(rows), before, atol=1e-15)
    assert isinstance(model.densify().coef_, np.ndarray)


@pytest.mark.parametrize("solver", ["lbfgs", "newton-cg", "sag", "auto"])
def test_float32_rows_give_float32_coefficients(solver):
    X, codes = draw(200, 4)
    model = LogisticRegression(solver=solver).fit(X.astype(np.float32), codes)
    assert model.coef_.dtype == model.intercept_.dtype == np.float32
    assert model.certificate_.holds and verify(model, X.astype(np.float32), codes)
    assert LogisticRegression(solver=solver).fit(X, codes).coef_.dtype == np.float64


@pytest.mark.parametrize("size", [1e-300, 1e-250, 1e-200, 1e-160])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_tiny_columns_have_a_maximum_likelihood_too(size, n_classes):
    """Their squares underflow; a relative gradient that lost them would certify anything."""
    X, codes = draw(100, 3, n_classes)
    exact = LogisticRegression(C=np.inf).fit(X, codes)
    for units in (np.array([1.0, size, 1.0]), np.full(3, size)):
        model = LogisticRegression(C=np.inf).fit(X * units, codes)
        assert model.certificate_.holds and verify(model, X * units, codes)
        np.testing.assert_allclose(model.coef_ * units, exact.coef_, rtol=1e-4, atol=1e-6)


def test_a_class_of_weight_zero_gets_no_probability():
    X, codes = draw(200, 4, 3)
    weight = {0: 0.0, 1: 1.0, 2: 2.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(class_weight=weight).fit(X, codes)
    others = codes > 0
    rest = LogisticRegression(class_weight={1: 1.0, 2: 2.0}).fit(X[others], codes[others])
    assert model.classes_.tolist() == [0, 1, 2] and model.predict_proba(X)[:, 0].max() < 1e-6
    assert (model.predict(X) == rest.predict(X)).mean() > 0.95


@pytest.mark.parametrize("solver", ["lbfgs", "newton-cg", "newton-cholesky"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fit_that_max_iter_cuts_ends_at_its_iterate(solver, n_classes):
    X, y = draw(n_classes=n_classes)
    with pytest.warns(ConvergenceWarning):
        nothing = LogisticRegression(solver=solver, max_iter=0).fit(X, y)
    assert not nothing.coef_.any() and not nothing.intercept_.any()
    np.testing.assert_allclose(nothing.predict_proba(X), 1 / n_classes)
    assert not nothing.certificate_.holds and np.isfinite(nothing.certificate_.value)
    with pytest.warns(ConvergenceWarning):
        cut = LogisticRegression(solver=solver, max_iter=2).fit(X, y)
    # What the certificate proves about it is true, and a stranger finds the same number.
    _, least = Likelihood(X, y, 1.0).optimum()
    excess = (Likelihood(X, y, 1.0).value(parameters(cut)) - least) / least
    assert excess <= cut.certificate_.value
    verdict = verify(cut, X, y)
    assert abs(verdict.value - cut.certificate_.value) <= 0.01 * cut.certificate_.value
    if solver != "lbfgs":  # whose memory of past steps does not survive
        with pytest.warns(ConvergenceWarning):
            pieces = LogisticRegression(solver=solver, max_iter=1, warm_start=True).fit(X, y).fit(X, y)
        np.testing.assert_allclose(parameters(pieces), parameters(cut), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton-cg", "newton-cholesky", "sag"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_callbacks_score_the_model_of_every_iteration(solver, n_classes):
    X, y = draw(n_classes=n_classes)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=len(y))
    monitor = ScoringMonitor(scoring="neg_log_loss")
    model = LogisticRegression(solver=solver).set_callbacks(monitor).fit(X, y, sample_weight=weight)
    scores = [row["neg_log_loss"] for row in monitor.get_logs().data]
    assert len(scores) == model.n_iter_[0]
    probability = model.predict_proba(X)[np.arange(len(y)), y]
    np.testing.assert_allclose(scores[-1], np.average(np.log(probability), weights=weight), rtol=1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        cut = LogisticRegression(solver=solver, max_iter=2).fit(X, y, sample_weight=weight)
    probability = cut.predict_proba(X)[np.arange(len(y)), y]
    np.testing.assert_allclose(scores[1], np.average(np.log(probability), weights=weight), rtol=1e-7)
