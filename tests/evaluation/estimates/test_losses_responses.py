"""Remembered predictions: a scorer cannot tell them from the model."""

import numpy as np
import pytest
from sklearn.metrics import get_scorer
from sklearn.neighbors import KNeighborsClassifier

from learnable import LogisticRegression, Ridge
from learnable.data.rows import read_rows
from learnable.evaluation.estimates.losses import (
    OutOfFold,
    Remembered,
    jackknife_interval,
    remember_model,
    responses_of,
    score_of,
)
from learnable.meta.folds import fit_folds
from learnable.meta.splits import make_splits


def draw(n=60, classes=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.array(["a", "bb", "ccc"])[np.arange(n) % classes]


@pytest.mark.parametrize("metric", ["accuracy", "neg_log_loss", "roc_auc_ovr", "f1_macro", "top_k_accuracy"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_scorer_judges_memories_like_the_model(metric, classes):
    if metric == "top_k_accuracy" and classes == 2:
        metric = "average_precision"
    X, y = draw(classes=classes)
    y = y if metric != "average_precision" else (y == "a").astype(int)
    model, scorer = LogisticRegression().fit(X, y), get_scorer(metric)
    rows = np.arange(10, 50)
    stand_in = remember_model(model, read_rows("test", X, y), rows)
    assert score_of(scorer, stand_in, y[rows], None, np.arange(40)) == pytest.approx(scorer(model, X[rows], y[rows]))
    some, weight = np.arange(5, 30), np.linspace(1, 2, 40)
    expected = scorer(model, X[rows][some], y[rows][some], sample_weight=weight[some])
    assert score_of(scorer, stand_in, y[rows], weight, some) == pytest.approx(expected)


def test_only_what_the_model_has_is_remembered():
    X, y = draw()
    regressor = Remembered(Ridge(), responses_of(Ridge().fit(X, X[:, 0]), X))
    assert hasattr(regressor, "predict") and not hasattr(regressor, "predict_proba")
    neighbours = responses_of(KNeighborsClassifier().fit(X, y), X)
    assert set(neighbours) == {"predict", "predict_proba"}


def test_folds_that_miss_a_class():
    X, y = draw()
    y = y.astype("<U10")
    y[7] = "very rare"
    table = read_rows("test", X, y)
    found = OutOfFold(LogisticRegression(), table)
    for fold in fit_folds("test", LogisticRegression(), table, make_splits(60)):
        found.add(fold)
    stand_in = found.stand_in()
    assert list(stand_in.classes_) == ["a", "bb", "ccc", "very rare"]
    assert not hasattr(stand_in, "decision_function")
    proba = stand_in.predict_proba(np.arange(60))
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert proba[7, 3] == 0.0 and set(stand_in.predict(np.arange(60))) <= set(y)


def test_the_jackknife_of_a_mean_is_students_interval():
    """With as many groups as rows the pseudo-values of a mean are the values."""
    y = np.random.default_rng(0).normal(size=20)
    stand_in = Remembered(Ridge(), {"predict": np.zeros(20)})
    found = jackknife_interval(get_scorer("neg_mean_squared_error"), stand_in, y, None, 0.9, np.random.default_rng(0))
    from learnable.evaluation import t_interval

    expected = t_interval(-(y**2), 0.9)
    np.testing.assert_allclose(found[:2], expected[:2], rtol=1e-10)
    one = jackknife_interval(get_scorer("neg_mean_squared_error"), stand_in, y[:1], None, 0.9, np.random.default_rng(0))
    assert one[:2] == (-np.inf, np.inf)
