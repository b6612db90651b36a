"""The comparison as a whole: its record, its arithmetic, and models that misbehave."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import Lasso
from tests.evaluation.comparison import hostile_models as hostile
from tests.evaluation.comparison.tables import classes, numbers

import learnable as ln
from learnable.core.errors import DataError, ParameterError
from learnable.evaluation import compare, corrected_t_interval, corrected_t_test, hold_out, make_splits
from learnable.evaluation.comparison.contest import OutOfTimeError
from learnable.meta import TableModel

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module", autouse=True)
def temporary(tmp_path_factory):
    """A place for temporary files that no other process uses, empty before and after every comparison."""
    place = tmp_path_factory.mktemp("temporary")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(place))
        yield place
        assert list(place.glob("learnable-*")) == []


@pytest.fixture(autouse=True)
def nothing_is_left(temporary):
    """Fail the test that leaves temporary files behind."""
    yield
    assert list(temporary.glob("learnable-*")) == []


def row_of(record, name):
    return next(row for row in record["leaderboard"] if row["name"] == name)


@pytest.fixture(scope="module")
def regression(temporary, tmp_path_factory):
    """A comparison of numbers, with everything it tells and the file it writes."""
    events, file = [], tmp_path_factory.mktemp("model") / "best.safetensors"
    record = compare(numbers(), "y", models=["Ridge", "LinearRegression"], model_file=file, on_event=events.append)
    return record, events, file


def test_the_record_is_strict_json_and_complete(regression):
    record = regression[0]
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["format"] == "learnable-comparison" and record["status"] == "complete"
    assert set(record["versions"]) >= {"learnable", "python", "numpy", "scikit-learn"} and record["seed"] == 0
    assert record["data"]["task"] == "regression" and record["data"]["rows"] == 240
    assert record["protocol"]["train_rows"] + record["protocol"]["holdout_rows"] == 240
    timing = record["timing"]
    parts = timing["models"] + timing["encoding"] + timing["finish"] + timing["overhead"]
    assert timing["total"] == pytest.approx(parts, abs=1e-3)


def test_the_leaderboard_has_a_baseline_and_is_in_order(regression):
    rows = regression[0]["leaderboard"]
    assert [row["rank"] for row in rows] == list(range(1, len(rows) + 1))
    assert [row["mean"] for row in rows] == sorted((row["mean"] for row in rows), reverse=True)
    assert rows[-1]["baseline"] and rows[-1]["certificate"] is None
    assert all(row["certificate"]["holds"] for row in rows[:-1])
    assert all(row["fit_seconds"] > 0 and row["predict_seconds"] > 0 for row in rows)


def test_intervals_and_ties_are_those_of_the_corrected_test(regression):
    record = regression[0]
    best, *rest = record["leaderboard"]
    n_train, n_test = 192 * 0.8, 192 * 0.2
    for row in [best, *rest]:
        interval = corrected_t_interval(row["scores"], n_test / (n_train + n_test)).clipped(high=1.0)
        assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high), rel=1e-12)
    assert best["tied"] and best["p_value"] is None
    for row in rest:
        p = corrected_t_test(best["scores"], row["scores"], n_train, n_test).p
        assert row["p_value"] == pytest.approx(p, rel=1e-9, abs=1e-300) and row["tied"] == (p >= 0.05)


def test_scores_are_those_of_a_table_model_on_the_same_folds(regression):
    """The shared encoded folds give what a TableModel gives that is fitted to each fold itself."""
    table = numbers()
    y = table["y"].to_numpy()
    features = table.drop_columns(["y"])
    train, test = hold_out(y, share=0.2, task="regression", random_state=0)
    scores = []
    for inner, tested in make_splits(y[train], n_splits=5, random_state=1):
        rows, others = train[inner], train[tested]
        model = TableModel(ln.Ridge(alpha=1.0)).fit(features.take(rows), y[rows])
        scores.append(model.score(features.take(others), y[others]))
    assert row_of(regression[0], "Ridge (alpha=1)")["scores"] == pytest.approx(scores, rel=1e-9)
    winner = regression[0]["winner"]
    parameters = row_of(regression[0], winner["name"])["parameters"]
    model = ln.Ridge(**parameters) if winner["name"].startswith("Ridge") else ln.LinearRegression(**parameters)
    kept = TableModel(model).fit(features.take(train), y[train])
    assert winner["holdout"]["score"] == pytest.approx(kept.score(features.take(test), y[test]), rel=1e-9)
    assert winner["holdout"]["low"] < winner["holdout"]["score"] < winner["holdout"]["high"]
    assert "optimistic" not in winner["optimism_note"] and "the one to quote" in winner["optimism_note"]


def test_the_kept_model_is_fitted_to_all_rows_and_verifies(regression):
    record, _, file = regression
    model, table = ln.load(file), numbers()
    assert record["winner"]["model_file"] == str(file) and "all 240 rows" in record["winner"]["refitted_on"]
    assert model.target_name_ == "y"
    assert ln.verify(model, table.drop_columns(["y"]), table["y"].to_numpy())
    lower, upper = model.predict_interval(table)
    assert (lower < upper).all()
    assert record["winner"]["intervals"]["method"] == "cv+"


def test_details_have_what_a_report_draws(regression):
    record = regression[0]
    details = record["details"][record["winner"]["name"]]
    assert len(details["residuals"]["predicted"]) == len(details["residuals"]["actual"]) == 48
    assert {item["name"] for item in details["importances"]} == {"x", "kind"}
    assert details["importances"][0]["name"] == "x"
    assert len(details["learning_curve"]["sizes"]) == len(details["learning_curve"]["test"])
    assert details["coefficients"] and details["roc"] is None


def test_events_tell_the_story_in_order(regression):
    kinds = [event["kind"] for event in regression[1]]
    assert kinds[0] == "data"
    assert (
        kinds.index("plan") < kinds.index("start") < kinds.index("fold") < kinds.index("finish") < kinds.index("ranked")
    )
    assert kinds.count("start") == kinds.count("finish") == 4 and kinds.count("fold") == 20


def test_the_same_seed_gives_the_same_scores():
    first, again, other = (compare(numbers(), "y", models=["Ridge"], seed=seed)["leaderboard"] for seed in (0, 0, 1))
    assert [row["scores"] for row in first] == [row["scores"] for row in again]
    assert [row["scores"] for row in first] != [row["scores"] for row in other]


@pytest.fixture(scope="module")
def misbehaving():
    """Every hostile model beside a good one."""
    models = [
        hostile.Raising(),
        hostile.Killed(),
        hostile.Leaving(),
        hostile.Greedy(),
        hostile.NotANumber(),
        hostile.Interrupting(),
        hostile.Chatty(),
        ("lasso", Lasso(alpha=0.1)),
    ]
    return compare(numbers(), "y", models=models, memory=2**28)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Raising", "these numbers are not to my taste"),
        ("Killed", "SIGKILL"),
        ("Leaving", "exit code 7"),
        ("Greedy", "out of memory"),
        ("NotANumber", "not defined"),
        ("Interrupting", "KeyboardInterrupt"),
    ],
)
def test_a_failure_is_a_line_with_its_reason(misbehaving, name, reason):
    row = row_of(misbehaving, name)
    assert row["status"] == "failed" and reason in row["reason"] and "\n" not in row["reason"]
    assert row["rank"] is None and row["mean"] is None


def test_failures_do_not_touch_the_others(misbehaving):
    assert row_of(misbehaving, "lasso")["rank"] == 1
    assert row_of(misbehaving, "Chatty")["status"] == "ok"
    assert misbehaving["winner"]["name"] == "lasso"


def test_a_model_that_hangs_is_killed_at_its_deadline_with_its_children(tmp_path):
    number = tmp_path / "child"
    record = compare(numbers(), "y", models=[hostile.Forking(str(number)), "Ridge"], seconds=25)
    row = next(row for row in record["leaderboard"] if row["model"] == "Forking")
    assert row["status"] == "timeout" and "limit" in row["reason"]
    assert record["winner"]["name"].startswith("Ridge")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and _runs(int(number.read_text())):
        time.sleep(0.05)
    assert not _runs(int(number.read_text()))


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_limit_that_is_too_short_is_said(monkeypatch):
    with pytest.raises(OutOfTimeError, match="too few"):
        compare(numbers(), "y", models=["Ridge"], seconds=1e-3)


def test_an_interrupt_keeps_what_is_done():
    """Ctrl-C arrives while the second model hangs: the first one stays."""

    def interrupt(event):
        if event["kind"] == "start" and event["name"] == "Hanging":
            os.kill(os.getpid(), signal.SIGINT)

    record = compare(numbers(), "y", models=["Ridge", hostile.Hanging(), "RidgeCV"], on_event=interrupt)
    assert record["status"] == "interrupted"
    states = {row["name"]: row["status"] for row in record["leaderboard"]}
    assert states["Ridge (alpha=1)"] == "ok" and states["RidgeCV"] == "skipped"
    assert states["Hanging"] in ("interrupted", "skipped")
    assert record["winner"]["holdout"] is None and record["winner"]["name"].startswith("Ridge")


def test_an_interrupt_before_anything_is_done_is_passed_on():
    def interrupt(event):
        if event["kind"] == "plan":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(numbers(), "y", models=["Ridge"], on_event=interrupt)


def test_classes_have_probabilities_curves_and_a_confusion_matrix(tmp_path):
    file = tmp_path / "best.safetensors"
    models = [hostile.Labels(), ("strong", ln.LogisticRegression(C=10.0))]
    record = compare(classes(), "label", models=models, model_file=file)
    assert record["data"]["classes"] == ["one", "three", "two"] and record["data"]["task"] == "multiclass"
    assert sum(record["data"]["class_counts"]) == 240
    details = record["details"]["strong"]
    assert [curve["label"] for curve in details["roc"]] and len(details["calibration"]["bins"]) == 11
    assert np.sum(details["confusion"]["counts"]) == record["protocol"]["holdout_rows"]
    right = np.trace(details["confusion"]["counts"]) / record["protocol"]["holdout_rows"]
    assert record["winner"]["holdout"]["score"] == pytest.approx(right)
    assert record["winner"]["holdout"]["method"] == "exact binomial" and record["winner"]["intervals"] is None
    model, table = ln.load(file), classes()
    assert model.predict_proba(table).shape == (240, 3)
    assert ln.verify(model, table.drop_columns(["label"]), np.array(table["label"].to_pylist()))


@pytest.mark.long
def test_a_measure_that_needs_probabilities_fails_without_them():
    record = compare(classes(k=2), "label", models=[hostile.Labels(), "LogisticRegression"], metric="log_loss")
    assert row_of(record, "Labels")["status"] == "failed"
    assert record["protocol"]["metric"]["greater_is_better"] is False
    ranked = [row["mean"] for row in record["leaderboard"] if row["rank"]]
    assert ranked == sorted(ranked)


def test_groups_stay_together_and_time_goes_forward():
    table = numbers()
    day = np.arange(240) // 4
    table = table.append_column("day", pa.array(day)).append_column("who", pa.array(np.arange(240) % 30))
    grouped = compare(table, "y", groups="who", models=["Ridge"])
    assert grouped["protocol"]["scheme"].startswith("grouped") and grouped["protocol"]["holdout_rows"] % 8 == 0
    forward = compare(table, "y", time="day", models=["Ridge"], drop=["who"])
    assert forward["protocol"]["scheme"].startswith("forward-in-time")
    roles = {column["name"]: column["role"] for column in forward["data"]["profile"]}
    assert roles["day"] == "time" and "who" not in roles


def test_ten_rows_are_enough():
    record = compare(numbers(10), "y", models=["Ridge"])
    assert record["protocol"]["folds"] == 4 and record["winner"]["holdout"] is not None


def test_wrong_questions_are_refused():
    with pytest.raises(DataError, match="did you mean 'kind'"):
        compare(numbers(), "kin")
    with pytest.raises(ParameterError, match="did you mean Ridge"):
        compare(numbers(), "y", models=["Rigde"])
    with pytest.raises(ParameterError, match="not made for"):
        compare(numbers(), "y", models=["LogisticRegression"])
    with pytest.raises(ParameterError, match="metric must be one of"):
        compare(numbers(), "y", metric="accuracy")
    with pytest.raises(ParameterError, match="folds"):
        compare(numbers(), "y", folds=1)


@pytest.mark.long
def test_a_script_without_a_guard_does_not_start_itself_again(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, pyarrow as pa\n"
        "from learnable.evaluation import compare\n"
        "print('once')\n"
        "x = np.linspace(0, 1, 50)\n"
        "record = compare(pa.table({'x': x, 'y': x + np.sin(99 * x)}), 'y', models=['LinearRegression'])\n"
        "print(record['winner']['name'])\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["once", "LinearRegression"] and done.stderr == ""
