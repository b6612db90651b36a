"""Learning curves of models that a few rows do not suffice for."""

import numpy as np
import pytest

from learnable import KNeighborsRegressor, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, Ridge
from learnable.evaluation.comparison.explain import curve_where_possible, trend
from learnable.evaluation.comparison.measures import ranking_measure


def _rows(counts, columns):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(len(counts)), counts)
    order = rng.permutation(len(y))
    return (rng.normal(size=(len(y), columns)) + y[:, None])[order], y[order]


def test_a_curve_begins_where_the_model_can_be_fitted():
    X, y = _rows((120, 60, 20), 6)
    whole, failure = curve_where_possible(LinearDiscriminantAnalysis(), X, y, n_splits=3)
    assert failure is None and len(whole.values) == 5
    curve, failure = curve_where_possible(QuadraticDiscriminantAnalysis(), X, y, n_splits=3)
    assert 1 <= len(curve.values) < 5 and curve.values == whole.values[-len(curve.values) :]
    assert "QuadraticDiscriminantAnalysis failed in fold" in failure
    assert f"with {whole.values[-len(curve.values) - 1]} training rows" in failure


def test_a_model_that_no_share_suffices_for_has_no_curve():
    X, y = _rows((40, 4), 6)
    curve, failure = curve_where_possible(QuadraticDiscriminantAnalysis(), X, y, n_splits=2)
    assert curve is None and "training rows" in failure


def _trend(model, X, y, name="r2"):
    measure = ranking_measure("regression", name)
    curve, _ = curve_where_possible(model, X, y, n_splits=5, scoring=measure.scoring, random_state=0)
    return trend(curve, measure, 5)


@pytest.mark.parametrize("name", ["r2", "rmse"])
def test_a_curve_rises_where_more_rows_help(name):
    """Neighbours in four dimensions, without noise: every row helps, and the error falls."""
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(1500, 4))
    found = _trend(KNeighborsRegressor(n_neighbors=3), X, np.sin(4 * X).sum(axis=1), name)
    assert found["word"] == "rising" and found["low"] > 0


def test_a_curve_is_flat_where_the_model_knows_all_it_can():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3000, 2))
    found = _trend(Ridge(), X, X[:, 0] + rng.normal(size=3000))
    assert found["word"] == "flat" and -found["margin"] < found["low"] < found["high"] < found["margin"]


def test_what_few_rows_cannot_tell_is_unknown():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(45, 3))
    assert _trend(Ridge(), X, X[:, 0] + 3 * rng.normal(size=45))["word"] == "unknown"
