"""A model that the clock cut says so, wherever it is shown."""

import io
import json
import time

import numpy as np
import pytest
from tests.evaluation.comparison.tables import numbers

import learnable as ln
from learnable.cli.display import finished, leaderboard, wide_leaderboard
from learnable.evaluation import compare
from learnable.evaluation.comparison.candidates import candidates_for
from learnable.evaluation.comparison.clock import cut_notes, cut_of, earliest, seconds_for_all
from learnable.evaluation.comparison.leaderboard import seconds_for_fit, winner_of
from learnable.evaluation.comparison.record import new_row
from learnable.report import advise, render

MANY = 10**6


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    return X, X[:, 0] + rng.normal(size=600)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "unit"),
    [
        (ln.GradientBoostingRegressor(n_estimators=MANY, max_seconds=0.05, random_state=0), "rounds"),
        (ln.RandomForestRegressor(n_estimators=MANY, max_seconds=0.05, random_state=0), "trees"),
        (ln.AdaBoostClassifier(n_estimators=MANY, max_seconds=0.05, random_state=0), "rounds"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_how_far_a_fit_came_is_known(rows, model, unit):
    X, y = rows
    y = np.where(y > 0, 1, 0) if "Classifier" in type(model).__name__ else y
    found = cut_of(model.fit(X, y))
    assert found is not None and 0 < found["done"] < found["of"] == MANY and found["unit"] == unit
    inside = ln.TableModel(model).fit(X, y)
    assert cut_of(inside) is not None


@pytest.mark.filterwarnings("ignore")
def test_a_solver_that_did_not_converge_in_time_is_cut_and_one_that_did_is_not(rows):
    X, y = rows
    assert cut_of(ln.LogisticRegression(max_seconds=1e-9).fit(X, y > 0)) is not None
    assert cut_of(ln.LogisticRegression(max_seconds=60.0).fit(X, y > 0)) is None
    assert cut_of(ln.GradientBoostingRegressor(n_estimators=2, max_seconds=60.0).fit(X, y)) is None
    assert cut_of(ln.Ridge().fit(X, y)) is None


@pytest.fixture(scope="module")
def record():
    slow = ln.GradientBoostingRegressor(n_estimators=MANY, max_seconds=0.05, random_state=0)
    return compare(numbers(), "y", models=[("slow", slow), "LinearRegression"])


def test_the_record_the_table_the_report_and_the_advice_say_so(record):
    row = next(row for row in record["leaderboard"] if row["name"] == "slow")
    assert row["cut"]["of"] == MANY and row["certificate"]["holds"] is False
    json.dumps(record, allow_nan=False)
    from rich.console import Console

    console = Console(width=250, record=True, file=io.StringIO())
    console.print(leaderboard(record))
    assert ", cut" in console.export_text(clear=False)
    console.print(wide_leaderboard(record))
    assert f"CUT after {row['cut']['done']} of {MANY} rounds" in console.export_text()
    assert "CUT after" in finished(row)
    assert f"cut after {row['cut']['done']} of {MANY} rounds" in render(record)
    told = [text for text in record["advice"] if text.startswith("slow was cut by its share of time")]
    assert len(told) == 1 and "--seconds" in told[0] and "-m GradientBoostingRegressor" in told[0]
    assert not any("max_iter" in text for text in advise(record))


def test_a_complete_model_that_is_tied_wins_over_a_cut_one():
    cut, whole, worse = (new_row(name, name, {}) for name in ("cut", "whole", "worse"))
    cut.update(rank=1, tied=True, cut={"done": 1, "of": 100, "unit": "rounds"})
    whole.update(rank=2, tied=True, verdict="equal")
    worse.update(rank=3, tied=False, verdict="worse")
    assert winner_of([cut, whole, worse])["name"] == "whole"
    whole.update(tied=False, verdict="worse")
    assert winner_of([cut, whole, worse])["name"] == "cut"
    cut["status"] = "ok"
    assert cut_notes([cut, whole], 60.0) == [
        "cut was cut by its share of time after 1 of 100 rounds and leads all the same; give a larger --seconds, or "
        "race it alone with -m cut."
    ]


def line(name, done, of, fit_seconds, rank):
    row = new_row(name, name, {})
    row.update(rank=rank, status="ok", scores=[0.5] * 5, fit_seconds=fit_seconds)
    row["cut"] = {"done": done, "of": of, "unit": "rounds" if of else "iterations"}
    return row


def test_the_seconds_named_are_those_that_the_fits_would_take():
    """Five folds of 1 s that did a tenth take 50 s, a fifth more for safety; half of the seconds are for the race."""
    assert seconds_for_all([line("a", 10, 100, 1.0, 2)], 60.0) == 200  # 60 + 5 · (12 − 1) / 0.5 = 170, rounded up
    assert seconds_for_all([line("a", 99, 100, 0.01, 2)], 60.0) == 70
    assert seconds_for_all([line("a", 3, None, 0.01, 2)], 60.0) is None


def test_many_models_that_were_cut_are_told_in_one_sentence():
    rows = [line(name, 10 * k + 1, 100, 0.1, k + 2) for k, name in enumerate("abcdefg")]
    [told] = cut_notes(rows, 60.0)
    assert told.startswith("7 models were cut by their share of time and are ranked by what they had by then: ")
    assert "a after 1 of 100 rounds, b after 11 of 100 rounds" in told and "and 2 more; give --seconds" in told
    assert cut_notes([line("x", 1, None, 0.1, 2)], None)[0].startswith(
        "x was cut by its share of time after 1 iteration "
    )
    [told] = cut_notes([line("x", 1, 9, 0.1, 1), line("y", 1, 9, 0.1, 2)], 9.0)
    assert told.endswith("x leads all the same.")


def test_the_earliest_cut_counts():
    early, late = {"done": 2, "of": 100, "unit": "rounds"}, {"done": 50, "of": 100, "unit": "rounds"}
    assert earliest([None, late, early]) == early and earliest([None]) is None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("late", [-5.0, 0.0, 1e-9])
def test_a_fit_whose_time_is_up_is_cut_and_does_not_fail(late):
    seconds = seconds_for_fit(time.monotonic() + late, 3)
    candidate = candidates_for("regression", ["LinearSVR"])[1]
    X = np.random.default_rng(0).normal(size=(50, 3))
    model = candidate.build(0, max_seconds=seconds).fit(X, X[:, 0])
    assert seconds > 0 and np.isfinite(model.predict(X)).all()
