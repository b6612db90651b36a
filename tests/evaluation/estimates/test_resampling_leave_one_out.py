"""The closed form of leave-one-out equals n refits, for every linear smoother; what is none is refitted."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import linear_model as peer
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Lasso
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, PolynomialFeatures, StandardScaler
from tests.oracles.ridge import augmented_ridge

from learnable import GaussianProcessRegressor, KernelRidge, LinearRegression, LogisticRegression, Ridge, RidgeCV
from learnable.core import DataError, ParameterError
from learnable.evaluation import leave_one_out_predictions
from learnable.evaluation.estimates.resampling import is_linear_smoother
from learnable.risk.kernels import Gaussian, White

SHAPES = pytest.mark.parametrize(("n", "d"), [(25, 5), (12, 11), (12, 12), (9, 30), (2, 3), (2, 1)])


def draw(n, d, targets=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 2.0
    return X, rng.normal(size=n) + 3.0 if targets is None else rng.normal(size=(n, targets)) + 3.0


def by_refits(model, X, y, weight=None):
    """Return predictions of each row by n fits, without the library's own loop."""
    from sklearn.base import clone

    found = np.empty(np.shape(y))
    for row in range(len(y)):
        others = np.arange(len(y)) != row
        extra = () if weight is None else (weight[others],)
        found[row] = clone(model).fit(X[others], y[others], *extra).predict(X[row : row + 1])[0]
    return found


def assert_same(found, expected, y):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(y).max())


# ---- the law ----


@SHAPES
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_least_squares(n, d, fit_intercept, weighted):
    X, y = draw(n, d)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, n) if weighted else None
    model = LinearRegression(fit_intercept=fit_intercept)
    found = leave_one_out_predictions(model, X, y, weight)
    assert found.method == "closed form"
    assert_same(found.predictions, by_refits(model, X, y, weight), y)


@SHAPES
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize(("fit_intercept", "weighted"), [(True, False), (True, True), (False, True)])
def test_ridge(n, d, alpha, fit_intercept, weighted):
    X, y = draw(n, d)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, n) if weighted else None
    model = Ridge(alpha=alpha, fit_intercept=fit_intercept)
    found = leave_one_out_predictions(model, X, y, weight)
    assert found.method == "closed form" and not found.note
    assert_same(found.predictions, by_refits(model, X, y, weight), y)


def test_ridge_against_least_squares_on_augmented_rows():
    X, y = draw(15, 4)
    expected = []
    for row in range(15):
        others = np.arange(15) != row
        coef, level = augmented_ridge(X[others], y[others], 0.7)
        expected.append(float(X[row] @ coef[:, 0] + level[0]))
    assert_same(leave_one_out_predictions(Ridge(alpha=0.7), X, y).predictions, np.array(expected), y)


def test_one_penalty_a_target_and_none_at_all():
    X, y = draw(20, 4, 3)
    model = Ridge(alpha=[0.0, 0.5, 20.0])
    assert_same(leave_one_out_predictions(model, X, y).predictions, by_refits(model, X, y), y)
    assert_same(leave_one_out_predictions(Ridge(alpha=0.0), X, y).predictions, by_refits(Ridge(alpha=0.0), X, y), y)


@pytest.mark.parametrize(("n", "d"), [(15, 3), (6, 9)])
def test_several_targets(n, d):
    X, y = draw(n, d, 2)
    for model in (LinearRegression(), Ridge(0.5)):
        assert_same(leave_one_out_predictions(model, X, y).predictions, by_refits(model, X, y), y)


def test_ridge_cv_keeps_the_penalty_chosen_on_all_rows_and_says_so():
    X, y = draw(30, 6)
    model = RidgeCV(alphas=[0.1, 1.0, 10.0])
    found = leave_one_out_predictions(model, X, y)
    assert found.method == "closed form" and "chosen once" in found.note
    chosen = model.fit(X, y).alpha_
    assert_same(found.predictions, by_refits(Ridge(alpha=chosen), X, y), y)
    nested = leave_one_out_predictions(model, X, y, method="refits")
    assert nested.method == "refits"
    assert_same(nested.predictions, by_refits(model, X, y), y)


@pytest.mark.parametrize("model", [peer.LinearRegression(), peer.Ridge(0.3), peer.Ridge(0.3, solver="svd")])
@pytest.mark.parametrize(("n", "d"), [(30, 4), (8, 20)])
def test_scikit_learns_smoothers(model, n, d):
    X, y = draw(n, d)
    found = leave_one_out_predictions(model, X, y)
    assert found.method == "closed form"
    assert_same(found.predictions, by_refits(model, X, y), y)


