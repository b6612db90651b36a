"""The algebra of votes and distributions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnable.ensembles.adaboost.rounds import ScoredBoost, VotedBoost, full_vote, half_of_full, normalise

CASES = st.tuples(st.integers(0, 10**6), st.integers(3, 40), st.integers(2, 6))


def rounds(case):
    """Return a booster that has seen some random learners, and one that has just come."""
    seed, n, K = case
    rng = np.random.default_rng(seed)
    state = VotedBoost(rng.random(n) + 0.01, K)
    for _ in range(4):
        wrong = rng.random(n) < 0.3
        wrong[0], wrong[1] = True, False
        error = float(state.distribution()[wrong].sum())
        if state.has_edge(error):
            before = state.loss
            trace = state.add(wrong, error, state.vote(wrong, error))
            yield state, wrong, error, before, trace


@given(CASES)
def test_the_last_learner_is_as_good_as_a_guess_after_reweighting(case):
    for state, wrong, _, _, trace in rounds(case):
        assert state.distribution()[wrong].sum() == pytest.approx(1 - 1 / state.K, abs=1e-12)
        assert trace.residual < 1e-12


@given(CASES)
def test_the_vote_minimises_the_loss(case):
    for state, _, error, before, trace in rounds(case):
        K, vote = state.K, full_vote(error, state.K)
        at = [
            before * ((1 - error) * np.exp(-a * (K - 1) / K) + error * np.exp(a / K))
            for a in vote + np.array([-0.01, 0, 0.01])
        ]
        assert at[1] == pytest.approx(trace.loss, rel=1e-10)
        assert at[1] < min(at[0], at[2])


@given(CASES)
def test_two_classes_lose_the_factor_two_root(case):
    for _, _, error, before, trace in rounds((*case[:2], 2)):
        assert trace.loss / before == pytest.approx(2 * np.sqrt(error * (1 - error)), rel=1e-10)
        assert trace.bound == pytest.approx(trace.loss, rel=1e-10)


@given(CASES)
def test_the_bound_is_the_product_of_the_errors(case):
    product = 1.0
    for state, _, error, _, trace in rounds(case):
        product *= state.K * np.sqrt(error * (1 - error) / (state.K - 1))
        assert trace.bound == pytest.approx(product, rel=1e-9)


def test_both_vote_conventions_give_the_same_distribution():
    wrong, error = np.array([True, False, False, False]), 0.25
    state = VotedBoost(np.ones(4), 2)
    state.add(wrong, error, full_vote(error, 2))
    alpha = half_of_full(2) * full_vote(error, 2)
    D = np.exp(-alpha * np.where(wrong, -1.0, 1.0))
    np.testing.assert_allclose(state.distribution(), D / D.sum(), rtol=1e-14)
    assert alpha == pytest.approx(0.5 * np.log(3))


def test_a_learner_without_error_outweighs_all_others():
    state = VotedBoost(np.ones(10), 3)
    none = np.zeros(10, dtype=bool)
    some = none.copy()
    some[0] = True
    state.add(some, 0.1, state.vote(some, 0.1))
    assert state.vote(none, 0.0) > state.total


def test_real_scores_follow_the_exponential_loss():
    rng = np.random.default_rng(0)
    y, w = rng.integers(2, size=30), rng.random(30)
    state, f = ScoredBoost(w, y, 2), np.zeros(30)
    sign = np.where(y == 1, 1.0, -1.0)
    for _ in range(3):
        h = rng.standard_normal((30, 1))
        trace, f = state.add(h), f + h[:, 0]
        expected = w / w.sum() * np.exp(-sign * f)
        assert trace.loss == pytest.approx(expected.sum())
        assert trace.bound >= (w / w.sum())[(f > 0) != (y == 1)].sum()
        np.testing.assert_allclose(state.distribution(), expected / expected.sum())


def test_real_scores_of_several_classes_are_bounded_too():
    rng = np.random.default_rng(1)
    y = rng.integers(3, size=30)
    state = ScoredBoost(np.ones(30), y, 3)
    h = rng.standard_normal((30, 3))
    trace = state.add(h - h.mean(axis=1, keepdims=True))
    assert trace.bound >= np.mean(h.argmax(axis=1) != y)


def test_exponents_of_any_size():
    D, log_sum = normalise(np.array([-5000.0, 5000.0, 5000.0]))
    np.testing.assert_array_equal(D, [0.0, 0.5, 0.5])
    assert log_sum == pytest.approx(5000 + np.log(2))


def test_the_rounds_of_the_worked_example():
    """m = 1000 rows and an edge of γ = 0.1: 346 rounds make exp(−2γ²T) smaller than 1/m."""
    rounds = next(T for T in range(10_000) if np.exp(-2 * 0.1**2 * T) < 1 / 1000)
    assert rounds == 346
    assert (2 * np.sqrt(0.4 * 0.6)) ** rounds <= np.exp(-2 * 0.1**2 * rounds)
