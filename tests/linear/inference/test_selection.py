"""Inference after selection: the choice is a polyhedron, p-values are uniform in it, intervals cover."""

import numpy as np
import pytest
from scipy import stats

import learnable as ln
from learnable.core.errors import DataError, ParameterError
from learnable.linear import lasso_inference, split_inference, stepwise_inference
from learnable.linear.inference.selection import truncation

CHOOSERS = {
    "lasso": lambda X, y, **more: lasso_inference(X, y, 0.15, **more),
    "steps": lambda X, y, **more: stepwise_inference(X, y, 2, **more),
}


@pytest.mark.parametrize("chooser", CHOOSERS)
def test_a_target_outside_the_truncation_changes_the_choice_and_inside_does_not(chooser):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 6))
    X = X - X.mean(axis=0)
    y = X[:, 0] + rng.normal(size=30)
    y = y - y.mean()
    found = CHOOSERS[chooser](X, y, sigma=1.0)
    for j, row in enumerate(np.linalg.pinv(X[:, found.columns])):
        low, high = found.truncation[j]
        rest = y - row * (row @ y) / (row @ row)
        for value, inside in [(low + 1e-6, True), (high - 1e-6, True), (low - 1e-6, False), (high + 1e-6, False)]:
            if not np.isfinite(value):
                continue
            moved = rest + row * value / (row @ row)
            again = CHOOSERS[chooser](X, moved, sigma=1.0)
            same = again.columns.tolist() == found.columns.tolist()
            if inside:
                assert same
            elif same:  # the same columns, but with another sign
                assert (np.sign(again.estimate) != np.sign(found.estimate)).any() or not same


@pytest.mark.parametrize("chooser", CHOOSERS)
def test_p_values_are_uniform_and_intervals_cover_among_those_chosen(chooser):
    rng = np.random.default_rng(0)
    p_values, hits = [], []
    naive = []
    for _ in range(150):
        X = rng.normal(size=(40, 10))
        mean = X @ np.r_[0.8, np.zeros(9)]
        y = mean + rng.normal(size=40)
        found = CHOOSERS[chooser](X, y, sigma=1.0, level=0.9)
        if len(found.columns) == 0:
            continue
        inverse = np.linalg.pinv((X - X.mean(axis=0))[:, found.columns])
        truth = inverse @ (mean - mean.mean())
        hits += ((found.lower <= truth) & (truth <= found.upper)).tolist()
        error = np.linalg.norm(inverse, axis=1)
        naive += (np.abs(found.estimate - truth) <= 1.645 * error).tolist()
        null = CHOOSERS[chooser](X, rng.normal(size=40), sigma=1.0)
        p_values += null.p_value[:1].tolist()
    assert abs(np.mean(hits) - 0.9) < 4 * np.sqrt(0.09 / 150)
    assert np.mean(naive) < np.mean(hits)  # ignoring the choice misses more often
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3


def test_without_constraints_the_interval_is_the_usual_one():
    X = np.random.default_rng(0).normal(size=(50, 1))
    y = 3 * X[:, 0] + np.random.default_rng(1).normal(size=50)
    found = stepwise_inference(X, y, 1, sigma=1.0)
    error = 1 / np.linalg.norm(X - X.mean())
    assert found.lower[0] == pytest.approx(found.estimate[0] - 1.96 * error, rel=1e-3)
    assert found.p_value[0] < 1e-10


def test_truncation_of_a_box():
    low, high = truncation(np.array([1.0, 0.0]), np.array([0.3, 5.0]), np.array([[1.0, 0.0], [-1.0, 0.0]]), np.ones(2))
    assert (low, high) == pytest.approx((-1.0, 1.0))


def test_splitting_uses_other_rows_for_the_choice():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 20))
    y = 2 * X[:, 5] + rng.normal(size=200)
    seen = []

    def select(A, t):
        seen.append(len(A))
        return np.argsort(-np.abs(A.T @ t))[:2]

    found = split_inference(select, X, y, random_state=0)
    assert seen == [100]
    assert found.n_rows == 100
    assert found.p_value[found.names.index("x5")] < 1e-6
    with pytest.raises(DataError, match="no column"):
        split_inference(lambda A, t: np.zeros(20, dtype=bool), X, y)


def test_bad_input_ends_in_clear_words():
    X, y = np.eye(5), np.arange(5.0)
    with pytest.raises(DataError, match="give sigma"):
        lasso_inference(X, y, 0.1)
    with pytest.raises(ParameterError, match="alpha"):
        lasso_inference(X, y, 0.0, sigma=1.0)
    with pytest.raises(ParameterError, match="steps"):
        stepwise_inference(X, y, 9, sigma=1.0)
    with pytest.raises(ParameterError, match="sigma"):
        lasso_inference(X, y, 0.1, sigma=-1.0)
    with pytest.raises(DataError, match="finite"):
        lasso_inference(X * np.nan, y, 0.1, sigma=1.0)
    nothing = lasso_inference(np.random.default_rng(0).normal(size=(30, 3)), np.zeros(30), 1.0, sigma=1.0)
    assert len(nothing.columns) == 0
    assert "σ" in str(nothing)


def test_an_estimated_noise_is_said_to_be():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = 2 * X[:, 0] + rng.normal(size=60)
    found = lasso_inference(X, y, 0.2)
    assert not found.sigma_known
    assert found.sigma == pytest.approx(ln.LinearRegression().fit(X, y).residual_std_[0])
    assert "approximate" in str(found)
