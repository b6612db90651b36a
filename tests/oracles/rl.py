"""Tabular learning as the textbook writes it, from a list of steps."""

import numpy as np


def q_learning(steps, n_states, n_actions, alpha, gamma):
    """Return Q after steps (s, a, r, s', ended)."""
    Q = np.zeros((n_states, n_actions))
    for s, a, r, after, ended in steps:
        target = r if ended else r + gamma * Q[after].max()
        Q[s, a] += alpha * (target - Q[s, a])
    return Q


def td_zero(episodes, n_states, alpha, gamma):
    """Return V after episodes of steps (s, r, s', ended)."""
    V = np.zeros(n_states)
    for episode in episodes:
        for s, r, after, ended in episode:
            V[s] += alpha * (r + (0.0 if ended else gamma * V[after]) - V[s])
    return V


def soft_values(mdp, epsilon, n_sweeps=20_000):
    """Return the action values of the best ε-soft policy, V = (1−ε) max Q + ε mean Q."""
    v = np.zeros(mdp.n_states)
    for _ in range(n_sweeps):
        Q = mdp.action_values(v)
        new = (1 - epsilon) * Q.max(axis=1) + epsilon * Q.mean(axis=1)
        if abs(new - v).max() < 1e-12:
            break
        v = new
    return mdp.action_values(v)
