"""The maps from free coordinates onto supports, as the book writes them, and their Jacobians by differences."""

import numpy as np


def sigmoid(u):
    return 1 / (1 + np.exp(-u))


def positive(u):
    return np.exp(u)


def at_least(u, a):
    return a + np.exp(u)


def at_most(u, b):
    return b - np.exp(u)


def interval(u, a, b):
    return a + (b - a) * sigmoid(u)


def simplex(u):
    """Break a stick: each piece is a share of what is left; u = 0 gives equal pieces."""
    K = len(u) + 1
    pieces, left = [], 1.0
    for k, value in enumerate(u):
        share = sigmoid(value - np.log(K - 1 - k))
        pieces.append(left * share)
        left -= pieces[-1]
    return np.array([*pieces, left])


def ordered(u):
    return np.cumsum(np.r_[u[0], np.exp(u[1:])])


def cholesky(u, d):
    L = np.zeros((d, d))
    L[np.tril_indices(d)] = u
    np.fill_diagonal(L, np.exp(np.diag(L)))
    return L


def log_jacobian(transform, u, free_of=lambda x: x, h=1e-6):
    """Return log|det| of the free part of x by u, from central differences."""
    columns = [(free_of(transform(u + h * e)) - free_of(transform(u - h * e))) / (2 * h) for e in np.eye(len(u))]
    return np.linalg.slogdet(np.array(columns))[1]
