"""Formulas of bounds: the research note's numbers, and their truth in simulation where it is cheap."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from learnable.core.errors import DataError, ParameterError
from learnable.theory import bounds as b
from learnable.theory.concentration import binomial_upper


@pytest.mark.parametrize(
    ("n", "k", "errors", "value"),
    [(1000, 20, 0, 0.102090), (1000, 20, 10, 0.133686), (1000, 100, 0, 0.308357), (10_000, 100, 0, 0.055855)],
)
def test_compression_numbers(n, k, errors, value):
    assert b.compression_bound(n, k, errors, 0.05) == pytest.approx(value, abs=5e-7)


def test_other_numbers_of_the_research_note():
    assert b.tandem_bound(0.05, 1000, 0.0, 0.05) == pytest.approx(0.321554, abs=5e-7)
    assert b.tree_bound(0.0, 1000, 7, 10, 0.05) == pytest.approx(0.129020, abs=5e-7)


@settings(max_examples=50, deadline=None)
@given(n=st.integers(2, 400), share=st.floats(0.0, 0.99), log10=st.floats(-12.0, -0.5))
def test_inversion_in_logarithms_is_clopper_and_pearson(n, share, log10):
    errors = int(share * n)
    delta = 10.0**log10
    assert b.binomial_upper_log(errors, n, math.log(delta)) == pytest.approx(
        binomial_upper(errors, n, delta), rel=1e-7, abs=1e-9
    )


@settings(max_examples=50, deadline=None)
@given(n=st.integers(1, 30), share=st.floats(0.0, 1.0), log_delta=st.floats(-5000.0, -1e-3))
def test_inversion_stays_in_the_unit_interval(n, share, log_delta):
    errors = round(share * n)
    value = b.binomial_upper_log(errors, n, log_delta)
    assert 0.0 <= value <= 1.0
    assert value >= 0.5 * errors / n


def test_inversion_works_where_delta_underflows():
    value = b.binomial_upper_log(30, 5000, -2000.0)
    assert 30 / 5000 < value < 1.0
    logs = binom.logpmf(np.arange(31), 5000, value)
    assert np.logaddexp.reduce(logs) == pytest.approx(-2000.0, rel=1e-6)


def test_occam_holds_for_the_best_of_many_coins():
    """1,000 fair rules, the one with the fewest errors chosen: its risk is ½, and ln 1000 pays for the choice."""
    rng = np.random.default_rng(0)
    n, delta = 100, 0.1
    least = rng.binomial(n, 0.5, (500, 1000)).min(axis=1)
    misses = np.mean([b.description_bound(k / n, n, math.log(1000), delta) < 0.5 for k in least])
    unpaid = np.mean([b.description_bound(k / n, n, 0.0, delta) < 0.5 for k in least])
    assert misses <= delta
    assert unpaid > 0.9


def test_pac_bayes_holds_for_a_posterior_chosen_on_the_rows():
    rng = np.random.default_rng(1)
    n, delta, members = 150, 0.1, 50
    risks = np.linspace(0.2, 0.6, members)
    misses = tandem_misses = 0
    for _ in range(300):
        losses = (rng.random((members, n)) < risks[:, None]).astype(float)
        rho = np.exp(-30.0 * losses.mean(axis=1))
        rho /= rho.sum()
        kl = float((rho * np.log(rho * members + 1e-300)).sum())
        misses += b.pac_bayes_bound(float(rho @ losses.mean(axis=1)), n, kl, delta) < rho @ risks
        mean = rho @ losses
        # Independent members: T of a pair is the product of risks, of a member with itself its risk.
        truth = float((rho @ risks) ** 2 + (rho**2) @ (risks - risks**2))
        tandem_misses += b.tandem_bound(float((mean**2).mean()), n, kl, delta) < 4.0 * truth
    assert misses <= 300 * delta
    assert tandem_misses <= 300 * delta


def test_c_bound_is_cantellis_and_at_most_four_times_the_tandem_loss():
    rng = np.random.default_rng(2)
    for _ in range(200):
        mean_loss = rng.beta(1.0, rng.uniform(1.5, 6.0), 400)
        risk, tandem = mean_loss.mean(), (mean_loss**2).mean()
        vote = (mean_loss >= 0.5).mean()
        if risk < 0.5:
            assert vote <= b.c_bound(risk, tandem) + 1e-12
            assert b.c_bound(risk, tandem) <= 4.0 * tandem + 1e-12
            assert b.worst_c_bound(0.9 * risk, min(0.49, 1.1 * risk), 1.1 * tandem) >= b.c_bound(risk, tandem) - 1e-12


def test_the_worst_c_bound_is_the_largest_on_a_grid():
    for low, high, tandem in ((0.1, 0.3, 0.1), (0.3, 0.4, 0.12), (0.05, 0.15, 0.1)):
        grid = max(b.c_bound(r, t) for r in np.linspace(low, high, 400) for t in (0.5 * tandem, tandem) if t >= r * r)
        assert b.worst_c_bound(low, high, tandem) == pytest.approx(grid, abs=1e-3)


def test_ridge_is_as_stable_as_stated():
    """Leave each row out: no loss of a clipped prediction moves by more than β."""
    rng = np.random.default_rng(3)
    n, penalty = 40, 0.3
    X = rng.normal(size=(n, 3))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    y = np.clip(X @ [1.0, -1.0, 0.5] + rng.normal(size=n), -1.0, 1.0)

    def fit(rows):
        return np.linalg.solve(X[rows].T @ X[rows] / n + penalty * np.eye(3), X[rows].T @ y[rows] / n)

    points = rng.normal(size=(300, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    targets = rng.choice([-1.0, 1.0], 300)
    whole = (np.clip(points @ fit(np.arange(n)), -1, 1) - targets) ** 2
    largest = 0.0
    for i in range(n):
        part = (np.clip(points @ fit(np.delete(np.arange(n), i)), -1, 1) - targets) ** 2
        largest = max(largest, float(np.abs(part - whole).max()))
    assert 0.0 < largest <= b.ridge_stability(1.0, penalty, n, 1.0)


def test_leave_one_out_of_nearest_neighbours_is_as_close_as_stated():
    rng = np.random.default_rng(4)
    n, grid = 50, np.linspace(0.005, 0.995, 100)
    gaps = []
    for _ in range(400):
        x = rng.random(n)
        y = rng.random(n) < np.where(x < 0.5, 0.3, 0.8)
        distance = np.abs(x[:, None] - x)
        np.fill_diagonal(distance, np.inf)
        loo = (y[distance.argmin(axis=1)] != y).mean()
        nearest = y[np.abs(grid[:, None] - x).argmin(axis=1)]
        p = np.where(grid < 0.5, 0.3, 0.8)
        gaps.append(loo - np.where(nearest, 1 - p, p).mean())
    assert np.mean(np.square(gaps)) <= 1.0 / n + 4.0 / (n - 1) + 4.0 / n
    assert b.neighbours_bound(0.1, n, 1, 0.25) == pytest.approx(0.1 + 2.0 * np.sqrt(1.0 / n + 4.0 / (n - 1) + 4.0 / n))


def test_online_to_batch_holds_for_thresholds():
    """A threshold that moves to each mistake: the mean risk of the hypotheses of one pass."""
    rng = np.random.default_rng(5)
    n, delta = 100, 0.1
    misses = 0
    for _ in range(300):
        x = rng.random(n)
        y = (x > 0.3) ^ (rng.random(n) < 0.2)
        threshold, mistakes, risk = 0.9, 0, 0.0
        for value, label in zip(x, y, strict=True):
            risk += 0.2 + 0.6 * abs(threshold - 0.3)
            if (value > threshold) != label:
                mistakes += 1
                threshold += 0.2 * (value - threshold)
        misses += b.online_to_batch(mistakes, n, delta) < risk / n
    assert misses <= 300 * delta


def test_bad_arguments_are_refused():
    with pytest.raises(ParameterError):
        b.compression_bound(10, 11, 0, 0.1)
    with pytest.raises(ParameterError):
        b.description_bound(0.1, 10, -1.0, 0.1)
    with pytest.raises(ParameterError):
        b.pac_bayes_bound(0.1, 10, 1.0, 0.0)
    with pytest.raises(DataError):
        b.linear_pac_bayes([np.nan], 0.1)
    with pytest.raises(ParameterError):
        b.margin_bound([1.0], 0.1, 0.1, [0.0])
