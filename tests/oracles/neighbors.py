"""Nearest neighbours in exact arithmetic: every float is a rational number, and so is every squared difference."""

from fractions import Fraction

import numpy as np


def exact_squares(X, q):
    """Return Σ(qᵢ − xᵢ)² for every row of X, as fractions."""
    X, q = np.asarray(X, dtype=float).tolist(), np.asarray(q, dtype=float).tolist()
    return [sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(row, q, strict=True)) for row in X]


def exact_neighbours(X, q, k):
    """Return the k nearest rows, ties by row number, and their squared distances as fractions."""
    squares = exact_squares(X, q)
    order = sorted(range(len(squares)), key=lambda row: (squares[row], row))[:k]
    return order, [squares[row] for row in order]


def plain_distances(X, Q, p=2.0):
    """Return all Minkowski distances, by the definition in extended precision."""
    gaps = abs(np.asarray(Q, dtype=np.longdouble)[:, None] - np.asarray(X, dtype=np.longdouble)[None])
    if np.isinf(p):
        return gaps.max(axis=2)
    return (gaps**p).sum(axis=2) ** (np.longdouble(1) / p)


def first_k(distances, k):
    """Return the numbers of the k smallest in each row, ties by number."""
    numbers = np.broadcast_to(np.arange(distances.shape[1]), distances.shape)
    return np.lexsort((numbers, distances), axis=1)[:, :k]
