"""Importances by gain, split and permutation."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from learnable import DecisionTreeRegressor, RandomForestClassifier
from learnable.core.errors import DataError, ParameterError
from learnable.ensembles import HistGradientBoostingClassifier, loss_importances, tree_importances


def test_gain_of_a_tree_is_its_feature_importance():
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeRegressor(random_state=0).fit(X, y)
    np.testing.assert_allclose(tree_importances(model), model.feature_importances_, atol=1e-12)
    total = tree_importances(model, normalize=False).sum()
    assert total == pytest.approx(((y - y.mean()) ** 2).sum() - ((y - model.predict(X)) ** 2).sum())


def test_splits_are_counted_over_all_outputs():
    X, y = load_iris(return_X_y=True)
    model = HistGradientBoostingClassifier(max_iter=4).fit(X, y)
    counts = tree_importances(model, "split", normalize=False)
    feature = model.trees_.feature
    assert counts.tolist() == np.bincount(feature[feature >= 0], minlength=4).tolist()
    assert tree_importances(model).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("model", [HistGradientBoostingClassifier(max_iter=20), RandomForestClassifier(random_state=0)])
def test_permutation_finds_what_matters_and_is_the_rise_of_the_loss(model):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    y = X[:, 0] + 0.3 * X[:, 1] > 0
    model.fit(X[:300], y[:300])
    found = loss_importances(model, X[300:], y[300:], n_repeats=4, random_state=1)
    assert found.mean[0] > found.mean[1] > abs(found.mean[2])
    again = loss_importances(model, X[300:], y[300:], n_repeats=4, random_state=1, n_jobs=1)
    np.testing.assert_array_equal(found.mean, again.mean)
    if isinstance(model, RandomForestClassifier):  # replayed with predictions
        Z, rises = X[300:].copy(), []
        before = np.mean(model.predict(Z) != y[300:])
        from learnable.trees._random import seed_of

        for repeat in range(4):
            Z[:, 0] = X[300:, 0][np.random.default_rng([seed_of(1), 0, repeat]).permutation(300)]
            rises.append(np.mean(model.predict(Z) != y[300:]) - before)
        assert found.mean[0] == pytest.approx(np.mean(rises), abs=1e-12)


def test_what_is_refused():
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeRegressor(max_depth=2).fit(X, y)
    with pytest.raises(ParameterError, match="kind must be"):
        tree_importances(model, "cover")
    with pytest.raises(DataError, match="150 rows"):
        loss_importances(model, X, y[:10])
