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
from learnable.evaluation.comparison.cut import cut_notes, cut_of, cut_remedy, earliest
from learnable.evaluation.comparison.leaderboard import winner_of
from learnable.evaluation.comparison.record import new_row
from learnable.evaluation.comparison.scoring import seconds_for_fit
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
    assert "It leads all the same" in cut_notes([cut, whole], 60.0)[0]


def test_the_remedy_grows_with_what_is_missing():
    assert "--seconds 2000" in cut_remedy("M", {"done": 5, "of": 100, "unit": "rounds"}, 60.0)
    assert "a larger --seconds" in cut_remedy("M", {"done": 5, "of": None, "unit": "iterations"}, 60.0)
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
