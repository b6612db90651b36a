"""Bandit policies as the textbook writes them, one reward after the other."""

import math

import numpy as np


def ucb1_arms(rewards):
    """Return the arms that UCB1 plays when arm a earns rewards[t, a] in round t."""
    T, k = rewards.shape
    count, total, arms = np.zeros(k), np.zeros(k), []
    for t in range(T):
        a = t if t < k else int(np.argmax(total / count + np.sqrt(2 * math.log(t + 1) / count)))
        arms.append(a)
        count[a] += 1
        total[a] += rewards[t, a]
    return arms


def exp3_weights(arms, rewards, chances, eta, k):
    """Return the probabilities of arms after a history, from the sum of estimated losses."""
    losses = np.zeros(k)
    for a, x, p in zip(arms, rewards, chances, strict=True):
        losses[a] += (1 - x) / p
    w = np.exp(-eta * (losses - losses.min()))
    return w / w.sum()


def kl_index(mean, count, bound):
    """Return the greatest q with count · kl(mean, q) <= bound, on a fine grid."""
    if mean == 1.0:
        return 1.0
    q = np.linspace(mean, 1, 2_000_001)[1:-1]
    kl = np.where(mean > 0, mean * np.log(np.maximum(mean, 1e-300) / q), 0)
    kl = kl + np.where(mean < 1, (1 - mean) * np.log(max(1 - mean, 1e-300) / (1 - q)), 0)
    return q[count * kl <= bound].max(initial=mean)
