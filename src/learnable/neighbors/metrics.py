"""Which search serves which metric, and the distances that its keys stand for.

Minkowski distances and Hamming's have kernels. The cosine distance of q and x is half the squared Euclidean distance of
q/‖q‖ and x/‖x‖. "nan_euclidean" is √(d/c) times the Euclidean distance over the c of d columns that are missing in
neither row; rows without such a column are infinitely far apart. Every other metric that scikit-learn knows, and any
function of two rows, goes through `sklearn.metrics.pairwise_distances`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core import AnyArray, DataError, ParameterError, interruptible
from ._kernels import CHEBYSHEV, HAMMING, NO_ROW, build_tree, present_distances, scan_keys, walk_tree
from .search import FunctionSearch, PlainSearch, ScreenedSearch, Search, SparseSearch

_POWERS = {"manhattan": 1.0, "cityblock": 1.0, "l1": 1.0, "euclidean": 2.0, "l2": 2.0, "sqeuclidean": 2.0}

_BLOCK_PAIRS = 2**22  # distances at a time: 32 MB


class Metric(NamedTuple):
    """A metric, resolved: scikit-learn's `effective_metric_` and `effective_metric_params_`."""

    name: Any  #: a name, or a function of two rows
    parameters: dict[str, Any]

    @property
    def power(self) -> float | None:
        """Which kernel measures it; None if none does."""
        if not isinstance(self.name, str) or self.parameters.get("w") is not None:
            return None
        if self.name == "minkowski":
            return float(self.parameters["p"])
        return {"chebyshev": CHEBYSHEV, "hamming": HAMMING}.get(self.name, _POWERS.get(self.name))


def resolve_metric(owner: str, metric: Any, p: float, parameters: Mapping[str, Any] | None) -> Metric:
    """Return the metric with its parameters; Minkowski's p = 1, 2 and ∞ get their own names."""
    from sklearn.neighbors import VALID_METRICS

    given = dict(parameters or {})
    if is_distance_metric(metric):
        return _of_object(metric)
    if callable(metric):
        return Metric(metric, given)
    name = {"p": "minkowski", "infinity": "chebyshev"}.get(metric, metric)
    known = sorted(VALID_METRICS["brute"])
    if name not in known:
        raise ParameterError(
            f"{owner}: metric must be one of {', '.join(known)}, or a function of two rows; got {metric!r}."
        )
    if name == "nan_euclidean" and given:
        raise ParameterError(f"{owner}: metric 'nan_euclidean' has no metric_params; got {given!r}. Pass None.")
    if name != "minkowski":
        return Metric(name, given)
    p = float(given.pop("p", p))
    if not p > 0:
        raise ParameterError(f"{owner}: p must be > 0; got {p:g}.")
    if given.get("w") is not None:
        return Metric("minkowski", {"p": p, "w": np.asarray(given["w"], dtype=float)})
    named = {1.0: "manhattan", 2.0: "euclidean", np.inf: "chebyshev"}.get(p)
    return Metric(named, {}) if named else Metric("minkowski", {"p": p, "w": None})


def is_distance_metric(metric: Any) -> bool:
    """Tell whether this is one of scikit-learn's `DistanceMetric` objects."""
    return any(parent.__name__.startswith("DistanceMetric") for parent in type(metric).__mro__)


def _of_object(metric: Any) -> Metric:
    """Return the metric that a DistanceMetric computes: by name where it has a kernel, else its `pairwise`."""
    name = type(metric).__name__.removesuffix("64").removesuffix("32")
    known = {"EuclideanDistance": "euclidean", "ManhattanDistance": "manhattan", "ChebyshevDistance": "chebyshev"}
    return Metric(known[name], {}) if name in known else Metric(partial(_pair_metric, metric), {})


def _pair_metric(metric: Any, a: AnyArray, b: AnyArray) -> float:
    """Return the distance of two rows by a DistanceMetric."""
    return float(metric.pairwise(np.atleast_2d(a), np.atleast_2d(b))[0, 0])


