"""Every finished model of a leaderboard can be asked what the winner can."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from learnable.evaluation import compare
from learnable.evaluation.comparison.aside import write_aside
from learnable.page.answers import answer


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a finished run of two classes, and the path of its table."""
    folder = tmp_path_factory.mktemp("run")
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    kind = rng.choice(["a", "b"], 300)
    p = 1 / (1 + np.exp(-2 * x - (kind == "b")))
    data = pa.table({"x": x, "kind": kind, "good": np.where(rng.random(300) < p, "yes", "no")})
    path = folder / "table.csv"
    pyarrow.csv.write_csv(data, path)

    def hear(event):
        if event["kind"] == "aside":
            write_aside(event["aside"], folder / "aside.npz")

    settings = {"models": ["LogisticRegression", "GaussianNB"], "folds": 3}
    record = compare(
        pyarrow.csv.read_csv(path), "good", on_event=hear, model_file=folder / "model.safetensors", **settings
    )
    (folder / "record.json").write_text(json.dumps(record))
    (folder / "run.json").write_text(json.dumps({"settings": {"target": "good", **settings}}))
    return str(folder), str(path), record


@pytest.mark.long
def test_every_question_is_answered_by_another_model_than_the_winner(run):
    folder, path, record = run

    def ask(question, **values):
        found = answer({"question": question, "run": folder, **values})
        assert "error" not in found, found
        return found["answer"]

    winner = record["winner"]["name"]
    other = next(row["name"] for row in record["leaderboard"] if row["name"] != winner and row["model"] == "GaussianNB")
    before = answer({"question": "summary", "run": folder, "model": other})
    assert "has to be fitted again" in before["error"]
    about = ask("model", path=path, model=other)
    assert about["rows"] == 240 and 0.5 < about["holdout"]["score"] <= 1.0
    assert ask("model", path=path, model=other) == about  # it is kept
    summary = ask("summary", model=other)
    assert summary["asked"] == other and summary["winner"] == winner and summary["aside"] and summary["model"]
    assert summary["proven"] is None and "fitted again to the 240 training rows" in summary["verdict"][0]
    assert {one["name"] for one in summary["models"]} == {
        row["name"] for row in record["leaderboard"] if not row["baseline"]
    }
    kept = ask("summary")
    assert kept["asked"] == kept["winner"] == winner and kept["proven"] is not None

    of_other = ask("threshold", model=other)
    of_winner = ask("threshold")
    assert len(of_other["lines"]) == len(of_winner["lines"]) and of_other["lines"] != of_winner["lines"]
    effect = ask("effect", path=path, column="x", model=other)
    of_winner = ask("effect", path=path, column="x")
    assert effect["sign"] == of_winner["sign"] and effect["values"] != of_winner["values"]
    row = ask("explain", path=path, row=3, model=other)
    assert row["base"] + sum(share["value"] for share in row["shares"]) == pytest.approx(row["prediction"])
    assert row["prediction"] != pytest.approx(ask("explain", path=path, row=3)["prediction"], rel=1e-6)
    assert ask("slices", path=path, column="kind", model=other)["parts"]
    errors = ask("errors", path=path, model=other)
    assert errors["total"] == record["protocol"]["holdout_rows"]
    wrong = sum(row["actual"] != row["predicted"] for row in ask("errors", path=path, count=200, model=other)["rows"])
    counts = np.array(ask("confusion", model=other)["counts"])
    assert wrong == counts.sum() - np.trace(counts)
    assert about["holdout"]["score"] == pytest.approx(np.trace(counts) / counts.sum())


@pytest.mark.parametrize("name", ["nothing", "../..", "baseline: the most frequent class", ["x"], 7])
def test_what_is_no_model_of_the_leaderboard_is_refused(run, name):
    folder, path, _ = run
    assert "error" in answer({"question": "model", "run": folder, "path": path, "model": name})
