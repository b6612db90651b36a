"""Row losses: their means are scikit-learn's metrics, and the error without information is the mean over all pairs."""

import numpy as np
import pytest
from sklearn import metrics

from learnable.evaluation import binomial_interval, empirical_bernstein, t_interval
from learnable.evaluation.estimates.losses import no_information_score, row_loss

REGRESSION = {
    "r2": metrics.r2_score,
    "neg_mean_squared_error": lambda y, f, **w: -metrics.mean_squared_error(y, f, **w),
    "neg_root_mean_squared_error": lambda y, f, **w: -metrics.root_mean_squared_error(y, f, **w),
    "neg_mean_absolute_error": lambda y, f, **w: -metrics.mean_absolute_error(y, f, **w),
}
WEIGHTED = pytest.mark.parametrize("weighted", [True, False])


def draw(n=50, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.normal(size=n), rng.uniform(0.2, 2.0, n)


@WEIGHTED
@pytest.mark.parametrize("name", REGRESSION)
def test_regression_scores_are_those_of_scikit_learn(name, weighted):
    y, f, w = draw()
    weight = w if weighted else None
    loss = row_loss(name, y)
    found = loss.score_of(loss.mean(loss.loss(y, f, None), weight), y, weight)
    np.testing.assert_allclose(found, REGRESSION[name](y, f, sample_weight=weight), rtol=1e-12)


@WEIGHTED
def test_classification_scores_are_those_of_scikit_learn(weighted):
    rng = np.random.default_rng(0)
    classes = np.array(["a", "b", "c"])
    y, proba, w = classes[rng.integers(3, size=60)], rng.dirichlet(np.ones(3), 60), rng.uniform(0.2, 2, 60)
    weight = w if weighted else None
    loss = row_loss("neg_log_loss", y)
    found = loss.score_of(loss.mean(loss.loss(y, proba, classes), weight), y, weight)
    np.testing.assert_allclose(found, -metrics.log_loss(y, proba, sample_weight=weight), rtol=1e-12)
    predicted = classes[proba.argmax(axis=1)]
    loss = row_loss("accuracy", y)
    found = loss.score_of(loss.mean(loss.loss(y, predicted, classes), weight), y, weight)
    np.testing.assert_allclose(found, metrics.accuracy_score(y, predicted, sample_weight=weight), rtol=1e-12)


@WEIGHTED
@pytest.mark.parametrize("name", ["neg_mean_squared_error", "neg_mean_absolute_error", "accuracy", "neg_log_loss"])
def test_the_error_without_information_is_the_mean_over_all_pairs(name, weighted):
    rng = np.random.default_rng(1)
    n = 30
    weight = rng.uniform(0.2, 2.0, n) if weighted else None
    share = np.full(n, 1 / n) if weight is None else weight / weight.sum()
    classes = np.array([0, 1, 2])
    if name == "accuracy":
        y, response = rng.integers(3, size=n), rng.integers(3, size=n)
    elif name == "neg_log_loss":
        y, response = rng.integers(3, size=n), rng.dirichlet(np.ones(3), n)
    else:
        y, response = np.round(rng.normal(size=n), 1), np.round(rng.normal(size=n) + 0.5, 1)  # with ties
    loss = row_loss(name, y)
    pairs = sum(share[i] * share[j] * loss.loss(y[[i]], response[[j]], classes)[0] for i in range(n) for j in range(n))
    np.testing.assert_allclose(no_information_score(loss, y, response, classes, weight), pairs, rtol=1e-10)


def test_intervals_follow_the_kind_of_loss():
    y, f, _ = draw()
    right = np.array([0.0, 1.0, 0.0, 0.0, 1.0] * 10)
    found = row_loss("accuracy", y).interval(right, y, level=0.9)
    exact = binomial_interval(20, 50, 0.9)
    assert found.method == "exact binomial" and (found.low, found.high) == (1 - exact.high, 1 - exact.low)
    squares = (y - f) ** 2
    found = row_loss("neg_mean_squared_error", y).interval(squares, y, level=0.9)
    plain = t_interval(squares, 0.9)
    np.testing.assert_allclose((found.low, found.high), (-plain.high, -plain.low), rtol=1e-12)
    found = row_loss("neg_root_mean_squared_error", y).interval(squares, y, level=0.9)
    np.testing.assert_allclose((found.low, found.high), (-np.sqrt(plain.high), -np.sqrt(plain.low)), rtol=1e-12)
    bounded = row_loss("neg_mean_squared_error", y).interval(squares, y, level=0.9, bounds=(0.0, 100.0))
    assert bounded.method == "empirical Bernstein"
    assert bounded.high == -empirical_bernstein(squares, 0.0, 100.0, 0.9).low


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["r2", "neg_mean_squared_error", "neg_root_mean_squared_error"])
def test_intervals_over_rows_cover(name, weighted):
    """R² of a fixed rule on fresh rows: the truth is known, the interval holds it about as often as promised."""
    rng = np.random.default_rng(2)
    truth = {"r2": 0.75, "neg_mean_squared_error": -1.0, "neg_root_mean_squared_error": -1.0}[name]
    covered = 0
    for _ in range(800):
        f = np.sqrt(3.0) * rng.normal(size=300)
        y = f + rng.normal(size=300)
        weight = rng.uniform(0.5, 1.5, 300) if weighted else None
        loss = row_loss(name, y)
        found = loss.interval(loss.loss(y, f, None), y, weight, level=0.9)
        covered += found.low <= truth <= found.high
    assert abs(covered / 800 - 0.9) < 4 * np.sqrt(0.09 / 800)


def test_other_metrics_and_several_targets_have_no_row_loss():
    y = np.zeros(3)
    assert row_loss("roc_auc", y) is None
    assert row_loss("r2", np.zeros((3, 2))) is None
    assert row_loss("r2", None) is None
