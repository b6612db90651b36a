"""Differences on the same rows: their intervals cover the truth, and pairing is what makes them narrow."""

import numpy as np
import pytest

from learnable.evaluation.comparison.judge import Units, compare_with, holdout_interval, paired_interval, stretches
from learnable.evaluation.comparison.measures import MEASURES, Prediction, ranking_measure


def predictions(rng, n, task):
    """Return targets, a good prediction and a bad one."""
    if task == "regression":
        y = rng.normal(size=n)
        return y, Prediction(y + 0.3 * rng.normal(size=n)), Prediction(y + 0.8 * rng.normal(size=n))
    y = rng.integers(0, 2, n)
    found = []
    for noise in (0.5, 1.5):
        p = 1 / (1 + np.exp(-4 * (y - 0.5 + noise * rng.normal(size=n))))
        found.append(Prediction((p > 0.5).astype(int), np.column_stack([1 - p, p])))
    return y, *found


@pytest.mark.parametrize("measure", MEASURES, ids=lambda m: m.name)
def test_the_difference_is_that_of_the_scores_and_positive_for_the_better_one(measure):
    y, good, bad = predictions(np.random.default_rng(0), 400, measure.tasks[0])
    difference, interval = paired_interval(measure, y, good, bad, 0.95)
    sign = 1 if measure.greater_is_better else -1
    assert difference == pytest.approx(sign * (measure.function(y, good) - measure.function(y, bad)))
    assert 0 < interval.low < difference < interval.high
    turned, other = paired_interval(measure, y, bad, good, 0.95)
    assert turned == pytest.approx(-difference) and other.high < 0


@pytest.mark.parametrize("name", ["r2", "mae", "accuracy", "log_loss"])
def test_intervals_cover_the_truth_as_often_as_they_say(name):
    measure = next(m for m in MEASURES if m.name == name)
    y, good, bad = predictions(np.random.default_rng(1), 200_000, measure.tasks[0])
    truth, _ = paired_interval(measure, y, good, bad, 0.9)
    covered = 0
    for seed in range(300):
        y, good, bad = predictions(np.random.default_rng(seed + 10), 150, measure.tasks[0])
        _, interval = paired_interval(measure, y, good, bad, 0.9)
        covered += interval.low <= truth <= interval.high
    assert 0.84 <= covered / 300 <= 0.96


def test_groups_are_what_varies():
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(12), 50)
    shift = np.repeat(rng.normal(size=12), 50)
    y = rng.normal(size=600)
    good, bad = Prediction(y + 0.1), Prediction(y + 0.1 + np.abs(shift))
    measure = ranking_measure("regression", "mae")
    units = Units(groups, "groups")
    by_row, by_group = (paired_interval(measure, y, good, bad, 0.95, units=u)[1] for u in (None, units))
    assert by_group.high - by_group.low > 4 * (by_row.high - by_row.low)
    resampled = paired_interval(ranking_measure("regression", "rmse"), y, good, bad, 0.95, units=units)[1]
    assert resampled.low < resampled.high and resampled.method == "paired bootstrap of groups"


def test_the_verdict_is_undecided_where_there_is_no_difference():
    rng = np.random.default_rng(3)
    measure = ranking_measure("regression")
    words = []
    for _ in range(200):
        y = rng.normal(size=80)
        a, b = (Prediction(y + rng.normal(size=80)) for _ in range(2))
        words.append(compare_with(measure, y, a, ("other", b), 0.95, 0)["verdict"])
    assert words.count("undecided") >= 180
    y = rng.normal(size=80)
    found = compare_with(measure, y, Prediction(y), ("mean", Prediction(np.full(80, y.mean()))), 0.95, 0)
    assert found["verdict"] == "better" and found["difference"] == pytest.approx(1.0) and found["name"] == "mean"
    assert compare_with(measure, y, Prediction(y + 9), ("m", Prediction(y)), 0.95, 0)["verdict"] == "worse"


def test_too_few_rows_have_no_interval():
    _, interval = paired_interval(ranking_measure("regression", "mae"), np.ones(1), *[Prediction(np.ones(1))] * 2, 0.95)
    assert interval.high == np.inf


def test_stretches_of_time_keep_rows_of_one_time_together_and_are_in_order():
    times = np.random.default_rng(4).integers(0, 50, 400)
    units = stretches(times)
    order = np.argsort(times, kind="stable")
    assert (np.diff(units.codes[order]) >= 0).all() and len(np.unique(units.codes)) == 7
    assert all(len(set(units.codes[times == t])) == 1 for t in np.unique(times))
    assert len(np.unique(stretches(np.zeros(5)).codes)) == 1


@pytest.mark.parametrize("name", ["mae", "r2", "rmse"])
def test_intervals_of_errors_that_stay_for_days_cover_only_by_stretches_of_time(name):
    """Law: where errors are alike from one day to the next, rows are not independent, and few of them are news."""
    measure = ranking_measure("regression", name)

    def drawn(rng, n):
        error = np.zeros(n)
        for t in range(1, n):
            error[t] = 0.7 * error[t - 1] + rng.normal()
        y = 2.0 * rng.normal(size=n)
        return y, Prediction(y + error)

    truth = measure.function(*drawn(np.random.default_rng(0), 100_000))
    covered = {"rows": 0, "stretches": 0}
    repeats = 200
    for seed in range(repeats):
        y, prediction = drawn(np.random.default_rng(seed + 1), 400)
        for word, units in (("rows", None), ("stretches", stretches(np.arange(400)))):
            found = holdout_interval(measure, y, prediction, 0.9, 0, units)
            covered[word] += found.low <= truth <= found.high
    assert covered["rows"] / repeats < 0.75 < 0.82 <= covered["stretches"] / repeats


def test_no_interval_leaves_what_the_measure_can_be():
    """A log loss below zero, or an R² above one, is nobody's."""
    y = np.array([0] * 49 + [1])
    p = np.where(y == 1, 0.2, 0.001)
    prediction = Prediction((p > 0.5).astype(int), np.column_stack([1 - p, p]))
    interval = holdout_interval(ranking_measure("binary", "log_loss"), y, prediction, 0.95, 0)
    assert interval.low == 0.0 < interval.high
    units = Units(np.arange(50) // 5, "groups")
    found = holdout_interval(ranking_measure("binary"), y, Prediction(y), 0.95, 0, units)
    assert (found.low, found.high, found.method) == (1.0, 1.0, "t of groups")
    numbers = np.r_[np.zeros(30), 9.0]
    assert holdout_interval(ranking_measure("regression"), numbers, Prediction(numbers + 0.1), 0.95, 0).high <= 1.0
