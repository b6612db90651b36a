"""Tuned settings and blends enter the race like any model, and never touch the hold-out."""

import inspect
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import learnable as ln
from learnable.core.declare import check_parameters
from learnable.core.registry import REGISTRY, registered_class
from learnable.core.search_spaces import FIRST_SETTINGS, SEARCH_SPACES, Choice, draw_settings
from learnable.evaluation import compare
from learnable.evaluation.comparison import tuning
from learnable.evaluation.comparison.contest import _Comparison
from learnable.evaluation.comparison.measures import ranking_measure
from learnable.evaluation.comparison.record import new_row


@pytest.mark.parametrize("name", list(SEARCH_SPACES))
def test_every_setting_is_one_that_the_model_takes(name):
    cls = registered_class(name)
    for settings in draw_settings(name, 20, seed=1):
        assert set(settings) <= set(inspect.signature(cls).parameters)
        check_parameters(name, cls(**settings).get_params(deep=False), cls._parameters)
    assert draw_settings(name, 5, seed=3) == draw_settings(name, 5, seed=3)
    assert REGISTRY[name].traits is not None


@pytest.mark.parametrize("name", list(FIRST_SETTINGS))
def test_the_first_settings_come_first_and_lie_in_the_space(name):
    first = FIRST_SETTINGS[name]
    assert draw_settings(name, len(first) + 3, seed=0)[: len(first)] == list(first)
    assert draw_settings(name, 1, seed=0) == [first[0]]
    for settings in first:
        assert set(settings) == set(SEARCH_SPACES[name])
        for key, value in settings.items():
            space = SEARCH_SPACES[name][key]
            inside = value in space.values if isinstance(space, Choice) else space.low <= value <= space.high
            assert inside, (key, value)


def test_settings_of_one_accuracy_are_ordered_by_log_loss_and_smooth_measures_alone():
    shown = [tuning.Shown(0.80, 0.50), tuning.Shown(0.80, 0.40), tuning.Shown(0.70, 0.45), tuning.Shown(0.81, 0.90)]
    assert tuning.order_of(shown, ranking_measure("binary", "accuracy")) == [1, 3, 0, 2]
    assert tuning.order_of(shown, ranking_measure("binary", "log_loss")) != [1, 3, 0, 2]
    loss = [tuning.Shown(one.surprise, one.surprise) for one in shown]
    assert tuning.order_of(loss, ranking_measure("binary", "log_loss")) == [1, 2, 0, 3]
    silent = [tuning.Shown(0.7, np.nan), tuning.Shown(0.9, np.nan)]
    assert tuning.order_of(silent, ranking_measure("binary", "accuracy")) == [1, 0]
    assert tuning.order_of([], ranking_measure("binary", "accuracy")) == []


class _Sized:
    """A comparison of which only sizes and times are known."""

    def __init__(self, rows, around=0.1):
        self.splits = [None] * 5
        self.around_jobs = [around]
        self.rows = rows

    def mean_sizes(self):
        return float(self.rows), self.rows / 4


def _search(rows, fit_seconds, left):
    row = {"fit_seconds": fit_seconds, "predict_seconds": 0.0}
    return tuning.Tuning(_Sized(rows))._search(row, left)


