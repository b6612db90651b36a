"""Trees grow leaf by leaf and are pruned to nothing; AdaBoost stays below its bound."""

import numpy as np
import pytest

from learnable import AdaBoostClassifier
from learnable.lab import SCENES


def test_leaves_grow_one_by_one_and_fall_to_one():
    leaves = [step.numbers["leaves"] for step in SCENES["tree"].steps(most_leaves=6)]
    top = leaves.index(max(leaves))
    assert leaves[: top + 1] == list(range(2, max(leaves) + 1))
    assert (np.diff(leaves[top:]) < 0).all() and leaves[-1] == 1


def test_the_training_error_stays_below_its_bound():
    steps = SCENES["adaboost"].steps()
    bounds = [step.numbers["bound"] for step in steps]
    assert all(step.numbers["training error"] <= step.numbers["bound"] for step in steps)
    assert (np.diff(bounds) < 0).all() and steps[2].numbers["training error"] == 0.0


def test_the_weighted_errors_are_those_of_the_recursion():
    X, y, _ = SCENES["adaboost"].read()
    steps = SCENES["adaboost"].steps()
    model = AdaBoostClassifier(n_estimators=len(steps)).fit(X, y)
    weights = np.full(len(y), 1 / len(y))
    for step, stump in zip(steps, model.estimators_, strict=True):
        missed = stump.predict(X) != y
        error = weights[missed].sum()
        assert step.numbers["weighted error ε"] == pytest.approx(error, rel=1e-9)
        weights = np.where(missed, weights / (2 * error), weights / (2 * (1 - error)))
