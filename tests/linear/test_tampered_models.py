"""`verify` refuses a model of which any fitted number was changed, moved or dropped: classifiers, GLMs, linear SVMs."""

import copy

import numpy as np
import pytest
from tests.linear.svm_tables import two_classes

from learnable import (
    GammaRegressor,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    Perceptron,
    PoissonRegressor,
    TweedieRegressor,
    verify,
)
from learnable.core.errors import VerificationError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
TARGET = X[:, 0] + 0.7 * RNG.normal(size=80)
COUNTS = RNG.poisson(np.exp(0.4 * X[:, 0])) + 1.0
TWO = np.where(TARGET > 0, "b", "a")
THREE = np.array(["p", "q", "r"])[np.digitize(TARGET, [-0.5, 0.5])]

MODELS = {
    "logistic": (LogisticRegression(), TWO),
    "softmax": (LogisticRegression(), THREE),
    "lasso logistic": (LogisticRegression(l1_ratio=1.0), TWO),
    "elastic net softmax": (LogisticRegression(l1_ratio=0.5), THREE),
    "liblinear": (LogisticRegression(solver="liblinear"), TWO),
    "likelihood": (LogisticRegression(C=np.inf), TWO),
    "softmax likelihood": (LogisticRegression(C=np.inf), THREE),
    "poisson": (PoissonRegressor(), COUNTS),
    "poisson likelihood": (PoissonRegressor(alpha=0.0), COUNTS),
    "gamma": (GammaRegressor(), COUNTS),
    "normal": (TweedieRegressor(), COUNTS),
    "compound poisson": (TweedieRegressor(power=1.5), COUNTS),
    "inverse gaussian": (TweedieRegressor(power=3.0, link="log"), COUNTS),
    "squared hinge": (LinearSVC(), THREE),
    "hinge": (LinearSVC(loss="hinge"), TWO),
    "hinge, three": (LinearSVC(loss="hinge"), THREE),
    "l1 squared hinge": (LinearSVC(penalty="l1"), THREE),
    "crammer singer": (LinearSVC(multi_class="crammer_singer"), THREE),
    "svr": (LinearSVR(epsilon=0.1), TARGET),
    "squared svr": (LinearSVR(loss="squared_epsilon_insensitive"), TARGET),
}
COUNTERS = {"n_iter_", "certificate_", "n_features_in_"}  # no method reads them for an answer


def mutations(values):
    """Yield arrays that differ: by 1e-3, in another order, shorter, or with two entries swapped."""
    values = np.asarray(values)
    if values.dtype.kind == "f":
        yield values * 1.001
        if values.ndim:
            one = values.copy()
            one.flat[np.abs(values).argmax()] *= 1.001
            yield one
    if values.ndim and len(values) > 1:
        yield values[::-1].copy()
        yield values[:-1].copy()
        yield values[[1, 0, *range(2, len(values))]]
    if values.ndim == 2:
        yield values[:, ::-1].copy()
        yield values[:, :-1].copy()


def refused(model, rows, y):
    """Tell whether `verify` refuses, by its verdict or by an error that says why."""
    try:
        return not verify(model, rows, y)
    except VerificationError:
        return True


@pytest.mark.parametrize("name", MODELS)
def test_a_changed_array_is_refused(name):
    model, y = MODELS[name]
    model = copy.deepcopy(model).fit(X, y)
    assert verify(model, X, y)
    tried = 0
    for attribute in sorted(set(vars(model)) - COUNTERS):
        if not attribute.endswith("_"):
            continue
        for changed in mutations(getattr(model, attribute)):
            if np.array_equal(changed, getattr(model, attribute)):
                continue
            other = copy.deepcopy(model)
            setattr(other, attribute, changed)
            assert refused(other, X, y), (attribute, changed)
            tried += 1
    assert tried >= 6


def test_a_changed_perceptron_is_refused():
    rows, y = two_classes()
    rows = rows + 3 * np.outer(np.where(y == np.unique(y)[1], 1.0, -1.0), rows[y == np.unique(y)[1]].mean(axis=0))
    model = Perceptron(tol=None).fit(rows, y)
    assert model.certificate_.kind == "stationarity" and verify(model, rows, y)
    for attribute in ("coef_", "margin_", "mistake_bound_", "classes_"):
        for changed in mutations(getattr(model, attribute)):
            same_rule = attribute == "coef_" and np.array_equal(
                changed, 1.001 * model.coef_
            )  # if the intercept is zero
            if same_rule or np.array_equal(changed, getattr(model, attribute)):
                continue
            other = copy.deepcopy(model)
            setattr(other, attribute, changed)
            assert refused(other, rows, y), (attribute, changed)
