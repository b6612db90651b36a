"""Which models are sums of trees."""

import numpy as np
import pytest

from learnable import AdaBoostClassifier, DecisionTreeClassifier, LogisticRegression
from learnable.core.errors import DataError
from learnable.ensembles import GradientBoostingRegressor
from learnable.ensembles.explain.additive import additive_trees


def test_votes_of_trees_are_trees():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3))
    y = np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=6).fit(X, y)
    form = additive_trees(model)
    np.testing.assert_allclose(form.parts[0].sum(X), model.raw_score(X), atol=1e-12)
    with pytest.raises(DataError, match="decision trees of this library"):
        additive_trees(AdaBoostClassifier(LogisticRegression(), n_estimators=2).fit(X, y))


def test_a_start_by_another_model_is_refused():
    X = np.arange(20.0)[:, None]
    with pytest.raises(DataError, match="init"):
        additive_trees(GradientBoostingRegressor(init=GradientBoostingRegressor(), n_estimators=2).fit(X, X[:, 0]))
