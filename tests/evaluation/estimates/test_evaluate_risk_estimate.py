"""The record of a score: which interval it gets, and what it refuses."""

import math

import numpy as np
import pytest
from sklearn.metrics import get_scorer

from learnable import LogisticRegression, Ridge
from learnable.core import DataError
from learnable.evaluation import binomial_interval, corrected_t_interval
from learnable.evaluation.estimates.evaluate import fold_estimate, pooled_score, row_interval
from learnable.evaluation.estimates.losses import Remembered
from learnable.meta.folds import FoldScore
from learnable.meta.splits import make_splits


def folds(scores):
    return [FoldScore(score, score + 0.1, 1.0, 2.0, None) for score in scores]


def test_scores_of_folds():
    splits = make_splits(100)
    found = fold_estimate(folds([0.5, 0.7, 0.6, 0.55, 0.65]), splits, "r2", "5-fold", 0.9)
    expected = corrected_t_interval([0.5, 0.7, 0.6, 0.55, 0.65], 0.2, 0.9)
    np.testing.assert_allclose(found.interval[:2], expected[:2], rtol=1e-12)
    assert (found.n_train, found.n_test, found.mean) == (80, 20, pytest.approx(0.6))
    assert found.gap == pytest.approx(0.1) and found.certificates == [None] * 5


def test_folds_that_agree_still_have_an_interval_of_accuracy():
    splits = make_splits(100)
    found = fold_estimate(folds([0.9] * 5), splits, "accuracy", "5-fold", 0.95).interval
    exact = binomial_interval(10, 100)
    np.testing.assert_allclose(found[:2], (1 - exact.high, 1 - exact.low), rtol=1e-12)
    wild = fold_estimate(folds([0.9, 0.5, 1.0, 0.5, 1.0]), splits, "accuracy", "5-fold", 0.95).interval
    assert (wild.low, wild.high) == (pytest.approx(corrected_t_interval([0.9, 0.5, 1, 0.5, 1], 0.2).low), 1.0)


def test_the_interval_over_rows_follows_the_metric():
    y = np.array([0, 1, 0, 1, 1, 0])
    stand_in = Remembered(LogisticRegression(), {"predict": np.array([0, 1, 0, 1, 0, 0])}, np.array([0, 1]))
    found = row_interval(get_scorer("accuracy"), "accuracy", stand_in, y, None, 0.95, None)
    assert found.method == "exact binomial"
    found = row_interval(get_scorer("f1"), "f1", stand_in, y, None, 0.95, None)
    assert found.method == "jackknife over rows"
    found = row_interval(lambda model, X, y: model.coef_, "mine", stand_in, y, None, 0.95, None)
    assert (found.low, found.high) == (-math.inf, math.inf) and found.method.startswith("none")


@pytest.mark.filterwarnings("ignore:R.*not well-defined")
def test_scores_that_do_not_exist_are_refused():
    stand_in = Remembered(Ridge(), {"predict": np.zeros(1)})
    with pytest.raises(DataError, match=r"test: the score of 1 row\(s\) is nan"):
        pooled_score("test", get_scorer("r2"), stand_in, np.zeros(1))
    with pytest.raises(DataError, match="cannot judge predictions without their model"):
        pooled_score("test", lambda model, X, y: model.coef_, stand_in, np.zeros(1))
