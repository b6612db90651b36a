"""What all neighbour models share: the training rows, the search over them, and what a fit proves.

A fit stores the rows and builds the search (`metrics.build_search`). Its certificate compares, for a few rows, the
distances found with those to all rows, sorted; a stranger with the data can do the same for any row (`verify.py`).
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.utils.validation import check_is_fitted

from ..core import (
    N_JOBS,
    AnyArray,
    Certificate,
    DataError,
    Estimator,
    Matches,
    Nothing,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    is_array,
    law,
    laws,
    param,
    tags,
)
from ..data import Block, Table, door, read_features
from ._kernels import HAMMING
from .metrics import (
    MeasuredSearch,
    Metric,
    build_search,
    check_semimetric,
    graph_row,
    is_distance_metric,
    resolve_metric,
    rows_of_index,
)
from .ranges import scaled_norms

#: Distances found and distances recomputed agree to this share.
TOLERANCE = 1e-9
_CHECKED_ROWS = 4

N_NEIGHBORS = Number(low=1, integer=True)


def neighbors_door(**options: Any) -> Callable[..., Table]:
    """Return the door of a neighbour model: rows may hold NaN where the metric is made for it."""
    doors = {missing: door(missing=missing, **options) for missing in (False, True)}

    def read(estimator: Any, *data: Any, **settings: Any) -> Table:
        return doors[estimator._takes_missing](estimator, *data, **settings)

    return read


class NeighborsModel(Estimator):
    """A model that remembers its rows and finds the nearest of them."""

    n_neighbors: int = param(N_NEIGHBORS, "k, the number of neighbours.", default=5, kw_only=False)
    algorithm: str = param(
        Options("auto", "ball_tree", "kd_tree", "brute"),
        'How to search; the neighbours are the same. Both trees are a k-d tree; "auto" takes it where it is quicker.',
        default="auto",
    )
    leaf_size: int = param(Number(low=1, integer=True), "Rows of a leaf of the tree.", default=30)
    p: float = param(
        Number(low=0.0, low_open=True, finite=False) | Nothing(), "Power of the Minkowski distance.", default=2
    )
    metric: Any = param(
        Matches(
            lambda v: isinstance(v, str) or callable(v) or is_distance_metric(v),
            "the name of a metric, a DistanceMetric, or a function of two rows",
        ),
        'Any metric of scikit-learn, a function of two rows, or "precomputed". With "nan_euclidean" X may hold NaN: '
        "the distance is that of the columns missing in neither row, as a share of all; infinite if there are none.",
        default="minkowski",
    )
    metric_params: Any = param(
        Matches(lambda v: v is None or isinstance(v, Mapping), "a dict of the metric's parameters, or None"),
        "Further parameters of the metric.",
        default=None,
    )
    n_jobs: int | None = param(
        N_JOBS, "Threads; None uses all that BLAS may use. The result does not depend on it.", default=None
    )
    effective_metric_: Any = fitted("str or callable", "The metric; Minkowski's with p = 1, 2, ∞ by its own name.")
    effective_metric_params_: dict[str, Any] = fitted("dict", "Its parameters.")
    n_samples_fit_: int = fitted("int", "Number of training rows.")
    rows_: Any = fitted("(n_samples_fit_, n_features)", "The training rows, an array or a CSR array.", finite=False)
    certificate_: Certificate = fitted(
        "Certificate", "Largest relative error of the distances of a few rows' neighbours."
    )

    #: Built from `rows_`; not stored in files, and built again when it is first needed after loading.
    _index: MeasuredSearch | None = None
    _tags = tags(
        sparse=True,
        pairwise=lambda model: model.metric == "precomputed",
        allow_nan=lambda model: model._takes_missing,
        positive_only=lambda model: model.metric == "precomputed",
    )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Store the rows and their targets, and prepare the search.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            Rows; with metric="precomputed" distances between all of them, or a sparse graph of some; or the rows of a
            fitted NearestNeighbors, KDTree or BallTree.
        y : array of shape (n_samples,) or (n_samples, n_outputs), or str
            Targets.
        sample_weight : array of shape (n_samples,) or str, optional
            A row of weight w counts as w rows.
        """
        return super().fit(rows_of_index(X), y, sample_weight)

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """Return the nearest training rows of each row of X, the nearest first; ties by row number.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_queries, n_features), or None
            Queries (with metric="precomputed", distances to the training rows). None: the training rows, each of which
            is then not its own neighbour.
        n_neighbors : int, optional
            How many; by default the model's `n_neighbors`.
        return_distance : bool
            Whether distances are returned too.

        Returns
        -------
        distances : array of shape (n_queries, n_neighbors)
            Only if `return_distance`.
        rows : array of shape (n_queries, n_neighbors)
            Numbers of training rows.
        """
        check_is_fitted(self)
        k = self._check_count(self.n_neighbors if n_neighbors is None else n_neighbors, X is None)
        distances, rows = self._find(X, k)
        return (distances, rows) if return_distance else rows

    def kneighbors_graph(self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity") -> Any:
        """Return the graph of neighbours as a sparse matrix of shape (n_queries, n_samples_fit).

        Parameters
        ----------
        X, n_neighbors
            As in `kneighbors`.
        mode : {"connectivity", "distance"}
            Whether an edge is 1.0 or the distance.
        """
        self._check_mode(mode)
        distances, rows = self.kneighbors(X, n_neighbors)
        values = np.ones(rows.size) if mode == "connectivity" else distances.ravel()
        return self._graph(values, rows.ravel(), np.full(len(rows), rows.shape[1]))

    @property
    def _takes_missing(self) -> bool:
        """Whether rows may hold NaN."""
        return isinstance(self.metric, str) and self.metric == "nan_euclidean"

    def _queries(self, X: Any) -> Any:
        return read_features(self, X, missing=self._takes_missing)

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        state.pop("_index", None)
        return state

    def _fit(self, table: Table, run: Run) -> Certificate:
        X, y, weight = _in_memory(table)
        owner = type(self).__name__
        metric = resolve_metric(owner, self.metric, 2 if self.p is None else self.p, self.metric_params)
        if metric.name == "precomputed" and X.shape[0] != X.shape[1]:
            raise DataError(f"{owner}: Precomputed matrix must be a square matrix; got shape {X.shape}.")
        self.rows_ = X.copy() if sp.issparse(X) else np.array(X, order="C")  # the caller may change X later
        self.n_samples_fit_ = X.shape[0]
        self.effective_metric_, self.effective_metric_params_ = metric
        if self.metric_params is not None and "p" in self.metric_params:
            warnings.warn(
                f"{owner}: Parameter p is found in metric_params. The corresponding parameter from __init__ is "
                "ignored.",
                SyntaxWarning,
                stacklevel=3,
            )
        if metric.name == "minkowski" and metric.parameters["p"] < 1:
            check_semimetric(owner, self.algorithm)
        if y is not None:
            self.targets_ = np.array(y)
        if weight is not None:
            self.row_weights_ = np.array(weight)
        self._index = self._build()
        return Certificate("closed-form", self._largest_error(run), TOLERANCE)

    def _build(self) -> MeasuredSearch:
        metric = Metric(self.effective_metric_, self.effective_metric_params_)
        k = min(self.n_neighbors, self.n_samples_fit_)
        return build_search(type(self).__name__, self.rows_, metric, k, self.algorithm, self.leaf_size)

    def _searching(self) -> MeasuredSearch:
        """Return the search; after loading, and after `rows_` were changed, it is built again."""
        if self._index is None or self._index.rows is not self.rows_:
            self._index = self._build()
        return self._index

    def _find(self, X: Any, k: int) -> tuple[AnyArray, AnyArray]:
        """Return distances and rows of the k nearest."""
        index = self._searching()
        Q, own = (self.rows_, np.arange(self.n_samples_fit_)) if X is None else (self._queries(X), None)
        Q = index.prepare(Q)
        return index.nearest(Q, k, own, self.n_jobs)

    def _check_count(self, k: Any, excludes_itself: bool = False) -> int:
        owner = type(self).__name__
        if not N_NEIGHBORS.allows(k):
            if isinstance(k, (int, np.integer)):
                raise ParameterError(f"{owner}: Expected n_neighbors > 0. Got {k}.")
            raise TypeError(f"{owner}: n_neighbors does not take {type(k)} value, enter integer value")
        available = self.n_samples_fit_ - int(excludes_itself)
        if k > available:
            relation = "<" if excludes_itself else "<="
            raise DataError(
                f"{owner}: Expected n_neighbors {relation} n_samples_fit, but n_neighbors = {k}, "
                f"n_samples_fit = {self.n_samples_fit_}. Ask for fewer neighbours, or fit more rows."
            )
        return int(k)

    def _check_mode(self, mode: Any) -> None:
        if mode not in ("connectivity", "distance"):
            raise ParameterError(
                f'{type(self).__name__}: Unsupported mode, must be one of "connectivity", or "distance" but got '
                f'"{mode}" instead.'
            )

    def _graph(self, values: AnyArray, rows: AnyArray, counts: AnyArray) -> Any:
        ends = np.concatenate([[0], np.cumsum(counts)])
        graph = sp.csr_array((values, rows, ends), shape=(len(counts), self.n_samples_fit_))
        return graph if get_config().get("sparse_interface", "spmatrix") == "sparray" else sp.csr_matrix(graph)

    def _largest_error(self, run: Run) -> float:
        """Return how far the distances found for a few rows are from the smallest of all distances, relatively."""
        k = min(self.n_neighbors, self.n_samples_fit_)
        if self.effective_metric_ == "precomputed" and sp.issparse(self.rows_):  # a graph may have fewer edges
            k = min(k, int(np.diff(self.rows_.indptr).min()))
            if k == 0:
                return 0.0
        probes = np.unique(np.linspace(0, self.n_samples_fit_ - 1, _CHECKED_ROWS).astype(np.int64))
        index = self._searching()
        worst = 0.0
        Q = index.prepare(self.rows_[probes])
        found, rows = index.nearest(Q, k, None, run.n_jobs)
        for i, probe in enumerate(probes):
            true = self._all_distances(probe)
            nearest = np.partition(true, k - 1)[:k]
            nearest.sort()
            for distances in (nearest, true[rows[i]]):
                apart = found[i] != distances  # both may be infinite
                gap = np.abs(np.subtract(found[i], distances, out=np.zeros(k), where=apart))
                worst = max(worst, float(np.max(gap / np.where(gap > 0, distances + self._smallest_size(), 1.0))))
        return worst

    def _smallest_size(self) -> float:
        """Return a distance below which only its difference from zero counts: cosines have absolute errors."""
        return 1e-6 if self.effective_metric_ == "cosine" else np.finfo(float).tiny

    def _all_distances(self, probe: int) -> AnyArray:
        """Return the distances of one training row to all, by NumPy in float64."""
        metric = Metric(self.effective_metric_, self.effective_metric_params_)
        X = self.rows_
        if metric.name == "precomputed":
            return graph_row(X, probe)
        if metric.name == "cosine":
            directions = (_directions(_as_dense(X[start : start + 4096])) for start in range(0, X.shape[0], 4096))
            q = _directions(_as_dense(X[[probe]]))[0]
            return np.concatenate([1.0 - rows @ q for rows in directions])
        if metric.name == "nan_euclidean":
            return _distances_over_present(X.astype(np.float64), X[probe].astype(np.float64))
        if metric.power is None or metric.power == HAMMING:
            from sklearn.metrics import pairwise_distances

            wide = X[[probe]].astype(np.float64), X.astype(np.float64)
            return np.asarray(pairwise_distances(*wide, metric=metric.name, **metric.parameters)[0])
        q = _as_dense(X[[probe]])
        chunks = range(0, X.shape[0], 4096)
        with np.errstate(over="ignore"):
            gaps = (_as_dense(X[start : start + 4096]) - q for start in chunks)
            found = np.concatenate([scaled_norms(gap, metric.power) for gap in gaps])
            return found**2 if metric.name == "sqeuclidean" else found

    _laws = laws(
        law(
            "rows_ is not a table of numbers",
            lambda model: isinstance(model.rows_, np.ndarray) or model.rows_.format == "csr",
        ),
        law(
            "rows_ must be a float array of shape (n_samples_fit_, n_features_in_)",
            lambda model: (
                model.rows_.dtype in (np.float64, np.float32)
                and model.rows_.shape == (model.n_samples_fit_, model.n_features_in_)
                and 0 not in model.rows_.shape
            ),
        ),
        law(
            "rows_ must hold finite numbers",
            lambda model: _are_finite(
                model.rows_.data if sp.issparse(model.rows_) else model.rows_, model._takes_missing
            ),
        ),
        law(
            "the columns of a sparse row of rows_ must ascend",
            lambda model: not sp.issparse(model.rows_) or _is_canonical(model.rows_),
        ),
        law(
            "row_weights_ must be positive float64 numbers, one per row",
            lambda model: (
                (weight := getattr(model, "row_weights_", None)) is None
                or (is_array(weight, (model.n_samples_fit_,), finite=True) and (weight > 0).all())
            ),
        ),
        law(
            "effective_metric_ and effective_metric_params_ are not the metric that the parameters name",
            lambda model: _is_metric(
                resolve_metric("load", model.metric, 2 if model.p is None else model.p, model.metric_params), model
            ),
        ),
        law(
            "precomputed distances must be a square table",
            lambda model: model.effective_metric_ != "precomputed" or model.rows_.shape[0] == model.rows_.shape[1],
        ),
    )


def _in_memory(table: Table) -> tuple[Any, Any, Any]:
    """Return X, y and the weights as arrays; a table beyond memory is read whole, since every row may be asked for."""
    if table.in_memory:
        return table.X, table.y, table.weight
    blocks = table.blocks.map_reduce(_keep_block, operator.add)
    X, y, weight = zip(*blocks, strict=True)
    stack = sp.vstack if sp.issparse(X[0]) else np.concatenate
    return (
        sp.csr_array(stack(X)) if sp.issparse(X[0]) else stack(X),
        None if y[0] is None else np.concatenate(y),
        None if weight[0] is None else np.concatenate(weight),
    )


def _keep_block(block: Block) -> list[tuple[Any, Any, Any]]:
    return [(_copied(block.X), _copied(block.y), _copied(block.weight))]


def _copied(values: Any) -> Any:
    return None if values is None else values.copy()


def _distances_over_present(X: AnyArray, q: AnyArray) -> AnyArray:
    """Return the distances of rows that may hold NaN to one: over the columns that are missing in neither."""
    gaps = X - q
    present = ~np.isnan(gaps)
    count = present.sum(axis=1)
    share = np.sqrt(X.shape[1] / np.maximum(count, 1))
    return np.where(count > 0, scaled_norms(np.where(present, gaps, 0.0), 2.0) * share, np.inf)


def _as_dense(X: Any) -> AnyArray:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def _directions(X: AnyArray) -> AnyArray:
    """Return the rows, each divided by its length; lengths whose squares overflow are no exception."""
    for norm in (np.inf, 2):
        size = np.linalg.norm(X, norm, axis=1, keepdims=True)
        X = X / np.where(size > 0, size, 1.0)
    return X


def _are_finite(numbers: AnyArray, missing: bool) -> bool:
    """Tell whether all numbers are finite, or NaN where a model takes missing values."""
    return bool((np.isfinite(numbers) | (np.isnan(numbers) if missing else False)).all())


def _is_metric(expected: Metric, model: Any) -> bool:
    """Tell whether a model has this metric, with its parameters."""
    known = model.effective_metric_params_
    same_names = model.effective_metric_ == expected.name and known.keys() == expected.parameters.keys()
    return same_names and all(np.array_equal(known[key], value) for key, value in expected.parameters.items())


def _is_canonical(X: Any) -> bool:
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return bool((np.diff(X.indices.astype(np.int64))[np.diff(rows) == 0] > 0).all())