def test_a_search_fits_into_its_time():
    for rows in (300, 5000, 50_000, 640_000):
        for fit_seconds in (0.001, 0.2, 4.0):
            for left in (1.0, 20.0, 100.0, 1000.0):
                found = _search(rows, fit_seconds, left)
                if not found.settings:
                    continue
                part = 1.0 if found.rows is None else found.rows / rows
                first = found.settings * len(found.begin) * found.cost * part
                second = max(2, found.settings // 4) * len(found.rest) * found.cost
                assert first + second + 5 * found.cost <= left + found.cost
    assert _search(640_000, 4.0, 1000.0).rows == 50_000 and _search(30_000, 4.0, 1000.0).rows == 10_000
    assert len(_search(300, 0.1, 100.0).begin) == 2 and _search(300, 0.1, None).settings == tuning.MOST_SETTINGS


def test_a_long_table_is_searched_where_a_few_settings_can_be_tried_on_some_of_its_rows():
    assert _search(640_000, 4.0, 100.0).settings >= 3  # a third of the rows would have left no time for three
    assert _search(640_000, 4.0, 40.0).settings == 0


@pytest.mark.parametrize(
    ("rows", "seconds", "left", "ends"),
    [(640_000, 1.0, 60.0, False), (640_000, 0.4, 60.0, True), (5000, 4.0, 60.0, True), (5000, 8.0, 60.0, False)],
)
def test_settings_that_would_be_cut_on_all_rows_do_not_go_on(rows, seconds, left, ends):
    """Five folds of 12.8 times the rows of the first round, or of the same rows, in six tenths of the time left."""
    comparison = _Sized(rows)
    comparison.clock = SimpleNamespace(spent=100.0)
    search = _search(rows, 0.1, 1000.0)
    shown = tuning.Shown(0.9, 0.2, seconds)
    assert tuning.Tuning(comparison)._would_end(shown, search, 100.0 + left) == ends
    assert tuning.Tuning(comparison)._would_end(shown, search, None)


def test_choosing_by_both_finds_better_settings_than_by_accuracy_alone():
    rng = np.random.default_rng(0)
    measure = ranking_measure("binary", "accuracy")
    noises = np.linspace(0.5, 1.5, 8)  # a setting knows the logit up to its noise; 100 rows tell them apart badly
    by_both = []
    by_accuracy = []
    for _ in range(400):
        logit = 2.0 * rng.normal(size=100)
        y = rng.random(100) < 1 / (1 + np.exp(-logit))
        shared = rng.normal(size=100)  # all settings err on the same rows
        shown = []
        for noise in noises:
            error = noise * (0.8 * shared + 0.6 * rng.normal(size=100))
            p = 1 / (1 + np.exp(-(logit + error)))
            said = np.where(y, p, 1 - p)
            shown.append(tuning.Shown(float(np.mean((p > 0.5) == y)), float(-np.log(said).mean())))
        by_both.append(noises[tuning.order_of(shown, measure)[0]])
        by_accuracy.append(noises[int(np.argmax([one.score for one in shown]))])
    difference = np.array(by_accuracy) - np.array(by_both)
    assert difference.mean() > 3 * difference.std() / np.sqrt(400)


@pytest.mark.long
def test_further_folds_have_the_columns_of_the_first_ones(monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=160)
    words = np.array([["good", "fine"], ["bad", "poor"]])
    text = [" ".join([*rng.choice(words[k], 2), *(f"w{j}" for j in rng.integers(300, size=6))]) for k in y]
    table = pa.table({"text": text, "y": np.array(["no", "yes"])[y]})
    asked = []
    before = _Comparison.do

    def tell(self, function, **arguments):
        if function.endswith("encode_splits"):
            asked.append((tuple(arguments["splits"]), arguments.get("dense")))
        return before(self, function, **arguments)

    monkeypatch.setattr(_Comparison, "do", tell)
    monkeypatch.setattr(tuning, "_ALWAYS_SECONDS", 600.0)  # however busy the machine is
    record = compare(table, "y", models=["GaussianNB", "KNeighborsClassifier"])
    assert record["protocol"]["repeats"] > 1 and len(asked) > 1
    assert all(dense for _, dense in asked)


@pytest.fixture(scope="module")
def curved():
    """A sum of a linear part, which neighbours see badly, and of a wave, which a line does not see."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, size=(400, 3))
    y = 3.0 * X[:, 0] + 2.0 * np.sin(4.0 * X[:, 1]) + 0.3 * rng.normal(size=400)
    return pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})


@pytest.fixture(scope="module")
def tuned(curved, tmp_path_factory):
    file = tmp_path_factory.mktemp("tuned") / "model.safetensors"
    models = [ln.Ridge(alpha=300.0), "KNeighborsRegressor", "ExtraTreesRegressor"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "MOST_SETTINGS", 6)
        patch.setattr(tuning, "_ALWAYS_SECONDS", 600.0)  # however busy the machine is
        patch.setattr(tuning, "_MOST_REPEATS", 2)
        record = compare(curved, "y", models=models, tune=True, model_file=file)
    return record, file


@pytest.mark.long
def test_a_tuned_model_beats_the_setting_it_came_from(tuned):
    rows = {row["name"]: row for row in tuned[0]["leaderboard"]}
    found = [name for name in rows if name.endswith("(tuned)")]
    assert found
    for name in found:
        plain = [row for key, row in rows.items() if row["model"] == rows[name]["model"] and key != name]
        assert rows[name]["mean"] > max(row["mean"] for row in plain)
        assert len(rows[name]["scores"]) == 5 * tuned[0]["protocol"]["repeats"]
        assert set(rows[name]["parameters"]) >= set(SEARCH_SPACES[rows[name]["model"]])


def test_the_blend_is_ranked_judged_saved_and_verified(tuned, curved):
    record, file = tuned
    blend = next(row for row in record["leaderboard"] if row["model"] == "BlendRegressor")
    weights = blend["parameters"]["weights"]
    assert len(weights) >= 2 and sum(weights.values()) == pytest.approx(1.0, abs=1e-3)
    assert blend["rank"] == 1 and record["winner"]["name"] == blend["name"]
    members = [row["mean"] for row in record["leaderboard"] if row["name"] in weights]
    assert blend["mean"] > max(members)
    model = ln.load(file)
    X, y = curved.drop_columns(["y"]), curved["y"].to_numpy()
    assert ln.verify(model, X, y)
    lower, upper = model.predict_interval(X)
    assert np.mean((lower <= y) & (y <= upper)) > 0.8


def test_a_blend_that_leads_is_made_anew_on_further_folds(tuned):
    rows = tuned[0]["leaderboard"]
    blend = next(row for row in rows if row["model"] == "BlendRegressor")
    n_folds = 5 * tuned[0]["protocol"]["repeats"]
    assert n_folds > 5 and len(blend["scores"]) == n_folds and blend["train_mean"] is None
    members = [row for row in rows if row["name"] in blend["parameters"]["weights"]]
    assert all(len(row["scores"]) == n_folds for row in members)
    new = np.array([row["scores"][5:] for row in members])
    assert (np.array(blend["scores"][5:]) > new).mean() > 0.5  # on the new folds, too, it is the better one


class _Settling:
    """A comparison whose lines and costs are given, for the choice of who is scored on further folds."""

    def __init__(self, rows, finalists, fit_seconds):
        self.rows = [new_row(name, "M", {}) | row for name, row in rows.items()]
        for row in self.rows:
            row.update(status="ok", scores=[0.0] * 5, fit_seconds=fit_seconds.get(row["name"], 0.1))
        self.splits = [None] * 5
        self.encode_seconds = 0.0
        lead = next(row for row in self.rows if row["name"] == "blend")
        self.blended = tuning.Blended(lead, finalists, ranking_measure("regression"))

    def ranked(self):
        return self.rows


def _names_of_contenders(rows, finalists=("a", "c"), seconds=100.0, **fit_seconds):
    found = tuning._contenders(_Settling(rows, list(finalists), fit_seconds), seconds)
    return [row["name"] for row in found]


def test_who_is_scored_on_further_folds():
    blend = {"rank": 1, "verdict": "best"}
    a = {"rank": 2, "verdict": "undecided"}
    b = {"rank": 3, "verdict": "undecided"}
    c = {"rank": 4, "verdict": "worse"}
    d = {"rank": 5, "verdict": "worse"}
    lines = {"blend": blend, "a": a, "b": b, "c": c, "d": d}
    assert _names_of_contenders(lines) == ["a", "b", "c"]  # c is needed to make the blend anew
    assert _names_of_contenders(lines, c=1000.0) == []  # too slow, and nothing else can be compared with the blend
    assert _names_of_contenders({**lines, "a": c, "b": c}) == []  # nobody is undecided
    second = {"a": {"rank": 1, "verdict": "best"}, "blend": {"rank": 2, "verdict": "undecided"}, "b": b, "c": c}
    assert _names_of_contenders(second, c=1000.0) == ["a", "b"]


def test_without_tuning_nothing_is_added(curved):
    record = compare(curved, "y", models=["Ridge", "KNeighborsRegressor"])
    assert len(record["leaderboard"]) == 5


@pytest.mark.long
def test_a_blend_of_classes_mixes_probabilities():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + np.sin(3 * X[:, 1]) + 0.5 * rng.normal(size=300)) > 0
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": np.where(y, "yes", "no")})
    before, tuning.MOST_SETTINGS = tuning.MOST_SETTINGS, 3
    record = compare(table, "y", models=["LogisticRegression", "KNeighborsClassifier"], tune=True, metric="log_loss")
    tuning.MOST_SETTINGS = before
    row = next(row for row in record["leaderboard"] if row["model"] == "BlendClassifier")
    assert row["mean"] <= min(r["mean"] for r in record["leaderboard"] if r is not row) + 0.01


class Told:
    """A comparison that has told the predictions of its folds already."""

    def __init__(self, measure, names):
        self.measure = measure
        self.problem = SimpleNamespace(task="binary")
        self.rows = [new_row(name, name, {}) for name in names]


def test_a_blend_is_chosen_by_the_measure_that_ranks_or_by_log_loss_whichever_does_better_on_other_folds():
    """The first model is always right by a hair, the second sure of itself and wrong in a third of the rows."""
    rng = np.random.default_rng(0)
    truth = [rng.integers(2, size=150) for _ in range(4)]
    measure = ranking_measure("binary", "accuracy")
    told = []
    for y in truth:
        shy = np.where(y == 1, 0.51, 0.49)
        bold = np.where(rng.random(150) < 0.3, 1 - y, y) * 0.6 + 0.2
        told.append([np.column_stack([1 - p, p]) for p in (shy, bold)])
    search = tuning.Tuning(Told(measure, ["shy", "bold"]))
    way, messages = search._best_way(told, truth, ["shy", "bold"], list("0123"))
    assert way.name == "accuracy" and np.mean([m["test"]["accuracy"] for m in messages]) == 1.0
    weights = tuning._choose("binary", way, told, truth, range(4))
    assert weights.tolist() == [1.0, 0.0]
    by_loss = tuning._choose("binary", ranking_measure("binary", "log_loss"), told, truth, range(4))
    assert by_loss[1] > 0.5
    smooth = tuning.Tuning(Told(ranking_measure("binary", "auc"), ["shy", "bold"]))
    assert smooth._best_way(told, truth, ["shy", "bold"], list("0123"))[0].name == "auc"


def test_among_blends_of_one_accuracy_the_one_of_the_least_log_loss_is_chosen():
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=200)
    told = [[np.column_stack([1 - p, p]) for p in (np.where(y == 1, 0.55, 0.45), np.where(y == 1, 0.9, 0.1))]]
    weights = tuning._choose("binary", ranking_measure("binary", "accuracy"), told, [y], [0])
    assert weights.tolist() == [0.0, 1.0]
