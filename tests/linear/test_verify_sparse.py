"""The checkers of the sparse models: every loss with every penalty, against decimals of sixty digits."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from tests.oracles.sparse import gap_of_logistic, gap_of_squares

from learnable import (
    ElasticNet,
    ElasticNetCV,
    Lasso,
    LassoCV,
    LogisticRegression,
    MultiTaskElasticNet,
    MultiTaskLasso,
    verify,
)
from learnable.core.errors import VerificationError

RNG = np.random.default_rng(5)
X = RNG.standard_normal((30, 6)) + RNG.standard_normal(6)
Y = X[:, :2] @ [2.0, -1.0] + RNG.standard_normal(30) + 1.0
BOTH = np.column_stack([Y, X[:, 2] - X[:, 1] + 0.5 * RNG.standard_normal(30)])
TWO = np.where(X[:, 0] + RNG.logistic(size=30) > X[:, 0].mean(), "b", "a")
THREE = np.digitize(X[:, 0] - X[:, 0].mean() + RNG.logistic(size=30), [-0.7, 0.7])
WEIGHT = RNG.random(30) + 0.5

SQUARES = {
    "lasso": (Lasso(alpha=0.1), Y),
    "lasso, no intercept": (Lasso(alpha=0.1, fit_intercept=False), Y),
    "lasso, positive": (Lasso(alpha=0.05, positive=True), Y),
    "lasso, two targets": (Lasso(alpha=0.1), BOTH),
    "elastic net": (ElasticNet(alpha=0.2, l1_ratio=0.6), Y),
    "elastic net, positive": (ElasticNet(alpha=0.1, l1_ratio=0.3, positive=True), Y),
    "lasso, cross-validated": (LassoCV(cv=3, alphas=5), Y),
    "elastic net, cross-validated": (ElasticNetCV(cv=3, alphas=5, l1_ratio=[0.4, 0.9]), Y),
    "multi-task lasso": (MultiTaskLasso(alpha=0.1), BOTH),
    "multi-task elastic net": (MultiTaskElasticNet(alpha=0.2, l1_ratio=0.5), BOTH),
}
LOGISTIC = {
    "l1": (LogisticRegression(C=2.0, l1_ratio=1.0), TWO),
    "l1, no intercept": (LogisticRegression(C=2.0, l1_ratio=1.0, fit_intercept=False), TWO),
    "elastic net": (LogisticRegression(C=2.0, l1_ratio=0.4), TWO),
    "l1, three classes": (LogisticRegression(C=2.0, l1_ratio=1.0), THREE),
    "elastic net, three classes": (LogisticRegression(C=2.0, l1_ratio=0.5), THREE),
    "l1, three classes, no intercept": (LogisticRegression(C=2.0, l1_ratio=1.0, fit_intercept=False), THREE),
    "l1, class weights": (LogisticRegression(C=2.0, l1_ratio=1.0, class_weight={"a": 2.0}), TWO),
    "l1, liblinear": (LogisticRegression(C=2.0, l1_ratio=1.0, solver="liblinear", intercept_scaling=3.0), TWO),
    "l2, liblinear": (LogisticRegression(C=2.0, solver="liblinear"), TWO),
}
CASES = SQUARES | LOGISTIC


def oracle(model, y, weight):
    """Return the gap of a model by its definition."""
    s = np.ones(len(y)) if weight is None else weight
    if hasattr(model, "classes_"):
        codes = np.searchsorted(model.classes_, y)
        if model.class_weight:
            s = s * np.array([model.class_weight.get(label, 1.0) for label in model.classes_])[codes]
        T, W, b, free = X, model.coef_, model.intercept_, model.fit_intercept
        if model.solver == "liblinear":  # the intercept is a coefficient
            T = np.column_stack([X, np.full(len(X), model.intercept_scaling)])
            W, b, free = np.column_stack([W, b / model.intercept_scaling]), 0 * b, False
        return gap_of_logistic(
            T, codes, len(model.classes_), W, b, model.C, model.l1_ratio, 1 - model.l1_ratio, s, free
        )
    alpha, ratio = getattr(model, "alpha_", getattr(model, "alpha", None)), getattr(model, "l1_ratio_", model.l1_ratio)
    l1, l2 = s.sum() * alpha * ratio, s.sum() * alpha * (1 - ratio)
    W, b, y = np.atleast_2d(model.coef_).T, np.atleast_1d(model.intercept_), y.reshape(len(y), -1)
    positive = getattr(model, "positive", False)
    targets = [list(range(W.shape[1]))] if "MultiTask" in type(model).__name__ else [[k] for k in range(W.shape[1])]
    return max(gap_of_squares(X, y[:, k], W[:, k], b[k], l1, l2, s, model.fit_intercept, positive) for k in targets)


def tampered(model, factor):
    """Yield copies of which one coefficient that is not zero is multiplied."""
    for place in np.argwhere(model.coef_):
        other = copy.deepcopy(model)
        other.coef_[tuple(place)] *= factor
        yield other


@pytest.mark.sampled(6)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", CASES)
def test_the_value_is_that_of_the_definition(name, weight):
    """At the fit, where it is tiny, and far from it, where every term of it counts."""
    model, y = CASES[name]
    model = copy.deepcopy(model).fit(X, y, weight)
    found = verify(model, X, y, weight)
    assert found, str(found)
    assert found.value == pytest.approx(oracle(model, y, weight), rel=1e-6, abs=1e-12)
    values = [verify(other, X, y, weight).value for other in tampered(model, 1.3)]
    assert min(values) > 1e3 * found.value + 1e-9 and max(values) > 1e-4
    assert values == pytest.approx([oracle(other, y, weight) for other in tampered(model, 1.3)], rel=1e-8)


@pytest.mark.parametrize("name", CASES)
def test_a_coefficient_changed_by_a_thousandth_is_caught(name):
    model, y = CASES[name]
    model = copy.deepcopy(model).fit(X, y)
    assert np.count_nonzero(model.coef_) > 0
    for factor in (1.001, 0.999):
        for other in tampered(model, factor):
            assert not verify(other, X, y)


@pytest.mark.parametrize("name", CASES)
def test_an_intercept_changed_by_a_thousandth_is_caught(name):
    model, y = CASES[name]
    model = copy.deepcopy(model).fit(X, y)
    model.intercept_ = model.intercept_ * 1.001 if model.fit_intercept else model.intercept_ + 1e-6
    assert not verify(model, X, y)


@pytest.mark.parametrize("name", CASES)
def test_other_data_and_other_weights_are_caught(name):
    model, y = CASES[name]
    model = copy.deepcopy(model).fit(X, y)
    changed = X.copy()
    changed[3, 2] += 1e-9
    assert not verify(model, changed, y)
    swapped = y.copy()
    other = int(np.flatnonzero((y != y[0]).reshape(len(y), -1).any(axis=1))[0])
    swapped[[0, other]] = swapped[[other, 0]]
    assert not verify(model, X, swapped)
    assert not verify(model, X, y, WEIGHT)


@pytest.mark.parametrize("name", CASES)
def test_another_penalty_is_caught(name):
    """A model that says it was fitted with a penalty a hundredth larger does not stand."""
    model, y = CASES[name]
    model = copy.deepcopy(model).fit(X, y)
    parameter = next(p for p in ("alpha_", "alpha", "C") if hasattr(model, p))
    setattr(model, parameter, getattr(model, parameter) * 1.01)
    assert not verify(model, X, y)


@pytest.mark.parametrize("name", [name for name in CASES if "targets" not in name])
def test_sparse_and_weighted_tables_are_verified_and_their_changes_caught(name):
    model, y = CASES[name]
    table, weight = sp.csr_array(np.where(np.abs(X) < 0.3, 0.0, X)), np.where(np.arange(30) % 7 == 0, 0.0, WEIGHT)
    model = copy.deepcopy(model).fit(table, y, weight)
    assert verify(model, table, y, weight)
    for other in tampered(model, 1.001):
        assert not verify(other, table, y, weight)


def test_a_sign_against_the_constraint_is_caught():
    model = Lasso(alpha=0.05, positive=True).fit(X, Y)
    model.coef_[model.coef_ == 0] = -1e-12
    assert not verify(model, X, Y)


def test_numbers_that_are_none_are_caught():
    for name in ("lasso", "multi-task lasso"):
        model, y = SQUARES[name]
        model = copy.deepcopy(model).fit(X, y)
        model.coef_ = np.full_like(model.coef_, np.nan)
        assert not verify(model, X, y)
    model = copy.deepcopy(LOGISTIC["l1"][0]).fit(X, TWO)
    model.coef_ = np.full_like(model.coef_, np.inf)
    assert not verify(model, X, TWO)


def test_targets_of_another_number_are_refused():
    model = MultiTaskLasso(alpha=0.1).fit(X, BOTH)
    with pytest.raises(VerificationError, match="the model has 2 targets, the data 1"):
        verify(model, X, Y)


@pytest.mark.parametrize("C", [1e3, 1e6])
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_the_rounding_of_a_hard_problem_is_neither_forgotten_nor_an_excuse(C, shift):
    """Feasible slopes are λ/C: with a large C they stand at the rounding of sums over the rows."""
    rng = np.random.default_rng(1)
    T = rng.standard_normal((500, 20)) @ np.diag(10.0 ** rng.uniform(-1, 1, 20)) + shift
    y = (T[:, 0] - T[:, 0].mean() + 5 * rng.logistic(size=500) > 0).astype(int)
    model = LogisticRegression(C=C, l1_ratio=1.0).fit(T, y)
    assert model.certificate_.holds and verify(model, T, y)
    model.coef_[0, np.argmax(np.abs(model.coef_[0] * T.std(axis=0)))] *= 1.001
    assert not verify(model, T, y)
