"""The model that is kept: complete where it can be, and what is said of it where it is not."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import learnable as ln
from learnable.evaluation import ConformalRegressor
from learnable.evaluation.comparison.candidates import Candidate, blend_of, candidates_for
from learnable.evaluation.comparison.finish import Finish
from learnable.evaluation.comparison.keep import forget_limits, keep_candidate, limits_of
from learnable.evaluation.comparison.race import Outcome
from learnable.evaluation.comparison.workspace import write_problem


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a problem of numbers."""
    rng = np.random.default_rng(0)
    place = tmp_path_factory.mktemp("problem")
    X = rng.normal(size=(300, 3))
    table = pa.table({name: X[:, j] for j, name in enumerate("abc")})
    write_problem(place, table, X[:, 0] + 0.1 * rng.normal(size=300), {})
    return place


class Told(list):
    """What a job reports."""

    def __call__(self, message):
        self.append(message)

    def ready(self, seconds):
        pass


def kept(folder, seconds, **settings):
    """Keep a boosting with so many seconds for its fit; return the model and what was told of it."""
    [_, known] = candidates_for("regression", ["GradientBoostingRegressor"])
    candidate = Candidate("boosting", "GradientBoostingRegressor", settings, known.path)
    told = Told()
    keep_candidate(told, str(folder), candidate, "regression", None, "y", 0, "kept.safetensors", None, seconds, False)
    return ln.load(folder / "kept.safetensors"), told[-1]


def test_a_complete_model_forgets_the_limit_of_the_comparison(folder):
    model, told = kept(folder, 1000.0, n_estimators=5)
    assert told["cut"] is None
    assert model.model_.n_estimators_ == 5 and model.model_.max_seconds is None and model.model.max_seconds is None


def test_a_limit_of_the_users_own_stays(folder):
    model, told = kept(folder, 900.0, n_estimators=5, max_seconds=500.0)
    assert told["cut"] is None and model.model_.max_seconds == 500.0


def test_a_model_that_the_clock_cut_is_told_as_such(folder):
    model, told = kept(folder, 1e-9, n_estimators=50)
    assert told["cut"] == {"done": model.model_.n_estimators_, "of": 50, "unit": "rounds"}
    assert model.model_.n_estimators_ < 50 and model.model_.max_seconds == 1e-9


def test_limits_inside_a_blend_are_found_and_forgotten():
    members = candidates_for("regression", ["GradientBoostingRegressor", "ExtraTreesRegressor"])[1:]
    blend = blend_of(members, [0.5, 0.5], "regression")
    model = blend.build(0, 40.0)
    assert limits_of(model) == {20.0} and limits_of(blend.build(0)) == set()
    forget_limits(model, {20.0})
    assert limits_of(model) == set()


class Kept(Finish):
    """A finish whose jobs end as they are told to."""

    def __init__(self, fit_seconds, left, outcomes):
        row = {"name": "m", "fit_seconds": fit_seconds}
        clock = SimpleNamespace(left=lambda reserve=0.0: left, reserve_for_end=lambda: 0.0)
        problem = SimpleNamespace(task="regression", y=np.zeros(10))
        super().__init__(
            SimpleNamespace(problem=problem, clock=clock, rows=[row], encode_seconds=0.0, folder=None), "f"
        )
        self.winner = {"name": "m"}
        self.outcomes = list(outcomes)
        self.asked = []

    def _keep(self, name, what, *, share, intervals, threshold=None):
        self.asked.append(intervals)
        return self.outcomes.pop(0)


@pytest.mark.parametrize(("fit_seconds", "asked"), [(0.1, [True]), (1.0, [False])])
def test_six_fits_are_made_only_where_they_can_be_complete(fit_seconds, asked):
    finish = Kept(fit_seconds, 10.0, [Outcome("ok", None, [{"cut": None}])])
    finish.model_file = None  # nothing is moved
    finish.keep("m")
    assert finish.asked == asked
    assert any("Without prediction intervals" in note for note in finish.notes) == (asked == [False])
    without = Kept(fit_seconds, 10.0, [Outcome("failed", "no file")])
    without.keep("m")  # of a file that is not there nothing is said
    assert not any("Without prediction intervals" in note for note in without.notes)


def test_what_was_cut_after_the_race_is_said():
    finish = Kept(0.1, 10.0, [])
    finish.tell_cut("The model file holds a fit", None)
    assert finish.notes == []
    finish.tell_cut("The model file holds a fit", {"done": 70, "of": 100, "unit": "rounds"})
    told = "The model file holds a fit that was cut by its share of time after 70 of 100 rounds: give more --seconds."
    assert finish.notes == [told]


def test_the_file_of_a_forest_with_intervals_is_at_most_twice_that_of_the_forest(folder):
    [_, forest] = candidates_for("regression", ["ExtraTreesRegressor"])
    small = Candidate("forest", forest.model, forest.parameters | {"n_estimators": 20}, forest.path)
    sizes = []
    for intervals in (True, False):
        keep_candidate(Told(), str(folder), small, "regression", None, "y", 0, "f.safetensors", None, None, intervals)
        assert isinstance(ln.load(folder / "f.safetensors"), ConformalRegressor) == intervals
        sizes.append((folder / "f.safetensors").stat().st_size)
    assert sizes[0] <= 2 * sizes[1]
