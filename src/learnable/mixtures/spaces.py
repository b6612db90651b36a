"""Coordinates in which a distance is the Euclidean one, and the first moments of the rows in them.

Mahalanobis' distance becomes Euclidean by whitening, x ↦ xW with cov(XW) = I; the cosine by dividing rows by their
lengths. Numbers near the ends of the floats are multiplied by a power of two, so that no square over- or underflows.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular

from ..core import AnyArray, DataError
from ..data.blocks import Blocks, Part, map_reduce
from ._kernels import spread_of_rows

_SMALLEST = 1e-305  # below about 2e-308, numbers lose their digits
_LARGEST = 1e141  # above it, sums of squares may overflow
_SAMPLE = 1024  # rows that tell the typical deviation


class Space(NamedTuple):
    """The rows in Euclidean coordinates."""

    X: Any  #: (n, d) array or CSR array; None where rows are not in memory
    blocks: Any  #: the same rows as a source of blocks
    weight: AnyArray | None  #: (n,)
    unit: float  #: what the rows were multiplied by
    mean: AnyArray  #: (d,) of the rows
    scatter: float  #: Σ w‖x − mean‖²: the inertia of one cluster
    variance: float  #: mean variance of the columns
    is_wide: bool  #: whether a few far rows make up all of `scatter`, so that differences of such sums say nothing
    reach: float = 0.0  #: the largest |w(x − mean)| of rows beyond memory
    heaviest: float = 1.0  #: the largest w of rows beyond memory


def space_of(X: Any, blocks: Any, weight: AnyArray | None, n_jobs: int | None = None, owner: str = "KMeans") -> Space:
    """Return the rows in a unit in which nothing overflows, with their moments; X is None for rows beyond memory."""
    unit = 1.0
    typical = np.inf
    if X is not None:
        largest = map_reduce(blocks, _largest, max, n_jobs=n_jobs)
        if 0 < largest < _SMALLEST:
            raise DataError(
                f"{owner}: X has no number of size {_SMALLEST:g} or more, and smaller ones have few digits in float64. "
                "Multiply X by a constant."
            )
        typical = _typical_deviation(X)
        if largest > 1e75 or 0 < min(largest, typical) < 1e-75:
            unit = _unit(owner, X, largest, typical)
            X = X * unit
            typical *= unit
            blocks = Blocks([Part(X, None, weight)])
    W, sums, tops = map_reduce(blocks, _first_moments, _add, n_jobs=n_jobs)
    if tops.max(initial=0.0) > _LARGEST:
        raise _too_far(owner, int(tops.argmax()), float(tops.max()))
    mean = sums / W
    tops = np.zeros(2)
    if X is None:
        squares, tops = map_reduce(blocks, partial(_spread, mean), _add_spreads, n_jobs=n_jobs)
    else:
        squares = map_reduce(blocks, partial(_scatter, mean), np.add, n_jobs=n_jobs)
    scatter = float(squares.sum())
    is_wide = bool(W * typical**2 < 1e-9 * scatter)
    return Space(X, blocks, weight, unit, mean, scatter, float(squares.mean() / W), is_wide, *tops.tolist())


def _unit(owner: str, X: Any, largest: float, typical: float) -> float:
    """Return the power of two that keeps the squares of all rows in range, of far ones and of the others."""
    if typical >= 1e-75 * largest:
        return float(np.ldexp(1.0, min(int(-np.frexp(largest)[1]), 1023)))
    with np.errstate(over="ignore"):
        unit = float(np.ldexp(1.0, min(int(464 - np.frexp(largest)[1]), 1023)))  # 2⁴⁶⁴ is about 1e140
    if typical * unit < 1e-140:
        tops = np.asarray(abs(X).max(axis=0).todense()).ravel() if sp.issparse(X) else np.abs(X).max(axis=0)
        raise _too_far(owner, int(tops.argmax()), largest)
    return unit


def _too_far(owner: str, column: int, largest: float) -> DataError:
    return DataError(
        f"{owner}: column {column} of X holds a number of size {largest:.3g}, so far off that squared distances of the "
        "other rows do not fit beside it. Correct or drop that row, or scale the column."
    )


def _typical_deviation(X: Any) -> float:
    """Return the median over some rows of the largest deviation from the columns' medians, zeros left out."""
    rows = X[:: -(-X.shape[0] // _SAMPLE)]
    rows = np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)
    with np.errstate(over="ignore"):
        gaps = np.abs(rows - _middle(rows)).max(axis=1, initial=0.0)
    gaps = gaps[gaps > 0]
    return float(_middle(gaps)) if len(gaps) else np.inf


def _middle(values: AnyArray) -> Any:
    """Return the upper median along the first axis."""
    half = len(values) // 2
    return np.partition(values, half, axis=0)[half]


def whitening_of(owner: str, X: Any, weight: AnyArray | None) -> AnyArray:
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


def rounding_of_inertia(X: Any, labels: AnyArray, weight: AnyArray, centres: AnyArray) -> float:
    """Return the inertia that rounding of the centres may leave: (8·2⁻⁵³)² Σ w x², over entries off their centre."""
    if sp.issparse(X):
        counts = np.diff(X.indptr)
        owns = centres[np.repeat(labels, counts), X.indices]
        total = np.repeat(weight, counts) @ np.where(X.data == owns, 0.0, np.square(X.data, dtype=np.float64))
    else:
        total = (weight @ np.where(centres[labels] == X, 0.0, np.square(X, dtype=np.float64))).sum()
    return float((8 * 2.0**-53) ** 2 * total)


def float_type(X: Any) -> Any:
    """Return the type of what is fitted to these rows: float32 only for float32 rows in memory."""
    return np.float32 if X is not None and X.dtype == np.float32 else np.float64


def _scatter(mean: AnyArray, block: Any) -> AnyArray:
    """Return sums of squared deviations from a given mean, by column."""
    w = np.ones(block.X.shape[0]) if block.weight is None else block.weight
    if sp.issparse(block.X):
        squares = w @ block.X.multiply(block.X) - 2 * mean * (w @ block.X) + w.sum() * mean**2
        return np.maximum(np.asarray(squares).ravel(), 0.0)
    return np.asarray(w @ (block.X - mean) ** 2)


def _spread(mean: AnyArray, block: Any) -> tuple[AnyArray, AnyArray]:
    """Return `_scatter` of dense rows, and the largest |w(x − mean)| and w."""
    squares = np.zeros(len(mean))
    tops = np.zeros(len(mean))
    weight = np.empty(0) if block.weight is None else block.weight
    spread_of_rows(block.X, mean, weight, squares, tops)
    heaviest = 1.0 if block.weight is None else block.weight.max()
    return squares, np.array([tops.max(initial=0.0), heaviest])


def _largest_size(values: AnyArray) -> float:
    """Return the largest |entry|."""
    return float(max(values.max(), -values.min())) if values.size else 0.0


def _add_spreads(a: tuple[AnyArray, AnyArray], b: tuple[AnyArray, AnyArray]) -> tuple[AnyArray, AnyArray]:
    return a[0] + b[0], np.maximum(a[1], b[1])


def _largest(block: Any) -> float:
    return _largest_size(block.X.data if sp.issparse(block.X) else block.X)


def _first_moments(block: Any) -> tuple[float, AnyArray, AnyArray]:
    """Return the weight, the weighted sums of the columns and their largest |entries|."""
    w = np.ones(block.X.shape[0]) if block.weight is None else block.weight
    if sp.issparse(block.X):
        tops = np.asarray(abs(block.X).max(axis=0).todense()).ravel()
    else:
        tops = np.maximum(block.X.max(axis=0), -block.X.min(axis=0))
    with np.errstate(over="ignore", invalid="ignore"):
        return float(w.sum()), np.asarray(w @ block.X).ravel(), tops


def _add(a: tuple[float, AnyArray, AnyArray], b: tuple[float, AnyArray, AnyArray]) -> tuple[float, AnyArray, AnyArray]:
    return a[0] + b[0], a[1] + b[1], np.maximum(a[2], b[2])
