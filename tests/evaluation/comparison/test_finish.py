"""What is said of the end of a comparison: what there was no time for, and what a column does to the predictions."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from learnable.evaluation import compare
from learnable.evaluation.comparison import explain, judge, keep, warm
from learnable.evaluation.comparison.candidates import candidates_for
from learnable.evaluation.comparison.finish import Finish
from learnable.evaluation.comparison.race import Outcome
from learnable.report import render


class Starved(Finish):
    """A finish whose jobs after the first few are stopped by the clock."""

    def __init__(self, jobs):
        super().__init__(SimpleNamespace(), None)
        self.jobs = jobs

    def _run(self, ranked):
        for name, done in self.jobs:
            outcome = Outcome("ok" if done else "timeout", None if done else "stopped")
            if outcome.status == "timeout":
                self.no_time.append(name)


def test_what_there_was_no_time_for_is_told_in_one_sentence():
    finish = Starved([("a", True), ("b", False), ("c", False), ("d", False)])
    finish.run([])
    assert finish.notes == ["The time was too short for b, c and d: give more --seconds."]
    finish = Starved([("a", True), ("b", False)])
    finish.run([])
    assert finish.notes == ["The time was too short for b: give more --seconds."]
    finish = Starved([("a", True)])
    finish.run([])
    assert finish.notes == []


@pytest.mark.parametrize(
    "job", [judge.judge_candidate, explain.explain_candidate, keep.keep_candidate, keep.cover_holdout]
)
def test_every_job_that_fits_a_model_says_when_it_is_ready(job, monkeypatch, tmp_path):
    """Compiling is nobody's time: kernels of a candidate, and of those inside it, are loaded before the job begins."""
    made = []
    monkeypatch.setattr(warm, "make_ready", lambda name, task: made.append((name, task)))
    [_, ridge] = candidates_for("regression", ["LinearRegression"])
    blend = SimpleNamespace(model="BlendRegressor", members=(ridge, ridge), name="blend")
    told = []

    class Report:
        def __call__(self, message):
            raise AssertionError(message)

        def ready(self, seconds):
            told.append(seconds)
            raise InterruptedError

    arguments = {
        "folder": str(tmp_path), "candidate": blend, "task": "regression", "seed": 0, "metric": "r2", "classes": None,
        "level": 0.95, "labels": None, "target": "y", "file": "f",
    }  # fmt: skip
    wanted = job.__code__.co_varnames[1 : job.__code__.co_argcount]
    with pytest.raises(InterruptedError):
        job(Report(), **{key: value for key, value in arguments.items() if key in wanted})
    assert len(told) == 1 and told[0] >= 0.0
    assert made == [
        ("BlendRegressor", "regression"),
        ("LinearRegression", "regression"),
        ("LinearRegression", "regression"),
    ]


@pytest.fixture(scope="module")
def sold():
    """Sales of days: they rise with the price, which is written in dollars, and are higher on Saturdays."""
    rng = np.random.default_rng(0)
    day = np.datetime64("2022-01-01") + np.arange(500)
    weekday = (day.astype(int) + 3) % 7
    price = np.round(rng.uniform(10.0, 30.0, 500), 2)
    sales = 5.0 * price + 60.0 * (weekday == 5) + rng.normal(size=500)
    shown = [f"{d.astype(object):%d.%m.%Y}" for d in day]
    return pa.table({"day": shown, "price": [f"${p:.2f}" for p in price], "sales": sales})


@pytest.mark.long
def test_the_calendar_of_the_time_column_is_learned_and_amounts_are_drawn_as_numbers(sold):
    models = ["ExtraTreesRegressor", "LinearRegression"]
    record = compare(sold, "sales", time="day", models=models)
    winner = record["winner"]
    assert winner["holdout"]["score"] > 0.95 and winner["against"]["verdict"] == "better"
    assert winner["holdout"]["method"] == "t of the linearised score of stretches of time"
    assert winner["against"]["method"] == "t of paired stretches of time"
    details = record["details"][winner["name"]]
    kinds = {effect["name"]: effect["kind"] for effect in details["effects"]}
    assert kinds == {"day": "ordered", "price": "number"}
    price = next(effect for effect in details["effects"] if effect["name"] == "price")
    assert price["sign"] == "rises" and price["points"] == sorted(price["points"])
    assert {part["column"] for part in details["slices"]["parts"]} >= {"price"}
    page = render(record)
    assert "what varies is taken to be stretches of time" in page
    card = page[page.index("Learns from") :][:400]
    assert "day" in card and "price" in card
    without = compare(sold, "sales", time="day", models=models, drop=["day"])
    assert without["winner"]["holdout"]["score"] < winner["holdout"]["score"] - 0.05
