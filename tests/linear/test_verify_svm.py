"""The checkers catch what is wrong with a model, and nothing else."""

import copy

import numpy as np
import pytest
from tests.linear.svm_tables import numbers, several_classes

from learnable import LinearSVC, LinearSVR, Perceptron, verify

MODELS = [
    LinearSVC(),
    LinearSVC(loss="hinge"),
    LinearSVC(loss="hinge", fit_intercept=False),
    LinearSVC(penalty="l1"),
    LinearSVC(multi_class="crammer_singer", C=0.1, max_iter=20_000),
    LinearSVC(class_weight="balanced", solver="dual", C=0.1, max_iter=20_000),
    LinearSVR(),
    LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.2),
]


def fitted(model):
    X, y = numbers() if isinstance(model, LinearSVR) else several_classes(100, 4)
    return model.fit(X, y), X, y


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_honest_fits_are_verified(model):
    model, X, y = fitted(model)
    assert verify(model, X, y), str(verify(model, X, y))


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_changed_model_is_caught(model):
    model, X, y = fitted(model)
    for row in range(model.coef_.shape[0]):
        other = copy.deepcopy(model)
        other.coef_[row] *= 1.02
        assert not verify(other, X, y)
    if model.fit_intercept:
        other = copy.deepcopy(model)
        other.intercept_ = other.intercept_ + 0.1
        assert not verify(other, X, y)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_other_data_are_caught(model):
    model, X, y = fitted(model)
    changed = X.copy()
    changed[0, 0] += 1e-9
    assert not verify(model, changed, y)
    swapped = y.copy()
    i, j = 0, int(np.flatnonzero(y != y[0])[0])
    swapped[[i, j]] = swapped[[j, i]]
    assert not verify(model, X, swapped)


@pytest.mark.parametrize("change", [lambda a: a * 1.01, lambda a: -a, lambda a: a + 1e-3, lambda a: 0 * a])
def test_a_changed_dual_point_is_caught(change):
    model, X, y = fitted(LinearSVC(loss="hinge"))
    model.dual_coef_ = change(model.dual_coef_)
    assert not verify(model, X, y)


def test_an_intercept_out_of_nowhere_is_caught():
    model, X, y = fitted(LinearSVC(fit_intercept=False))
    model.intercept_ = 0.01
    assert not verify(model, X, y)


def test_a_perceptron_that_does_not_separate_is_caught():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, "a", "b")
    X[:, 0] += np.where(y == "a", 0.3, -0.3)
    model = Perceptron(tol=None, max_iter=10_000).fit(X, y)
    assert verify(model, X, y)
    model.coef_ = model.coef_ * [[0.0, 1.0, 1.0]]
    assert not verify(model, X, y)
