import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import log_loss

import learnable as ln
from learnable.evaluation.comparison.record import ComparisonRecord
from learnable.linear import LinearRegression, LogisticRegression
from learnable.report import report
from learnable.report.model import Subject, one_model_record


def subject(classes=None):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    y = X @ [1.0, -1.0] + 0.1 * rng.normal(size=60)
    from learnable.evaluation.comparison.measures import Prediction

    if classes is None:
        model = LinearRegression().fit(X, y)
        return Subject(model, X, y, Prediction(model.predict(X)), None, "y", "array", 0.01)
    codes = (y > 0).astype(int)
    model = LogisticRegression().fit(X, np.array(classes)[codes])
    values = np.searchsorted(classes, model.predict(X))
    return Subject(model, X, codes, Prediction(values, model.predict_proba(X)), np.array(classes), "y", "array", 0.01)


def test_the_record_has_the_shape_of_a_comparison():
    record = one_model_record(subject())
    assert set(ComparisonRecord.__required_keys__) <= set(record)
    assert record["subject"] == "model"


def test_the_baseline_knows_nothing_but_the_targets():
    classes = one_model_record(subject(["a", "b"]))["leaderboard"][1]
    truth = subject(["a", "b"]).truth
    prior = DummyClassifier(strategy="prior").fit(truth[:, None], truth).predict_proba(truth[:, None])
    np.testing.assert_allclose(classes["also"]["log_loss"], log_loss(truth, prior))
    assert classes["baseline"] and not classes["tied"]


def test_a_model_that_takes_long_goes_without_importances():
    quick = subject()
    slow = Subject(quick.model, quick.X, quick.truth, quick.prediction, None, "y", "array", 1e3)
    assert one_model_record(quick)["details"]["LinearRegression"]["importances"]
    assert one_model_record(slow)["details"]["LinearRegression"]["importances"] is None


def test_columns_and_target_are_profiled():
    profile = one_model_record(subject(["a", "b"]))["data"]["profile"]
    assert [(column["name"], column["role"]) for column in profile] == [
        ("x0", "feature"),
        ("x1", "feature"),
        ("y", "target"),
    ]


def test_the_page_says_what_is_proven():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] > 0).astype(int)
    model = LogisticRegression().fit(X[:100], y[:100])
    page = report(model, X[100:], y[100:])
    assert "What is proven about new rows" in page.html
    assert "200 held-out rows): informative" in page.html
    assert "100 training rows)" in report(model, X[:100], y[:100]).html


@pytest.mark.parametrize(
    ("model", "scale", "has_intervals"),
    [
        (ln.LogisticRegression(C=np.inf), "log odds", True),
        (ln.LogisticRegression(), "log odds", False),
        (ln.PoissonRegressor(alpha=0), "logarithm of the prediction", True),
        (ln.GLM(family="binomial"), "log odds", True),
        (ln.Ridge(), "prediction", False),
    ],
)
def test_coefficients_have_intervals_or_the_reason_why_not(model, scale, has_intervals):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] + rng.logistic(size=200) > 0).astype(int)
    page = report(model.fit(X, y), X, y)
    details = next(iter(page.record["details"].values()))
    first = details["coefficients"][0]
    assert first["of"] == scale
    assert (first["low"] is not None) == has_intervals
    assert ("a penalty pulls the coefficients" in page.html) != has_intervals
    if has_intervals:
        assert first["low"] < first["value"] < first["high"]
    elsewhere = report(model, X[:100], y[:100])
    others = next(iter(elsewhere.record["details"].values()))
    assert (others["coefficients"][0]["low"] is not None) == hasattr(model, "conf_int")
