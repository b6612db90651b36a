import pytest

from learnable.evaluation.comparison.leaderboard import fill_row, rank_rows, winner_of
from learnable.evaluation.comparison.measures import ranking_measure
from learnable.evaluation.comparison.race import Outcome
from learnable.evaluation.comparison.record import new_row

R2, RMSE = ranking_measure("regression"), ranking_measure("regression", "rmse")


def fold(score, **others):
    return {
        "test": {"r2": score, "rmse": 1.0},
        "train": {"r2": score + 0.1, "rmse": 0.5},
        "fit_seconds": 0.1,
        "predict_seconds": 0.01,
        "certificate": None,
    } | others


def filled(name, scores, status="ok", measure=R2, **others):
    row = new_row(name, name, {}, **others)
    fill_row(row, Outcome(status, None, [fold(score) for score in scores]), measure, 3, 0.25, 0.95)
    return row


def test_a_line_that_ran_out_of_time_keeps_its_folds_but_has_no_rank():
    slow, good = filled("slow", [0.9, 0.9], status="timeout"), filled("good", [0.5, 0.6, 0.7])
    assert slow["mean"] == pytest.approx(0.9) and slow["low"] is None
    assert [row["name"] for row in rank_rows([slow, good], R2, 75, 25)] == ["good", "slow"]
    assert slow["rank"] is None and good["rank"] == 1


def test_scores_that_are_not_finite_are_a_failure():
    row = filled("odd", [0.5, float("nan"), 0.4])
    assert row["status"] == "failed" and row["scores"][1] is None and row["mean"] is None


def test_small_errors_are_better():
    rows = [filled(name, [0.1] * 3, measure=RMSE) for name in "ab"]
    rows[1].update(scores=[0.1, 0.2, 0.1], mean=0.4 / 3)
    rows[0].update(scores=[1.0, 1.1, 1.2], mean=1.1)
    assert [row["name"] for row in rank_rows(rows, RMSE, 75, 25)] == ["b", "a"]


def test_the_winner_is_not_the_baseline():
    rows = rank_rows([filled("dummy", [0.9] * 3, baseline=True), filled("model", [0.1] * 3)], R2, 75, 25)
    assert rows[0]["name"] == "dummy" and winner_of(rows)["name"] == "model"
    assert winner_of(rows[:1]) is None


def test_the_weakest_certificate_is_shown():
    strong = {"kind": "gap", "value": 1e-9, "tolerance": 1e-8, "holds": True}
    weak = strong | {"value": 1e-3, "holds": False}
    row = new_row("m", "M", {})
    folds = [fold(0.5, certificate=c) for c in (strong, weak, None)]
    fill_row(row, Outcome("ok", None, folds), R2, 3, 0.25, 0.95)
    assert row["certificate"] is weak
