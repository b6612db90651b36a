"""The checker of mixtures of experts: changed numbers, swapped labels and other rows are noticed."""

import numpy as np
import pytest

import learnable as ln

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (150, 2))
NUMBERS = np.abs(X[:, 0]) + 0.1 * RNG.normal(size=150)
LABELS = np.where((X[:, 0] > 0) == (X[:, 1] > 0), "a", "b")


@pytest.mark.parametrize("experts, y", [("gaussian", NUMBERS), ("logistic", LABELS)])
@pytest.mark.parametrize("name", ["coef_", "intercept_", "gate_coef_", "gate_intercept_", "lower_bound_", "largest_"])
def test_a_changed_number_is_noticed(experts, y, name):
    model = ln.MixtureOfExperts(2, experts=experts, random_state=0).fit(X, y)
    assert bool(ln.verify(model, X, y))
    forged = np.array(getattr(model, name))
    forged.flat[0] += 2e-3 * (1 + abs(forged.flat[0]))  # one entry: a constant added to all scores changes nothing
    setattr(model, name, forged if forged.ndim else float(forged))
    assert not ln.verify(model, X, y)


def test_variances_labels_and_rows_are_noticed():
    model = ln.MixtureOfExperts(2, random_state=0).fit(X, NUMBERS)
    assert not ln.verify(model, X[:-1], NUMBERS[:-1])
    model.variances_ = model.variances_ * 1.01
    assert not ln.verify(model, X, NUMBERS)
    classifier = ln.MixtureOfExperts(2, experts="logistic", random_state=0).fit(X, LABELS)
    assert not ln.verify(classifier, X, np.where(LABELS == "a", "b", "a"))
    classifier.classes_ = classifier.classes_[::-1]
    assert not ln.verify(classifier, X, LABELS)
