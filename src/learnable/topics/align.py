"""Which topic or population of one run is which of another: runs of one size, and runs with more of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from ..core.errors import ParameterError

Array = NDArray[np.float64]


def align_columns(reference: Any, other: Any) -> NDArray[np.intp]:
    """Return the order of the columns of `other` that agrees best with those of `reference`.

    Parameters
    ----------
    reference, other : arrays of shape (n, K) and (n, K') with K' ≥ K
        Proportions of the same individuals or documents. Columns that match none come last, the largest first.

    Returns
    -------
    order : array of shape (K',)
        Column `order[k]` of `other` is column k of `reference`.

    Examples
    --------
    >>> from learnable.topics import align_columns
    >>> align_columns([[0.9, 0.1], [0.2, 0.8]], [[0.0, 0.1, 0.9], [0.7, 0.1, 0.2]])
    array([2, 0, 1])
    """
    A = np.asarray(reference, dtype=np.float64)
    B = np.asarray(other, dtype=np.float64)
    if A.ndim != 2 or B.ndim != 2 or len(A) != len(B) or B.shape[1] < A.shape[1]:
        raise ParameterError(
            f"align_columns: expected shapes (n, K) and (n, K') with K' >= K; got {A.shape} and {B.shape}."
        )
    cost = ((A[:, :, None] - B[:, None, :]) ** 2).sum(axis=0) if A.size * B.shape[1] < 2**24 else -(A.T @ B)
    matched = linear_sum_assignment(cost)[1]
    rest = np.setdiff1d(np.arange(B.shape[1]), matched)
    rest = rest[np.argsort(-B[:, rest].sum(axis=0), kind="stable")]
    return np.asarray(np.r_[matched, rest], dtype=np.intp)


def align_draws(draws: Array) -> NDArray[np.intp]:
    """Return the order of the columns of each draw (S, n, K), so that all agree: twice towards their mean."""
    orders = np.tile(np.arange(draws.shape[2]), (len(draws), 1))
    if draws.shape[2] < 2:
        return orders
    pivot = draws[-1]
    for _ in range(2):
        orders = np.array([align_columns(pivot, one) for one in draws])
        pivot = np.mean([one[:, order] for one, order in zip(draws, orders, strict=True)], axis=0)
    largest = np.argsort(-pivot.mean(axis=0), kind="stable")
    return orders[:, largest]
