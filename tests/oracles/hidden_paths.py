"""Hidden Markov models by enumeration: every path of hidden states, one after the other."""

import itertools

import numpy as np


def enumerate_paths(log_frames, startprob, transmat):
    """Return all paths (N, T) and log p(x, z) of each."""
    T, K = log_frames.shape
    with np.errstate(divide="ignore"):
        start, moves = np.log(startprob), np.log(transmat)
    paths = np.array(list(itertools.product(range(K), repeat=T)))
    logs = start[paths[:, 0]] + log_frames[np.arange(T), paths].sum(axis=1)
    for t in range(1, T):
        logs = logs + moves[paths[:, t - 1], paths[:, t]]
    return paths, logs


def posteriors(log_frames, startprob, transmat):
    """Return log p(x), P(z_t | x) (T, K), P(z_t, z_{t+1} | x) (T − 1, K, K) and the greatest log p(x, z)."""
    paths, logs = enumerate_paths(log_frames, startprob, transmat)
    T, K = log_frames.shape
    total = np.logaddexp.reduce(logs)
    p = np.exp(logs - total)
    single, pairs = np.zeros((T, K)), np.zeros((max(T - 1, 0), K, K))
    for t in range(T):
        np.add.at(single[t], paths[:, t], p)
        if t:
            np.add.at(pairs[t - 1], (paths[:, t - 1], paths[:, t]), p)
    return total, single, pairs, logs.max()
