r"""Exact search for the k nearest rows: a screening in float32 by BLAS, distances in float64.

For every query q and row x (both less the mean row c, in units in which the longest row has length about one), with
½‖q − x‖² = ½‖q‖² + ½‖x‖² − qᵀx, one matrix product in float32 of the extended rows

    (−q, 1, (½ − 2γ)‖q‖²)   and   (x, (½ − 2γ)‖x‖², 1),      γ = (d + 8)·2⁻²⁴,

is *at most* ½‖q − x‖²: rounding of the d + 2 factors and of their sum, in whatever order, changes it by no more than
γ(‖q‖² + ‖x‖²) (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1), and twice that has been taken off.
A row whose bound exceeds the k-th best distance so far is no neighbour. Every other row is measured from its
coordinates in float64 and compared with the k best. So neighbours and distances are those of Σᵢ(qᵢ − xᵢ)² in float64,
with ties decided by the row number, whatever BLAS is there and however many threads. Rows are visited in a fixed
shuffled order, so that about k·log(n/k) of them are measured, however the table is sorted.

Other Minkowski distances, and few columns, are served by a k-d tree (`metrics.py`) or by a plain scan.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core import AnyArray
from ..data.blocks import map_reduce
from ._kernels import (
    CHEBYSHEV,
    HAMMING,
    NO_ROW,
    keys_of_run,
    scan_bounds,
    scan_keys,
    scan_rows,
    scan_sparse_bounds,
    sort_heaps,
    sparse_squares_of_pairs,
    squares_of_pairs,
)
from .ranges import SMALLEST_KEY, out_of_range, pair_distances, square_rows, typical_size, units_for

_TILE_ROWS = 1024  # bounds of a block of queries for a tile of rows stay in the cache
_BLOCK_QUERIES = 256  # queries of one task
_FLOAT32 = 2.0**-24  # relative rounding of one operation in float32
_FLOAT64 = 2.0**-53  # and in float64
_FAR = 2.0**50  # a query this many times farther off than the longest row is not screened
_SAMPLE = 1024  # rows whose median is the centre
_PAIRS = 2**18  # entries of a tile of bounds or distances that NumPy handles at once


class Neighbours(NamedTuple):
    """Neighbours of m queries."""

    keys: AnyArray  #: (m, k) float64, ascending: increasing functions of the distances
    rows: AnyArray  #: (m, k) int64
    apart: dict[int, AnyArray]  #: distances (k,) of the queries whose keys are out of range


class Ball(NamedTuple):
    """Rows within a radius of m queries, one run after the other."""

    keys: AnyArray
    rows: AnyArray
    counts: AnyArray  #: (m,) length of each run
    apart: AnyArray  #: positions of keys that are out of range
    distances: AnyArray  #: and the distances there


class Search(ABC):
    """A search over fixed rows; what the subclasses share.

    `units` keeps powers in the range of float64: a query's key is that of q·unit and x·unit, unit a power of two. It
    suits the query and most rows, whatever a few far rows may be. Where a key is out of range all the same, distances
    decide (`ranges.py`).
    """

    X: Any  #: the rows
    n_rows: int
    has_range: bool = True  #: whether keys may leave the range of float64 where distances do not
    power: float = 2.0
    block_queries: int = _BLOCK_QUERIES

    def nearest(self, Q: Any, k: int, own: AnyArray | None = None, n_jobs: int | None = None) -> Neighbours:
        """Return the k nearest rows of every query.

        Parameters
        ----------
        Q : (m, d) array or CSR array
            Queries.
        k : int
            At most the number of rows (less one where `own` excludes one).
        own : (m,) int array, optional
            A row that each query must not get, for queries that are rows themselves; −1 excludes none.
        n_jobs : int or None
            Threads; the result does not depend on it.
        """
        m = Q.shape[0]
        own = np.full(m, -1) if own is None else own
        keys = np.full((m, k), np.inf)
        rows = np.full((m, k), NO_ROW)
        apart: dict[int, AnyArray] = {}

        def work(part: slice) -> None:
            self._scan(Q[part], own[part], keys[part], rows[part])
            sort_heaps(keys[part], rows[part])
            if self.has_range:
                self._mend(Q, part, own, keys, rows, apart)

        over_queries(m, self.block_queries, work, n_jobs)
        return Neighbours(keys, rows, apart)

    def within(self, Q: Any, limit: AnyArray, own: AnyArray | None = None, n_jobs: int | None = None) -> Ball:
        """Return the rows whose key is at most `limit` (m,), by row number."""
        m = Q.shape[0]
        own = np.full(m, -1) if own is None else own
        limit = np.maximum(limit, SMALLEST_KEY) if self.has_range else limit
        found: dict[int, tuple[AnyArray, AnyArray, AnyArray]] = {}

        def work(part: slice) -> None:
            queries, rows, keys = self._pairs(Q[part], limit[part])
            kept = (keys <= limit[part][queries]) & (rows != own[part][queries])
            queries = queries[kept]
            rows = rows[kept]
            keys = keys[kept]
            sorting = np.lexsort((rows, queries))
            found[part.start] = queries[sorting] + part.start, rows[sorting], keys[sorting]

        over_queries(m, self.block_queries, work, n_jobs)
        columns = zip(*(found[at] for at in sorted(found)), strict=True)
        queries, rows, keys = (np.concatenate(column) for column in columns)
        apart = np.flatnonzero(out_of_range(keys)) if self.has_range else np.empty(0, np.int64)
        distances = self._distances_of_pairs(Q, queries[apart], rows[apart])
        return Ball(keys, rows, np.bincount(queries, minlength=m), apart, distances)

    def _mend(
        self, Q: Any, part: slice, own: AnyArray, keys: AnyArray, rows: AnyArray, apart: dict[int, AnyArray]
    ) -> None:
        """Find the neighbours by their distances for queries with keys out of range, but for equal rows."""
        k = keys.shape[1]
        odd = np.flatnonzero((keys[part, 0] < SMALLEST_KEY) | np.isinf(keys[part, -1])) + part.start
        queries, places = np.nonzero(out_of_range(keys[odd]))
        queries = odd[queries]
        moved = self._distances_of_pairs(Q, queries, rows[queries, places]) > 0
        for i in np.unique(queries[moved]).tolist():
            limit = np.maximum(keys[i : i + 1, -1] * (1 + 1e-9), SMALLEST_KEY)
            _, found, found_keys = self._pairs(Q[i : i + 1], limit)
            kept = found != own[i]
            found = found[kept]
            found_keys = found_keys[kept]
            distances = self._distances_of_keys(found_keys, self.units(Q[i : i + 1]))
            out = np.flatnonzero(out_of_range(found_keys))
            distances[out] = self._distances_of_pairs(Q, np.full(len(out), i), found[out])
            best = np.lexsort((found, distances))[:k]
            rows[i] = found[best]
            apart[i] = distances[best]

    def _distances_of_keys(self, keys: AnyArray, units: AnyArray) -> AnyArray:
        if self.power in (1.0, CHEBYSHEV):
            return keys / units
        return np.sqrt(keys) / units if self.power == 2.0 else keys ** (1 / self.power) / units

    def _distances_of_pairs(self, Q: Any, queries: AnyArray, rows: AnyArray) -> AnyArray:
        if not len(rows):
            return np.empty(0)
        return pair_distances(Q, self.X, queries, rows, self.power)

    @abstractmethod
    def units(self, Q: Any) -> AnyArray:
        """Return the unit of each query's key."""

    @abstractmethod
    def _scan(self, Q: Any, own: AnyArray, keys: AnyArray, rows: AnyArray) -> None:
        """Fill the heaps of a block of queries."""

    @abstractmethod
    def _pairs(self, Q: Any, limit: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Return (query, row, key) of at least all pairs within the limits."""


class ScreenedSearch(Search):
    """Euclidean search over dense rows, screened in float32. O(nd) memory, half of it (float32) besides the rows."""

    def __init__(self, X: AnyArray) -> None:
        n, d = X.shape
        self.X = X
        self.n_rows = n
        self.block_queries = int(np.clip(2**34 // (n * (d + 2)), 16, _BLOCK_QUERIES))  # short enough for Ctrl-C
        self.size = typical_size(X)
        unit = units_for(np.array([self.size]), 2.0)[0]
        middle = np.sort(X[:: -(-n // _SAMPLE)], axis=0)
        self.centre = middle[len(middle) // 2].astype(np.float64) * unit
        self.order = np.random.default_rng(0).permutation(n)
        self.gamma = (d + 8) * _FLOAT32
        self.unit = unit
        squares = np.empty(n)
        with np.errstate(over="ignore"):
            for part in _slices(n, max(1, _PAIRS // d)):
                rows = X[part] * unit - self.centre
                np.einsum("ij,ij->i", rows, rows, out=squares[part])
        apart = squares[:: -(-n // _SAMPLE)]
        apart = np.sort(apart[apart > 0])
        near = squares <= (_FAR * apart[len(apart) // 2] if len(apart) else np.inf)
        longest = float(squares[near & np.isfinite(squares)].max(initial=0.0))
        self.scale = float(2.0 ** -np.frexp(np.sqrt(longest))[1]) if longest > 0 else 1.0
        self.panel = np.empty((n, d + 2), np.float32)
        self._fill_panel(near)

    def _fill_panel(self, near: AnyArray) -> None:
        """Store the rows in float32; those very far off as zeros: a bound of zero lets them be measured."""
        n, d = self.X.shape
        for part in _slices(n, max(1, _PAIRS // d)):
            order = self.order[part]
            with np.errstate(over="ignore", invalid="ignore"):
                rows = (self.X[order] * self.unit - self.centre) * self.scale
            rows[~near[order]] = 0.0
            self.panel[part, :d] = rows
            self.panel[part, d] = (0.5 - 2 * self.gamma) * np.einsum("ij,ij->i", rows, rows)
            self.panel[part, d + 1] = near[order]

    def units(self, Q: AnyArray) -> AnyArray:
        """Return the unit of each query's key."""
        return units_for(np.maximum(np.abs(Q).max(axis=1), self.size), 2.0)

    def _prepare(self, Q: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray, AnyArray]:
        """Return the queries in units of their keys, the units, the extended rows; factor, floor: keys → bounds."""
        units = self.units(Q)
        d = Q.shape[1]
        with np.errstate(over="ignore", invalid="ignore"):
            rows = (Q * self.unit - self.centre) * self.scale
            square = np.einsum("ij,ij->i", rows, rows)
            near = square < _FAR**2
            extended = np.empty((len(Q), d + 2), np.float32)
            extended[:, :d] = np.where(near[:, None], -rows, 0.0)  # zeros give bounds of zero: every row is measured
            extended[:, d] = near
            extended[:, d + 1] = np.where(near, (0.5 - 2 * self.gamma) * square, 0.0)
            factor = np.minimum(0.5 * (self.unit * self.scale / units) ** 2, 1e300)
        factor *= (1 + 8 * (d + 8) * _FLOAT64) * (1 + 2.0**-20)  # rounding of the keys, and of the level to float32
        floor = (d + 8) * 2.0**-120 * (1 + np.sqrt(np.where(near, square, 0.0)))  # what underflow may take away
        return Q.astype(np.float64) * units[:, None], units, extended, factor, floor

    def _scan(self, Q: AnyArray, own: AnyArray, keys: AnyArray, rows: AnyArray) -> None:
        scaled, units, extended, factor, floor = self._prepare(Q)
        bounds = np.empty((len(Q), _TILE_ROWS), np.float32)
        for part in _slices(self.n_rows, _TILE_ROWS):
            tile = self.panel[part]
            out = bounds if len(tile) == _TILE_ROWS else np.empty((len(Q), len(tile)), np.float32)
            np.matmul(extended, tile.T, out=out)
            scan_bounds(out, part.start, self.order, self.X, scaled, units, own, factor, floor, keys, rows)

    def _pairs(self, Q: AnyArray, limit: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
        scaled, units, extended, factor, floor = self._prepare(Q)
        with np.errstate(over="ignore"):
            level = (limit * factor + floor).astype(np.float32)
        pairs = []
        for part in _slices(self.n_rows, _TILE_ROWS):
            queries, at = np.nonzero(extended @ self.panel[part].T <= level[:, None])
            pairs.append((queries, self.order[part][at]))
        queries, rows = (np.concatenate(column) for column in zip(*pairs, strict=True))
        keys = np.empty(len(rows))
        squares_of_pairs(self.X, scaled, units, queries, rows, keys)
        return queries, rows, keys


class SparseSearch(Search):
    """Euclidean search over sparse rows: the same screening by sparse products in float64."""

    block_queries = 64

    def __init__(self, X: Any) -> None:
        self.X = X
        self.n_rows = X.shape[0]
        self.size = typical_size(X)
        self.unit = units_for(np.array([self.size]), 2.0)[0]
        # A sparse product adds at most as many terms as the fuller row has entries.
        self.gamma = (int(np.diff(X.indptr).max(initial=0)) + 8) * _FLOAT64
        self.half_squares = (0.5 - 2 * self.gamma) * square_rows(X, self.unit)

    def units(self, Q: Any) -> AnyArray:
        """Return the unit of each query's key."""
        largest = np.zeros(Q.shape[0])
        np.maximum.at(largest, np.repeat(np.arange(Q.shape[0]), np.diff(Q.indptr)), np.abs(Q.data))
        return units_for(np.maximum(largest, self.size), 2.0)

    def _prepare(self, Q: Any) -> tuple[Any, AnyArray, AnyArray, AnyArray, AnyArray, AnyArray]:
        units = self.units(Q)
        scaled = sp.csr_array(Q.astype(np.float64).multiply(units[:, None]))
        scaled.sort_indices()
        with np.errstate(over="ignore", invalid="ignore"):
            gamma = max(self.gamma, (int(np.diff(Q.indptr).max(initial=0)) + 8) * _FLOAT64)
            square = square_rows(Q, self.unit)
            near = square < 1e290
            dense = np.where(near, Q.astype(np.float64).toarray().T * self.unit, 0.0)
            offset = np.where(near, (0.5 - 2 * gamma) * square, -np.inf)  # −inf: every row is measured
            factor = np.minimum(0.5 * (self.unit / units) ** 2, 1e300) * (1 + 16 * gamma)
        return scaled, units, np.ascontiguousarray(dense), offset, factor, np.full(len(units), 1e-280)

    def _bounds(self, part: slice, dense: AnyArray, offset: AnyArray) -> AnyArray:
        with np.errstate(over="ignore", invalid="ignore"):  # NaN excludes nothing
            product = self.X[part].astype(np.float64) @ dense * self.unit
            return np.asarray(self.half_squares[part, None] + offset - product)

    def _scan(self, Q: Any, own: AnyArray, keys: AnyArray, rows: AnyArray) -> None:
        scaled, units, dense, offset, factor, floor = self._prepare(Q)
        X = self.X
        for part in _slices(self.n_rows, max(1, _PAIRS // len(units))):
            bounds = self._bounds(part, dense, offset)
            scan_sparse_bounds(
                bounds,
                part.start,
                X.indptr,
                X.indices,
                X.data,
                scaled.indptr,
                scaled.indices,
                scaled.data,
                units,
                own,
                factor,
                floor,
                keys,
                rows,
            )

    def _pairs(self, Q: Any, limit: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
        scaled, units, dense, offset, factor, floor = self._prepare(Q)
        X = self.X
        pairs = []
        for part in _slices(self.n_rows, max(1, _PAIRS // len(units))):
            at, queries = np.nonzero(~(self._bounds(part, dense, offset) > limit * factor + floor))
            pairs.append((queries, at + part.start))
        queries, rows = (np.concatenate(column) for column in zip(*pairs, strict=True))
        keys = np.empty(len(rows))
        inner = (X.indptr, X.indices, X.data, scaled.indptr, scaled.indices, scaled.data)
        sparse_squares_of_pairs(*inner, units, queries, rows, keys)
        return queries, rows, keys


class PlainSearch(Search):
    """Every row measured, by a kernel: any Minkowski distance, and Hamming's. Memory: the rows again, by columns."""

    def __init__(self, X: AnyArray, power: float, order: AnyArray | None = None) -> None:
        self.X = X
        self.power = power
        self.n_rows = X.shape[0]
        self.has_range = power != HAMMING
        self.order = order  # of the columns' entries; None is 0…n−1
        self.columns = np.ascontiguousarray(X.T if order is None else X[order].T)
        self.size = typical_size(X)
        self.block_queries = int(np.clip(2**26 // X.size, 1, 64))  # short enough for Ctrl-C

    def units(self, Q: AnyArray) -> AnyArray:
        """Return the unit of each query's key."""
        return units_for(np.maximum(np.abs(Q).max(axis=1), self.size), self.power)

    def _scan(self, Q: AnyArray, own: AnyArray, keys: AnyArray, rows: AnyArray) -> None:
        units = self.units(Q)
        scan_rows(self.columns, Q * units[:, None], units, own, self.power, keys, rows)

    def _pairs(self, Q: AnyArray, limit: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
        units = self.units(Q)
        pairs = []
        keys = np.empty(self.n_rows)
        for i, q in enumerate(Q * units[:, None]):
            keys_of_run(q, self.columns, 0, self.n_rows, units[i], self.power, keys)
            near = np.flatnonzero(keys <= limit[i])
            pairs.append((np.full(len(near), i), near if self.order is None else self.order[near], keys[near]))
        queries, rows, found = (np.concatenate(column) for column in zip(*pairs, strict=True))
        return queries, rows, found


class FunctionSearch(Search):
    """Search by a function that gives the (m, n) distances of m queries: any metric; the keys are the distances."""

    has_range = False

    def __init__(self, n_rows: int, distances: Callable[[Any], AnyArray], block_queries: int) -> None:
        self.n_rows = n_rows
        self.distances = distances
        self.block_queries = block_queries

    def units(self, Q: Any) -> AnyArray:
        """Return ones."""
        return np.ones(Q.shape[0])

    def _scan(self, Q: Any, own: AnyArray, keys: AnyArray, rows: AnyArray) -> None:
        scan_keys(self.distances(Q), 0, own, keys, rows)

    def _pairs(self, Q: Any, limit: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
        distances = self.distances(Q)
        queries, rows = np.nonzero(distances <= limit[:, None])
        return queries, rows, distances[queries, rows]


class _Slices:
    """Slices of 0…n, each `height` long, as a source of blocks."""

    def __init__(self, n: int, height: int) -> None:
        self.n = n
        self.height = height

    def __len__(self) -> int:
        return -(-self.n // self.height)

    def __getitem__(self, number: int) -> slice:
        return slice(number * self.height, min(self.n, (number + 1) * self.height))


def over_queries(n: int, height: int, work: Callable[[slice], None], n_jobs: int | None) -> None:
    """Do some work for every block of queries, on threads."""
    map_reduce(_Slices(n, height), work, lambda first, second: None, n_jobs=n_jobs)


def _slices(n: int, height: int) -> list[slice]:
    return [slice(start, min(n, start + height)) for start in range(0, n, height)]
