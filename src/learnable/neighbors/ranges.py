"""Distances of pairs of rows over the whole range of float64.

A search compares keys: sums of powers, in units that suit most rows (`search.py`). Where two rows are very much closer
or farther apart than most, the power under- or overflows. Such pairs are measured here instead:
‖g‖ = M·‖g/M‖ with M = max |gᵢ|.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core import AnyArray
from ._kernels import CHEBYSHEV, HAMMING

#: A key below this may have lost digits to underflow.
SMALLEST_KEY = 1e-280
_SAMPLE = 4096  # rows that tell the typical size
_ENTRIES = 2**20  # of the differences that are held at once


def out_of_range(keys: AnyArray) -> AnyArray:
    """Tell which keys under- or overflowed, or may have."""
    return (keys < SMALLEST_KEY) | np.isinf(keys)


def typical_size(X: Any) -> float:
    """Return the median of the rows' largest |entries|, but for rows of zeros; a few far rows do not change it."""
    rows = X[:: -(-X.shape[0] // _SAMPLE)]
    if sp.issparse(rows):
        sizes = np.zeros(rows.shape[0])
        np.maximum.at(sizes, np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), np.abs(rows.data))
    else:
        sizes = np.abs(rows).max(axis=1)
    sizes = sizes[sizes > 0]
    return float(np.sort(sizes)[len(sizes) // 2]) if len(sizes) else 0.0


def pair_distances(Q: Any, X: Any, queries: AnyArray, rows: AnyArray, power: float) -> AnyArray:
    """Return the Minkowski distances of the pairs (queries[j], rows[j])."""
    found = np.empty(len(rows))
    step = max(1, _ENTRIES // Q.shape[1])
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        with np.errstate(over="ignore"):
            gaps = _plain(Q[queries[part]]) - _plain(X[rows[part]])
        found[part] = scaled_norms(gaps, power)
    return found


def scaled_norms(gaps: AnyArray, power: float) -> AnyArray:
    """Return the norms of rows; where a power of an entry leaves the range, after division by the largest."""
    if power == CHEBYSHEV:
        return np.asarray(np.abs(gaps).max(axis=1))
    with np.errstate(over="ignore", under="ignore"):
        norms = _norms(gaps, power)
        odd = np.flatnonzero(~((norms**power > SMALLEST_KEY) & np.isfinite(norms**power)))
    if len(odd):
        norms[odd] = _norms_by_share(np.abs(gaps[odd]), power)
    return norms


def _norms(gaps: AnyArray, power: float) -> AnyArray:
    if power == 2.0:
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", gaps, gaps)))
    return np.asarray((np.abs(gaps) ** power).sum(axis=1) ** (1.0 / power))


def _norms_by_share(gaps: AnyArray, power: float) -> AnyArray:
    largest = gaps.max(axis=1)
    kept = (largest > 0) & np.isfinite(largest)
    norms = largest.copy()
    with np.errstate(over="ignore", under="ignore"):
        norms[kept] *= _norms(gaps[kept] / largest[kept, None], power)
    return norms


def _plain(X: Any) -> AnyArray:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def units_for(largest: AnyArray, power: float) -> AnyArray:
    """Return powers of two that keep the `power`-th powers of numbers up to `largest` in range; mostly one."""
    if power == HAMMING:
        return np.ones(len(largest))
    largest = largest.astype(np.float64)
    fits = (largest == 0) | ((largest > 1e-100) & (largest < 1e100)) if power <= 2 else largest == 0
    exponents = np.frexp(largest)[1]
    return np.where(fits, 1.0, np.ldexp(1.0, np.minimum(-exponents, 1023)))


def square_rows(X: Any, unit: float) -> AnyArray:
    """Return the squared lengths of sparse rows in a unit."""
    with np.errstate(over="ignore"):
        squares = np.square(X.data.astype(np.float64) * unit)
    return np.asarray(sp.csr_array((squares, X.indices, X.indptr), shape=X.shape).sum(axis=1)).ravel()
