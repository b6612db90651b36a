"""Held-out rows count their uses: planned models share δ, further ones get ever less of it."""

import numpy as np
import pytest

import learnable as ln
from learnable.core.errors import DataError, ParameterError
from learnable.evaluation import HeldOutRows


def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    return X, (X[:, 0] + 0.3 * rng.normal(size=400) > 0).astype(int)


def test_planned_models_share_delta_and_further_ones_get_less():
    X, y = table()
    rows = HeldOutRows(X[200:], y[200:], planned=2, delta=0.1)
    models = [
        ln.GaussianNB(),
        ln.LogisticRegression(),
        ln.DecisionTreeClassifier(max_depth=1),
        ln.KNeighborsClassifier(3),
    ]
    levels = [rows.judge(model.fit(X[:200], y[:200])).best.delta for model in models]
    assert levels == pytest.approx([0.05, 0.05, 0.1 / 12, 0.1 / 20])
    assert rows.uses == 4
    assert rows.judge(models[0]).best.delta == pytest.approx(0.05)  # the same predictions are no new use
    assert rows.uses == 4


def test_rows_that_a_model_saw_are_refused():
    X, y = table()
    with pytest.raises(DataError, match="fitted to these rows"):
        HeldOutRows(X, y).judge(ln.LogisticRegression().fit(X, y))
    with pytest.raises(ParameterError):
        HeldOutRows(X, y, planned=0)
