"""Regularised least-squares classification: regression of ±1, leave-one-out, weights, files."""

import numpy as np
import pytest
from tests.kernel.kernel_tables import rings

from learnable import KernelRidge, KernelRidgeClassifier, load, save, verify
from learnable.evaluation import evaluate
from learnable.kernel.ridge.regression import signs_of

TWO, THREE = rings(), rings(classes=3)


@pytest.mark.parametrize("data", [TWO, THREE], ids=["two", "three"])
def test_it_is_regression_of_signs(data):
    X, y, weight = data
    model = KernelRidgeClassifier(alpha=0.5).fit(X, y, weight)
    signs = signs_of(y, len(model.classes_))
    regression = KernelRidge(alpha=0.5, kernel="rbf").fit(X, signs, weight)
    np.testing.assert_allclose(model.decision_function(X), regression.predict(X), rtol=1e-9, atol=1e-12)
    assert verify(model, X, y, weight)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("data", [TWO, THREE], ids=["two", "three"])
def test_leave_one_out_is_n_refits(data):
    X, y, weight = data
    names = np.array(["a", "b", "c"])[y]
    found = KernelRidgeClassifier().leave_one_out(X, names, weight)
    for i in range(0, len(X), 9):
        others = np.arange(len(X)) != i
        assert found[i] == KernelRidgeClassifier().fit(X[others], names[others], weight[others]).predict(X[[i]])[0]


def test_the_evaluation_takes_the_closed_form():
    X, y, _ = THREE
    model = KernelRidgeClassifier(alpha=0.5)
    estimate = evaluate(model, X, y, scheme="loo", scoring="accuracy")
    assert estimate.mean == np.mean(model.leave_one_out(X, y) == y)


def test_class_weights_multiply_weights():
    X, y, weight = TWO
    by_class = KernelRidgeClassifier(class_weight={0: 1.0, 1: 3.0}).fit(X, y, weight)
    by_row = KernelRidgeClassifier().fit(X, y, weight * np.where(y == 1, 3.0, 1.0))
    np.testing.assert_allclose(by_class.decision_function(X), by_row.decision_function(X), rtol=1e-10)
    balanced = KernelRidgeClassifier(class_weight="balanced").fit(X, y, weight)
    assert verify(balanced, X, y, weight)


def test_verify_notices_a_swapped_label_and_a_changed_coefficient():
    X, y, _ = TWO
    model = KernelRidgeClassifier().fit(X, y)
    model.dual_coef_ = model.dual_coef_ * 1.001
    assert not verify(model, X, y)
    model = KernelRidgeClassifier().fit(X, y)
    model.classes_ = model.classes_[::-1].copy()
    assert not verify(model, X, y)


def test_round_trip(tmp_path):
    X, y, _ = THREE
    model = KernelRidgeClassifier(kernel="poly").fit(X, np.array(["x", "yy", "z"])[y])
    save(model, tmp_path / "m.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "m.safetensors").predict(X), model.predict(X))
