"""Markov chains against eigen-decompositions, powers of P, simulation and known chains."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from learnable import MarkovChain
from learnable.core.errors import DataError, ParameterError
from learnable.sequences import TransitionPosterior


def draw(seed, K, sparse=0.0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(K, 0.7), K)
    P[(rng.random((K, K)) < sparse) & ~np.eye(K, dtype=bool)] = 0.0
    return P / P.sum(axis=1, keepdims=True)


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.integers(2, 7))
def test_stationary_law_and_gap_are_those_of_the_eigen_decomposition(seed, K):
    P = draw(seed, K)
    chain = MarkovChain(P)
    values, vectors = np.linalg.eig(P.T)
    order = np.argsort(-abs(values))
    law = vectors[:, order[0]].real
    np.testing.assert_allclose(chain.stationary_distribution(), law / law.sum(), atol=1e-11)
    assert chain.spectral_gap == pytest.approx(1 - abs(values[order[1]]), abs=1e-9)
    assert chain.is_ergodic
    np.testing.assert_allclose(
        np.linalg.matrix_power(P, 5000), np.tile(chain.stationary_distribution(), (K, 1)), atol=1e-8
    )


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.integers(1, 7), st.sampled_from([0.3, 0.6, 0.9]))
def test_classes_are_those_of_mutual_reachability(seed, K, sparse):
    P = draw(seed, K, sparse)
    reach = np.linalg.matrix_power(np.eye(K) + (P > 0), K) > 0
    both = reach & reach.T
    chain = MarkovChain(P)
    classes = {tuple(np.flatnonzero(row).tolist()) for row in both}
    assert [tuple(c) for c in chain.communicating_classes()] == sorted(classes)
    recurrent = {tuple(np.flatnonzero(row).tolist()) for i, row in enumerate(both) if not (reach[i] & ~both[i]).any()}
    assert {tuple(c) for c in chain.recurrent_classes()} == recurrent
    for law in chain.stationary_distributions():
        np.testing.assert_allclose(law @ P, law, atol=1e-13)
        assert law.sum() == pytest.approx(1)


@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_a_cycle_has_its_length_as_period(n):
    cycle = MarkovChain(np.roll(np.eye(n), 1, axis=1))
    assert cycle.period == n and cycle.is_irreducible and not cycle.is_ergodic
    assert cycle.spectral_gap == pytest.approx(0, abs=1e-12)
    with pytest.raises(DataError, match="never mixes"):
        cycle.mixing_time()
    lazy = MarkovChain((np.eye(n) + np.roll(np.eye(n), 1, axis=1)) / 2)
    assert lazy.period == 1 and lazy.period_of(0) == 1


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 6))
def test_detailed_balance_and_the_bounds_of_the_gap(seed, K):
    rng = np.random.default_rng(seed)
    W = rng.random((K, K)) + 0.05
    W = W + W.T  # a random walk on weights is reversible
    chain = MarkovChain(W / W.sum(axis=1, keepdims=True))
    assert chain.is_reversible
    np.testing.assert_allclose(chain.stationary_distribution(), W.sum(axis=1) / W.sum(), rtol=1e-12)
    for epsilon in (0.25, 0.01):
        low, high = chain.mixing_time_bounds(epsilon)
        time = chain.mixing_time(epsilon)
        assert low - 1e-9 <= time <= math.ceil(high)
        assert chain.distance_to_stationarity(time) <= epsilon < chain.distance_to_stationarity(time - 1)


def test_a_one_way_cycle_breaks_detailed_balance():
    P = np.array([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]])
    assert not MarkovChain(P).is_reversible


def test_tiny_stationary_probabilities_keep_their_digits():
    p = 1e-3  # a walk on 0…9 with drift: π_i ∝ (p/(1−p))^i
    n = 10
    P = np.diag(np.full(n - 1, p), 1) + np.diag(np.full(n - 1, 1 - p), -1)
    P[0, 0], P[-1, -1] = 1 - p, p
    expected = (p / (1 - p)) ** np.arange(n)
    np.testing.assert_allclose(MarkovChain(P).stationary_distribution(), expected / expected.sum(), rtol=1e-12)


def test_gamblers_ruin():
    n, p = 10, 0.6  # hitting probabilities and times have closed forms
    P = np.diag(np.full(n, p), 1) + np.diag(np.full(n, 1 - p), -1)
    P[0], P[n] = np.eye(n + 1)[0], np.eye(n + 1)[n]
    chain = MarkovChain(P)
    r, i = (1 - p) / p, np.arange(n + 1)
    np.testing.assert_allclose(chain.hitting_probabilities(n), (1 - r**i) / (1 - r**n), rtol=1e-12)
    duration = i / (1 - 2 * p) - n / (1 - 2 * p) * (1 - r**i) / (1 - r**n)
    np.testing.assert_allclose(chain.hitting_times([0, n]), duration, rtol=1e-10, atol=1e-12)
    assert np.isinf(chain.hitting_times(n)[:n]).all() and chain.hitting_times(n)[n] == 0
    with pytest.raises(DataError, match="2 recurrent classes"):
        chain.stationary_distribution()


def test_estimates_are_shares_of_moves():
    paths = [["a", "b", "a", "a"], ["b", "b", None, "a", "a"]]
    chain = MarkovChain.from_paths(paths)
    np.testing.assert_allclose(chain.transmat, [[2 / 3, 1 / 3], [0.5, 0.5]])
    np.testing.assert_allclose(chain.startprob, [0.5, 0.5])
    assert chain.log_likelihood(paths) == pytest.approx(
        2 * math.log(0.5) + 2 * math.log(2 / 3) + math.log(1 / 3) + 2 * math.log(0.5)
    )
    posterior = TransitionPosterior.from_paths(paths, prior=0.5)
    np.testing.assert_allclose(posterior.alpha, [[2.5, 1.5], [1.5, 1.5]])
    np.testing.assert_allclose(posterior.row("a").mean, [2.5 / 4, 1.5 / 4])
    draws = posterior.sample(20_000, random_state=0)
    np.testing.assert_allclose(draws.mean(axis=0), posterior.mean, atol=0.01)


@settings(max_examples=20)
@given(st.integers(0, 1000), st.integers(2, 4))
def test_no_other_chain_is_more_likely_than_the_estimate(seed, K):
    paths = MarkovChain(draw(seed, K)).sample(60, 3, random_state=seed)
    best = MarkovChain.from_paths(paths, range(K), prior=1e-9)
    other = MarkovChain(draw(seed + 1, K))
    assert best.log_likelihood(paths, given_start=True) >= other.log_likelihood(paths, given_start=True)


def test_simulated_chains_follow_the_law():
    chain = MarkovChain(0.5 * draw(3, 4) + 0.125, states="wxyz")
    path = chain.sample(40_000, random_state=0)
    estimate = MarkovChain.from_paths(path, "wxyz").transmat
    visits = 40_000 * chain.stationary_distribution()[:, None]
    z = (estimate - chain.transmat) / np.sqrt(chain.transmat * (1 - chain.transmat) / visits)
    assert (z**2).sum() < 40  # twelve degrees of freedom: 1 in 10,000 is larger
    ends = [p[-1] for p in chain.sample(4, 20_000, start="w", random_state=1)]
    law = chain.predict_proba("w", 3)
    assert chisquare([ends.count(s) for s in "wxyz"], 20_000 * law).pvalue > 1e-4
    assert chain.sample(5, random_state=3) == chain.sample(5, random_state=3)


@pytest.mark.parametrize(
    "P", [[[0.5, 0.6], [0.5, 0.5]], [[1.5, -0.5], [0, 1]], [[np.nan, 1], [0, 1]], [[1.0]] * 2, [1.0], []]
)
def test_bad_tables_are_refused(P):
    with pytest.raises(ParameterError, match="MarkovChain: transmat"):
        MarkovChain(P)


def test_bad_paths_are_refused():
    with pytest.raises(DataError, match="no path leaves"):
        MarkovChain.from_paths([["a", "b"]])
    with pytest.raises(DataError, match="not among the states"):
        MarkovChain.from_paths([["a", "c", "a"]], states=["a", "b"])
    with pytest.raises(DataError, match="hold no state"):
        MarkovChain.from_paths([[]])
    with pytest.raises(DataError, match="there is no state"):
        MarkovChain(np.eye(2)).hitting_times(7)
