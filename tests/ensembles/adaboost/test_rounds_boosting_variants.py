"""Votes that are revised: totally corrective and FloatBoost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import boosting as oracle

from learnable.ensembles.adaboost.rounds import SmallestLosses, VotedBoost, combine, correct_votes, losses_without

CASES = st.tuples(st.integers(0, 10**6), st.integers(8, 60), st.integers(1, 6))


def learners(case):
    seed, n, T = case
    rng = np.random.default_rng(seed)
    wrong = rng.random((T, n)) < 0.35
    wrong[:, 0], wrong[:, 1] = True, False  # no votes separate the rows
    w = rng.random(n) + 0.01
    return wrong.astype(np.uint8), w / w.sum()


@settings(max_examples=40)
@given(CASES)
def test_corrected_votes_are_those_of_a_general_solver(case):
    wrong, w = learners(case)
    found = correct_votes(wrong, w, 2, np.zeros(len(wrong)), 1e-10)
    loss = float(w @ np.exp(found.g - found.votes.sum() / 2))
    assert found.gradient <= 1e-10
    assert (found.votes >= 0).all()
    assert loss <= oracle.best_votes(wrong, w) + 1e-9


@settings(max_examples=40)
@given(CASES)
def test_corrected_votes_are_never_worse_than_discrete_ones(case):
    wrong, w = learners(case)
    state, votes = VotedBoost(w, 2), []
    for mistakes in wrong.astype(bool):
        error = float(state.distribution()[mistakes].sum())
        votes.append(state.vote(mistakes, error) if state.has_edge(error) else 0.0)
        state.add(mistakes, error, votes[-1])
    found = correct_votes(wrong, w, 2, np.array(votes), 1e-10)
    assert float(w @ np.exp(found.g - found.votes.sum() / 2)) <= state.loss * (1 + 1e-12)


@settings(max_examples=40)
@given(CASES)
def test_every_learner_with_a_vote_is_as_good_as_a_guess(case):
    wrong, w = learners(case)
    found = correct_votes(wrong, w, 2, np.zeros(len(wrong)), 1e-12)
    D = w * np.exp(found.g - found.g.max())
    errors = wrong @ (D / D.sum())
    assert errors[found.votes > 0] == pytest.approx(0.5, abs=1e-6)
    assert (errors >= 0.5 - 1e-6).all()


def test_separated_rows_end_at_the_tolerance():
    wrong = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.uint8)
    found = correct_votes(wrong, np.full(3, 1 / 3), 2, np.zeros(3), 1e-8)
    assert found.gradient <= 1e-8
    assert np.isfinite(found.votes).all()
    np.testing.assert_allclose(found.votes, found.votes[0])


def test_the_same_learner_twice_is_no_difficulty():
    wrong, w = learners((5, 30, 2))
    found = correct_votes(np.vstack([wrong, wrong]), w, 2, np.zeros(4), 1e-10)
    assert found.gradient <= 1e-10


def test_a_stop_returns_the_votes_so_far():
    wrong, w = learners((5, 30, 3))
    found = correct_votes(wrong, w, 2, np.zeros(3), 0.0, lambda: True)
    np.testing.assert_array_equal(found.votes, 0.0)


@given(CASES, st.integers(2, 4))
def test_losses_without_one_learner(case, K):
    wrong, w = learners(case)
    votes, c = np.random.default_rng(case[0]).random(len(wrong)), (K - 1) / K
    terms = w * np.exp(combine(wrong, votes) - c * votes.sum())
    found = losses_without(wrong, votes, terms / terms.sum(), float(terms.sum()), K)
    for s in range(len(wrong)):
        rest = np.delete(np.arange(len(wrong)), s)
        expected = w @ np.exp(combine(wrong[rest], votes[rest]) - c * votes[rest].sum())
        assert found[s] == pytest.approx(expected, rel=1e-10)


def test_a_removal_has_to_be_better_than_any_ensemble_of_its_size():
    smallest = SmallestLosses()
    smallest.record(2, 0.5)
    smallest.record(2, 0.7)
    assert smallest.improved_by(2, 0.4)
    assert not smallest.improved_by(2, 0.5)
    assert not smallest.improved_by(0, 1.0)
