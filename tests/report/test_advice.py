"""Every sentence of the advice, on a record where it is true and on one where it is false."""

import pytest
from tests.report import records

from learnable.report import advise
from learnable.report.advice import read_curve


def said(record, part):
    return any(part in sentence for sentence in advise(record))


def without_failures(record):
    record["leaderboard"] = [row for row in record["leaderboard"] if row["status"] == "ok"]
    return record


def test_advice_follows_what_was_found():
    record = records.houses()
    assert "assessed_value" in advise(record)[0]
    assert said(record, "1 model has no score because the time was up: give more --seconds") and said(record, "failed")
    assert said(record, "learning curve is flat") and said(record, "learnable predict")
    for absent in (
        "max_iter",
        "regularise",
        "regular end",
        "rely on",
        "The comparison was stopped",
        "cut by the clock",
    ):
        assert not said(record, absent)


def test_a_table_without_trouble_is_told_of_none():
    record = without_failures(records.houses())
    assert not said(record, "time limit") and not said(record, "failed")
    record["data"]["warnings"] = []
    assert not said(record, "assessed_value")


def test_a_limit_of_iterations_is_told_from_the_clock_and_from_what_is_not_known():
    record = records.houses()
    row = record["leaderboard"][0]
    row["certificate"] |= {"holds": False, "n_iter": 1000, "max_iter": 1000}
    assert said(record, "limit of 1000 iterations, before its tolerance: raise max_iter")
    row["certificate"] |= {"n_iter": 7}
    assert not said(record, "max_iter") and not said(record, "--seconds, and it may do better")
    row["cut"] = {"done": 7, "of": 100, "unit": "rounds"}
    assert said(record, "cut by the clock after 7 of 100 rounds: give more --seconds") and not said(record, "max_iter")
    row["cut"], row["certificate"]["holds"] = None, True
    row["certificate"]["n_iter"] = 1000
    assert not said(record, "max_iter")


@pytest.mark.parametrize("train", [0.99, 0.8])
def test_a_gap_to_the_training_score_alone_is_no_reason_to_regularise(train):
    record = records.houses()
    record["leaderboard"][0]["train_mean"] = train
    assert not said(record, "regular")


def family(alphas, verdicts):
    """A record whose lines are one model with several penalties, the best first."""
    record = without_failures(records.houses())
    rows = record["leaderboard"][:1]
    rows = [
        records.line(f"Ridge (alpha={a:g})", "Ridge", 0.81 - 0.05 * k, 0.01, rank=k + 1, parameters={"alpha": a})
        | {"verdict": word}
        for k, (a, word) in enumerate(zip(alphas, verdicts, strict=True))
    ]
    record["leaderboard"] = rows
    record["winner"]["name"] = rows[0]["name"]
    return record


def test_more_or_less_regular_only_where_the_edge_of_the_settings_was_better():
    assert said(family([100.0, 1.0, 0.01], ["best", "worse", "worse"]), "try a larger alpha")
    assert said(family([0.01, 1.0, 100.0], ["best", "worse", "worse"]), "try a smaller alpha")
    assert not said(family([1.0, 0.01, 100.0], ["best", "worse", "worse"]), "try a ")
    assert not said(family([100.0, 1.0], ["best", "undecided"]), "try a ")
    assert not said(family([100.0], ["best"]), "try a ")
    turned = family([100.0, 1.0], ["best", "worse"])
    for row in turned["leaderboard"]:
        row["parameters"] = {"C": row["parameters"]["alpha"]}
    assert said(turned, "less regular end") and said(turned, "try a larger C")


def test_a_model_no_better_than_the_baseline_is_told_and_a_better_one_is_not():
    record = records.houses()
    assert not said(record, "do not rely on it")
    record["winner"]["against"]["verdict"] = "undecided"
    told = "On the rows set aside RidgeCV cannot be told from the baseline (always the mean)"
    record["leaderboard"][4]["verdict"] = "worse"
    assert said(record, f"{told}, although in cross-validation it is better beyond noise: get more rows before")
    record["leaderboard"][4]["verdict"] = "undecided"
    assert said(record, f"{told}: do not rely on it.")
    record["winner"]["against"]["verdict"] = "worse"
    assert said(record, "RidgeCV is worse than the baseline (always the mean): use that instead.")


def test_a_baseline_of_past_values_that_leads_is_told_with_what_it_knows():
    record = without_failures(records.houses())
    record["leaderboard"][4] |= {"rank": 0, "mean": 0.99, "name": "baseline: the last value", "model": "past values"}
    assert said(record, "The baseline (the last value) ranks above every model. It knows the targets before each row")
    assert not said(record, "is saved because its mean is the best")
    record["leaderboard"][4]["model"] = "DummyRegressor"
    assert said(record, "ranks above every model.") and not said(record, "targets before each row")