@pytest.mark.parametrize(
    "steps",
    [
        (PolynomialFeatures(3), LinearRegression()),
        (PolynomialFeatures(2), Ridge(0.1)),
        (Normalizer(), Ridge(0.1)),
        (FunctionTransformer(np.exp), LinearRegression()),
        ("passthrough", LinearRegression()),
    ],
    ids=lambda steps: type(steps[0]).__name__,
)
def test_pipelines_whose_transformers_learn_nothing(steps):
    X, y = draw(30, 2)
    model = make_pipeline(*steps)
    found = leave_one_out_predictions(model, X, y)
    assert found.method == "closed form"
    assert_same(found.predictions, by_refits(model, X, y), y)


def test_rows_that_determine_their_own_fit_are_refitted():
    """A column that one row alone has: without that row its coefficient is zero, by minimum norm."""
    X, y = draw(20, 3)
    X = np.column_stack([X, 100.0 * np.eye(20)[:, 4], np.eye(20)[:, 7] + np.eye(20)[:, 8]])
    for model in (LinearRegression(), Ridge(1e-9), peer.LinearRegression()):
        found = leave_one_out_predictions(model, X, y)
        assert found.method == "closed form"
        assert_same(found.predictions, by_refits(model, X, y), y)


def test_dependent_columns_and_equal_rows():
    X, y = draw(20, 3)
    for rows in (
        np.column_stack([X, X[:, 0] + X[:, 1]]),
        np.column_stack([X, np.ones(20)]),
        np.vstack([X[:10], X[:10]]),
    ):
        assert_same(
            leave_one_out_predictions(LinearRegression(), rows, y).predictions,
            by_refits(LinearRegression(), rows, y),
            y,
        )
    wide = np.vstack([draw(6, 12)[0]] * 2)
    y = draw(12, 1)[1]
    assert_same(
        leave_one_out_predictions(LinearRegression(), wide, y).predictions, by_refits(LinearRegression(), wide, y), y
    )


def test_rows_without_weight_are_predicted_by_the_whole_fit():
    X, y = draw(20, 3)
    weight = np.ones(20)
    weight[[2, 5]] = 0.0
    found = leave_one_out_predictions(Ridge(), X, y, weight).predictions
    whole = Ridge().fit(X, y, weight).predict(X)
    assert_same(found[[2, 5]], whole[[2, 5]], y)
    kept = weight > 0
    assert_same(found[kept], by_refits(Ridge(), X[kept], y[kept]), y)


def test_columns_in_extreme_units():
    X, y = draw(25, 3)
    plain = leave_one_out_predictions(LinearRegression(), X, y).predictions
    scaled = leave_one_out_predictions(LinearRegression(), X * [1e150, 1.0, 1e-150], y).predictions
    assert_same(scaled, plain, y)


# ---- containers ----


def test_every_container_gives_the_same():
    X, y = draw(25, 3)
    expected = leave_one_out_predictions(Ridge(), X, y).predictions
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(25) * 3)
    assert_same(leave_one_out_predictions(Ridge(), frame.assign(y=y), "y").predictions, expected, y)
    assert_same(leave_one_out_predictions(Ridge(), sp.csr_array(X), y).predictions, expected, y)
    assert_same(leave_one_out_predictions(Ridge(), X.tolist(), y.tolist()).predictions, expected, y)


# ---- what is no linear smoother ----


@pytest.mark.parametrize(
    "model",
    [
        Ridge(positive=True),
        LinearRegression(positive=True),
        peer.Ridge(solver="saga"),
        Lasso(0.1),
        make_pipeline(StandardScaler(), Ridge()),
        make_pipeline(FunctionTransformer(lambda X: X - X.mean(axis=0)), Ridge()),
        KNeighborsRegressor(3),
        LogisticRegression(),
    ],
)
def test_other_models_are_known_as_such(model):
    assert not is_linear_smoother(model)


@pytest.mark.parametrize("model", [KNeighborsRegressor(3), make_pipeline(StandardScaler(), Ridge()), Lasso(0.1)])
def test_other_models_are_refitted(model):
    X, y = draw(20, 3)
    found = leave_one_out_predictions(model, X, y)
    assert found.method == "refits"
    np.testing.assert_allclose(found.predictions, cross_val_predict(model, X, y, cv=LeaveOneOut()), rtol=1e-12)


def test_classifiers_keep_their_probabilities():
    X, _ = draw(24, 3)
    y = np.repeat(["no", "perhaps", "yes"], 8)
    found = leave_one_out_predictions(KNeighborsClassifier(3), X, y)
    assert found.classes.tolist() == ["no", "perhaps", "yes"]
    assert (found.predictions == cross_val_predict(KNeighborsClassifier(3), X, y, cv=LeaveOneOut())).all()
    expected = cross_val_predict(KNeighborsClassifier(3), X, y, cv=LeaveOneOut(), method="predict_proba")
    np.testing.assert_allclose(found.responses["predict_proba"], expected)


