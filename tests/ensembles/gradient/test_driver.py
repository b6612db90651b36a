"""The laws of the loop: losses that never rise, residuals, draws, steps, signs, time."""

import _thread
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification, make_friedman1

from learnable import GradientBoostingClassifier, GradientBoostingRegressor, HistGradientBoostingRegressor
from learnable.ensembles.gradient.driver import Plan, draw_round, line_search, respect_signs

X, Y = make_friedman1(200, n_features=5, random_state=0)
XC, YC = make_classification(200, 6, n_informative=4, n_classes=3, random_state=0)


@pytest.mark.parametrize("direction", ["gradient", "newton", "inner-product"])
@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "quantile", "poisson", "gamma", "log_loss", "exponential", "softmax"]
)
def test_with_line_search_the_training_loss_never_rises(loss, direction):
    settings = {"n_estimators": 12, "learning_rate": 1.0, "step": "line-search", "direction": direction}
    if loss in ("log_loss", "softmax", "exponential"):
        y = YC if loss == "softmax" else YC > 0
        model = GradientBoostingClassifier(loss="log_loss" if loss == "softmax" else loss, **settings).fit(XC, y)
    else:
        model = GradientBoostingRegressor(loss=loss, **settings).fit(X, Y + 5.0)
    assert (np.diff(model.training_loss_) <= 1e-12).all()
    assert model.training_loss_[-1] < 0.9 * model.training_loss_[0] or loss in ("poisson", "gamma")


def test_joint_quantiles_with_line_search_do_not_rise_either():
    model = GradientBoostingRegressor(
        loss="quantile", alpha=[0.1, 0.5, 0.9], n_estimators=15, learning_rate=1.0, step="line-search"
    ).fit(X, Y)
    assert (np.diff(model.training_loss_) <= 1e-12).all()


@settings(max_examples=20)
@given(seed=st.integers(0, 2**16), direction=st.sampled_from(["gradient", "newton"]))
def test_squared_loss_fits_the_residuals(seed, direction):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    model = GradientBoostingRegressor(n_estimators=2, learning_rate=1.0, direction=direction, max_depth=2).fit(x, y)
    first, second = model.trees_.tree(0), model.trees_.tree(1)
    residual = y - y.mean() - first.sum(x)[:, 0]
    leaf = second.apply(x)[:, 0]
    for i in np.unique(leaf):
        assert second.value[i, 0] == pytest.approx(residual[leaf == i].mean(), abs=1e-12)
    assert model.training_loss_[2] == pytest.approx(np.mean((residual - second.sum(x)[:, 0]) ** 2) / 2)


def test_steps_are_constant_or_fall_like_a_root():
    fixed = GradientBoostingRegressor(n_estimators=4, learning_rate=0.2).fit(X, Y)
    falling = GradientBoostingRegressor(n_estimators=4, learning_rate=0.2, step="sqrt-decay").fit(X, Y)
    np.testing.assert_allclose(fixed.steps_, 0.2)
    np.testing.assert_allclose(falling.steps_, 0.2 / np.sqrt([1, 2, 3, 4]))


def test_line_search_of_a_parabola_and_of_what_only_rises():
    assert line_search(lambda r: (r - 300.0) ** 2, 90000.0) == pytest.approx(300.0, rel=1e-5)
    assert line_search(lambda r: 1.0 + r, 1.0) == 0.0


def test_rows_with_large_gradients_stay_and_sums_keep_their_expectation():
    g = np.random.default_rng(0).standard_t(3, size=(1, 300))
    plan = Plan(1, 0.1, subsample=0.3, sampling="gradient", seed=1)
    totals = []
    for m in range(400):
        rows, factor = draw_round(plan, g, None, m)
        assert len(rows) == 90 and (np.diff(rows) > 0).all()
        assert set(np.argsort(-np.abs(g[0]))[:60]) <= set(rows)
        totals.append((g[0] * factor)[rows].sum())
    error = np.std(totals) / np.sqrt(len(totals))
    assert abs(np.mean(totals) - g.sum()) < 4 * error
    rows, factor = draw_round(Plan(1, 0.1, subsample=0.3, seed=1), g, None, 0)
    assert len(np.unique(rows)) == 90 and factor is None


def test_leaf_values_respect_signs():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(400, 2))
    y = 3 * x[:, 0] + np.sin(20 * x[:, 0]) + rng.normal(size=400)
    for loss in ("squared_error", "absolute_error"):
        model = GradientBoostingRegressor(loss=loss, monotonic_cst=[1, 0], n_estimators=30, max_depth=4).fit(x, y)
        grid = np.column_stack([np.linspace(0, 1, 200), np.full(200, 0.4)])
        assert (np.diff(model.predict(grid)) >= -1e-12).all()
    tree = model.trees_.tree(0)
    values = rng.normal(size=tree.n_nodes)
    out = respect_signs(tree, values, np.array([1, 0], np.int8))
    moved = np.array([out[i] for i in tree.apply(grid)[:, 0]])
    assert (np.diff(moved) >= -1e-12).all()


def test_time_is_up_after_some_rounds():
    x = np.random.default_rng(0).normal(size=(20_000, 20))
    model = HistGradientBoostingRegressor(max_iter=100_000, max_seconds=0.5, early_stopping=False)
    model.fit(x, x[:, 0])
    assert 1 <= model.n_iter_ < 100_000  # all of them would take hours
    assert model.certificate_.holds


def test_an_interruption_leaves_the_model_as_it_was():
    x = np.random.default_rng(0).normal(size=(20_000, 20))
    model = HistGradientBoostingRegressor(max_iter=3).fit(x[:500], x[:500, 0])
    before = model.predict(x[:5])
    model.set_params(max_iter=1_000_000, early_stopping=False)
    threading.Timer(0.7, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, x[:, 0])
    assert np.array_equal(model.predict(x[:5]), before)
