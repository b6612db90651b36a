import numpy as np
import pytest
from tests.evaluation.comparison.tables import classes

from learnable import LinearRegression
from learnable.evaluation.comparison.judge import coefficients, confusion, draw_details, holdout_interval, roc_curves
from learnable.evaluation.comparison.measures import MEASURES, Prediction, ranking_measure


def test_the_interval_of_r2_covers_the_true_one():
    """Law: over many samples of known R², about 95 % of the intervals hold it."""
    measure, hits, repeats = ranking_measure("regression"), 0, 600
    rng = np.random.default_rng(0)
    for _ in range(repeats):
        x = rng.normal(size=300)
        y = x + rng.normal(size=300)  # the prediction x explains half of the variance
        interval = holdout_interval(measure, y, Prediction(x), 0.95, 0)
        hits += interval.low <= 0.5 <= interval.high
    assert abs(hits / repeats - 0.95) < 4 * np.sqrt(0.95 * 0.05 / repeats)


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
def test_every_interval_holds_the_score_itself(measure):
    rng = np.random.default_rng(1)
    if "regression" in measure.tasks:
        y = rng.normal(size=200)
        prediction = Prediction(y + rng.normal(size=200))
    else:
        y, p = rng.integers(3, size=200), rng.dirichlet(np.ones(3), size=200)
        prediction = Prediction(p.argmax(axis=1), p)
    interval = holdout_interval(measure, y, prediction, 0.9, 0)
    assert interval.low < measure.function(y, prediction) < interval.high
    narrow = holdout_interval(measure, y, prediction, 0.5, 0)
    assert interval.low < narrow.low < narrow.high < interval.high


def test_one_row_or_a_constant_target_says_nothing():
    r2 = ranking_measure("regression")
    for y in (np.ones(1), np.ones(5)):
        interval = holdout_interval(r2, y, Prediction(np.zeros(len(y))), 0.95, 0)
        assert interval.low == -np.inf and interval.high == np.inf


def test_many_classes_are_merged_without_losing_a_row():
    rng = np.random.default_rng(2)
    y, guess = rng.integers(60, size=900), rng.integers(60, size=900)
    found = confusion(y, Prediction(guess), [str(k) for k in range(60)])
    assert len(found["labels"]) == 40 and found["labels"][-1] == "21 others"
    assert found["counts"].shape == (40, 40) and found["counts"].sum() == 900


def test_curves_are_thinned_but_keep_their_area_and_ends():
    rng = np.random.default_rng(3)
    y = rng.integers(2, size=5000)
    p = np.clip(0.5 * y + rng.random(5000) * 0.7, 0, 1)
    [curve] = roc_curves(y, np.column_stack([1 - p, p]), ["no", "yes"])
    assert len(curve["fpr"]) <= 200 and curve["label"] == "yes"
    assert (curve["fpr"][0], curve["tpr"][-1]) == (0.0, 1.0)
    assert curve["auc"] == pytest.approx(np.mean(p[y == 1][:, None] > p[y == 0]), abs=1e-9)


def test_residuals_are_a_sample_of_at_most_two_thousand():
    y = np.arange(5000.0)
    details = draw_details(y, Prediction(y + 1), None, seed=0)
    residuals = details["residuals"]
    assert len(residuals["actual"]) == 2000 and (residuals["predicted"] - residuals["actual"] == 1).all()


def test_coefficients_come_with_intervals_where_the_model_has_them():
    table = classes()
    X = np.column_stack([table["u"], table["v"]])
    y = X @ [3.0, -1.0] + np.random.default_rng(4).normal(size=len(X))
    model = LinearRegression().fit(X, y)
    found = coefficients(model, ["u", "v"], None, 0.95)
    assert [item["name"] for item in found] == ["u", "v"]
    assert all(item["low"] < item["value"] < item["high"] for item in found)
    singular = LinearRegression().fit(np.column_stack([X, X[:, 0]]), y)
    assert all(np.isnan(item["low"]) for item in coefficients(singular, ["u", "v", "w"], None, 0.95))
