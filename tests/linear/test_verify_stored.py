"""Whatever a least-squares model stores is checked: each array changed, permuted, cut or swapped is refused."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold, ShuffleSplit

import learnable as ln
from learnable import (
    BayesianLinearRegression,
    ElasticNet,
    ElasticNetCV,
    Lasso,
    LassoCV,
    LinearRegression,
    MultiTaskElasticNet,
    MultiTaskLasso,
    Ridge,
    RidgeCV,
)
from learnable.core.errors import VerificationError

RNG = np.random.default_rng(11)
X = RNG.normal(size=(40, 5)) @ RNG.normal(size=(5, 5)) + RNG.normal(size=5)
Y = X[:, :2] @ [2.0, -1.0] + RNG.normal(size=40) + 1.0
BOTH = np.column_stack([Y, X[:, 2] - X[:, 1] + RNG.normal(size=40)])
WEIGHT = RNG.uniform(0.5, 2.0, 40)
DEPENDENT = np.column_stack([X, X[:, 0] + X[:, 1]])

#: Model, rows, targets. A loose tolerance leaves a gap that is more than rounding.
CASES = {
    "least squares": (LinearRegression(), X, Y),
    "least squares, no intercept": (LinearRegression(fit_intercept=False), X, Y),
    "least squares, two targets": (LinearRegression(), X, BOTH),
    "least squares, dependent columns": (LinearRegression(), DEPENDENT, Y),
    "least squares, wide": (LinearRegression(), X[:4], Y[:4]),
    "least squares, positive": (LinearRegression(positive=True), X, Y),
    "ridge": (Ridge(), X, BOTH),
    "ridge, penalty per target": (Ridge(alpha=[0.5, 2.0]), X, BOTH),
    "ridge cv": (RidgeCV(store_cv_results=True), X, Y),
    "ridge cv, two targets": (RidgeCV(store_cv_results=True), X, BOTH),
    "ridge cv, penalty per target": (RidgeCV(store_cv_results=True, alpha_per_target=True), X, BOTH),
    "ridge cv, no intercept": (RidgeCV(store_cv_results=True, fit_intercept=False), X, Y),
    "ridge cv, wide": (RidgeCV(store_cv_results=True), X[:4], Y[:4]),
    "ridge cv, scored": (RidgeCV(store_cv_results=True, scoring="neg_mean_absolute_error"), X, Y),
    "ridge cv, gcv": (RidgeCV(criterion="gcv"), X, Y),
    "ridge cv, folds": (RidgeCV(cv=4), X, Y),
    "ridge cv, drawn folds": (RidgeCV(cv=KFold(4, shuffle=True, random_state=0), scoring="r2"), X, BOTH),
    "lasso": (Lasso(alpha=0.1), X, Y),
    "lasso, two targets": (Lasso(alpha=0.1), X, BOTH),
    "lasso, no penalty": (Lasso(alpha=0.0), X, Y),
    "elastic net": (ElasticNet(alpha=0.2, l1_ratio=0.6), X, Y),
    "lasso cv": (LassoCV(alphas=7, cv=3), X, Y),
    "lasso cv, given grid": (LassoCV(alphas=[0.3, 0.1, 0.01], cv=3), X, Y),
    "lasso cv, one standard error": (LassoCV(alphas=12, cv=4, rule="1se"), X, Y),
    "lasso cv, positive": (LassoCV(alphas=7, cv=3, positive=True), X, Y),
    "elastic net cv": (ElasticNetCV(alphas=6, cv=3, l1_ratio=[0.4, 0.9]), X, Y),
    "multi-task lasso": (MultiTaskLasso(alpha=0.1), X, BOTH),
    "multi-task elastic net": (MultiTaskElasticNet(alpha=0.2, l1_ratio=0.5), X, BOTH),
    "Bayesian": (BayesianLinearRegression(), X, Y),
    "Bayesian, known noise": (BayesianLinearRegression("known"), X, Y),
    "Bayesian, unknown noise": (BayesianLinearRegression("unknown", fit_intercept=False), X, Y),
}
every_case = pytest.mark.parametrize("name", CASES)
#: No numbers of the fit: what the fit cost, and the marks by which data are recognised.
NO_NUMBERS = {"certificate_", "n_iter_", "n_features_in_", "row_order_", "solver_"}


def fitted(name, weight):
    model, X, y = CASES[name]
    weight = WEIGHT[: len(X)] if weight else None
    return copy.deepcopy(model).fit(X, y, weight), (X, y, weight)


def arrays_of(model):
    return [key for key in vars(model) if key.endswith("_") and key not in NO_NUMBERS]


def mutations(value):
    """Yield the value changed by 1e-3, permuted, cut and with two entries swapped, where that changes anything."""
    array = np.asarray(value)
    if array.dtype.kind in "iu":
        yield "one more", value + 1
        yield "one less", value - 1
        return
    yield "1e-3 larger", value * 1.001 if (array != 0).any() else value + 1e-3
    if array.ndim == 0:
        return
    entry = array.copy()
    place = np.unravel_index(np.argmax(np.abs(entry)), entry.shape)
    entry[place] *= 1.001
    yield "one entry 1e-3 larger", entry
    yield "an entry dropped", np.delete(array, -1, axis=-1)
    yield "reversed", array[::-1].copy()
    yield "permuted", np.random.default_rng(0).permutation(array.ravel()).reshape(array.shape)
    swapped = array.copy()
    low, high = np.unravel_index(np.argmin(array), array.shape), np.unravel_index(np.argmax(array), array.shape)
    swapped[low], swapped[high] = array[high], array[low]
    yield "two entries swapped", swapped


def is_refused(model, data):
    try:
        return not ln.verify(model, *data)
    except VerificationError:
        return True


@pytest.mark.sampled(6)
@every_case
@pytest.mark.parametrize("weight", [False, True])
def test_honest_models_are_verified(name, weight):
    model, (X, y, w) = fitted(name, weight)
    assert ln.verify(model, X, y, w), str(ln.verify(model, X, y, w))
    assert ln.verify(model, sp.csr_array(X), y, w)
    order = np.random.default_rng(1).permutation(len(X))
    assert ln.verify(model, X[order], y[order], None if w is None else w[order])


@pytest.mark.sampled(6)
@every_case
@pytest.mark.parametrize("weight", [False, True])
def test_every_change_of_a_stored_array_is_refused(name, weight):
    model, data = fitted(name, weight)
    unseen = []
    for key in arrays_of(model):
        value = getattr(model, key)
        for what, changed in mutations(value):
            rounding = 1e-14 if key == "residual_norm_" else 0.0  # all that is left of a perfect fit
            if np.shape(changed) == np.shape(value) and np.allclose(changed, value, rtol=1e-9, atol=rounding):
                continue  # a symmetric array, or one of equal entries
            other = copy.deepcopy(model)
            setattr(other, key, changed)
            if not is_refused(other, data):
                unseen.append(f"{key}: {what}")
    assert not unseen


@every_case
def test_a_model_without_one_of_its_arrays_is_refused(name):
    model, data = fitted(name, False)
    for key in set(arrays_of(model)) - {"cv_results_"}:
        other = copy.deepcopy(model)
        delattr(other, key)
        assert is_refused(other, data), key


def test_folds_that_cannot_be_drawn_again_leave_the_rest_of_the_checks():
    for model in (RidgeCV(cv=ShuffleSplit(3)), LassoCV(cv=ShuffleSplit(3), alphas=5)):
        model.fit(X, Y)
        assert ln.verify(model, X, Y)
        path = "criterion_path_" if isinstance(model, RidgeCV) else "alphas_"
        setattr(model, path, 1.001 * getattr(model, path))
        assert is_refused(model, (X, Y))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_intervals_of_columns_in_any_unit_are_verified(scale, offset):
    Z = (X + offset) * np.array([1.0, scale, 1.0 / scale, 1.0, scale])
    for model in (LinearRegression(), LinearRegression(fit_intercept=False), BayesianLinearRegression()):
        model.fit(Z, Y, WEIGHT)
        assert ln.verify(model, Z, Y, WEIGHT), str(ln.verify(model, Z, Y, WEIGHT))


def test_a_column_that_varies_in_its_last_digit_only_is_verified():
    Z = np.column_stack([X, 1e11 + 1e-5 * X[:, 0]])
    model = LinearRegression().fit(Z, Y)
    assert ln.verify(model, Z, Y), str(ln.verify(model, Z, Y))
