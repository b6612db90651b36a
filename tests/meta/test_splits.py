"""Splits keep their promises: shares, groups and time; and cut as scikit-learn does where it cuts the same way."""

from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import TimeSeriesSplit

from learnable.core import DataError, ParameterError
from learnable.meta.splits import hold_out, make_splits

seeds = st.integers(0, 2**32 - 1)


def assert_partition(splits, n_rows):
    """Every row is tested once, and trained on in all other folds."""
    assert np.array_equal(np.sort(np.concatenate([test for _, test in splits])), np.arange(n_rows))
    for train, test in splits:
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(n_rows))
        assert (np.diff(train) > 0).all() and (np.diff(test) > 0).all()


# ---- laws ----


@given(st.integers(2, 60), st.integers(2, 8), seeds)
def test_folds_partition_the_rows_in_nearly_equal_parts(n_rows, n_splits, seed):
    if n_rows < n_splits:
        with pytest.raises(DataError, match=f"{n_rows} row"):
            make_splits(n_rows, n_splits=n_splits, random_state=seed)
        return
    splits = make_splits(n_rows, n_splits=n_splits, random_state=seed)
    assert len(splits) == n_splits
    assert_partition(splits, n_rows)
    sizes = [len(test) for _, test in splits]
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(st.sampled_from("abcd"), min_size=8, max_size=80), st.integers(2, 8), seeds)
def test_stratified_folds_keep_every_class_within_one_row(labels, n_splits, seed):
    y = np.array(labels)
    splits = make_splits(y, scheme="stratified", n_splits=n_splits, random_state=seed)
    assert_partition(splits, len(y))
    sizes = [len(test) for _, test in splits]
    assert max(sizes) - min(sizes) <= 1
    for label in np.unique(y):
        counts = [np.count_nonzero(y[test] == label) for _, test in splits]
        share = np.count_nonzero(y == label) / n_splits
        assert all(abs(count - share) < 1 for count in counts)


@given(st.lists(st.integers(0, 12), min_size=6, max_size=80), st.integers(2, 6), seeds)
def test_grouped_folds_never_share_a_group(groups, n_splits, seed):
    groups = np.array(groups)
    if len(np.unique(groups)) < n_splits:
        with pytest.raises(DataError, match="group"):
            make_splits(len(groups), scheme="grouped", n_splits=n_splits, groups=groups, random_state=seed)
        return
    splits = make_splits(len(groups), scheme="grouped", n_splits=n_splits, groups=groups, random_state=seed)
    assert_partition(splits, len(groups))
    for train, test in splits:
        assert len(test) > 0
        assert not set(groups[train]) & set(groups[test])


@given(st.lists(st.integers(0, 30), min_size=6, max_size=80), st.integers(2, 6))
def test_time_splits_never_train_on_the_future_nor_on_the_present(times, n_splits):
    times = np.array(times)
    if len(np.unique(times)) <= n_splits:
        with pytest.raises(DataError, match="distinct time"):
            make_splits(len(times), scheme="time", n_splits=n_splits, time=times)
        return
    splits = make_splits(len(times), scheme="time", n_splits=n_splits, time=times)
    assert len(splits) == n_splits
    for train, test in splits:
        assert len(train) > 0 and len(test) > 0
        assert times[train].max() < times[test].min()
    for (_, earlier), (_, later) in pairwise(splits):
        assert times[earlier].max() < times[later].min()
    assert times[splits[-1][1]].max() == times.max()


@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=60), st.floats(0.05, 0.95), seeds)
def test_a_hold_out_of_classes_keeps_shares_and_trains_on_every_class(labels, share, seed):
    y = np.array(labels)
    train, test = hold_out(y, share=share, task="multiclass", random_state=seed)
    assert_partition([(np.delete(np.arange(len(y)), test), test), (test, train)], len(y))
    if len(np.unique(y)) < len(y):
        assert set(y[train]) == set(y)


@given(st.lists(st.integers(8, 40), min_size=2, max_size=5), st.floats(0.1, 0.8), seeds)
def test_a_hold_out_keeps_every_class_within_one_row(counts, share, seed):
    y = np.repeat(np.arange(len(counts)), counts)
    _, test = hold_out(y, share=share, task="multiclass", random_state=seed)
    assert len(test) == np.floor(share * len(y) + 0.5)
    for label, count in enumerate(counts):
        assert abs(np.count_nonzero(y[test] == label) - len(test) * count / len(y)) < 1


@given(st.lists(st.integers(0, 8), min_size=2, max_size=60), st.floats(0.05, 0.95), seeds)
def test_a_hold_out_of_groups_sets_whole_groups_aside(groups, share, seed):
    groups = np.array(groups)
    if len(np.unique(groups)) < 2:
        with pytest.raises(DataError, match="one group"):
            hold_out(len(groups), share=share, groups=groups, random_state=seed)
        return
    train, test = hold_out(len(groups), share=share, groups=groups, random_state=seed)
    assert len(train) and len(test) and not set(groups[train]) & set(groups[test])


@given(st.lists(st.integers(0, 30), min_size=3, max_size=60), st.floats(0.05, 0.95))
def test_a_hold_out_by_time_is_the_last_part(times, share):
    times = np.array(times)
    if len(np.unique(times)) < 2:
        with pytest.raises(DataError, match="distinct time"):
            hold_out(len(times), share=share, time=times)
        return
    train, test = hold_out(len(times), share=share, time=times)
    assert len(train) and len(test) and times[train].max() < times[test].min()