def test_a_class_with_one_member_has_probability_zero_without_it():
    X = np.arange(9.0)[:, None]
    y = np.array(["rare"] + ["a", "bb"] * 4)
    found = leave_one_out_predictions(KNeighborsClassifier(3), X, y)
    assert found.responses["predict_proba"].shape == (9, 3)
    assert found.responses["predict_proba"][0, 2] == 0.0
    assert set(found.predictions) <= {"rare", "a", "bb"}


class OwnFormula(RegressorMixin, BaseEstimator):
    """A model that knows its leave-one-out predictions."""

    def fit(self, X, y, sample_weight=None):
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def leave_one_out(self, X, y, sample_weight=None):
        w = np.ones(len(y)) if sample_weight is None else sample_weight
        return (w @ y - w * y) / (w.sum() - w)


def test_a_model_with_its_own_formula_is_asked():
    X, y = draw(10, 1)
    found = leave_one_out_predictions(OwnFormula(), X, y)
    assert found.method == "closed form"
    assert_same(found.predictions, [np.delete(y, i).mean() for i in range(10)], y)
    weight = np.arange(1.0, 11.0)
    weighted = leave_one_out_predictions(OwnFormula(), X, y, weight).predictions
    assert_same(weighted, [np.average(np.delete(y, i), weights=np.delete(weight, i)) for i in range(10)], y)


# ---- kernels ----

KERNEL = 2.0 * Gaussian([1.0, 3.0]) + White(0.2)
SMOOTHERS = {
    "kernel ridge": KernelRidge(alpha=0.3, kernel="rbf", gamma=0.4),
    "Gaussian process": GaussianProcessRegressor(KERNEL, optimizer=None),
    "with a constant": GaussianProcessRegressor(KERNEL, optimizer=None, mean="constant"),
    "with a line": GaussianProcessRegressor(KERNEL, optimizer=None, mean="linear"),
}


@pytest.mark.sampled(6)
@pytest.mark.threaded
@pytest.mark.parametrize("targets", [None, 2])
@pytest.mark.parametrize("name", SMOOTHERS)
def test_kernel_smoothers(name, targets):
    X, y = draw(25, 2, targets)
    found = leave_one_out_predictions(SMOOTHERS[name], X, y)
    assert found.method == "closed form" and not found.note
    assert_same(found.predictions, by_refits(SMOOTHERS[name], X, y), y)
    piped = make_pipeline(FunctionTransformer(np.exp), SMOOTHERS[name])
    assert leave_one_out_predictions(piped, X, y).method == "closed form"
    assert_same(leave_one_out_predictions(piped, X, y).predictions, by_refits(piped, X, y), y)


def test_noise_of_each_row_stays_with_its_row():
    X, y = draw(12, 2)
    noise = np.linspace(0.1, 2.0, 12)
    model = GaussianProcessRegressor(Gaussian(1.0), alpha=noise, optimizer=None)
    expected = []
    for row in range(12):
        others = np.arange(12) != row
        refit = GaussianProcessRegressor(Gaussian(1.0), alpha=noise[others], optimizer=None)
        expected.append(refit.fit(X[others], y[others]).predict(X[[row]])[0])
    assert_same(leave_one_out_predictions(model, X, y).predictions, np.array(expected), y)


def test_hyperparameters_of_all_rows_are_kept_and_said_to_be():
    X, y = draw(20, 2)
    model = GaussianProcessRegressor(1.0 * Gaussian(1.0) + White(0.5))
    found = leave_one_out_predictions(model, X, y)
    assert "hyperparameters were chosen once" in found.note
    kept = GaussianProcessRegressor(model.fit(X, y).kernel_, optimizer=None)
    assert_same(found.predictions, by_refits(kept, X, y), y)


@pytest.mark.parametrize(
    "settings", [{"normalize_y": True}, {"mean": Ridge()}, {"inducing": 5}], ids=["units", "regressor", "inducing"]
)
def test_what_sees_the_row_left_out_is_refitted(settings):
    X, y = draw(12, 2)
    model = GaussianProcessRegressor(KERNEL, optimizer=None, **settings)
    found = leave_one_out_predictions(model, X, y)
    assert found.method == "refits"
    assert_same(found.predictions, by_refits(model, X, y), y)


# ---- refusals ----


def test_what_cannot_be_left_out_is_explained():
    with pytest.raises(DataError, match="at least 2 rows"):
        leave_one_out_predictions(Ridge(), [[1.0]], [1.0])
    with pytest.raises(DataError, match="needs targets"):
        leave_one_out_predictions(Ridge(), [[1.0], [2.0]], None)
    with pytest.raises(ParameterError, match="method"):
        leave_one_out_predictions(Ridge(), [[1.0], [2.0]], [1.0, 2.0], method="fast")
    with pytest.raises(DataError, match=r"fold 1 of 3.*class"):
        leave_one_out_predictions(LogisticRegression(), [[1.0], [2.0], [3.0]], ["a", "b", "b"])