def test_equal_models_are_named_with_the_reason_for_the_one_that_is_saved():
    record = records.houses()
    sentence = "RidgeCV is saved because its mean is the best; Ridge (alpha=1), LinearRegression are equal within"
    assert said(record, sentence) and not said(record, "times as fast")
    record["leaderboard"][0]["predict_seconds"] = record["leaderboard"][2]["predict_seconds"] = 1.0
    record["leaderboard"][1]["predict_seconds"] = 0.1
    assert said(record, "Ridge (alpha=1) predicts 10 times as fast: take that one where speed counts")
    for row in record["leaderboard"]:
        row["tied"] = False
    assert not said(record, "equal")


def test_a_first_line_that_is_not_kept_is_told_with_the_reason():
    record = records.houses()
    record["leaderboard"][1] |= {"rank": 0, "cut": {"done": 3, "of": 100, "unit": "rounds"}}
    assert said(record, "Ridge (alpha=1) ranks first but was cut by the clock; RidgeCV is kept instead.")
    assert not said(record, "its mean is the best")
    assert not said(records.houses(), "is kept instead")


def test_an_interruption_is_told_as_one_and_not_as_a_lack_of_time():
    record = records.nothing_worked()
    assert said(record, "The comparison was stopped, before 2 of the models had a score")
    assert not said(record, "time limit") and not said(record, "--seconds")
    late = records.houses() | {"status": "interrupted"}
    late["leaderboard"][5] |= {"status": "skipped", "reason": None}
    assert said(late, "The comparison was stopped, before 1 of the models") and not said(late, "time limit")
    assert not said(records.houses() | {"status": "complete"}, "The comparison was stopped")


def test_there_is_always_something_to_do():
    record = records.letters()
    assert advise(record) and all(sentence.endswith((".", "csv")) for sentence in advise(record))


def test_models_that_failed_are_counted():
    record = without_failures(records.houses())
    assert not said(record, "failed")
    record["leaderboard"].append(records.failure("QDA", "QDA", "failed", "singular"))
    assert said(record, "1 model failed: its reason stands in the leaderboard.")
    record["leaderboard"].append(records.failure("LDA", "LDA", "failed", "singular"))
    assert said(record, "2 models failed: their reasons stand in the leaderboard.")


def test_that_nothing_stands_out_is_said_only_where_nothing_else_is():
    record = without_failures(records.houses())
    record["data"]["warnings"] = []
    name = record["winner"]["name"]
    record["details"][name]["learning_curve"] = None
    record["leaderboard"] = [row for row in record["leaderboard"] if row["name"] == name or row["baseline"]]
    found = advise(record)
    assert len(found) == 2
    assert found[0].startswith("Nothing stands out") and found[1].startswith("Predict new rows with")
    record["leaderboard"][0]["cut"] = {"done": 7, "of": 100, "unit": "rounds"}
    assert not any(sentence.startswith("Nothing stands out") for sentence in advise(record))


def test_reading_a_learning_curve():
    trend = {"per_doubling": 0.02, "low": 0.01, "high": 0.03, "margin": 0.01, "word": "rising"}
    assert "More rows are likely to help" in read_curve({"trend": trend})
    assert "by 0.0200 (95 % interval 0.0100 to 0.0300)" in read_curve({"trend": trend})
    assert "flat" in read_curve({"trend": trend | {"word": "flat"}})
    assert read_curve({"trend": trend | {"word": "unknown"}}) is None
    assert read_curve({"trend": trend | {"word": "falling"}}) is None
    assert read_curve({"trend": trend | {"low": None}}) is None
    assert read_curve({"test": [0.5, 0.8, 0.801]}) is None
    assert read_curve(None) is None


def test_a_setting_is_not_called_an_edge_by_a_model_that_was_cut_or_where_tuning_went_beyond():
    record = family([100.0, 1.0, 0.01], ["best", "worse", "worse"])
    assert said(record, "regular end")
    cut = family([100.0, 1.0, 0.01], ["best", "worse", "worse"])
    for row in cut["leaderboard"]:
        if row["name"] != cut["winner"]["name"]:
            row["cut"] = {"done": 3, "of": None, "unit": "iterations"}
    assert not said(cut, "regular end")
    tuned = family([100.0, 1.0, 0.01], ["best", "worse", "worse"])
    for row in tuned["leaderboard"]:
        row["settings_tried"] = 12
    assert not said(tuned, "regular end")


def test_models_that_were_left_behind_are_not_called_not_started():
    record = without_failures(records.houses())
    for row in record["leaderboard"][1:3]:
        row.update(status="skipped", mean=None, rank=None, reason="left behind: R² 0.6 on 4,000 rows …")
    assert said(record, "2 models did not race on all rows for want of time") and not said(record, "not started")
    record["leaderboard"][1]["reason"] = None
    assert said(record, "1 model did not race on all rows") and said(record, "1 model was not started")


def test_a_curve_of_a_few_of_the_rows_does_not_say_that_more_rows_help():
    trend = {"per_doubling": 0.02, "low": 0.01, "high": 0.03, "word": "rising", "margin": 0.01}
    assert "More rows are likely to help" in read_curve({"sizes": [400, 8000], "rows": 10_000, "trend": trend})
    assert read_curve({"sizes": [400, 8000], "rows": 800_000, "trend": trend}) is None
