"""Levels and mean targets: the same in any pieces, blind to a row's own fold, and those of scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import PredefinedSplit
from sklearn.preprocessing import OneHotEncoder, TargetEncoder

from learnable.data import encoder_categories
from learnable.data.encoder_categories import FOLDS, CategoryStatistics, EncoderTarget, choose_levels, target_means
from learnable.data.encoder_read import Labels, read_labels


def count(values, target=None, weight=None, cuts=()):
    k = 0 if target is None or target.n_classes else target.values.shape[1]
    statistics = CategoryStatistics(k, target.n_classes if target else 0)
    values, start = np.array(values, dtype=object), 0
    for rows in np.split(np.arange(len(values)), cuts):
        some = None if target is None else target._replace(values=target.values[rows])
        statistics.update(read_labels(values[rows]), some, None if weight is None else weight[rows], start)
        start += len(rows)
    return statistics


def make_target(task, n, seed=0):
    rng = np.random.default_rng(seed)
    if task == "regression":
        return EncoderTarget(rng.normal(100, 3, (n, 1)), 0)
    k = {"binary": 2, "multiclass": 4}[task]
    return EncoderTarget(rng.integers(0, k, n), k)


TASKS = ["regression", "binary", "multiclass"]
every_task = pytest.mark.parametrize("task", TASKS)
some_values = st.lists(st.sampled_from(["a", "b", "c d", "", None, "é"]), min_size=1, max_size=60)


@settings(max_examples=60)
@given(some_values, st.lists(st.integers(0, 60), max_size=5), st.sampled_from(TASKS), st.booleans())
def test_pieces_do_not_change_a_bit(values, cuts, task, weighted):
    n = len(values)
    weight = np.random.default_rng(1).integers(0, 3, n) * 0.3 if weighted else None
    target = make_target(task, n)
    whole, pieces = count(values, target, weight), count(values, target, weight, sorted(min(c, n) for c in cuts))
    assert (whole.n_rows, whole.missing, whole.words, whole.letters) == (
        pieces.n_rows, pieces.missing, pieces.words, pieces.letters
    )  # fmt: skip
    for a, b in zip(whole.finish(), pieces.finish(), strict=True):
        np.testing.assert_array_equal(a, b)


@every_task
def test_mean_targets_are_those_of_scikit_learn(task):
    n = 400
    values = np.random.default_rng(5).choice([f"v{i}" for i in range(30)], n)
    target = make_target(task, n)
    means = target_means(count(values, target).finish())
    X, y = values.reshape(-1, 1), target.values if target.n_classes else target.values[:, 0]
    peer = TargetEncoder(target_type="continuous" if task == "regression" else task).fit(X, y)
    levels = {level: i for i, level in enumerate(sorted(set(values.tolist())))}
    mine = means[FOLDS, [levels[v] for v in values.tolist()]]
    np.testing.assert_allclose(mine, peer.transform(X), rtol=1e-9)
    np.testing.assert_allclose(means[FOLDS, -1], np.atleast_1d(peer.target_mean_), rtol=1e-9)  # unseen


@every_task
def test_cross_fitted_means_are_those_of_scikit_learn_with_the_same_folds(task):
    n = 300
    values = np.random.default_rng(6).choice([f"v{i}" for i in range(25)], n)
    target = make_target(task, n)
    folds = np.arange(n) % FOLDS
    means = target_means(count(values, target).finish())
    levels = {level: i for i, level in enumerate(sorted(set(values.tolist())))}
    mine = means[folds, [levels[v] for v in values.tolist()]]
    X, y = values.reshape(-1, 1), target.values if target.n_classes else target.values[:, 0]
    kind = "continuous" if task == "regression" else task
    theirs = TargetEncoder(target_type=kind, cv=PredefinedSplit(folds)).fit_transform(X, y)
    np.testing.assert_allclose(mine, theirs, rtol=1e-9)


@every_task
def test_a_fold_never_sees_its_own_targets(task):
    n = 100
    values = np.random.default_rng(7).choice(list("abcdef"), n)
    target = make_target(task, n)
    before = target_means(count(values, target).finish())
    for fold in range(FOLDS):
        own = np.arange(n) % FOLDS == fold
        y = target.values.copy()
        y[own] = (y[own] + 1) % target.n_classes if target.n_classes else y[own] * -7.0
        # Shifted by the first row's target: equal up to rounding in the fold that holds row 0.
        after = target_means(count(values, target._replace(values=y)).finish())
        np.testing.assert_allclose(after[fold], before[fold], rtol=1e-9)
        assert not np.allclose(after[FOLDS], before[FOLDS])


def test_whole_weights_are_repeated_rows():
    rng = np.random.default_rng(8)
    values, target, weight = rng.choice(list("abcd"), 80), make_target("regression", 80), rng.integers(0, 3, 80)
    repeated = np.repeat(np.arange(80), weight)
    a = target_means(count(values, target, weight.astype(float)).finish())
    b = target_means(count(values[repeated], target._replace(values=target.values[repeated])).finish())
    np.testing.assert_allclose(a[FOLDS], b[FOLDS], rtol=1e-10)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("most", [2, 3, 5, 6, 20])
def test_frequent_levels_are_those_of_scikit_learn(most, gaps):
    values = ["a"] * 5 + ["b"] * 3 + ["c"] * 3 + ["d"] * 8 + ["e"] * 1 + ([None] * 3 if gaps else ["f"])
    columns = choose_levels(count(values).finish(), most)
    X = np.array([[np.nan if v is None else v] for v in values], dtype=object)
    peer = OneHotEncoder(max_categories=most, sparse_output=False).fit(X)
    places = {level: i for i, level in enumerate(sorted({v for v in values if v is not None}))}
    rows = [columns[places.get(v, len(places))] for v in values]
    mine, theirs = np.eye(columns.max() + 1)[rows], peer.transform(X)
    assert mine.shape == theirs.shape
    np.testing.assert_array_equal(mine @ mine.T, theirs @ theirs.T)  # the same rows together


def test_too_many_levels_are_forgotten_whatever_the_pieces(monkeypatch):
    monkeypatch.setattr(encoder_categories, "MOST_LEVELS", 10)
    values = [f"w{i}" for i in range(11)] * 3
    for cuts in ([], [5], [11, 12], range(33)):
        statistics = count(values, make_target("regression", 33), cuts=cuts)
        assert statistics.overflow and not statistics.position and statistics.letters == 3 * (10 * 2 + 3)


def test_levels_without_weight_do_not_exist():
    statistics = count(["a", "b", "c"], weight=np.array([1.0, 0.0, 2.0]))
    assert statistics.finish().names == ["a", "c"]
    assert statistics.n_rows == 2


def test_labels_may_list_values_that_no_row_has():
    statistics = CategoryStatistics()
    statistics.update(Labels(np.array([2, -1, 2]), ["x", "y", "z"]), None, None, 0)
    assert statistics.finish().names == ["z"] and statistics.missing == 1
