"""Deep reinforcement learning as the textbook writes it: one row, one episode, one batch at a time, in NumPy."""

import itertools

import numpy as np


def network(theta, widths, unit, x):
    """Return the outputs for one row: all weights stand first, then all biases."""
    bias = sum(a * b for a, b in itertools.pairwise(widths))
    weight = 0
    x = np.asarray(x, dtype=np.float64)
    for k, (a, b) in enumerate(itertools.pairwise(widths)):
        x = x @ theta[weight : weight + a * b].reshape(a, b) + theta[bias : bias + b]
        weight += a * b
        bias += b
        if k < len(widths) - 2:
            x = np.tanh(x) if unit == "tanh" else np.maximum(x, 0.0)
    return x


def softmax(z):
    e = np.exp(z - np.max(z, axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def td_target(r, gamma, online_next, target_next, terminated, double):
    """Return the target of one step; a truncated step is one that is not terminated."""
    if terminated:
        return r
    chosen = np.argmax(online_next if double else target_next)
    return r + gamma * target_next[chosen]


def generalised_advantage(rewards, values, next_values, terminated, truncated, gamma, trace):
    """Return Σ (γλ)ᵏ δ of one environment, forwards, by the definition."""
    T = len(rewards)
    out = np.zeros(T)
    for t in range(T):
        fade = 1.0
        for k in range(t, T):
            follows = 0.0 if terminated[k] else gamma * next_values[k]
            out[t] += fade * (rewards[k] + follows - values[k])
            fade *= gamma * trace
            if terminated[k] or truncated[k]:
                break
    return out


def policy_loss(log_new, log_old, advantage, clip):
    """Return the mean loss: −A log π, or PPO's clipped ratio."""
    if clip is None:
        return -float(np.mean(advantage * log_new))
    ratio = np.exp(log_new - log_old)
    return -float(np.mean(np.minimum(ratio * advantage, np.clip(ratio, 1 - clip, 1 + clip) * advantage)))


def expected_return(theta, widths, unit, P, R, start, horizon):
    """Return the exact mean return of a softmax policy over `horizon` steps of a process with one-hot states."""
    n = len(start)
    pi = np.array([softmax(network(theta, widths, unit, row)) for row in np.eye(n)])
    value = np.zeros(n)
    for _ in range(horizon):
        value = np.einsum("sa,sa->s", pi, R + np.einsum("san,n->sa", P, value))
    return float(start @ value)


def n_step_return(rewards, terminated, truncated, at, n, gamma):
    """Return the sum of up to n rewards, what is left of the discount, and the step at which the look ahead ended."""
    total = 0.0
    fade = 1.0
    last = at
    for k in range(at, min(at + n, len(rewards))):
        total += fade * rewards[k]
        fade *= gamma
        last = k
        if terminated[k]:
            return total, 0.0, last
        if truncated[k]:
            break
    return total, fade, last