def check_semimetric(owner: str, algorithm: str) -> None:
    """Warn that Minkowski's formula with p < 1 breaks the triangle inequality; trees need it."""
    if algorithm in ("kd_tree", "ball_tree"):
        raise ParameterError(
            f'{owner}: algorithm="{algorithm}" does not support 0 < p < 1 for the Minkowski metric. To resolve this '
            'problem either set p >= 1 or algorithm="brute".'
        )
    warnings.warn(
        f"{owner}: Mind that for 0 < p < 1, Minkowski metrics are not distance metrics. Continuing the execution with "
        "`algorithm='brute'`.",
        UserWarning,
        stacklevel=4,
    )


def rows_of_index(X: Any) -> Any:
    """Return the rows of a fitted search or of scikit-learn's trees; anything else as it is."""
    if hasattr(X, "get_arrays") and type(X).__name__.startswith(("KDTree", "BallTree")):
        return np.asarray(X.get_arrays()[0])
    if hasattr(X, "kneighbors"):
        rows = getattr(X, "rows_", getattr(X, "_fit_X", None))
        return X if rows is None else rows
    return X


def graph_row(D: Any, row: int) -> AnyArray:
    """Return the distances of one row of a table or graph of distances; infinite where a graph has no edge."""
    if not sp.issparse(D):
        return np.asarray(D[row], dtype=np.float64)
    distances = np.full(D.shape[1], np.inf)
    edges = slice(D.indptr[row], D.indptr[row + 1])
    distances[D.indices[edges]] = D.data[edges]
    return distances


