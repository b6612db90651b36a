"""Which models get the time of a long table: known truths on stand-ins for the race."""

from types import SimpleNamespace

import pytest

from learnable.evaluation.comparison.candidates import Candidate
from learnable.evaluation.comparison.clock import NOT_STARTED
from learnable.evaluation.comparison.contest import _Comparison
from learnable.evaluation.comparison.measures import ranking_measure
from learnable.evaluation.comparison.race import Outcome
from learnable.evaluation.comparison.record import new_row
from learnable.evaluation.comparison.screening import FIRST_ROWS, Screened, Screening


class Stage:
    """A comparison whose models have known scores and costs (seconds for a thousand rows)."""

    def __init__(self, models, seconds, n_train, metric="r2"):
        task = "regression" if metric == "r2" else "binary"
        self.models, self.n_train = models, n_train
        self.candidates = [Candidate("base", "B", {}, baseline=True)]
        self.candidates += [Candidate(name, name, {}) for name in models]
        self.measure = ranking_measure(task, metric)
        self.splits = [None] * 5
        self.spent = 0.0
        self.asked = []
        self.clock = SimpleNamespace(seconds=seconds, left=lambda reserve=0.0: max(0.0, seconds - self.spent - reserve))

    def mean_sizes(self):
        return self.n_train, self.n_train / 4

    def emit(self, event):
        pass

    def score(self, candidate, splits, seconds, rows):
        score, cost = self.models[candidate.name]
        self.asked.append((candidate.name, rows))
        took = cost * rows / 1000
        self.spent += min(took, seconds)
        if took > seconds:
            return Outcome("timeout", "late", [], seconds)
        told = {"test": {self.measure.name: score}, "fit_seconds": took, "predict_seconds": 0.0, "cut": None}
        return Outcome("ok", None, [told], took)


def test_short_tables_and_endless_time_need_no_screening():
    assert not Screening(Stage({}, 60.0, FIRST_ROWS)).is_needed()
    stage = Stage({}, 60.0, 10**6)
    assert Screening(stage).is_needed()
    stage.clock.seconds = None
    assert not Screening(stage).is_needed()


def test_with_time_enough_everybody_races():
    screening = Screening(Stage({"a": (0.9, 0.001), "b": (0.1, 0.001)}, 600.0, 50_000))
    screening.run(0.0)
    assert not screening.left_behind and set(screening.found) == {"a", "b"}


def test_the_time_goes_to_the_best_and_the_others_are_told_why():
    models = {f"slow {k}": (0.1 * k, 0.05) for k in range(9)} | {"cheap": (0.0, 1e-6)}
    stage = Stage(models, 60.0, 100_000)
    screening = Screening(stage)
    screening.run(0.0)
    behind = set(screening.left_behind)
    assert "slow 8" not in behind and "cheap" not in behind and {"slow 0", "slow 1", "slow 2"} <= behind
    needed = sum(screening.found[name].needs for name in models if name not in behind)
    assert needed <= 60.0 - stage.spent or len(set(models) - behind) == 2
    reason = screening.left_behind["slow 0"]
    assert "where the best had 0.8" in reason and "-m slow 0" in reason
    rounds = {rows for _, rows in stage.asked}
    assert rounds >= {FIRST_ROWS, 4 * FIRST_ROWS}, "the better half is tried on more rows"
    assert stage.spent < 30.0


@pytest.mark.parametrize(("metric", "best"), [("r2", "b"), ("log_loss", "a")])
def test_better_is_what_the_measure_calls_better(metric, best):
    screening = Screening(Stage({"a": (0.2, 0.05), "b": (0.9, 0.05), "c": (0.5, 0.05)}, 20.0, 200_000, metric))
    screening.run(0.0)
    assert best not in screening.left_behind and screening.left_behind


def test_shares_are_in_proportion_to_needs():
    stage = Stage({"a": (0.2, 0.001), "b": (0.9, 0.004)}, 1000.0, 100_000)
    screening = Screening(stage)
    screening.run(0.0)
    _, a, b = stage.candidates
    shares = [screening.share(candidate, [a, b], 100.0) for candidate in (a, b)]
    assert sum(shares) == pytest.approx(100.0) and shares[1] == pytest.approx(4 * shares[0], rel=0.3)
    assert Screening(stage).share(a, [a, b], 100.0) == pytest.approx(50.0), "without screening all have equal shares"


def test_where_nothing_ends_in_time_nobody_is_told_an_estimate():
    """On a machine that is too busy, what all rows would take is not known, and models that were not tried say so."""
    models = {f"m{k}": (0.5, 10.0) for k in range(12)}
    stage = Stage(models, 20.0, 400_000)
    screening = Screening(stage)
    screening.run(0.0)
    assert 0 < len(stage.asked) < 12 and stage.spent <= 0.5 * 20.0
    assert len(screening.left_behind) == 11
    told = list(screening.left_behind.values())
    assert not any("all rows would take" in text or "about 0 s" in text for text in told)
    assert sum("there was no time to try it" in text for text in told) == 12 - len(stage.asked)
    assert all("4,000 rows took it more than 1 s" in text or "no time to try" in text for text in told)


def test_one_model_of_each_class_is_tried_before_a_second():
    stage = Stage({"a1": (0.5, 10.0), "a2": (0.5, 10.0), "b1": (0.9, 1e-4)}, 6.0, 400_000)
    stage.candidates = [Candidate(c.name, c.name[0], {}, baseline=c.baseline) for c in stage.candidates]
    screening = Screening(stage)
    screening.run(0.0)
    assert [name for name, _ in stage.asked][:3] == ["a1", "b1", "a2"] and "b1" not in screening.left_behind


