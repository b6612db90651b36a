"""Boosting with exact splits: scikit-learn's numbers, AdaBoost's law, out-of-bag figures."""

import numpy as np
import pytest
import sklearn.ensemble as other
from sklearn.datasets import make_classification, make_friedman1
from sklearn.linear_model import LinearRegression as TheirRegression

from learnable import AdaBoostClassifier, GradientBoostingClassifier, GradientBoostingRegressor, LogisticRegression
from learnable.core.errors import DataError, ParameterError

X, Y = make_friedman1(300, n_features=5, noise=1.0, random_state=0)
XC, YC = make_classification(300, 6, n_informative=4, flip_y=0.3, random_state=1)


@pytest.mark.parametrize("settings", [{}, {"max_leaf_nodes": 6, "max_depth": None}, {"min_samples_leaf": 9}])
def test_squared_loss_gives_scikit_learns_numbers(settings):
    ours = GradientBoostingRegressor(n_estimators=25, **settings).fit(X, Y)
    theirs = other.GradientBoostingRegressor(n_estimators=25, random_state=0, **settings).fit(X, Y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)
    np.testing.assert_allclose(ours.train_score_, theirs.train_score_, rtol=1e-9)


def test_importances_are_scikit_learns_where_no_two_splits_are_as_good():
    """In small nodes columns often divide the rows in the same way, and each library breaks such ties as it likes."""
    ours = GradientBoostingRegressor(n_estimators=25, max_depth=2, min_samples_leaf=20).fit(X, Y)
    theirs = other.GradientBoostingRegressor(n_estimators=25, max_depth=2, min_samples_leaf=20).fit(X, Y)
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, atol=1e-9)


@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
def test_two_classes_give_scikit_learns_numbers(loss):
    ours = GradientBoostingClassifier(loss=loss, n_estimators=25).fit(XC, YC)
    theirs = other.GradientBoostingClassifier(loss=loss, n_estimators=25, random_state=0).fit(XC, YC)
    np.testing.assert_allclose(ours.predict_proba(XC), theirs.predict_proba(XC), rtol=1e-7)
    np.testing.assert_allclose(ours.train_score_, theirs.train_score_, rtol=1e-9)
    assert ours.apply(XC).shape == theirs.apply(XC).shape
    assert ours.estimators_.shape == theirs.estimators_.shape


def test_huber_and_quantile_are_as_good_as_scikit_learns():
    for loss in ("huber", "quantile", "absolute_error"):
        ours = GradientBoostingRegressor(loss=loss, n_estimators=40).fit(X, Y)
        theirs = other.GradientBoostingRegressor(loss=loss, n_estimators=40, random_state=0).fit(X, Y)
        assert ours.train_score_[-1] == pytest.approx(theirs.train_score_[-1], rel=0.08)


def test_exponential_loss_with_stumps_is_real_adaboost():
    """Leaves ½ log(W₊/W₋) under D ∝ e^{−yF}; the loss falls by Z = Σ 2√(W₊W₋) in every round."""
    model = GradientBoostingClassifier(
        loss="exponential",
        max_depth=1,
        leaf="minimiser",
        learning_rate=1.0,
        init="zero",
        n_estimators=8,
        min_samples_leaf=20,
    ).fit(XC, YC)
    sign, F = np.where(YC == 1, 1.0, -1.0), np.zeros(len(YC))
    for t in range(8):
        tree, D = model.trees_.tree(t), np.exp(-sign * F)
        leaf, Z = tree.apply(XC)[:, 0], 0.0
        for i in np.unique(leaf):
            up, down = D[(leaf == i) & (sign > 0)].sum(), D[(leaf == i) & (sign < 0)].sum()
            assert tree.value[i, 0] == pytest.approx(0.5 * np.log(up / down), abs=1e-9)
            Z += 2 * np.sqrt(up * down) / D.sum()
        assert model.training_loss_[t + 1] == pytest.approx(Z * model.training_loss_[t])
        F += tree.sum(XC)[:, 0]
    column = XC[:, [int(model.trees_.feature[0])]]
    boosted = GradientBoostingClassifier(
        loss="exponential", max_depth=1, leaf="minimiser", learning_rate=1.0, init="zero", n_estimators=1
    ).fit(column, YC)
    voted = AdaBoostClassifier(variant="real", n_estimators=1).fit(column, YC)
    assert boosted.training_loss_[1] == pytest.approx(float(voted.exponential_loss_[0]), rel=0.05)


