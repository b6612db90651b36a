"""RidgeCV and ridge_path: exact leave-one-out, GCV and folds by brute force, and the choice of scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model as peer
from sklearn.metrics import make_scorer, mean_absolute_error, r2_score
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, ShuffleSplit
from tests.oracles.ridge import augmented_ridge, generalised_cross_validation, leave_one_out_predictions

from learnable import Ridge, RidgeCV, ridge_path, verify
from learnable.core import DataError, ParameterError

pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")

ALPHAS = np.array([1e-2, 0.3, 3.0, 30.0, 300.0])
CASES = [
    (n, d, targets, weighted, intercept)
    for n, d in [(30, 6), (9, 20)]
    for targets in (None, 3)
    for weighted in (False, True)
    for intercept in (True, False)
]
case = pytest.mark.parametrize(("n", "d", "targets", "weighted", "intercept"), CASES)


def draw(n=30, d=6, targets=None, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 1.0
    y = X @ rng.normal(size=(d, targets or 1)) + 2 * rng.normal(size=(n, targets or 1)) + 5.0
    return X, y if targets else y[:, 0], rng.uniform(0.2, 2.0, n) if weighted else None


def left_out_loss(X, y, alpha, weight, intercept):
    """Return Σ w e² / n of every target, by n refits."""
    w = np.ones(len(X)) if weight is None else weight
    errors = y.reshape(len(X), -1) - leave_one_out_predictions(X, y, alpha, weight, intercept)
    return (w @ errors**2) / len(w)


@case
def test_leave_one_out_is_that_of_n_refits(n, d, targets, weighted, intercept):
    X, y, weight = draw(n, d, targets, weighted)
    model = RidgeCV(alphas=ALPHAS, fit_intercept=intercept, store_cv_results=True).fit(X, y, weight)
    losses = np.array([left_out_loss(X, y, alpha, weight, intercept) for alpha in ALPHAS])
    np.testing.assert_allclose(model.criterion_path_, -losses.mean(axis=1), rtol=1e-8)
    assert model.alpha_ == ALPHAS[np.argmin(losses.mean(axis=1))]
    assert model.best_score_ == pytest.approx(-losses.mean(axis=1).min(), rel=1e-8)
    for number, alpha in enumerate(ALPHAS):
        errors = y.reshape(n, -1) - leave_one_out_predictions(X, y, alpha, weight, intercept)
        squares = errors**2 if weight is None else weight[:, None] * errors**2
        np.testing.assert_allclose(model.cv_results_[..., number].reshape(n, -1), squares, rtol=1e-7, atol=1e-10)


@case
def test_generalised_cross_validation_is_that_of_the_hat_matrix(n, d, targets, weighted, intercept):
    X, y, weight = draw(n, d, targets, weighted)
    model = RidgeCV(alphas=ALPHAS, fit_intercept=intercept, criterion="gcv").fit(X, y, weight)
    losses = [generalised_cross_validation(X, y, alpha, weight, intercept).mean() for alpha in ALPHAS]
    np.testing.assert_allclose(model.criterion_path_, -np.array(losses), rtol=1e-8)
    assert model.alpha_ == ALPHAS[np.argmin(losses)]


@case
def test_the_choice_and_the_fit_are_those_of_scikit_learn(n, d, targets, weighted, intercept):
    X, y, weight = draw(n, d, targets, weighted, seed=1)
    model = RidgeCV(alphas=ALPHAS, fit_intercept=intercept).fit(X, y, weight)
    other = peer.RidgeCV(alphas=ALPHAS, fit_intercept=intercept).fit(X, y, weight)
    assert model.alpha_ == other.alpha_
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.intercept_, other.intercept_, rtol=1e-8, atol=1e-10)
    assert model.certificate_.kind == "closed-form" and model.certificate_.holds
    assert verify(model, X, y, weight)
    assert model.best_score_ == pytest.approx(other.best_score_, rel=1e-8)


@pytest.mark.parametrize("seed", range(12))
def test_the_chosen_penalty_is_that_of_scikit_learn_on_many_draws(seed):
    X, y, weight = draw(25, 8, weighted=seed % 2 == 1, seed=seed)
    alphas = np.geomspace(1e-3, 1e3, 25)
    assert RidgeCV(alphas=alphas).fit(X, y, weight).alpha_ == peer.RidgeCV(alphas=alphas).fit(X, y, weight).alpha_


@pytest.mark.parametrize(
    ("scoring", "weighted"),
    [
        ("r2", False),
        ("r2", True),
        ("neg_mean_absolute_error", False),
        ("neg_mean_absolute_error", True),
        ("neg_root_mean_squared_error", True),
        ("neg_max_error", False),
    ],
)
def test_named_scores_of_the_left_out_predictions(scoring, weighted):
    X, y, weight = draw(weighted=weighted)
    model = RidgeCV(alphas=ALPHAS, scoring=scoring, store_cv_results=True).fit(X, y, weight)
    predictions = [leave_one_out_predictions(X, y, alpha, weight)[:, 0] for alpha in ALPHAS]
    score = {
        "r2": lambda p: r2_score(y, p, sample_weight=weight),
        "neg_mean_absolute_error": lambda p: -np.average(np.abs(y - p), weights=weight),
        "neg_root_mean_squared_error": lambda p: -np.sqrt(np.average((y - p) ** 2, weights=weight)),
        "neg_max_error": lambda p: -np.abs(y - p).max(),
    }[scoring]
    expected = [score(p) for p in predictions]
    np.testing.assert_allclose(model.criterion_path_, expected, rtol=1e-8)
    np.testing.assert_allclose(model.cv_results_, np.column_stack(predictions), rtol=1e-9)
    assert model.alpha_ == ALPHAS[np.argmax(expected)]
    assert model.alpha_ == peer.RidgeCV(alphas=ALPHAS, scoring=scoring).fit(X, y, weight).alpha_


def test_a_callable_scores_the_left_out_predictions():
    X, y, _ = draw()

    def worst_case(estimator, rows, targets):
        return -np.abs(estimator.predict(rows) - targets).max()

    model = RidgeCV(alphas=ALPHAS, scoring=worst_case).fit(X, y)
    expected = [-np.abs(y - leave_one_out_predictions(X, y, a)[:, 0]).max() for a in ALPHAS]
    np.testing.assert_allclose(model.criterion_path_, expected, rtol=1e-8)
    made = make_scorer(mean_absolute_error, greater_is_better=False)
    named = RidgeCV(alphas=ALPHAS, scoring="neg_mean_absolute_error").fit(X, y)
    np.testing.assert_array_equal(RidgeCV(alphas=ALPHAS, scoring=made).fit(X, y).criterion_path_, named.criterion_path_)


def test_a_callable_sees_all_targets_at_once():
    X, y, _ = draw(targets=2)
    shapes = set()

    def spy(estimator, rows, targets):
        shapes.add((np.shape(estimator.predict(rows)), np.shape(targets)))
        return -np.abs(estimator.predict(rows) - targets).max()

    model = RidgeCV(alphas=ALPHAS, scoring=spy).fit(X, y)
    assert shapes == {((30, 2), (30, 2))}
    assert model.alpha_ == peer.RidgeCV(alphas=ALPHAS, scoring=spy).fit(X, y).alpha_


@pytest.mark.parametrize(
    "cv",
    [5, KFold(4, shuffle=True, random_state=0), ShuffleSplit(3, random_state=1)],
    ids=["5", "KFold", "ShuffleSplit"],
)
@pytest.mark.parametrize(("targets", "intercept"), [(None, True), (None, False), (2, True)])
def test_folds_are_a_loop_of_ridge_fits(cv, targets, intercept):
    X, y, _ = draw(18, targets=targets)
    scoring = "neg_mean_squared_error"
    model = RidgeCV(alphas=ALPHAS, cv=cv, scoring=scoring, fit_intercept=intercept).fit(X, y)
    splitter = KFold(cv) if isinstance(cv, int) else cv
    scores = np.zeros(len(ALPHAS))
    folds = list(splitter.split(X))
    for train, test in folds:
        for number, alpha in enumerate(ALPHAS):
            fold = Ridge(alpha=alpha, fit_intercept=intercept).fit(X[train], y[train])
            scores[number] -= np.mean((fold.predict(X[test]) - y[test]) ** 2) / len(folds)
    np.testing.assert_allclose(model.criterion_path_, scores, rtol=1e-9)
    assert model.alpha_ == ALPHAS[np.argmax(scores)]
    whole = Ridge(alpha=model.alpha_, fit_intercept=intercept).fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-10)
    other = peer.RidgeCV(alphas=ALPHAS, cv=cv, scoring=scoring, fit_intercept=intercept).fit(X, y)
    assert model.alpha_ == other.alpha_ and model.best_score_ == pytest.approx(other.best_score_, rel=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_folds_of_one_row_are_leave_one_out(weighted):
    X, y, weight = draw(15, weighted=weighted)
    exact = RidgeCV(alphas=ALPHAS).fit(X, y, weight)
    errors = RidgeCV(alphas=ALPHAS, cv=LeaveOneOut(), scoring="neg_mean_squared_error").fit(X, y, weight)
    if not weighted:  # every fold counts alike, whatever its row weighs
        np.testing.assert_allclose(errors.criterion_path_, exact.criterion_path_, rtol=1e-9)
    np.testing.assert_allclose(
        errors.criterion_path_,
        [-np.mean((y - leave_one_out_predictions(X, y, alpha, weight)[:, 0]) ** 2) for alpha in ALPHAS],
        rtol=1e-9,
    )


def test_folds_are_scored_by_r2_unless_told_otherwise():
    X, y, _ = draw(40)
    model = RidgeCV(alphas=ALPHAS, cv=4).fit(X, y)
    scores = np.zeros(len(ALPHAS))
    for train, test in KFold(4).split(X):
        for number, alpha in enumerate(ALPHAS):
            scores[number] += r2_score(y[test], Ridge(alpha=alpha).fit(X[train], y[train]).predict(X[test])) / 4
    np.testing.assert_allclose(model.criterion_path_, scores, rtol=1e-9)


def test_weighted_folds_are_weighted_fits_with_weighted_scores():
    X, y, weight = draw(weighted=True)
    model = RidgeCV(alphas=ALPHAS, cv=3, scoring="neg_mean_squared_error").fit(X, y, weight)
    scores = np.zeros(len(ALPHAS))
    for train, test in KFold(3).split(X):
        for number, alpha in enumerate(ALPHAS):
            fold = Ridge(alpha=alpha).fit(X[train], y[train], weight[train])
            scores[number] -= np.average((fold.predict(X[test]) - y[test]) ** 2, weights=weight[test]) / 3
    np.testing.assert_allclose(model.criterion_path_, scores, rtol=1e-9)


def test_splits_given_as_a_list_number_the_rows_as_they_were_given():
    X, y, _ = draw(30)
    weight = np.ones(30)
    weight[[0, 7, 8, 21]] = 0.0
    folds = list(KFold(3).split(X))
    model = RidgeCV(alphas=ALPHAS, cv=folds, scoring="neg_mean_squared_error").fit(X, y, weight)
    scores = np.zeros(len(ALPHAS))
    for train, test in folds:
        train, test = train[weight[train] > 0], test[weight[test] > 0]
        for number, alpha in enumerate(ALPHAS):
            fold = Ridge(alpha=alpha).fit(X[train], y[train])
            scores[number] -= np.mean((fold.predict(X[test]) - y[test]) ** 2) / 3
    np.testing.assert_allclose(model.criterion_path_, scores, rtol=1e-9)


def test_a_callable_without_weights_scores_folds_of_weighted_rows():
    X, y, weight = draw(weighted=True)

    def score(estimator, rows, targets):
        return -np.abs(estimator.predict(rows) - targets).mean()

    model = RidgeCV(alphas=ALPHAS, cv=3, scoring=score).fit(X, y, weight)
    assert model.alpha_ == peer.RidgeCV(alphas=ALPHAS, cv=3, scoring=score).fit(X, y, weight).alpha_


@pytest.mark.parametrize("cv", [1, 0, -2, 31, "five", 2.5, GroupKFold(3)], ids=repr)
def test_folds_that_cannot_be_are_a_clear_error(cv):
    X, y, _ = draw(30)
    with pytest.raises((ParameterError, DataError), match="RidgeCV: "):
        RidgeCV(cv=cv).fit(X, y)


@pytest.mark.parametrize("scoring", ["not a score", "accuracy", 3, b"r2"])
def test_a_score_that_cannot_be_is_a_clear_error(scoring):
    X, y, _ = draw()
    for cv in (None, 3):
        with pytest.raises((ParameterError, DataError), match="RidgeCV: "):
            RidgeCV(scoring=scoring, cv=cv).fit(X, y)


def test_stored_errors_have_one_column_a_penalty():
    X, y, _ = draw(targets=3)
    model = RidgeCV(alphas=ALPHAS, store_cv_results=True).fit(X, y)
    assert model.cv_results_.shape == (30, 3, 5)
    assert RidgeCV(alphas=ALPHAS, store_cv_results=True).fit(X, y[:, 0]).cv_results_.shape == (30, 5)
    assert not hasattr(RidgeCV().fit(X, y), "cv_results_")
    np.testing.assert_allclose(
        model.cv_results_, peer.RidgeCV(alphas=ALPHAS, store_cv_results=True).fit(X, y).cv_results_, rtol=1e-7
    )


@pytest.mark.parametrize("option", ["store_cv_results", "alpha_per_target"])
def test_options_of_leave_one_out_are_refused_with_folds(option):
    X, y, _ = draw(targets=2)
    with pytest.raises(ParameterError, match=rf"RidgeCV: cv!=None and {option}=True are incompatible"):
        RidgeCV(cv=3, **{option: True}).fit(X, y)


def test_the_svd_of_sparse_rows_warns_as_in_scikit_learn():
    X, y, _ = draw()
    with pytest.warns(FutureWarning, match="The 'svd' mode is not supported for sparse X"):
        model = RidgeCV(gcv_mode="svd").fit(sp.csr_array(X), y)
    np.testing.assert_allclose(model.coef_, RidgeCV().fit(X, y).coef_, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
def test_one_penalty_a_target_equals_separate_fits(weighted, scoring):
    X, y, weight = draw(targets=4, weighted=weighted, seed=3)
    y[:, 1] = np.random.default_rng(4).normal(size=30)
    model = RidgeCV(alphas=ALPHAS, alpha_per_target=True, scoring=scoring).fit(X, y, weight)
    for k in range(4):
        one = RidgeCV(alphas=ALPHAS, scoring=scoring).fit(X, y[:, k], weight)
        assert model.alpha_[k] == one.alpha_
        assert model.best_score_[k] == pytest.approx(one.best_score_, rel=1e-10)
        np.testing.assert_allclose(model.coef_[k], one.coef_, rtol=1e-10)
        np.testing.assert_allclose(model.intercept_[k], one.intercept_, rtol=1e-10)
        np.testing.assert_allclose(model.criterion_path_[k], one.criterion_path_, rtol=1e-10)
    assert len(set(model.alpha_)) > 1
    other = peer.RidgeCV(alphas=ALPHAS, alpha_per_target=True, scoring=scoring).fit(X, y, weight)
    np.testing.assert_array_equal(model.alpha_, other.alpha_)
    assert verify(model, X, y, weight)


@case
def test_the_path_is_a_ridge_fit_for_each_penalty(n, d, targets, weighted, intercept):
    X, y, weight = draw(n, d, targets, weighted)
    coefs, intercepts = ridge_path(X, y, ALPHAS, sample_weight=weight, fit_intercept=intercept)
    for number, alpha in enumerate(ALPHAS):
        model = Ridge(alpha=alpha, fit_intercept=intercept).fit(X, y, weight)
        np.testing.assert_allclose(coefs[number], model.coef_, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(intercepts[number], model.intercept_, rtol=1e-9, atol=1e-11)
        assert coefs[number].shape == model.coef_.shape


def test_the_path_reads_sparse_rows_and_single_penalties():
    X, y, _ = draw()
    X[np.abs(X) < 0.8] = 0.0
    dense, sparse = ridge_path(X, y, [2.0])[0], ridge_path(sp.csr_array(X), y, [2.0])[0]
    np.testing.assert_allclose(sparse, dense, rtol=1e-12)
    np.testing.assert_allclose(dense[0], Ridge(alpha=2.0).fit(X, y).coef_, rtol=1e-10)
    np.testing.assert_array_equal(ridge_path(X, y, 2.0)[0], dense)


@pytest.mark.parametrize("alphas", [[1.0, -1.0], [np.nan], [], ["a"], [np.inf], None])
def test_penalties_that_cannot_be_are_a_clear_error_of_the_path(alphas):
    X, y, _ = draw()
    with pytest.raises(ParameterError, match="ridge_path: alphas must be"):
        ridge_path(X, y, alphas)


def test_the_path_names_itself_in_its_errors():
    X, y, _ = draw()
    with pytest.raises(DataError, match="ridge_path: "):
        ridge_path(X * np.nan, y, [1.0])


@pytest.mark.parametrize(("n", "d"), [(40, 5), (8, 20)], ids=["tall", "wide"])
@pytest.mark.parametrize("intercept", [True, False])
def test_tiny_penalties_are_fitted_as_well_as_large_ones(n, d, intercept):
    X, y, _ = draw(n, d, seed=5)
    for alpha in (1e-12, 1e-9):
        model = RidgeCV(alphas=[alpha], fit_intercept=intercept).fit(X, y)
        coef, level = augmented_ridge(X, y, alpha, None, intercept)
        np.testing.assert_allclose(model.coef_, coef[:, 0], rtol=1e-8)
        np.testing.assert_allclose(model.intercept_, level[0], rtol=1e-8, atol=1e-9)
        assert model.certificate_.holds and verify(model, X, y)


@pytest.mark.parametrize("criterion", ["loo", "gcv"])
@pytest.mark.parametrize("alpha", [1e-12, 1e-9, 1e-6])
def test_the_criterion_of_wide_rows_survives_a_tiny_penalty(criterion, alpha):
    X, y, _ = draw(8, 20, seed=5)
    model = RidgeCV(alphas=[alpha], fit_intercept=False, criterion=criterion).fit(X, y)
    # With G = XXᵀ + αI, well conditioned here, r = αG⁻¹y and I − H = αG⁻¹: α cancels from both criteria.
    inverse = np.linalg.inv(X @ X.T + alpha * np.eye(8))
    if criterion == "loo":
        expected = np.mean((inverse @ y / np.diag(inverse)) ** 2)
    else:
        expected = np.mean((inverse @ y) ** 2) / np.mean(np.diag(inverse)) ** 2
    assert -model.best_score_ == pytest.approx(expected, rel=1e-6)


def test_ill_conditioned_columns_are_chosen_for_as_by_refitting():
    X, y, _ = draw(25, 4, seed=6)
    X = X * [1.0, 1e-5, 1e4, 1.0]
    alphas = np.geomspace(1e-12, 1e2, 15)
    model = RidgeCV(alphas=alphas).fit(X, y)
    losses = [left_out_loss(X, y, alpha, None, True)[0] for alpha in alphas]
    np.testing.assert_allclose(model.criterion_path_, -np.array(losses), rtol=1e-6)
    assert model.alpha_ == alphas[np.argmin(losses)]
    assert model.certificate_.holds


def test_a_row_that_alone_determines_a_coefficient_is_left_out_exactly():
    X, y, _ = draw(20, 3, seed=7)
    X = np.column_stack([X, np.eye(20)[:, 4]])
    alphas = np.array([1e-7, 1e-3, 1.0, 100.0])
    model = RidgeCV(alphas=alphas).fit(X, y)
    losses = np.array([left_out_loss(X, y, alpha, None, True)[0] for alpha in alphas])
    np.testing.assert_allclose(model.criterion_path_, -losses, rtol=1e-6)
    assert model.alpha_ == alphas[np.argmin(losses)]


def test_a_row_of_leverage_one_never_wins_by_division_of_zero_by_zero():
    X, y, _ = draw(20, 3, seed=7)
    y[4] += 1e3
    X = np.column_stack([X, 1e3 * np.eye(20)[:, 4]])
    model = RidgeCV(alphas=[1e-14, 1.0, 1e9]).fit(X, y)
    losses = np.array([left_out_loss(X, y, alpha, None, True)[0] for alpha in (1e-14, 1.0, 1e9)])
    assert np.isfinite(model.best_score_)
    assert -model.best_score_ == pytest.approx(losses[model.alphas.index(model.alpha_)], rel=1e-4)


@pytest.mark.parametrize("alphas", [2.0, [2.0], np.array(2.0), (30.0, 0.01, 3.0), [3.0, 3.0]], ids=repr)
def test_penalties_come_in_any_order_and_number(alphas):
    X, y, _ = draw()
    model = RidgeCV(alphas=alphas).fit(X, y)
    candidates = np.atleast_1d(alphas)
    losses = [left_out_loss(X, y, alpha, None, True)[0] for alpha in candidates]
    assert model.alpha_ == candidates[np.argmin(losses)]


def test_no_penalty_is_a_candidate_where_folds_choose():
    X, y, _ = draw()
    model = RidgeCV(alphas=[0.0, 1.0], cv=3).fit(X, y)
    other = peer.RidgeCV(alphas=[0.0, 1.0], cv=3).fit(X, y)
    assert model.alpha_ == other.alpha_ and model.best_score_ == pytest.approx(other.best_score_, rel=1e-8)


def test_sparse_and_float32_rows_choose_as_dense_ones_do():
    X, y, weight = draw(40, 6, weighted=True)
    X[np.abs(X) < 0.5] = 0.0
    X = X.astype(np.float32)
    dense = RidgeCV(alphas=ALPHAS).fit(X.astype(np.float64), y, weight)
    for table in (X, sp.csr_array(X), sp.csc_matrix(X)):
        model = RidgeCV(alphas=ALPHAS).fit(table, y, weight)
        assert model.alpha_ == dense.alpha_
        np.testing.assert_allclose(model.coef_, dense.coef_, rtol=1e-9)
        assert verify(model, table, y, weight)


def test_one_row_cannot_be_left_out():
    with pytest.raises(DataError, match=r"RidgeCV: needs at least 2 rows"):
        RidgeCV().fit([[1.0]], [1.0])


def test_a_single_column_of_targets_gets_the_shapes_of_scikit_learn():
    X, y, _ = draw(targets=1)
    model, other = RidgeCV().fit(X, y), peer.RidgeCV().fit(X, y)
    assert model.coef_.shape == other.coef_.shape and model.predict(X).shape == other.predict(X).shape
