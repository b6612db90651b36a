import numpy as np
import pytest
from sklearn import metrics
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

from learnable.core.errors import ParameterError
from learnable.evaluation.comparison.measures import MEASURES, Prediction, measure_all, predict_rows, ranking_measure

RNG = np.random.default_rng(0)


def test_numbers_are_measured_as_scikit_learn_does():
    y = RNG.normal(size=50)
    guess = y + RNG.normal(size=50)
    found = measure_all("regression", y, Prediction(guess))
    assert found["r2"] == pytest.approx(metrics.r2_score(y, guess), rel=1e-12)
    assert found["rmse"] == pytest.approx(metrics.root_mean_squared_error(y, guess), rel=1e-12)
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(y, guess), rel=1e-12)


@pytest.mark.parametrize("k", [2, 4])
def test_classes_are_measured_as_scikit_learn_does(k):
    y = RNG.integers(k, size=80)
    p = np.round(RNG.dirichlet(np.ones(k), size=80), 1) + 0.01  # rounded: with ties
    p /= p.sum(axis=1, keepdims=True)
    guess = p.argmax(axis=1)
    found = measure_all("binary" if k == 2 else "multiclass", y, Prediction(guess, p))
    assert found["accuracy"] == metrics.accuracy_score(y, guess)
    assert found["balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(y, guess), rel=1e-12)
    assert found["log_loss"] == pytest.approx(metrics.log_loss(y, p, labels=range(k)), rel=1e-12)
    area = metrics.roc_auc_score(y, p[:, 1]) if k == 2 else metrics.roc_auc_score(y, p, multi_class="ovr")
    assert found["auc"] == pytest.approx(area, rel=1e-12)
    rarer = int(np.argmin(np.bincount(y, minlength=k)))
    hits = (y == rarer, p[:, rarer]) if k == 2 else (y, p)
    assert found["average_precision"] == pytest.approx(metrics.average_precision_score(*hits), rel=1e-12)


def test_what_is_not_defined_is_nan():
    y, constant = np.zeros(3), Prediction(np.zeros(3, dtype=int))
    assert np.isnan(measure_all("regression", y, constant)["r2"])
    found = measure_all("binary", y.astype(int), constant)
    assert np.isnan(found["log_loss"]) and np.isnan(found["auc"]) and found["accuracy"] == 1.0


def test_probabilities_are_spread_over_all_classes_of_the_table():
    """A fold that lacks a class must not shift the columns of the others."""
    model = DummyClassifier(strategy="prior").fit(np.zeros((4, 1)), [0, 2, 2, 2])
    prediction = predict_rows(model, np.zeros((1, 1)), 4)
    assert prediction.probabilities.tolist() == [[0.25, 0.0, 0.75, 0.0]] and prediction.values.tolist() == [2]


def test_every_measure_has_a_scorer_that_says_the_same():
    """Of a model with probabilities; a scorer of an error has the other sign."""
    rng = np.random.default_rng(3)
    for measure in MEASURES:
        X = rng.normal(size=(60, 2))
        numbers = "regression" in measure.tasks
        y = X[:, 0] + rng.normal(size=60) if numbers else (X[:, 0] + rng.normal(size=60) > 0.8).astype(int)
        model = (LinearRegression() if numbers else LogisticRegression()).fit(X, y)
        found = metrics.get_scorer(measure.scoring)(model, X, y)
        sign = 1.0 if measure.greater_is_better else -1.0
        expected = measure.function(y, predict_rows(model, X, None if numbers else 2))
        assert sign * found == pytest.approx(expected, rel=1e-12)


def test_the_rarer_class_is_the_one_whose_precision_counts():
    """Whichever of two labels comes first in the alphabet, and also for a model that never saw one of them."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 2))
    rare = X[:, 0] + rng.normal(size=200) > 2.0
    measure = ranking_measure("binary", "average_precision")
    values = []
    for first in (True, False):
        y = np.where(rare, 0, 1) if first else np.where(rare, 1, 0)
        model = LogisticRegression().fit(X, y)
        values.append(measure.function(y, predict_rows(model, X, 2)))
        scorer = metrics.get_scorer(measure.scoring)
        assert scorer(model, X, y) == pytest.approx(values[-1], rel=1e-12)
        blind = DummyClassifier(strategy="prior").fit(X, np.full(200, int(first)))
        assert scorer(blind, X, y) == pytest.approx(rare.mean())
    assert values[0] == pytest.approx(values[1], rel=1e-6) and 0.3 < values[0] < 1.0


def test_an_unknown_measure_is_refused():
    with pytest.raises(ParameterError, match="one of accuracy"):
        ranking_measure("binary", "r2")