def test_a_model_that_does_not_fit_is_not_kept_because_it_is_the_best():
    """The best one would need ten times the seconds there are: without the next one nothing would be finished."""
    models = {"best": (0.9, 0.2), "next": (0.8, 0.002), "last": (0.1, 0.3)}
    stage = Stage(models, 60.0, 100_000)
    screening = Screening(stage)
    screening.run(0.0)
    assert set(screening.left_behind) == {"best", "last"}
    assert [candidate.name for candidate in screening.in_reserve()] == ["best", "last"]
    hopeless = Screening(Stage({"a": (0.9, 0.2), "b": (0.8, 0.1)}, 20.0, 400_000))
    hopeless.run(0.0)
    assert set(hopeless.left_behind) == {"a"}


def test_what_was_left_behind_races_where_time_is_left_after_all():
    """With 100 s: what needs 20 s races, and what can stop early if a good part of its needs is there."""
    needs = {"fits": (20.0, None), "stops early": (200.0, {"done": 40}), "too long": (200.0, None), "far": (900.0, {})}
    found = {name: Screened(0.9, 4000, seconds, cut=cut) for name, (seconds, cut) in needs.items()}
    entered = []

    def enter(candidate, row, position, limit):
        entered.append((candidate.name, limit))
        row["status"] = "ok"

    comparison = SimpleNamespace(
        rows=[new_row(name, name, {}) for name in needs],
        screening=SimpleNamespace(found=found, in_reserve=lambda: [Candidate(name, name, {}) for name in needs]),
        left_for_models=lambda slower: 100.0,
        enter=enter,
    )
    _Comparison.race_left_behind(comparison, 1.0)
    assert entered == [("fits", 70.0), ("stops early", 70.0)]


def test_predictions_cost_as_many_rows_as_there_are_and_not_more():
    """Of 400,000 training and 100,000 test rows, 16,000 were predicted in 0.1 s: five folds take 5 · 3.1 s."""
    stage = Stage({"a": (0.5, 0.0), "b": (0.4, 0.0)}, 600.0, 400_000)
    plain = stage.score

    def score(*arguments, **options):
        outcome = plain(*arguments, **options)
        outcome.messages[0]["predict_seconds"] = 0.1
        return outcome

    stage.score = score
    screening = Screening(stage)
    screening.run(0.0)
    assert screening.found["a"].needs == pytest.approx(5 * 0.1 * 500_000 / 16_000)


@pytest.mark.parametrize(("left", "wanted"), [(10.0, 0.0), (30.0, 0.0), (40.0, 10.0), (100.0, 45.0)])
def test_time_is_set_aside_for_tuning_only_after_a_second_for_every_model(left, wanted):
    comparison = SimpleNamespace(
        clock=SimpleNamespace(left=lambda reserve: left, reserve_for_finish=lambda seconds: 0.0),
        seconds_to_finish=lambda: 0.0,
        tune=True,
        candidates=[Candidate("mean", "mean", {}, baseline=True), *(Candidate(f"{k}", "a", {}) for k in range(30))],
    )
    _Comparison.set_tuning_aside(comparison)
    assert comparison.tuning_seconds == pytest.approx(wanted)
    comparison.tune = False
    _Comparison.set_tuning_aside(comparison)
    assert comparison.tuning_seconds == 0.0


@pytest.mark.parametrize(("left", "started"), [(4.0, ["late"]), (0.4, [])])
def test_a_model_that_was_never_started_is_where_time_is_left_that_nothing_else_needs(left, started):
    entered = []

    def enter(candidate, row, position, limit):
        entered.append(candidate)
        row["status"] = "ok"
        row["mean"] = 0.5

    done = new_row("done", "done", {})
    done.update(status="ok", mean=0.8)
    late = new_row("late", "late", {})
    late.update(status="timeout", reason=NOT_STARTED)
    comparison = SimpleNamespace(
        clock=SimpleNamespace(seconds=60.0),
        rows=[done, late],
        measure=SimpleNamespace(greater_is_better=True),
        given_seconds={"done": 1.0},
        splits=[None] * 5,
        is_promising=lambda row: False,
        has_a_model=lambda: True,
        left_for_models=lambda slower: left,
        race_left_behind=lambda slower: None,
        candidate=lambda name: name,
        enter=enter,
    )
    _Comparison.try_again(comparison)
    assert entered == []  # right after the race, time is for what is promising
    _Comparison.try_again(comparison, everyone=True)
    assert entered == started
    assert (comparison.rows[1]["status"] == "ok") is bool(started)


def test_boosting_and_forests_may_take_a_good_part_of_a_short_time_and_others_a_second():
    names = ["HistGradientBoostingRegressor", "ExtraTreesRegressor", *(f"m{k}" for k in range(28))]
    models = [Candidate(name, name, {}) for name in names]
    screening = Screening(Stage({"a": (0.5, 0.0), "b": (0.4, 0.0)}, 600.0, 400))
    assert screening.limit(models[0], models, 20.0) == pytest.approx(3.0)
    assert screening.limit(models[1], models, 20.0) == pytest.approx(3.0)
    assert screening.limit(models[2], models, 20.0) == pytest.approx(1.0)
    assert screening.limit(models[2], models, 300.0) == pytest.approx(10.0)
    assert screening.limit(models[0], models[:1], 20.0) == pytest.approx(20.0)
    assert screening.limit(models[2], models, 0.4) == pytest.approx(0.4)