class MeasuredSearch(NamedTuple):
    """A search, what a query must become before it, and the distance that a key stands for."""

    search: Search
    rows: Any  #: the training rows that it was built on
    prepare: Callable[[Any], Any]
    measure: Callable[[AnyArray, AnyArray], AnyArray]  #: (keys, units) -> distances
    limit: Callable[[AnyArray, AnyArray], AnyArray]  #: (radius, units) -> keys, rounded up
    squared: bool = False  #: whether the metric is the square of the distance that the search knows

    def nearest(self, Q: Any, k: int, own: AnyArray | None, n_jobs: int | None) -> tuple[AnyArray, AnyArray]:
        """Return distances and rows of the k nearest rows of prepared queries."""
        found = self.search.nearest(Q, k, own, n_jobs)
        with np.errstate(over="ignore"):
            distances = self.measure(found.keys, self.search.units(Q)[:, None])
            for query, exact in found.apart.items():
                distances[query] = exact**2 if self.squared else exact
        return distances, found.rows

    def within(
        self, Q: Any, radius: AnyArray, own: AnyArray | None, n_jobs: int | None
    ) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Return distances and rows within the radius (m,) of each query, by row number, and how many there are."""
        units = self.search.units(Q)
        with np.errstate(over="ignore"):
            ball = self.search.within(Q, self.limit(radius, units), own, n_jobs)
            queries = np.repeat(np.arange(len(units)), ball.counts)
            distances = self.measure(ball.keys, units[queries])
            distances[ball.apart] = ball.distances**2 if self.squared else ball.distances
        kept = distances <= radius[queries]  # the limit on keys was rounded up
        return distances[kept], ball.rows[kept], np.bincount(queries[kept], minlength=len(units))


def build_search(owner: str, X: Any, metric: Metric, k: int, algorithm: str, leaf_size: int) -> MeasuredSearch:
    """Return the search over the rows X."""
    name = metric.name
    power = metric.power
    if algorithm == "kd_tree" and (power is None or power == HAMMING or name == "sqeuclidean"):
        raise ParameterError(
            f"{owner}: algorithm 'kd_tree' does not know the metric {name!r}; use algorithm='auto' or 'brute'."
        )
    if name == "precomputed":
        _check_distances(owner, X, X.shape[0])
        search: Search = GraphSearch(owner, X.shape[0], lambda Q: _check_distances(owner, Q, X.shape[0]))
        return MeasuredSearch(search, X, _as_it_is, _key_is_distance, _limit_is_radius)
    if sp.issparse(X) and isinstance(name, str) and power is None:
        from sklearn.neighbors import VALID_METRICS_SPARSE

        if name not in VALID_METRICS_SPARSE["brute"]:
            raise DataError(
                f"{owner}: Metric '{name}' not valid for sparse input. Use one of "
                f"{', '.join(sorted(VALID_METRICS_SPARSE['brute']))}, or a dense table."
            )
    if name == "cosine":
        direction = _Directions(X)
        unit_rows = direction(X, row=True)
        search = SparseSearch(unit_rows) if sp.issparse(X) else choose_search(unit_rows, 2.0, k, "brute", leaf_size)
        return MeasuredSearch(search, X, direction, lambda keys, units: keys / 2, lambda r, units: r * 2 * _UP * units)
    if sp.issparse(X) and power == 2.0:
        search = SparseSearch(X)
    elif power == HAMMING and not sp.issparse(X):
        search = PlainSearch(X, power)
    elif power is not None and not sp.issparse(X):
        search = choose_search(X, power, k, algorithm, leaf_size)
    else:
        height = int(np.clip(_BLOCK_PAIRS // X.shape[0], 1, 256))
        if name == "nan_euclidean":
            search = FunctionSearch(X.shape[0], _over_present(X), height)
            return MeasuredSearch(search, X, _dense, _key_is_distance, _limit_is_radius)
        search = FunctionSearch(X.shape[0], _pairwise(owner, X, metric), height)
        return MeasuredSearch(search, X, _as_it_is, _key_is_distance, _limit_is_radius)
    prepare = _like_csr if sp.issparse(X) else _dense
    return MeasuredSearch(search, X, prepare, *_key_functions(name, power, X.shape[1]), squared=name == "sqeuclidean")


_UP = 1.0 + 1e-9  # a limit on keys lets a little more through; the distance itself decides


def _key_functions(name: str, power: float, d: int) -> tuple[Any, Any]:
    if name == "sqeuclidean":
        return lambda keys, units: keys / units**2, lambda r, units: r * units**2 * _UP
    if power == HAMMING:
        return lambda keys, units: keys / d, lambda r, units: r * d * _UP * units
    if power == 2.0:
        return lambda keys, units: np.sqrt(keys) / units, lambda r, units: (r * units) ** 2 * _UP
    if power in (1.0, CHEBYSHEV):
        return lambda keys, units: keys / units, lambda r, units: r * units * _UP
    return lambda keys, units: keys ** (1 / power) / units, lambda r, units: (r * units) ** power * _UP**power


def _pairwise(owner: str, X: Any, metric: Metric) -> Callable[[Any], AnyArray]:
    from sklearn.metrics import pairwise_distances

    def distances(Q: Any) -> AnyArray:
        try:
            found = pairwise_distances(Q, X, metric=metric.name, **metric.parameters)
        except (TypeError, ValueError) as error:
            raise DataError(f"{owner}: metric {metric.name!r} cannot measure these rows: {error}") from error
        found = np.ascontiguousarray(found, dtype=np.float64)
        if np.isnan(found).any():
            i, j = np.argwhere(np.isnan(found))[0]
            raise DataError(
                f"{owner}: metric {metric.name!r} gives NaN, first between query {i} and training row {j}; "
                "use another metric, or rows that it can measure."
            )
        return found

    return distances


def _over_present(X: AnyArray) -> Callable[[Any], AnyArray]:
    wide = np.ascontiguousarray(X, dtype=np.float64)

    def distances(Q: AnyArray) -> AnyArray:
        found = np.empty((Q.shape[0], wide.shape[0]))
        present_distances(np.ascontiguousarray(Q, dtype=np.float64), wide, found)
        return found

    return distances


class _Directions:
    """Rows scaled to length one; rows of zeros get a column of their own, so that they are at distance one from all."""

    def __init__(self, X: Any) -> None:
        self.sparse = sp.issparse(X)

    def __call__(self, X: Any, row: bool = False) -> Any:
        """Return the rows with two more columns: the first marks training rows of zeros, the other queries of zeros."""
        if self.sparse:
            X = _like_csr(X)
            largest = np.asarray(abs(X).max(axis=1).todense()).ravel().astype(np.float64)
            X = sp.csr_array(X.astype(np.float64).multiply(_inverse(largest)[:, None]))
            length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
            X = sp.csr_array(X.multiply(_inverse(length)[:, None]))
        else:
            X = _dense(X)
            X = X * _inverse(np.abs(X).max(axis=1))[:, None]  # lengths beyond 1e154 would overflow
            length = np.sqrt(np.einsum("ij,ij->i", X, X))
            X = X * _inverse(length)[:, None]
        marks = np.zeros((len(length), 2))
        marks[length == 0, 0 if row else 1] = 1.0
        if self.sparse:
            extended = sp.csr_array(sp.hstack([X, sp.csr_array(marks)], format="csr"))
            extended.sort_indices()
            return extended
        return np.hstack([X, marks])


def _inverse(length: AnyArray) -> AnyArray:
    with np.errstate(divide="ignore", over="ignore"):
        inverse = 1.0 / np.asarray(length, dtype=np.float64)
    return np.where((length > 0) & np.isfinite(inverse), inverse, np.where(length > 0, 2.0**1023, 0.0))


def _check_distances(owner: str, D: Any, n_rows: int) -> Any:
    if D.shape[1] != n_rows:
        raise DataError(
            f"{owner}: Precomputed matrix must have a column for each of {n_rows} training rows; got shape {D.shape}."
        )
    values = D.data if sp.issparse(D) else D
    if (values < 0).any():
        raise DataError(
            f"{owner}: Negative values in data passed to precomputed distance matrix. The first is "
            f"{values[values < 0][0]:g}; distances are >= 0."
        )
    return sp.csr_array(D, dtype=np.float64) if sp.issparse(D) else np.ascontiguousarray(D, dtype=np.float64)


def _like_csr(Q: Any) -> Any:
    return Q if sp.issparse(Q) else sp.csr_array(Q)


def _dense(Q: Any) -> AnyArray:
    return Q.toarray() if sp.issparse(Q) else np.ascontiguousarray(Q)


def _as_it_is(Q: Any) -> Any:
    return Q


def _key_is_distance(keys: AnyArray, units: AnyArray) -> AnyArray:
    return keys


def _limit_is_radius(radius: AnyArray, units: AnyArray) -> AnyArray:
    return radius * units


# Search in distances that are given: a table of all of them, or a sparse graph of some.
#
# In a graph an entry is an edge, also where its distance is zero; rows without an edge are no neighbours.


class GraphSearch(Search):
    """Search by given distances of the queries to the n rows; the keys are the distances."""

    has_range = False

    def __init__(self, owner: str, n_rows: int, checked: Callable[[Any], Any]) -> None:
        self.owner = owner
        self.n_rows = n_rows
        self.checked = checked

    def units(self, Q: Any) -> AnyArray:
        """Return ones."""
        return np.ones(Q.shape[0])

    def _scan(self, Q: Any, own: AnyArray, keys: AnyArray, rows: AnyArray) -> None:
        D = self.checked(Q)
        if not sp.issparse(D):
            scan_keys(D, 0, own, keys, rows)
            return
        k = keys.shape[1]
        needed = k + int((own >= 0).any())
        fewest = int(np.diff(D.indptr).min())
        if fewest < needed:
            raise DataError(
                f"{self.owner}: {needed} neighbors per samples are required, but some samples have only {fewest} "
                "neighbors in precomputed graph matrix. Decrease number of neighbors used or recompute the graph with "
                "more neighbors."
            )
        for i in range(D.shape[0]):
            edges = slice(D.indptr[i], D.indptr[i + 1])
            near = D.indices[edges]
            distances = D.data[edges]
            kept = near != own[i]
            near = near[kept]
            distances = distances[kept]
            best = np.lexsort((near, distances))[:k][::-1]  # a heap: the worst first
            keys[i] = distances[best]
            rows[i] = near[best]

    def _pairs(self, Q: Any, limit: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
        D = self.checked(Q)
        if sp.issparse(D):
            queries = np.repeat(np.arange(D.shape[0]), np.diff(D.indptr))
            kept = D.data <= limit[queries]
            return queries[kept], D.indices[kept].astype(np.int64), D.data[kept]
        queries, rows = np.nonzero(limit[:, None] >= D)
        return queries, rows, D[queries, rows]


# Where a tree wins: the k-d tree of `_kernels.py`, and the decision between it and the screening.
#
# A tree looks at few rows in few dimensions and at all of them in many; which it is depends on the data (rows on a
# curve
# have one dimension, whatever their columns), so it is counted: a tree over a sample answers some rows of the sample,
# and
# then one over all rows does. Whatever is chosen, the neighbours are the same.

_SAMPLE = 4096  # rows of the small tree by which the cost of the large one is judged
_PROBES = 32  # rows that walk it

_MOST_COLUMNS = 64  # beyond which no tree is tried

_FEWEST_ROWS = 512  # below which no tree is tried


class TreeSearch(PlainSearch):
    """Search by a k-d tree, for any Minkowski distance. Memory: the rows once more, in the tree's order."""

    def __init__(self, X: AnyArray, power: float, leaf_size: int) -> None:
        n, d = X.shape
        levels = 0
        while n >> (levels + 1) >= leaf_size and n >> (levels + 1) > 0:
            levels += 1
        n_nodes = 2 ** (levels + 1) - 1
        order = np.empty(n, np.int64)
        self.starts = np.zeros(n_nodes, np.int64)
        self.ends = np.zeros(n_nodes, np.int64)
        self.low = np.empty((n_nodes, d))
        self.high = np.empty((n_nodes, d))
        interruptible(build_tree, X, order, self.starts, self.ends, self.low, self.high)
        super().__init__(X, power, order)
        self.leaf_order = order
        self.block_queries = 256
        #: The key of a box is rounded d times, and may exceed a row's by as much.
        self.margin = 1.0 - 8 * (d + 8) * 2.0**-53 * max(1.0, power)

    def _scan(self, Q: AnyArray, own: AnyArray, keys: AnyArray, rows: AnyArray) -> None:
        self.walk(Q, own, keys, rows)

    def walk(self, Q: AnyArray, own: AnyArray, keys: AnyArray, rows: AnyArray) -> int:
        """Fill the heaps of the queries; return how many rows were looked at."""
        units = self.units(Q)
        nodes = (self.starts, self.ends, self.low, self.high)
        scaled = Q * units[:, None]
        return int(
            walk_tree(self.columns, self.leaf_order, *nodes, scaled, units, own, self.power, self.margin, keys, rows)
        )


