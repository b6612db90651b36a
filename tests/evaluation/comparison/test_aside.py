"""The rows set aside, one by one: files without code, thresholds and errors that agree with a plain count."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import confusion_matrix, precision_score, recall_score
from tests.evaluation.comparison.tables import classes, numbers

from learnable.core.errors import DataError, ParameterError
from learnable.evaluation import compare
from learnable.evaluation.comparison.aside import (
    Aside,
    confusion_of,
    read_aside,
    rows_in_order,
    slices_by,
    threshold_lines,
    write_aside,
)


def two_classes(n=400, seed=0, threshold=None):
    rng = np.random.default_rng(seed)
    p = rng.beta(1.0, 3.0, n)
    y = (rng.random(n) < p).astype(np.int64)
    return Aside(rng.permutation(5 * n)[:n], y, np.column_stack([1 - p, p]), ["no", "yes"], threshold)


def plain_counts(aside, threshold):
    called = aside.said[:, 1] >= threshold
    actual = aside.actual == 1
    return [
        int((called & actual).sum()),
        int((~called & actual).sum()),
        int((called & ~actual).sum()),
        int((~called & ~actual).sum()),
    ]


def test_every_threshold_has_the_confusion_of_a_plain_count():
    aside = two_classes()
    found = threshold_lines(aside, {"FP": 1, "FN": 7})
    assert found["positive"] == "yes" and found["negative"] == "no" and len(found["lines"]) >= 101
    for line in found["lines"]:
        counted = plain_counts(aside, line["threshold"])
        assert [line["hits"], line["missed"], line["false_alarms"], line["rejected"]] == counted
        assert line["cost"] == pytest.approx(line["false_alarms"] + 7 * line["missed"])
        if line["called"]:
            called = (aside.said[:, 1] >= line["threshold"]).astype(int)
            assert line["precision"] == pytest.approx(precision_score(aside.actual, called))
            assert line["recall"] == pytest.approx(recall_score(aside.actual, called))


def test_the_best_threshold_is_the_cheapest_of_all():
    aside = two_classes(seed=3)
    found = threshold_lines(aside, "FP=1,FN=4")
    costs = {line["threshold"]: line["cost"] for line in found["lines"]}
    every = [plain_counts(aside, t) for t in [*np.unique(aside.said[:, 1]), 2.0]]
    assert costs[found["best"]] == pytest.approx(min(fp + 4 * fn for _, fn, fp, _ in every))


def test_the_rarer_class_is_the_positive_one_whichever_comes_first():
    aside = two_classes(seed=1)
    turned = aside._replace(actual=1 - aside.actual, said=aside.said[:, ::-1].copy(), classes=["yes", "no"])
    one = threshold_lines(aside, None)
    other = threshold_lines(turned, None)
    assert other["positive"] == "yes" and one["best"] == pytest.approx(other["best"])


def test_a_chosen_threshold_decides():
    aside = two_classes(threshold=0.3)
    np.testing.assert_array_equal(aside.prediction.values, (aside.said[:, 1] >= 0.3).astype(int))
    expected = confusion_matrix(aside.actual, aside.prediction.values)
    np.testing.assert_array_equal(confusion_of(aside)["counts"], expected)
    assert threshold_lines(aside)["used"] == pytest.approx(0.3)


def test_numbers_have_no_threshold_and_no_confusion():
    aside = Aside(np.arange(3), np.ones(3), np.ones(3), None)
    assert confusion_of(aside) is None
    with pytest.raises(ParameterError, match="two classes"):
        threshold_lines(aside)


@pytest.mark.parametrize("by", ["error", "row", "predicted", "actual"])
def test_pages_of_rows_together_are_all_rows(by):
    rng = np.random.default_rng(0)
    aside = Aside(rng.permutation(100)[:37], rng.normal(size=37), rng.normal(size=37), None)
    table = pa.table({"a": np.arange(100.0), "b": [f"<i>{k}" for k in range(100)]})
    pages = [rows_in_order(aside, table, ["a", "b"], by=by, start=start, count=10)["rows"] for start in (0, 10, 20, 30)]
    rows = [row for page in pages for row in page]
    assert sorted(row["row"] - 1 for row in rows) == sorted(aside.rows.tolist())
    assert all(float(row["values"][0]) == row["row"] - 1 for row in rows)
    keys = {"error": [-abs(row["error"]) for row in rows], "row": [row["row"] for row in rows]}
    keys |= {name: [row[name] for row in rows] for name in ("predicted", "actual")}
    assert keys[by] == sorted(keys[by])


def test_a_table_that_has_become_shorter_is_told():
    aside = Aside(np.array([7]), np.ones(1), np.ones(1), None)
    with pytest.raises(DataError, match="fewer rows"):
        rows_in_order(aside, pa.table({"a": [1.0]}), ["a"])


def test_slices_find_the_part_that_was_made_worse():
    rng = np.random.default_rng(0)
    bad = np.arange(200) % 4 == 0
    aside = Aside(np.arange(200), np.zeros(200), rng.normal(size=200) * np.where(bad, 9.0, 1.0), None)
    found = slices_by(aside, pa.chunked_array([np.where(bad, "bad", "good")]), "town", "r2")
    assert {part["label"]: part["verdict"] for part in found["parts"]} == {"bad": "worse", "good": "better"}


def test_a_file_comes_back_as_it_was_and_holds_no_code(tmp_path):
    aside = two_classes(threshold=0.25)
    write_aside(aside, tmp_path / "aside.npz")
    back = read_aside(tmp_path / "aside.npz")
    assert back.classes == aside.classes and back.threshold == aside.threshold
    for name in ("rows", "actual", "said"):
        np.testing.assert_array_equal(getattr(back, name), getattr(aside, name))
    np.savez(tmp_path / "bad.npz", rows=np.array([object()]), actual=1, said=1, about=np.frombuffer(b"{}", np.uint8))
    with pytest.raises(ValueError, match="pickle"):
        read_aside(tmp_path / "bad.npz").rows.sum()


@pytest.mark.parametrize(
    "table, target", [(numbers(), "y"), pytest.param(classes(k=2), "label", marks=pytest.mark.long)]
)
def test_a_comparison_tells_the_rows_that_its_record_sums_up(table, target):
    told = []
    models = ["Ridge"] if target == "y" else ["GaussianNB"]
    record = compare(
        table, target, models=models, tune=False, on_event=lambda e: e["kind"] == "aside" and told.append(e)
    )
    (event,) = told
    aside = event["aside"]
    assert event["name"] == record["winner"]["name"] and len(aside.rows) == record["protocol"]["holdout_rows"]
    given = table[target].to_numpy()[aside.rows]
    if aside.classes is None:
        np.testing.assert_allclose(aside.actual, given)
        score = 1 - ((given - aside.said) ** 2).sum() / ((given - given.mean()) ** 2).sum()
    else:
        assert [aside.classes[k] for k in aside.actual] == given.tolist()
        score = float(np.mean(aside.actual == aside.prediction.values))
    assert score == pytest.approx(record["winner"]["holdout"]["score"])