def test_out_of_bag_figures_fall_and_belong_to_rows_not_drawn():
    model = GradientBoostingRegressor(n_estimators=20, subsample=0.5, random_state=0).fit(X, Y)
    assert model.oob_improvement_.shape == model.oob_scores_.shape == (20,)
    assert model.oob_improvement_[:5].min() > 0 and model.oob_score_ == model.oob_scores_[-1]
    assert not hasattr(GradientBoostingRegressor(n_estimators=2).fit(X, Y), "oob_score_")


def test_a_start_from_another_model():
    model = GradientBoostingRegressor(init=TheirRegression(), n_estimators=1, learning_rate=1e-12).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), TheirRegression().fit(X, Y).predict(X), atol=1e-9)
    zero = GradientBoostingRegressor(init="zero", n_estimators=1, learning_rate=1e-12).fit(X, Y)
    np.testing.assert_allclose(zero.predict(X), 0.0, atol=1e-9)
    start = LogisticRegression()
    classes = GradientBoostingClassifier(init=start, n_estimators=1, learning_rate=1e-12).fit(XC, YC)
    np.testing.assert_allclose(classes.predict_proba(XC), start.fit(XC, YC).predict_proba(XC), atol=1e-7)


def test_early_stopping_and_pruning():
    noise = np.random.default_rng(0).normal(size=300)
    model = GradientBoostingRegressor(n_estimators=500, n_iter_no_change=5, random_state=0).fit(X, noise)
    assert model.n_estimators_ < 100
    assert model.n_estimators_ == max(1, int(np.argmax(model.validation_score_)))
    full = GradientBoostingRegressor(n_estimators=5).fit(X, Y)
    pruned = GradientBoostingRegressor(n_estimators=5, ccp_alpha=0.5).fit(X, Y)
    assert pruned.trees_.n_leaves < full.trees_.n_leaves
    theirs = other.GradientBoostingRegressor(n_estimators=5, ccp_alpha=0.5, random_state=0).fit(X, Y)
    np.testing.assert_allclose(pruned.predict(X), theirs.predict(X), rtol=1e-9)


@pytest.mark.threaded
def test_threads_and_draws_of_columns_give_one_model(monkeypatch):
    monkeypatch.setattr("learnable.core.threads.thread_budget", lambda: 3)
    models = [
        GradientBoostingRegressor(n_estimators=8, max_features=2, random_state=5, n_jobs=n).fit(X, Y) for n in (1, 2, 3)
    ]
    assert all(np.array_equal(models[0].trees_.value, model.trees_.value) for model in models[1:])


def test_a_direction_of_largest_inner_product_has_signs_as_leaves():
    model = GradientBoostingClassifier(
        direction="inner-product", n_estimators=20, step="line-search", learning_rate=1.0, max_depth=2
    ).fit(XC, YC)
    leaves = model.trees_.feature < 0
    sizes = np.repeat(model.steps_, np.diff(model.trees_.start))
    np.testing.assert_allclose(np.abs(model.trees_.value[leaves, 0]), sizes[leaves])
    assert model.score(XC, YC) > 0.8


def test_errors():
    with pytest.raises(ParameterError, match="gamma and reg_lambda are for direction='newton'"):
        GradientBoostingRegressor(gamma=1.0).fit(X, Y)
    with pytest.raises(ParameterError, match="implementing 'fit' and 'predict_proba'"):
        GradientBoostingClassifier(init=TheirRegression()).fit(XC, YC)
    with pytest.raises(DataError, match="warm_start goes on with 5 columns"):
        GradientBoostingRegressor(warm_start=True).fit(X, Y).fit(X[:, :3], Y)
