"""Baselines of rows in time, on series whose past is known."""

import numpy as np
import pyarrow as pa
import pytest

from learnable.evaluation.comparison.measures import ranking_measure
from learnable.evaluation.comparison.problem import read_problem
from learnable.evaluation.comparison.series import (
    baseline_prediction,
    past_names,
    past_rows,
    predict_by_past,
    season_of,
)
from learnable.evaluation.comparison.splitting import cut


def dates(start, n, unit="D"):
    return np.datetime64(start, unit) + np.arange(n)


def problem_of(when, y, **options):
    table = pa.table({"when": when, "x": np.random.default_rng(0).normal(size=len(y)), "y": y})
    for name in list(options):
        if name == "shop":
            table = table.append_column("shop", pa.array(options.pop("shop")))
            options["groups"] = "shop"
    return read_problem("compare", table, "y", time="when", **options)


@pytest.mark.parametrize(
    ("unit", "words"),
    [("h", "24 hours before"), ("D", "7 days before"), ("M", "12 months before"), ("Y", None)],
)
def test_the_season_follows_from_the_distance_of_the_times(unit, words):
    found = season_of(dates("2020-01", 40, unit).astype("datetime64[us]"))
    assert (None if found is None else found.words) == words
    quarters = dates("2010-01", 120, "M")[::3].astype("datetime64[us]")
    assert season_of(quarters).words == "4 quarters before"
    assert season_of(dates("2020-01-01", 700)[::7].astype("datetime64[us]")).words == "52 weeks before"


def test_the_last_value_is_the_target_before_each_row():
    y = np.arange(60.0) ** 2
    problem = problem_of(dates("2024-01-01", 60).astype("datetime64[ms]"), y)
    train, test = np.arange(40), np.arange(40, 60)
    assert past_names(problem) == ["baseline: the last value", "baseline: the value 7 days before"]
    assert predict_by_past(problem, "baseline: the last value", train, test).values.tolist() == y[39:59].tolist()
    weekly = predict_by_past(problem, "baseline: the value 7 days before", train, test).values
    assert weekly.tolist() == y[33:53].tolist()


def test_a_weekly_series_is_predicted_without_error_also_over_a_gap():
    when = np.delete(dates("2024-01-01", 140), [100, 101]).astype("datetime64[ms]")
    y = when.astype("datetime64[D]").astype(int) % 7 + 0.5
    problem = problem_of(when, y)
    _, final, splits = cut(problem, 4, 0)
    rows = {row["name"]: row for row in past_rows(problem, splits, ranking_measure("regression"), 0.95)}
    assert rows["baseline: the value 7 days before"]["mean"] == 1.0
    assert rows["baseline: the last value"]["mean"] < 0.5
    assert all(row["baseline"] and row["status"] == "ok" and len(row["scores"]) == 4 for row in rows.values())
    exact = baseline_prediction(problem, "baseline: the value 7 days before", final)
    assert exact.values.tolist() == problem.y[final[1]].tolist()
    constant = baseline_prediction(problem, "baseline: the mean", final)
    assert constant.values == pytest.approx(np.full(len(final[1]), problem.y[final[0]].mean()))


def test_each_group_has_its_own_past():
    when = np.repeat(dates("2024-01-01", 30), 2).astype("datetime64[ms]")
    shop = ["a", "b"] * 30
    y = np.where(np.array(shop) == "a", 0.0, 100.0) + np.repeat(np.arange(30.0), 2)
    own, mixed = problem_of(when, y, shop=shop), problem_of(when, y)
    train, test = np.arange(40), np.arange(40, 60)
    assert predict_by_past(own, "baseline: the last value", train, test).values.tolist() == (y[40:60] - 1.0).tolist()
    means = predict_by_past(mixed, "baseline: the last value", train, test).values
    assert means == pytest.approx(np.repeat(np.arange(19.0, 29.0) + 50.0, 2))
    assert own.groups is None and own.grouping is None  # the split is by time


def test_a_row_without_a_past_gets_the_mean_of_the_training_rows():
    shop = ["a"] * 40 + ["new"]
    problem = problem_of(dates("2024-01-01", 41).astype("datetime64[ms]"), np.arange(41.0), shop=shop)
    found = predict_by_past(problem, "baseline: the last value", np.arange(40), np.array([40]))
    assert found.values.tolist() == [19.5]


def test_classes_have_a_past_too():
    y = np.array(["rain", "sun"] * 30)
    problem = problem_of(dates("2024-01-01", 60).astype("datetime64[ms]"), y)
    found = predict_by_past(problem, "baseline: the last value", np.arange(40), np.arange(40, 60))
    assert (found.values != problem.y[40:60]).all() and found.probabilities.sum(axis=1) == pytest.approx(np.ones(20))
    assert (found.probabilities.argmax(axis=1) == found.values).all()


def test_without_time_there_is_no_past():
    table = pa.table({"x": np.random.default_rng(0).normal(size=30), "y": np.arange(30.0) + 0.5})
    assert past_names(read_problem("compare", table, "y")) == []


def test_training_rows_come_before_the_hold_out_whatever_the_form_of_the_dates():
    days = dates("2023-11-20", 100)
    for form in ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y"):
        order = np.random.default_rng(1).permutation(100)
        texts = [day.astype(object).strftime(form) for day in days[order]]
        problem = problem_of(texts, np.arange(100.0)[order] + 0.5)
        _, final, splits = cut(problem, 5, 0)
        for train, test in (final, *splits):
            assert problem.y[train].max() < problem.y[test].min()
