"""Learning curves of models that a few rows do not suffice for."""

import numpy as np

from learnable import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from learnable.evaluation.comparison.explain import curve_where_possible


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