# ---- oracles ----


@pytest.mark.parametrize("n_rows", [6, 7, 20, 23])
@pytest.mark.parametrize("n_splits", [2, 3, 5])
def test_time_splits_of_distinct_times_are_those_of_scikit_learn(n_rows, n_splits):
    theirs = list(TimeSeriesSplit(n_splits).split(np.zeros((n_rows, 1))))
    ours = make_splits(n_rows, scheme="time", n_splits=n_splits)
    for (train, test), (expected_train, expected_test) in zip(ours, theirs, strict=True):
        assert np.array_equal(train, expected_train) and np.array_equal(test, expected_test)


def test_time_is_read_as_dates_and_as_text():
    days = pd.Series(pd.to_datetime(["2024-01-03", "2024-01-01", "2024-01-02", "2024-01-04"]))
    for values in (days, days.astype(str), pl.Series(days.to_list()), days.to_numpy()):
        splits = make_splits(4, scheme="time", n_splits=3, time=values)
        assert [test.tolist() for _, test in splits] == [[2], [0], [3]]


# ---- randomness ----


def test_the_seed_decides_and_repeats_differ():
    once, again = make_splits(30, repeats=3, random_state=5), make_splits(30, repeats=3, random_state=5)
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(once, again, strict=True))
    assert len(once) == 15
    assert not np.array_equal(once[0][1], once[5][1])
    assert not np.array_equal(once[0][1], make_splits(30, random_state=6)[0][1])
    for start in (0, 5, 10):
        assert_partition(once[start : start + 5], 30)


@pytest.mark.parametrize("state", [None, np.random.default_rng(0), np.random.RandomState(0)])
def test_every_source_of_randomness_is_taken(state):
    assert_partition(make_splits(12, random_state=state), 12)
    assert len(hold_out(10, random_state=state)[1]) == 2


@settings(max_examples=20)
@given(seeds)
def test_which_rows_are_held_out_is_random(seed):
    """Every row has the same chance: 200 draws of a fifth of ten rows."""
    counts = np.zeros(10)
    rng = np.random.default_rng(seed)
    for _ in range(200):
        counts[hold_out(10, random_state=rng)[1]] += 1
    assert counts.sum() == 400 and counts.min() > 10  # 40 on average, standard deviation 5.7


# ---- refusals ----


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": 10, "scheme": "random"}, "scheme must be one of"),
        ({"rows": 10, "n_splits": 1}, "n_splits must be an integer >= 2"),
        ({"rows": 10, "n_splits": 2.5}, "n_splits"),
        ({"rows": 10, "repeats": 0}, "repeats"),
        ({"rows": 10, "random_state": "seed"}, "random_state"),
        ({"rows": 10, "scheme": "stratified"}, "needs the targets"),
        ({"rows": 10, "scheme": "grouped"}, "needs groups"),
        ({"rows": 10, "scheme": "time", "repeats": 2}, "one way only"),
    ],
)
def test_wrong_parameters_are_named(arguments, message):
    with pytest.raises(ParameterError, match=message):
        make_splits(arguments.pop("rows"), **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": 0}, "at least one row"),
        ({"rows": []}, "at least one row"),
        ({"rows": "price"}, "number of rows or their targets"),
        ({"rows": 3}, "3 row.* cannot be cut into 5 folds; use at most 3"),
        ({"rows": 1}, "1 row"),
        ({"rows": 6, "scheme": "grouped", "groups": [1, 2]}, r"groups must have shape \(6,\)"),
        ({"rows": 6, "scheme": "grouped", "groups": [1, 2, None, 1, 2, 3]}, "groups is missing in row 2"),
        ({"rows": 6, "scheme": "time", "time": [1, 2, np.nan, 1, 2, 3]}, "time is missing in row 2"),
        ({"rows": 6, "scheme": "time", "time": [1, "b", 2, "c", 3, "d"]}, "cannot be compared"),
        ({"rows": 6, "scheme": "time", "time": [0] * 6}, "1 distinct time"),
    ],
)
def test_impossible_cuts_are_explained(arguments, message):
    if "time" in arguments and arguments["time"][1] == "b":
        arguments["time"] = np.array(arguments["time"], dtype=object)
    with pytest.raises(DataError, match=message):
        make_splits(arguments.pop("rows"), **arguments)


def test_groups_may_be_of_mixed_types():
    groups = np.array(["a", 1, 2.5, "a", 1, 2.5], dtype=object)
    for train, test in make_splits(6, scheme="grouped", n_splits=3, groups=groups):
        assert not set(groups[train]) & set(groups[test])


@pytest.mark.parametrize("share", [0.0, 1.0, -1, 2, "half"])
def test_a_share_is_between_zero_and_one(share):
    with pytest.raises(ParameterError, match="share"):
        hold_out(10, share=share)


def test_one_row_cannot_be_held_out():
    with pytest.raises(DataError, match="at least 2 rows"):
        hold_out(1)
    with pytest.raises(ParameterError, match="not both"):
        hold_out(4, groups=[1, 1, 2, 2], time=[1, 2, 3, 4])
    assert [part.tolist() for part in hold_out(2, share=0.01, time=[5, 4])] == [[1], [0]]


def test_a_class_with_one_member_is_trained_on():
    y = np.array(["rare"] + ["common"] * 19)
    for seed in range(20):
        train, test = hold_out(y, task="binary", random_state=seed)
        assert 0 in train and len(test) == 4
    splits = make_splits(y, scheme="stratified", random_state=0)
    assert_partition(splits, 20)
