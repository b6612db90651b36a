"""No fitted array of a tree or an ensemble may change unnoticed: each is changed in every way, and `verify` refuses."""

import copy
import dataclasses

import numpy as np
import pytest

import learnable as ln
from learnable.core.errors import VerificationError
from learnable.trees.layout import concatenate

RNG = np.random.default_rng(0)
X = RNG.normal(size=(36, 3))
X[:, 2] = np.floor(np.abs(X[:, 2]) * 2)
MANY = (X[:, 0] + RNG.normal(size=36) * 0.5 > 0).astype(int) + (X[:, 1] > 0.8)
TWO = (MANY > 0).astype(int)
NUMBERS = X[:, 0] + RNG.normal(size=36)

MODELS = {
    "tree": (ln.DecisionTreeClassifier(), MANY),
    "categories": (ln.DecisionTreeClassifier(categorical_features=[2]), TWO),
    "few leaves": (ln.DecisionTreeClassifier(max_leaf_nodes=5), MANY),
    "numbers": (ln.DecisionTreeRegressor(max_depth=4), NUMBERS),
    "medians": (ln.DecisionTreeRegressor(criterion="absolute_error", max_depth=3), NUMBERS),
    "random forest": (ln.RandomForestClassifier(4, oob_score=True, random_state=0), MANY),
    "random forest of numbers": (ln.RandomForestRegressor(4, oob_score=True, random_state=0), NUMBERS),
    "extra trees": (ln.ExtraTreesClassifier(2, random_state=0), MANY),
    "extra trees of numbers": (ln.ExtraTreesRegressor(2, random_state=0), NUMBERS),
    "bagging": (ln.BaggingClassifier(n_estimators=3, oob_score=True, random_state=0, max_features=0.7), MANY),
    "bagging of numbers": (ln.BaggingRegressor(n_estimators=3, oob_score=True, random_state=0), NUMBERS),
    "boosting": (ln.AdaBoostClassifier(n_estimators=4), MANY),
    "boosting, two classes": (ln.AdaBoostClassifier(n_estimators=4), TWO),
    "boosting, one class": (ln.AdaBoostClassifier(n_estimators=4), np.zeros(36)),
    "boosting, real": (ln.AdaBoostClassifier(n_estimators=4, variant="real"), TWO),
    "boosting, float": (ln.AdaBoostClassifier(n_estimators=4, variant="float"), TWO),
    "boosting, corrected": (
        ln.AdaBoostClassifier(n_estimators=4, variant="totally-corrective", n_iter_no_change=3),
        TWO,
    ),
    "boosting of numbers": (ln.AdaBoostRegressor(n_estimators=4, random_state=0), NUMBERS),
    "boosting of numbers, lines": (ln.AdaBoostRegressor(ln.Ridge(), n_estimators=3, random_state=0), NUMBERS),
}


def arrays_of(held, path=()):
    """Yield where each array and number of a fitted model is, and what it holds."""
    if isinstance(held, np.ndarray) or (isinstance(held, (int, float)) and not isinstance(held, bool)):
        yield path, held
    elif dataclasses.is_dataclass(held):
        for field in dataclasses.fields(held):
            yield from arrays_of(getattr(held, field.name), (*path, field.name))
    elif isinstance(held, dict):
        for key, value in held.items():
            yield from arrays_of(value, (*path, key))
    elif isinstance(held, list):
        for number, value in enumerate(held[:1]):  # the others are of the same kind
            yield from arrays_of(value, (*path, number))
    elif hasattr(held, "get_params"):
        for name, value in vars(held).items():
            if name.endswith("_") and name != "certificate_":
                yield from arrays_of(value, (*path, name))


def changed(held, path, value):
    """Return what is held, with another value at the path."""
    name, rest = path[0], path[1:]
    inside = held[name] if isinstance(held, (dict, list)) else getattr(held, name)
    value = changed(inside, rest, value) if rest else value
    if dataclasses.is_dataclass(held):
        return dataclasses.replace(held, **{name: value})
    if isinstance(held, (dict, list)):
        held[name] = value
    else:
        setattr(held, name, value)
    return held


def mutations_of(value):
    """Yield changes: a thousandth of the largest entry and of one in the middle, an end dropped, order, a swap."""
    if not isinstance(value, np.ndarray):
        yield "another number", type(value)(value + 1)
        return
    if not value.size:
        return
    if value.dtype.kind == "f":
        usable = np.flatnonzero(np.isfinite(value) & (value != 0))
        for which, at in (("largest", -1), ("middle", len(usable) // 2)) if len(usable) else ():
            order = usable[np.argsort(np.abs(value.ravel()[usable]), kind="stable")] if which == "largest" else usable
            moved = value.copy()
            moved.flat[order[at]] *= 1.001
            yield f"the {which} entry by a thousandth", moved
    elif value.dtype.kind in "iu":
        moved = value.copy()
        moved.flat[0] += 1
        yield "the first entry by one", moved
    if len(value) > 1:
        yield "the last dropped", np.ascontiguousarray(value[:-1])
        others = [j for j in range(1, len(value)) if not np.array_equal(value[0], value[j], equal_nan=True)]
        if others and value.dtype.kind in "fiu":
            swapped = value.copy()
            swapped[[0, others[0]]] = value[[others[0], 0]]
            yield "two swapped", swapped
            if not np.array_equal(value[::-1], value, equal_nan=True):
                yield "reversed", value[::-1].copy()


def is_read(name, path):
    """Tell whether a public method reads it: seeds of what is drawn no more, and counts, are only shown."""
    if path[-1] in {"seed_", "n_iter_"}:
        return "forest" in name or ("bagging" in name and len(path) == 1)
    return True


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", MODELS)
def test_every_change_of_a_fitted_array_is_refused(name):
    model, y = MODELS[name]
    model.fit(X, y)
    assert ln.verify(model, X, y)
    unnoticed = []
    for path, value in list(arrays_of(model)):
        if not is_read(name, path):
            continue
        for what, other in mutations_of(value):
            forged = changed(copy.deepcopy(model), path, other)
            try:
                accepted = bool(ln.verify(forged, X, y))
            except VerificationError:
                accepted = False
            if accepted:
                unnoticed.append((path, what))
    assert not unnoticed


@pytest.mark.parametrize("kind", ["RandomForestRegressor", "RandomForestClassifier", "ExtraTreesRegressor"])
@pytest.mark.parametrize("kept", [slice(0, 3), slice(1, 4), slice(None, None, -1)])
def test_a_forest_without_one_of_its_trees_or_in_another_order_is_refused(kind, kept):
    y = TWO if "Classifier" in kind else NUMBERS
    forest = getattr(ln, kind)(4, random_state=0).fit(X, y)
    numbers = np.arange(4)[kept]
    if "Regressor" in kind:  # together with what the leaves hold
        ends = np.r_[0, np.cumsum(forest.leaves_.sizes)]
        rows = np.concatenate([forest.leaves_.rows[ends[t] : ends[t + 1]] for t in numbers])
        forest.leaves_ = dataclasses.replace(forest.leaves_, rows=rows, sizes=forest.leaves_.sizes[numbers])
    forest.trees_ = concatenate([forest.trees_.tree(t) for t in numbers])
    assert not ln.verify(forest, X, y)


@pytest.mark.parametrize("loss", ["linear", "square", "exponential"])
@pytest.mark.parametrize("value", [0.0, 3.7])
def test_boosting_of_a_constant_is_verified(loss, value):
    y = np.full(36, value)
    model = ln.AdaBoostRegressor(loss=loss, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    assert ln.verify(model, X, y)