def choose_search(X: AnyArray, power: float, k: int, algorithm: str, leaf_size: int) -> Search:
    """Return the search over dense rows by a Minkowski distance that `algorithm` names, or the quickest for "auto"."""
    n, d = X.shape
    if algorithm in ("kd_tree", "ball_tree"):
        return TreeSearch(X, power, leaf_size)
    screened = power == 2.0 and d <= 2**20
    if 0.0 < power < 1.0:  # no triangle inequality: every row is measured
        return PlainSearch(X, power)
    if algorithm == "auto" and d <= _MOST_COLUMNS and n >= _FEWEST_ROWS:
        if n > 2 * _SAMPLE:
            sample = np.random.default_rng(0).choice(n, _SAMPLE, replace=False)
            # Of a sample a tree looks at a larger share than of all rows; only a hopeless one is dismissed here.
            share = _share_of_rows(TreeSearch(X[sample], power, leaf_size), k)
            if _tree_cost(share * _SAMPLE, d) > 8 * _scan_cost(_SAMPLE, d, screened):
                return ScreenedSearch(X) if screened else PlainSearch(X, power)
        tree = TreeSearch(X, power, leaf_size)
        if _tree_cost(_share_of_rows(tree, k) * n, d) < _scan_cost(n, d, screened):
            return tree
    return ScreenedSearch(X) if screened else PlainSearch(X, power)


def _share_of_rows(tree: TreeSearch, k: int) -> float:
    """Return the share of the rows that the walk looks at, for some of its own rows."""
    probes = np.linspace(0, tree.n_rows - 1, _PROBES).astype(np.int64)
    size = (_PROBES, min(k, tree.n_rows))
    seen = tree.walk(tree.X[probes], np.full(_PROBES, -1), np.full(size, np.inf), np.full(size, NO_ROW))
    return seen / (_PROBES * tree.n_rows)


def _tree_cost(rows_seen: float, d: int) -> float:
    """Return nanoseconds a query, as measured: rows in float64, a leaf at a time, and boxes."""
    return 1000.0 + rows_seen * (5.0 + 0.5 * d)


def _scan_cost(n: int, d: int, screened: bool) -> float:
    """Return nanoseconds a query, as measured: bounds by BLAS in float32, or all rows in float64."""
    return n * (1.0 + 0.025 * d) if screened else n * (0.5 + 0.3 * d)
