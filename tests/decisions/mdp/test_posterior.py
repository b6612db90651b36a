"""Processes learned from logged steps."""

import numpy as np
import pytest
from tests.oracles import mdp as oracle

from learnable.decisions.mdp import MDP, MDPPosterior, count_steps, policy_evaluation, policy_iteration


def walk(mdp, n_paths, length, seed=0):
    """Return logged paths under random actions."""
    rng = np.random.default_rng(seed)
    P, r, there = oracle.dense(mdp)
    paths = []
    for _ in range(n_paths):
        s, path = int(rng.integers(mdp.n_states)), []
        for _ in range(length):
            a = int(rng.choice(np.flatnonzero(there[s])))
            after = int(rng.choice(mdp.n_states, p=P[s, a]))
            path.append((s, a, r[s, a], after, False))
            s = after
        paths.append(path)
    return paths


def test_shares_of_steps_are_the_most_likely_process():
    log = [[(0, 0, 1.0, 1, False), (1, 0, 0.0, 0, False), (0, 0, 3.0, 0, False), (0, 1, 0.0, 0, True)]]
    mdp = MDP.from_trajectories(log, 0.9)
    assert mdp.P.toarray().tolist() == [[0.5, 0.5], [0.0, 0.0], [1.0, 0.0]]
    assert mdp.reward.tolist() == [2.0, 0.0, 0.0]
    assert mdp.stop.tolist() == [0.0, 1.0, 0.0]


def test_with_many_steps_the_values_are_the_true_ones():
    truth = oracle.random_mdp(np.random.default_rng(0), 5, 2, 0.8)
    learned = MDP.from_trajectories(walk(truth, 200, 100), 0.8, n_states=5)
    np.testing.assert_allclose(policy_iteration(learned).values, policy_iteration(truth).values, atol=0.1)


def test_counts_are_the_conjugate_update():
    truth = oracle.random_mdp(np.random.default_rng(1), 4, 2, 0.8)
    log = walk(truth, 3, 40)
    counts = count_steps(log, 4).counts.toarray()
    alpha = MDPPosterior(log, 0.8, prior=0.5, n_states=4).alpha.toarray()
    np.testing.assert_allclose(alpha, np.where(counts > 0, counts + 0.5, 0.0))


@pytest.mark.parametrize("n_trials", [16, pytest.param(40, marks=pytest.mark.long)])
def test_intervals_cover(n_trials):
    """Truths drawn from the prior lie in the interval as often as it says (simulation-based calibration)."""
    rng = np.random.default_rng(5)
    hits, level = [], 0.8
    for trial in range(n_trials):
        P = rng.dirichlet(np.ones(3), size=(3, 1))
        truth = MDP(P, rng.normal(size=3), 0.8)
        log = walk(truth, 6, 10, seed=trial)
        seen = count_steps(log, 3)
        if len(seen.state) < 3:
            continue
        posterior = MDPPosterior(log, 0.8, n_states=3, support=np.hstack([np.ones((3, 3)), np.zeros((3, 1))]))
        _, low, high = posterior.values(np.zeros(3, dtype=int), n_samples=60, level=level, random_state=trial)
        true = policy_evaluation(truth, np.zeros(3, dtype=int)).values
        hits.append(low[0] <= true[0] <= high[0])
    error = np.sqrt(level * (1 - level) / len(hits))
    assert abs(np.mean(hits) - level) < 3.5 * error
