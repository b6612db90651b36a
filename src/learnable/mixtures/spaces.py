"""Coordinates in which a distance is the Euclidean one, and the first moments of the rows in them.

Mahalanobis' distance becomes Euclidean by whitening, x ↦ xW with cov(XW) = I; the cosine by dividing rows by their
lengths. Numbers near the ends of the floats are multiplied by a power of two, so that no square over- or underflows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from ..core.errors import DataError
from ..data.blocks import Blocks, Part, map_reduce

Array = NDArray[Any]


class Space(NamedTuple):
    """The rows in Euclidean coordinates."""

    X: Any  #: (n, d) array or CSR array; None where rows are not in memory
    blocks: Any  #: the same rows as a source of blocks
    weight: Array | None  #: (n,)
    unit: float  #: what the rows were multiplied by
    mean: Array  #: (d,) of the rows
    scatter: float  #: Σ w‖x − mean‖²: the inertia of one cluster
    variance: float  #: mean variance of the columns


def space_of(X: Any, blocks: Any, weight: Array | None, n_jobs: int | None = None) -> Space:
    """Return the rows in a unit in which nothing overflows, with their moments; X is None for rows beyond memory."""
    unit = 1.0
    if X is not None:
        largest = map_reduce(blocks, _largest, max, n_jobs=n_jobs)
        if largest > 1e75 or 0 < largest < 1e-75:
            unit = float(2.0 ** -np.frexp(largest)[1])
            X = X * unit
            blocks = Blocks([Part(X, None, weight)])
    total = map_reduce(blocks, _first_moments, _add, n_jobs=n_jobs)
    mean = total[1] / total[0]
    squares = map_reduce(blocks, _Scatter(mean), np.add, n_jobs=n_jobs)
    return Space(X, blocks, weight, unit, mean, float(squares.sum()), float(squares.mean() / total[0]))


def whitening_of(owner: str, X: Any, weight: Array | None) -> Array:
    """Return W with the identity as covariance of XW."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    if len(X) < 2:
        raise DataError(f"{owner}: metric='mahalanobis' needs at least two rows; got {len(X)}.")
    cov = np.atleast_2d(np.cov(X, rowvar=False, bias=True, aweights=weight))
    try:
        factor = np.linalg.cholesky(cov)
        flat = np.diag(factor) <= 1e-7 * np.sqrt(np.diag(cov))
    except np.linalg.LinAlgError:
        flat = np.ones(1, dtype=bool)
    if flat.any():
        raise DataError(
            f"{owner}: metric='mahalanobis' needs columns that do not depend on each other, but the covariance of X is "
            "singular. Drop constant and repeated columns."
        )
    return np.ascontiguousarray(solve_triangular(factor, np.eye(len(cov)), lower=True).T)


def directions_of_rows(owner: str, X: Any) -> Any:
    """Return the rows divided by their lengths."""
    if sp.issparse(X):
        lengths = sp.linalg.norm(X, axis=1)
    else:
        largest = np.abs(X).max(axis=1, keepdims=True)
        X = X / np.where(largest > 0, largest, 1.0)
        lengths = np.linalg.norm(X, axis=1)
    if not lengths.all():
        row = int(np.flatnonzero(lengths == 0)[0])
        raise DataError(f"{owner}: row {row} of X is zero and has no direction. Drop it, or use another metric.")
    return sp.csr_array(sp.diags_array(1 / lengths) @ X) if sp.issparse(X) else X / lengths[:, None]


class _Scatter:
    """Sums of squared deviations from a given mean, by column."""

    def __init__(self, mean: Array) -> None:
        self.mean = mean

    def __call__(self, block: Any) -> Array:
        w = np.ones(block.X.shape[0]) if block.weight is None else block.weight
        if sp.issparse(block.X):
            squares = w @ block.X.multiply(block.X) - 2 * self.mean * (w @ block.X) + w.sum() * self.mean**2
            return np.maximum(np.asarray(squares).ravel(), 0.0)
        return np.asarray(w @ (block.X - self.mean) ** 2)


def _largest(block: Any) -> float:
    values = block.X.data if sp.issparse(block.X) else block.X
    return float(max(values.max(), -values.min())) if values.size else 0.0


def _first_moments(block: Any) -> tuple[float, Array]:
    w = np.ones(block.X.shape[0]) if block.weight is None else block.weight
    return float(w.sum()), np.asarray(w @ block.X).ravel()


def _add(a: tuple[float, Array], b: tuple[float, Array]) -> tuple[float, Array]:
    return a[0] + b[0], a[1] + b[1]
