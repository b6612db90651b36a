"""What a comparison says is proven about its winner."""

import numpy as np
import pytest

import learnable as ln
from learnable.evaluation import CalibratedClassifier
from learnable.evaluation.comparison.judge import NO_RANGE, proven
from learnable.theory.concentration import binomial_upper


def table(n=400):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)


def test_the_bound_is_clopper_and_pearsons_on_the_rows_set_aside():
    X, y = table()
    model = ln.LogisticRegression().fit(X[:200], y[:200])
    predicted = model.predict(X[200:])
    found = proven(model, X[:200], y[:200], y[200:], predicted, ["no", "yes"], 0.95)
    errors = int((predicted != y[200:]).sum())
    assert found["bound"]["value"] == pytest.approx(binomial_upper(errors, 200, 0.05))
    assert found["bound"]["verdict"] == "informative"
    assert "with 95 % confidence the error is below" in found["sentence"]
    assert found["theorem"]["model"] == "LogisticRegression"
    assert found["theorem"]["checks"]


def test_the_theorem_is_that_of_the_model_inside():
    X, y = table()
    model = CalibratedClassifier(ln.LinearSVC()).fit(X[:200], y[:200])
    found = proven(model, X[:200], y[:200], y[200:], model.predict(X[200:]), ["no", "yes"], 0.95)
    assert found["theorem"]["model"] in {"LinearSVC", "CalibratedClassifier"}


def test_regression_says_why_nothing_is_bounded():
    X, _ = table()
    y = X[:, 0]
    model = ln.Ridge().fit(X[:200], y[:200])
    found = proven(model, X[:200], y[:200], y[200:], model.predict(X[200:]), None, 0.95)
    assert found["bound"] is None
    assert found["sentence"] == NO_RANGE
    assert found["theorem"]["model"] == "Ridge"
