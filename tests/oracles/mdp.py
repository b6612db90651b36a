"""Processes solved slowly, from dense arrays, as the textbook writes it."""

import numpy as np


def dense(mdp):
    """Return P of shape (S, A, S), r and availability of shape (S, A)."""
    P = np.zeros((mdp.n_states, mdp.n_actions, mdp.n_states))
    r = np.zeros((mdp.n_states, mdp.n_actions))
    there = np.zeros((mdp.n_states, mdp.n_actions), dtype=bool)
    for s in range(mdp.n_states):
        for k in range(mdp.pair_start[s], mdp.pair_start[s + 1]):
            a = mdp.pair_action[k]
            for j in range(mdp.P.indptr[k], mdp.P.indptr[k + 1]):
                P[s, a, mdp.P.indices[j]] += mdp.P.data[j]
            r[s, a] = mdp.reward[k]
            there[s, a] = True
    return P, r, there


def backup(mdp, v):
    """Return Tv."""
    P, r, there = dense(mdp)
    return np.where(there, r + mdp.gamma * P @ v, -np.inf).max(axis=1)


def policy_values(mdp, policy):
    """Return V^π by a dense linear system."""
    P, r, _ = dense(mdp)
    rows = np.arange(mdp.n_states)
    return np.linalg.solve(np.eye(mdp.n_states) - mdp.gamma * P[rows, policy], r[rows, policy])


def best_of_all_policies(mdp):
    """Return V* by trying every deterministic policy."""
    best = np.full(mdp.n_states, -np.inf)
    choices = [mdp.actions_of(s) for s in range(mdp.n_states)]
    for number in range(int(np.prod([len(c) for c in choices]))):
        policy = []
        for actions in choices:
            number, at = divmod(number, len(actions))
            policy.append(actions[at])
        best = np.maximum(best, policy_values(mdp, np.array(policy)))
    return best


def random_mdp(rng, n_states, n_actions, gamma, *, n_successors=3, stop=0.0):
    """Return a random process; with `stop` every step ends it with some probability."""
    from learnable.decisions.mdp import MDP

    pairs = n_states * n_actions
    P = np.zeros((pairs, n_states))
    for row in P:
        at = rng.choice(n_states, size=min(n_successors, n_states), replace=False)
        row[at] = rng.dirichlet(np.ones(len(at)))
    end = rng.uniform(0, stop, pairs)
    state = np.repeat(np.arange(n_states), n_actions)
    action = np.tile(np.arange(n_actions), n_states)
    return MDP.from_pairs(state, action, P * (1 - end)[:, None], rng.normal(size=pairs), gamma, stop=end)
