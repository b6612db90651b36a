"""Partial dependence: both methods, scikit-learn, and the Shapley values' own v(S)."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor as SklearnBoosting
from sklearn.inspection import partial_dependence as sklearn_dependence
from tests.oracles.shapley import known_value

from learnable import DecisionTreeRegressor, RandomForestClassifier
from learnable.core.errors import ParameterError
from learnable.ensembles import HistGradientBoostingRegressor, partial_dependence
from learnable.trees.layout import Trees, concatenate


def table(seed=0, n=200):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    return X, X[:, 0] * X[:, 1] + X[:, 2] ** 2


def test_the_recursion_is_v_of_the_shapley_values():
    X, y = table()
    model = DecisionTreeRegressor(max_depth=6, random_state=0).fit(X, y)
    found = partial_dependence(model, X, [0, 2], grid_resolution=4)
    for a, x0 in enumerate(found.grid[0]):
        for b, x2 in enumerate(found.grid[1]):
            wanted = known_value(model.trees_, np.array([x0, 0.0, x2, 0.0]), {0, 2})[0]
            assert found.average[a, b] == pytest.approx(wanted, abs=1e-12)


def from_sklearn(model):
    """Return scikit-learn's boosted trees as ours."""
    parts = []
    for [one] in model.estimators_:
        t = one.tree_
        leaf = t.children_left < 0
        parts.append(
            Trees(
                np.array([0, t.node_count]),
                np.where(leaf, -1, t.feature).astype(np.int32),
                t.threshold.copy(),
                t.children_left.astype(np.int32),
                t.children_right.astype(np.int32),
                np.zeros(t.node_count, np.uint8),
                np.full(t.node_count, -1),
                np.zeros(0, np.uint32),
                t.impurity.copy(),
                t.n_node_samples.astype(np.int64),
                t.weighted_n_node_samples.copy(),
                model.learning_rate * t.value[:, 0].copy(),
            )
        )
    return concatenate(parts)


def test_the_recursion_is_that_of_scikit_learn():
    X, y = table(1)
    theirs = SklearnBoosting(n_estimators=20, random_state=0).fit(X, y)
    wanted = sklearn_dependence(theirs, X, [0], method="recursion", grid_resolution=20)
    from learnable.ensembles.explain.effects import tree_partial_dependence

    ours = tree_partial_dependence(from_sklearn(theirs), [0], wanted["grid_values"][0][:, None])
    # scikit-learn leaves the start out of the recursion
    np.testing.assert_allclose(ours[:, 0], wanted["average"][0], atol=1e-6)  # their rows are float32


def test_brute_is_the_mean_over_the_rows():
    X, y = table(2)
    model = HistGradientBoostingRegressor(max_iter=10).fit(X, y)
    found = partial_dependence(model, X, 1, grid_resolution=5, method="brute")
    for value, mean in zip(found.grid[0], found.average, strict=True):
        Z = X.copy()
        Z[:, 1] = value
        assert mean == pytest.approx(model.predict(Z).mean(), abs=1e-12)
    assert found.grid[0][0] == pytest.approx(np.quantile(X[:, 1], 0.05))


def test_names_classes_and_few_values():
    X, y = table(3)
    X[:, 3] = np.arange(200) % 3
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = RandomForestClassifier(n_estimators=5, random_state=0).fit(frame, y > 0)
    found = partial_dependence(model, frame, "d")
    assert found.grid[0].tolist() == [0, 1, 2] and found.average.shape == (3, 2)
    np.testing.assert_allclose(found.average.sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("features", "options", "said"),
    [
        (9, {}, "columns 0"),
        ("z", {}, "no column"),
        ([0, 0], {}, "one or two"),
        (0, {"method": "fast"}, "method"),
        (0, {"percentiles": (0.9, 0.1)}, "percentiles"),
    ],
)
def test_bad_questions_are_refused(features, options, said):
    X, y = table()
    with pytest.raises(ParameterError, match=said):
        partial_dependence(DecisionTreeRegressor(max_depth=2).fit(X, y), X, features, **options)
