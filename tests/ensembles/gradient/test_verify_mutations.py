"""Every fitted array of a boosted model is covered: scaled, permuted, shortened or swapped, it is refused."""

from copy import deepcopy
from dataclasses import fields, replace

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1

from learnable import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    verify,
)
from learnable.ensembles.gradient.driver import take_trees

X, Y = make_friedman1(150, n_features=5, noise=1.0, random_state=0)
XC, YC = make_classification(150, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
LEVELS = np.column_stack([np.floor(7 * X[:, 0]) * 3.0, X[:, 1:]])
MODELS = {
    "hist squares": (HistGradientBoostingRegressor(max_iter=4), X, Y),
    "hist absolute": (HistGradientBoostingRegressor(max_iter=4, loss="absolute_error"), X, Y),
    "hist categories": (HistGradientBoostingRegressor(max_iter=4, categorical_features=[0]), LEVELS, Y),
    "hist classes": (HistGradientBoostingClassifier(max_iter=4), XC, YC),
    "hist drawn": (HistGradientBoostingClassifier(max_iter=4, subsample=0.6, random_state=0), XC, YC > 0),
    "exact squares": (GradientBoostingRegressor(n_estimators=4), X, Y),
    "exact huber": (GradientBoostingRegressor(n_estimators=4, loss="huber"), X, Y),
    "exact classes": (GradientBoostingClassifier(n_estimators=4), XC, YC),
    "exact newton": (GradientBoostingClassifier(n_estimators=4, direction="newton", reg_lambda=1.0), XC, YC > 0),
    "exact signs": (GradientBoostingClassifier(n_estimators=4, direction="inner-product"), XC, YC > 0),
}
ARRAYS = ["baseline_", "steps_", "training_loss_", "train_score_", "classes_"]
TREES = ["value", "threshold", "feature", "left", "right", "weight", "impurity", "n_rows"]


@pytest.fixture(scope="module", params=list(MODELS))
def fitted(request):
    model, x, y = MODELS[request.param]
    model = deepcopy(model).fit(x, y)
    assert verify(model, x, y)
    return model, x, y


def changes(array, rng):
    """Yield changed copies that differ from an array in more than rounding."""
    if np.issubdtype(array.dtype, np.floating):
        yield "scaled", array * 1.001
        one = array.copy()
        one.flat[int(np.argmax(np.abs(array)))] *= 1.001
        yield "one entry", one
    yield "permuted", array[rng.permutation(len(array))]
    yield "reversed", array[::-1].copy()
    if len(array) > 1:
        swapped = array.copy()
        swapped[[0, -1]] = swapped[[-1, 0]]
        yield "swapped", swapped


def differs(a, b):
    return a.shape != b.shape or not np.array_equal(a, b)


def refused(model, x, y):
    return not verify(model, x, y)


def test_arrays_of_the_model(fitted):
    model, x, y = fitted
    rng = np.random.default_rng(0)
    for name in ARRAYS:
        array = getattr(model, name, None)
        if (
            not isinstance(array, np.ndarray)
            or not len(array)
            or (name == "train_score_" and hasattr(model, "n_iter_"))
        ):
            continue
        for what, changed in changes(array, rng):
            if not differs(array, changed):
                continue
            twin = deepcopy(model)
            setattr(twin, name, changed)
            assert refused(twin, x, y), (name, what)
        twin = deepcopy(model)
        setattr(twin, name, array[:-1])
        assert refused(twin, x, y), (name, "shortened")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", TREES)
def test_arrays_of_the_trees(fitted, name):
    model, x, y = fitted
    trees = model.trees_
    array = getattr(trees, name)
    split = trees.feature >= 0
    for what, changed in changes(array, np.random.default_rng(1)):
        if name == "threshold":  # leaves have none, categories neither; and between two values all cuts are one
            numeric = split & (trees.category < 0)
            changed = np.where(numeric, changed if what != "scaled" else array + 0.3, array)
            if what == "one entry":
                continue
        if name in ("left", "right"):
            changed = np.where(split, changed, array)
        if not differs(array, changed):
            continue
        twin = deepcopy(model)
        twin.trees_ = replace(trees, **{name: changed})
        assert refused(twin, x, y), what


def test_dropped_swapped_and_repeated_trees(fitted):
    model, x, y = fitted
    count, K = model.trees_.n_trees, model.n_trees_per_iteration_
    for numbers in (range(count - 1), range(1, count), [*range(count), 0], [*range(K, count), *range(K)]):
        twin = deepcopy(model)
        twin.trees_ = take_trees(model.trees_, list(numbers))
        assert refused(twin, x, y)
    shorter = deepcopy(model)  # a whole round is missing, consistently
    shorter.trees_ = take_trees(model.trees_, range(count - K))
    shorter.steps_, shorter.training_loss_ = model.steps_[:-1], model.training_loss_[:-1]
    assert refused(shorter, x, y)


def test_every_array_of_a_tree_is_named_here():
    known = {"start", "missing_left", "category", "bits"}  # the shape of the trees; branches that no row has taken
    assert {field.name for field in fields(next(iter([MODELS["hist squares"][0].fit(X, Y).trees_])))} == {
        *TREES,
        *known,
    }


def test_levels_of_categories():
    model, x, y = MODELS["hist categories"]
    model = deepcopy(model).fit(x, y)
    for change in (lambda levels: [levels[0] + 3.0], lambda levels: [levels[0][::-1]], lambda levels: [levels[0][:-1]]):
        twin = deepcopy(model)
        twin.levels_ = change(model.levels_)
        assert refused(twin, x, y)
