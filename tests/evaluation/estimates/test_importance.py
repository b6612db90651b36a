"""Permutation importance against scikit-learn, a formula, and its own interval."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn import inspection as peer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from learnable import LinearRegression, LogisticRegression, Ridge
from learnable.core import DataError, ParameterError
from learnable.evaluation import permutation_importance
from learnable.evaluation.estimates.importance import shuffle_columns


def draw(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, 2 * X[:, 0] + X[:, 1] + rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    return LinearRegression().fit(*draw())


# ---- oracles ----


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error", "neg_mean_absolute_error", "neg_max_error"])
def test_means_are_those_of_scikit_learn(fitted, scoring):
    X, y = draw(seed=1)
    ours = permutation_importance(fitted, X, y, scoring=scoring, n_repeats=60)
    theirs = peer.permutation_importance(fitted, X, y, scoring=scoring, n_repeats=60, random_state=0)
    error = np.sqrt(ours.values.var(axis=1) + theirs.importances.var(axis=1)) / np.sqrt(60)
    assert (np.abs(ours.mean - theirs.importances_mean) < 4.5 * error + 1e-12).all()
    assert ours.names == ["x0", "x1", "x2", "x3"]


def test_the_importance_in_a_linear_model_is_twice_the_variance_explained():
    """Shuffling column j of a linear model raises the squared error by 2β²Var(x), when columns are independent."""
    X, y = draw(4000, seed=1)
    model = LinearRegression().fit(X, y)
    found = permutation_importance(model, X, y, scoring="neg_mean_squared_error", n_repeats=20)
    np.testing.assert_allclose(found.mean, 2 * model.coef_**2 * X.var(axis=0), rtol=0.1, atol=0.02)
    assert (found.low < found.mean).all() and (found.mean < found.high).all()


def test_the_interval_covers_over_samples_of_rows():
    covered = np.zeros(3)
    rng = np.random.default_rng(0)
    model = LinearRegression().fit([[0.0, 0.0, 0.0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [0.0, 2.0, 1.0, 0.0])
    for number in range(150):
        X = rng.normal(size=(200, 3))
        y = 2 * X[:, 0] + X[:, 1] + rng.normal(size=200)
        found = permutation_importance(model, X, y, scoring="neg_mean_squared_error", level=0.9, random_state=number)
        covered += (found.low - 1e-9 <= [8.0, 2.0, 0.0]) & (found.high + 1e-9 >= [8.0, 2.0, 0.0])
    assert (covered / 150 > 0.9 - 3 * np.sqrt(0.09 / 150)).all()


# ---- containers ----


def test_shuffling_moves_only_the_columns_named():
    X, _ = draw(30)
    order = np.random.default_rng(0).permutation(30)
    expected = X.copy()
    expected[:, [1, 3]] = X[order][:, [1, 3]]
    np.testing.assert_array_equal(shuffle_columns(X, [1, 3], order), expected)
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(30)[::-1] * 7)
    moved = shuffle_columns(frame, ["b", "d"], order)
    np.testing.assert_array_equal(moved.to_numpy(), expected)
    assert moved.index.equals(frame.index) and list(moved.columns) == list("abcd")
    np.testing.assert_array_equal(shuffle_columns(pl.from_pandas(frame), ["b", "d"], order).to_numpy(), expected)
    for build in (sp.csr_array, sp.csc_array):
        sparse = build(np.where(X > 0, X, 0.0))
        dense = np.where(X > 0, X, 0.0)
        dense[:, [1, 3]] = dense[order][:, [1, 3]]
        np.testing.assert_array_equal(shuffle_columns(sparse, [1, 3], order).toarray(), dense)
        np.testing.assert_array_equal(sparse.toarray(), np.where(X > 0, X, 0.0))


def test_containers_agree(fitted):
    X, y = draw(seed=1)
    expected = permutation_importance(fitted, X, y)
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(300) + 9)
    named = LinearRegression().fit(frame, draw()[1])
    by_frame = permutation_importance(
        LinearRegression().fit(pd.DataFrame(draw()[0], columns=list("abcd")), draw()[1]), frame, y
    )
    assert by_frame.names == list("abcd")
    np.testing.assert_allclose(by_frame.values, expected.values)
    assert permutation_importance(named, frame.assign(y=y), "y").names == list("abcd")
    np.testing.assert_allclose(permutation_importance(fitted, sp.csr_array(X), y).values, expected.values)
    # Every column sees the same shuffling, and an array that a named model gets shows the model's names.
    with pytest.warns(UserWarning, match="feature names"):
        assert permutation_importance(named, X, y).names == list("abcd")


def test_mixed_columns_of_a_frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=100), "city": rng.choice(["x", "y"], 100)})
    y = (frame["city"] == "x").to_numpy() * 2.0

    class ByCity:
        _estimator_type = "regressor"

        def fit(self, X, y):
            return self

        def predict(self, X):
            return (X["city"] == "x").to_numpy() * 2.0

    found = permutation_importance(ByCity(), frame, y, scoring="neg_mean_squared_error")
    assert found.mean[0] == 0.0 and found.mean[1] == pytest.approx(2.0, abs=0.5)


# ---- classifiers, groups, weights ----


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", "roc_auc", None])
def test_classifiers(scoring):
    X, y = draw()
    labels = np.where(y > 0, "yes", "no")
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, labels)
    found = permutation_importance(model, X, labels, scoring=scoring, n_repeats=30)
    theirs = peer.permutation_importance(model, X, labels, scoring=scoring, n_repeats=30, random_state=0)
    error = np.sqrt(found.values.var(axis=1) + theirs.importances.var(axis=1)) / np.sqrt(30)
    assert (np.abs(found.mean - theirs.importances_mean) < 4.5 * error + 1e-12).all()
    assert found.order[0] == 0 and found.method == ("t over repeats" if scoring == "roc_auc" else "t over rows")


def test_columns_that_say_the_same_are_seen_together():
    X, y = draw()
    X[:, 2] = X[:, 0]
    model = Ridge(1.0).fit(X, y)
    alone = permutation_importance(model, X, y)
    groups = permutation_importance(model, X, y, groups={"twins": ["x0", "x2"], "x1": [1], "last": 3})
    assert groups.names == ["twins", "x1", "last"]
    assert groups.mean[0] > 1.5 * alone.mean[[0, 2]].sum()
    assert groups.mean[1] == alone.mean[1]


def test_weights_count():
    X, y = draw()
    y[150:] = np.random.default_rng(3).normal(size=150)  # only the first half follows the model
    model = LinearRegression().fit(X[:150], y[:150])
    weight = np.where(np.arange(300) < 150, 1.0, 1e-9)
    found = permutation_importance(model, X, y, sample_weight=weight)
    assert found.baseline == pytest.approx(model.score(X[:150], y[:150]), abs=1e-6)
    assert found.mean[0] > permutation_importance(model, X, y).mean[0]


def test_a_forest_that_overfitted_noise_is_found_out():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(2, size=200)
    forest = RandomForestClassifier(20, random_state=0).fit(X[:100], y[:100])
    seen, unseen = (permutation_importance(forest, X[part], y[part]) for part in (slice(100), slice(100, 200)))
    assert seen.mean.min() > 0.1 and (unseen.low < 0).all()


def test_the_seed_decides(fitted):
    X, y = draw(seed=1)
    once, again = (permutation_importance(fitted, X, y, random_state=4).values for _ in range(2))
    assert (once == again).all()
    assert (once != permutation_importance(fitted, X, y, random_state=5).values).any()


def test_records_are_plain(fitted):
    found = permutation_importance(fitted, *draw(seed=1), n_repeats=1, scoring="neg_max_error")
    record = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [row["name"] for row in record["importances"]] == [found.names[i] for i in found.order]
    assert record["importances"][0]["low"] is None  # one repeat says nothing of the spread


# ---- refusals ----


@pytest.mark.parametrize("groups", [{"a": []}, {"a": ["nothing"]}, {"a": [17]}, {"a": [-1]}])
def test_groups_name_columns(fitted, groups):
    with pytest.raises(ParameterError, match="group 'a' must name columns"):
        permutation_importance(fitted, *draw(), groups=groups)


def test_what_cannot_be_shuffled(fitted):
    X, y = draw()
    with pytest.raises(DataError, match="at least 2 rows"):
        permutation_importance(fitted, X[:1], y[:1])
    with pytest.raises(DataError, match="needs targets"):
        permutation_importance(fitted, X, None)
    with pytest.raises(ParameterError, match="n_repeats"):
        permutation_importance(fitted, X, y, n_repeats=0)
    with pytest.raises(DataError, match="inconsistent"):
        permutation_importance(fitted, X, y[:10])
