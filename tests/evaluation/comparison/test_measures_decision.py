"""Rare classes: what ranks, which threshold decides, and what it is worth on the hold-out."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import f1_score, precision_recall_fscore_support

import learnable as ln
from learnable.core.errors import ParameterError
from learnable.evaluation import compare
from learnable.evaluation.comparison.measures import (
    Cost,
    choose_threshold,
    class_figures,
    lopsided_note,
    read_cost,
    threshold_table,
)
from learnable.report import render

LONG = pytest.mark.long


def fraud(n=2000, positives=10, seed=0, swapped=False):
    """Few positives that one column shows, with overlap."""
    rng = np.random.default_rng(seed)
    y = np.zeros(n, dtype=int)
    y[rng.permutation(n)[:positives]] = 1
    x = rng.normal(size=n) + 2.5 * y
    names = np.array(["fraud", "honest"])[1 - y] if swapped else np.array(["no", "yes"])[y]
    return pa.table({"x": x, "z": rng.normal(size=n), "y": names})


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cost", [None, Cost(1.0, 20.0), Cost(5.0, 1.0)])
@pytest.mark.parametrize("rare", [0, 1])
def test_the_threshold_is_the_best_of_all_thresholds(seed, cost, rare):
    rng = np.random.default_rng(seed)
    positive = rng.random(300) < 0.1
    score = np.clip(0.3 * positive + 0.4 * rng.random(300), 0.0, 1.0).round(2)
    y = np.where(positive, rare, 1 - rare)
    p = np.column_stack([1 - score, score]) if rare == 1 else np.column_stack([score, 1 - score])

    def loss(called):
        if cost is None:
            return -f1_score(positive, called, zero_division=0.0)
        return cost.false_positive * (called & ~positive).sum() + cost.false_negative * (positive & ~called).sum()

    best = min(loss(score >= t) for t in [*np.unique(score), 2.0])
    decision = choose_threshold(y, p, cost)
    assert decision.positive == rare
    assert loss(decision.decide(p) == rare) == pytest.approx(best)


def test_figures_of_classes_are_scikit_learns():
    rng = np.random.default_rng(0)
    y, predicted = rng.integers(3, size=60), rng.integers(3, size=60)
    expected = precision_recall_fscore_support(y, predicted)
    found = class_figures(y, predicted, ["a", "b", "c"])
    for row, key in enumerate(("precision", "recall", "f1", "rows")):
        assert np.allclose([one[key] for one in found], expected[row])
    assert class_figures(np.array([0]), np.array([0]), ["a", "b"])[1]["precision"] is None


@pytest.mark.parametrize("wrong", ["FP=1", "FP=1,FN=x", "FP=0,FN=2", "FP=1,FN=2,TP=3", 3])
def test_costs_that_are_none_are_refused(wrong):
    with pytest.raises(ParameterError, match="FP=1,FN=20"):
        read_cost(wrong)


def test_costs_are_read_and_only_for_two_classes():
    assert read_cost({"fp": 1, "fn": 3}) == Cost(1.0, 3.0) == read_cost(" FP=1, FN=3".strip())
    with pytest.raises(ParameterError, match="two classes"):
        compare(
            pa.table({"x": np.sin(np.arange(30.0)), "y": np.arange(30.0) ** 0.5}),
            "y",
            models=["Ridge"],
            cost="FP=1,FN=2",
        )


def test_balanced_classes_are_ranked_by_accuracy():
    assert lopsided_note([50, 50, 40], ["a", "b", "c"]) is None
    assert lopsided_note([500, 20, 4], ["a", "b", "c"]) is not None


@pytest.mark.sampled(4)
@pytest.mark.parametrize("swapped", [False, True])
def test_ten_positives_in_two_thousand_rows(tmp_path, swapped):
    table, heard = fraud(swapped=swapped), []
    file = tmp_path / "model.safetensors"
    record = compare(table, "y", models=["LogisticRegression"], model_file=file, on_event=heard.append)
    assert record["protocol"]["metric"]["name"] == "log_loss"
    notes = next(event["notes"] for event in heard if event["kind"] == "data")
    assert any("99.5 %" in note and "log loss" in note for note in notes)
    winner = record["winner"]
    assert winner["decision"]["positive"] == ("fraud" if swapped else "yes")
    assert "F1" in winner["decision"]["criterion"]
    rare = [
        row for row in record["details"][winner["name"]]["per_class"] if row["label"] == winner["decision"]["positive"]
    ]
    assert rare[0]["rows"] == 2 and rare[0]["recall"] is not None
    model = ln.load(file)
    p = model.predict_proba(table)[:, 0 if swapped else 1]
    called = model.predict(table) == winner["decision"]["positive"]
    assert np.array_equal(called, p >= winner["decision"]["threshold"])
    assert "Precision and recall by class" in render(record) and "is predicted from a probability of" in render(record)


@pytest.mark.parametrize(("cost", "is_low"), [("FP=1,FN=50", True), pytest.param("FP=50,FN=1", False, marks=LONG)])
@pytest.mark.sampled(8)
def test_dear_misses_lower_the_threshold(cost, is_low):
    record = compare(fraud(600, 60), "y", models=["LogisticRegression"], cost=cost)
    decision = record["winner"]["decision"]
    assert cost.replace(",", ", ") in decision["criterion"]
    assert (decision["threshold"] < 0.2) == is_low


def test_ratings_are_told_of_the_other_task():
    rng = np.random.default_rng(0)
    x = rng.normal(size=120)
    rating = np.clip(np.round(5 + x), 3, 8).astype(int)
    heard = []
    compare(pa.table({"x": x, "stars": rating}), "stars", models=["GaussianNB"], on_event=heard.append)
    [notes] = [event["notes"] for event in heard if event["kind"] == "data"]
    assert any("only 5 distinct whole numbers" in note and "--task regression" in note for note in notes)


def test_a_threshold_needs_two_classes():
    X = np.arange(12.0).reshape(-1, 1)
    model = ln.TableModel(ln.GaussianNB(), threshold=0.2).fit(X, np.arange(12) // 4)
    with pytest.raises(ParameterError, match="two classes"):
        model.predict(X)


@pytest.mark.parametrize("rare", [0, 1])
def test_the_table_of_thresholds_counts_what_each_would_bring(rare):
    rng = np.random.default_rng(rare)
    y = np.where(rng.random(400) < 0.2, rare, 1 - rare)
    p = np.clip(0.3 * (y == rare) + 0.6 * rng.random(400), 0, 1)
    both = np.column_stack([p, 1 - p] if rare == 0 else [1 - p, p])
    cost = Cost(1.0, 7.0)
    chosen = choose_threshold(y, both, cost)
    found = threshold_table(y, both, ["a", "b"], cost, chosen)
    assert found["positive"] == "ab"[rare] and found["used"] == chosen.threshold
    lines = {line["threshold"]: line for line in found["lines"]}
    assert lines[chosen.threshold]["cost"] == min(line["cost"] for line in found["lines"])
    half, called = lines[0.5], p >= 0.5
    assert half["recall"] == (called & (y == rare)).sum() / (y == rare).sum()
    assert half["false_alarms"] == (called & (y != rare)).sum() and half["called"] == called.sum()
    assert "cost" not in threshold_table(y, both, ["a", "b"], None, None)["lines"][0]
