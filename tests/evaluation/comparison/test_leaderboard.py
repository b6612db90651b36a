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


def test_lines_that_are_far_apart_are_never_called_equal():
    """Five folds that spread widely cannot tell 0.60 from 0.86; that is said, and not that they are equal."""
    best, other = filled("best", [0.95, 0.80, 0.836]), filled("other", [0.2, 0.9, 0.712])
    rows = rank_rows([best, other], R2, 75, 25)
    assert [row["verdict"] for row in rows] == ["best", "undecided"] and not other["tied"]
    assert other["difference"]["low"] < 0 < other["difference"]["value"] < other["difference"]["high"]


def test_verdicts_are_by_the_folds_that_two_lines_share():
    first, second = filled("a", [0.8, 0.81, 0.82]), filled("b", [0.799, 0.809, 0.8201])
    far = filled("c", [0.1, 0.12, 0.11])
    first.update(scores=[0.8, 0.81, 0.82, 0.0, 0.0, 0.0], mean=0.405)
    rows = rank_rows([second, far, first], R2, 75, 25)
    assert [row["name"] for row in rows] == ["a", "b", "c"]  # the further folds were hard
    assert [row["verdict"] for row in rows] == ["best", "equal", "worse"] and second["tied"]


def test_a_line_of_fewer_folds_is_placed_by_those_it_shares():
    """A blend of models that take too long for further folds stands where the folds of all put it."""
    again, blend = filled("a", [0.80, 0.80, 0.80]), filled("blend", [0.85, 0.85, 0.85])
    worse = filled("c", [0.75, 0.75, 0.75])
    again.update(scores=[0.80, 0.80, 0.80, 0.9, 0.9, 0.9], mean=0.85)
    assert [row["name"] for row in rank_rows([again, worse, blend], R2, 75, 25)] == ["blend", "a", "c"]


def test_margins_are_small_beside_what_is_left_to_gain():
    assert R2.margin(0.5) == pytest.approx(0.01) and R2.margin(0.99) == pytest.approx(0.001)
    assert RMSE.margin(200.0) == pytest.approx(2.0)
