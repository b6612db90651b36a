"""What is said of the hold-out, on comparisons whose truth is known: copies, optimism, repeated folds, time."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from sklearn.neighbors import KNeighborsRegressor

from learnable.evaluation import compare
from learnable.evaluation.comparison import tuning
from learnable.evaluation.comparison.finish import hold_against, optimism_note
from learnable.report import advise


def row_of(record, name):
    return next(row for row in record["leaderboard"] if row["name"] == name)


@pytest.fixture(scope="module")
def copied():
    """A table of noise, every row three times: a neighbour is a twin, and knows nothing of new rows."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(250, 4)), rng.normal(size=250)
    X, y = np.vstack([X, X, X]), np.concatenate([y, y, y])
    table = pa.table({f"x{j}": X[:, j] for j in range(4)} | {"y": y})
    models = [("neighbours", KNeighborsRegressor(n_neighbors=1))]
    return {copies: compare(table, "y", models=models, copies=copies) for copies in ("together", "apart")}


def test_copies_flatter_only_where_they_are_on_both_sides(copied):
    together, apart = copied["together"], copied["apart"]
    assert together["winner"]["holdout"]["score"] < 0 < apart["winner"]["holdout"]["score"]
    assert together["winner"]["as_given"]["score"] == pytest.approx(apart["winner"]["holdout"]["score"])
    assert row_of(together, "neighbours")["mean"] < 0 < row_of(apart, "neighbours")["mean"]
    assert "copies of a row together" in together["protocol"]["scheme"] and apart["winner"]["as_given"] is None


def test_a_model_that_lost_to_the_baseline_is_told_so(copied):
    together = copied["together"]
    assert together["winner"]["against"]["verdict"] == "worse" and together["winner"]["against"]["high"] < 0
    assert any("is worse than the baseline (the mean): use that instead" in text for text in advise(together))
    assert not any("worse than baseline" in text for text in advise(copied["apart"]))


def test_baseline_and_winner_are_compared_on_the_same_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] + 0.5 * rng.normal(size=200)
    record = compare(pa.table({"a": X[:, 0], "b": X[:, 1], "y": y}), "y", models=["LinearRegression"])
    winner = record["winner"]
    against = winner["against"]
    assert against["name"] == "baseline: the mean" and against["verdict"] == "better"
    assert against["difference"] == pytest.approx(winner["holdout"]["score"] - against["score"])
    assert against["low"] < against["difference"] < against["high"]


@pytest.fixture
def hardly_curved():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 3))
    y = X[:, 0] + 0.4 * X[:, 1] ** 2 + rng.normal(size=120)
    return pa.table({f"x{j}": X[:, j] for j in range(3)} | {"y": y})


def test_undecided_models_get_further_folds_and_decided_ones_do_not(hardly_curved, monkeypatch):
    monkeypatch.setattr(tuning, "_ALWAYS_SECONDS", 600.0)  # however busy the machine is
    table = hardly_curved
    models = [(f"{k} neighbours", KNeighborsRegressor(n_neighbors=k)) for k in (10, 14)]
    record = compare(table, "y", models=[*models, "LinearRegression"])
    baseline = row_of(record, "baseline: the mean")
    assert record["protocol"]["repeats"] > 1 and len(baseline["scores"]) <= 5 * record["protocol"]["repeats"]
    assert max(len(row["scores"]) for row in record["leaderboard"]) == 5 * record["protocol"]["repeats"]
    assert {row["verdict"] for row in record["leaderboard"]} <= {"best", "equal", "worse", "undecided"}


@pytest.mark.long
def test_a_model_that_predicts_the_mean_has_a_verdict_too(hardly_curved):
    mean = ("same", KNeighborsRegressor(n_neighbors=119 * 4 // 5 * 4 // 5))
    record = compare(hardly_curved, "y", models=["LinearRegression", mean])
    assert {row["verdict"] for row in record["leaderboard"]} <= {"best", "equal", "worse", "undecided"}


def test_time_has_its_baselines_its_periods_and_an_order():
    n = 240
    days = np.datetime64("2023-01-01") + np.arange(n)
    rng = np.random.default_rng(3)
    y = 10.0 * (np.arange(n) % 7) + rng.normal(size=n)
    order = rng.permutation(n)
    texts = [day.astype(object).strftime("%d/%m/%Y") for day in days]
    table = pa.table({"day": texts, "x": rng.normal(size=n), "y": y}).take(order)
    record = compare(table, "y", time="day", models=["LinearRegression"])
    assert record["protocol"]["time"] == {
        "train": ["2023-01-01", "2023-07-11"],
        "holdout": ["2023-07-12", "2023-08-28"],
    }
    assert record["leaderboard"][0]["name"] == "baseline: the value 7 days before"
    assert row_of(record, "baseline: the last value")["baseline"]
    assert record["winner"]["against"]["name"] == "baseline: the value 7 days before"
    assert record["winner"]["against"]["verdict"] == "worse"
    assert any("It knows the targets before each row" in text for text in advise(record))


@pytest.mark.parametrize(
    ("mean", "score", "greater", "word"),
    [(0.9, 0.7, True, "worse"), (0.8, 0.79, True, "alike"), (0.7, 0.9, True, "alike"), (1.0, 2.0, False, "worse")],
)
def test_optimism_is_a_hold_out_that_is_worse_beyond_noise(mean, score, greater, word):
    row, holdout = (
        {"low": mean - 0.05, "high": mean + 0.05},
        {"score": score, "low": score - 0.05, "high": score + 0.05},
    )
    assert hold_against(mean, row, holdout, greater) == word
    assert hold_against(mean, row, holdout | {"low": None}, greater) == "unknown"


def test_a_score_is_called_optimistic_only_where_the_hold_out_is_worse():
    """Rows in time whose rule changes at the end: cross-validation on the past is too good."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=300)
    y = np.where(np.arange(300) < 240, x, -x) + 0.1 * rng.normal(size=300)
    table = pa.table({"when": np.arange(300), "x": x, "y": y})
    changed = compare(table, "y", time="when", models=["LinearRegression"])["winner"]
    assert "is optimistic" in changed["optimism_note"]
    steady = table.set_column(2, "y", pa.array(x + 0.1 * rng.normal(size=300)))
    assert "optimistic" not in compare(steady, "y", time="when", models=["LinearRegression"])["winner"]["optimism_note"]


@pytest.mark.parametrize(
    ("cut", "told"),
    [
        (None, "by which it was chosen among 3;"),
        ({"done": 1, "of": 100, "unit": "rounds"}, "by which it was chosen among 2 that are complete;"),
    ],
)
def test_how_a_winner_was_chosen_leaves_out_what_the_clock_cut(cut, told):
    rows = [
        {
            "name": name,
            "rank": rank,
            "mean": 0.9 - 0.1 * rank,
            "baseline": False,
            "cut": None,
            "low": None,
            "high": None,
        }
        for rank, name in enumerate("abc", start=1)
    ]
    best = rows[0]
    if cut is not None:
        rows[0]["cut"] = cut
        best = rows[1]
    baseline = {**rows[2], "name": "baseline", "rank": 4, "baseline": True}
    comparison = SimpleNamespace(measure=SimpleNamespace(label="R²", greater_is_better=True))
    holdout = {"score": 0.7, "low": None, "high": None}
    assert told in optimism_note(best, holdout, comparison, [*rows, baseline])
