"""The checker agrees with every kind of fit, and finds what was changed."""

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1

from learnable import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    verify,
)
from learnable.risk.losses import EpsilonInsensitiveLoss, HingeLoss

X, Y = make_friedman1(250, n_features=5, noise=1.0, random_state=0)
XC, YC = make_classification(250, 6, n_informative=4, n_classes=3, random_state=0)
GAPS = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
LEVELS = np.column_stack([np.floor(7 * X[:, 0]), X[:, 1:]])
H, G = HistGradientBoostingRegressor, GradientBoostingRegressor
HC, GC = HistGradientBoostingClassifier, GradientBoostingClassifier


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "model, x, y",
    [
        *((H(loss=loss, max_iter=4), X, Y + 9) for loss in ("squared_error", "absolute_error", "huber", "poisson")),
        *((G(loss=loss, n_estimators=4), X, Y + 9) for loss in ("squared_error", "huber", "gamma", "quantile")),
        (H(loss="quantile", quantile=[0.1, 0.5, 0.9], max_iter=4), X, Y),
        (HC(max_iter=4), XC, YC), (HC(max_iter=4), XC, YC > 0), (HC(max_iter=4, loss="exponential"), XC, YC > 0),
        (GC(n_estimators=4), XC, YC), (GC(n_estimators=4, leaf="minimiser"), XC, YC > 0),
        (GC(n_estimators=4, direction="newton", reg_lambda=1.0, gamma=0.1), XC, YC),
        (GC(n_estimators=4, direction="inner-product", step="line-search"), XC, YC > 0),
        (HC(max_iter=4, subsample=0.5, random_state=0), XC, YC),
        (HC(max_iter=4, subsample=0.5, sampling="gradient", random_state=0), XC, YC),
        (HC(max_iter=4, early_stopping=True, random_state=0), XC, YC),
        (H(max_iter=4, direction="gradient", step="sqrt-decay"), X, Y), (H(max_iter=4, growth="depth"), X, Y),
        (H(max_iter=4), GAPS, Y), (G(n_estimators=4), GAPS, Y),
        (H(max_iter=4, categorical_features=[0]), LEVELS, Y), (G(n_estimators=4, categorical_features=[0]), LEVELS, Y),
        (H(max_iter=4, monotonic_cst=[1, 0, 0, 0, 0]), X, Y), (H(max_iter=4, max_features=0.5), X, Y),
        (GC(n_estimators=4, loss=HingeLoss()), XC, YC > 0), (H(max_iter=4, loss=EpsilonInsensitiveLoss(0.5)), X, Y),
    ],
)  # fmt: skip
def test_every_fit_is_verified(model, x, y):
    verdict = verify(model.fit(x, y), x, y)
    assert verdict, verdict
    assert verdict.value < 1e-9


def test_rounded_histograms_fall_short_by_little():
    x, y = make_friedman1(6000, n_features=5, random_state=0)
    model = H(max_iter=3).fit(x, y)
    verdict = verify(model, x, y)
    assert verdict and verdict.value < 0.01
    assert model.certificate_.value == model.certificate_.tolerance == 0.01
    exact = H(max_iter=3, histogram="float64").fit(x, y)
    assert verify(exact, x, y).value < 1e-9


@pytest.mark.parametrize("what", ["value", "threshold", "feature", "baseline", "loss", "labels", "data", "step"])
def test_what_was_changed_is_found(what):
    model = HC(max_iter=4).fit(XC, YC > 0)
    x, y = XC, YC > 0
    if what == "value":
        leaf = int(np.flatnonzero(model.trees_.feature < 0)[0])
        model.trees_.value[leaf] *= 1.001
    elif what == "threshold":
        model.trees_.threshold[0] += 0.3
    elif what == "feature":
        model.trees_.feature[0] = (model.trees_.feature[0] + 1) % 6
    elif what == "baseline":
        model.baseline_ = model.baseline_ + 0.001
    elif what == "loss":
        model.training_loss_[2] *= 1.001
    elif what == "labels":
        model.classes_ = model.classes_[::-1]
    elif what == "data":
        x = XC + 1e-9
    else:
        model.steps_[1] *= 1.01
    assert not verify(model, x, y)


def test_a_worse_split_is_found():
    model = H(max_iter=1, max_leaf_nodes=2).fit(X, Y)
    tree = model.trees_
    tree.feature[0] = 4  # a column of little use, with all numbers recomputed for it
    tree.threshold[0] = float(np.median(X[:, 4]))
    left, residual = X[:, 4] <= tree.threshold[0], Y - Y.mean()
    for node, rows in ((tree.left[0], left), (tree.right[0], ~left)):
        tree.value[node], tree.n_rows[node] = 0.1 * residual[rows].mean(), rows.sum()
        tree.weight[node], tree.impurity[node] = rows.sum(), -(residual[rows].mean() ** 2)
    model.training_loss_[1] = np.mean((residual - tree.sum(X)[:, 0]) ** 2) / 2
    verdict = verify(model, X, Y)
    assert not verdict and np.isfinite(verdict.value) and verdict.value > 0.01
