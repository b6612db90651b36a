"""Independent check of the neighbour models: distances of some rows to all rows, by NumPy in extended precision.

Three things are asked. The rows, targets and weights inside the model are those of the data (by their checksums). For
rows spread over the data, the distances that the model finds are the smallest of all distances, recomputed from the
data; and each neighbour that it names is at the distance that it says. Nothing of the search is used but its answers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core import AnyArray, Recheck
from ..data.blocks import Blocks, Part, map_reduce, scan
from ..data.checking import read_table
from ..data.door import Table

_PROBES = 32  # rows whose neighbours are looked for again
_CHUNK = 2**18  # numbers of X at a time
_ROUNDING = 1e-9  # the tolerance itself: both values are rounding errors
_ORDERS = {"manhattan": 1, "cityblock": 1, "l1": 1, "euclidean": 2, "l2": 2, "sqeuclidean": 2, "chebyshev": np.inf}


@np.errstate(all="ignore")
def neighbors(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a NearestNeighbors, KNeighborsClassifier or KNeighborsRegressor."""
    table: Table = read_table(model, X, y, sample_weight)
    X = table.X if table.in_memory else _all_rows(table)
    if _checksum_of_model(model) != table.fingerprint or not _is_whole(model, X):
        return Recheck(np.inf, 0.0, table.fingerprint)
    n = X.shape[0]
    k = min(model.n_neighbors, n)
    if model.effective_metric_ == "precomputed" and sp.issparse(X):
        k = min(k, int(np.diff(X.indptr).min()))
        if k == 0:
            return Recheck(0.0, _ROUNDING, table.fingerprint)
    probes = np.unique(np.linspace(0, n - 1, _PROBES).astype(np.int64))
    found, rows = model.kneighbors(X[probes], n_neighbors=k)
    worst = 0.0
    for i, probe in enumerate(probes):
        of_data = _distances(model, X, X[[probe]])
        of_model = _distances(model, model.rows_, X[[probe]])
        if len(set(rows[i].tolist())) < k:
            return Recheck(np.inf, 0.0, table.fingerprint)
        floor = 1e-6 if model.effective_metric_ == "cosine" else np.finfo(float).tiny
        for true in (np.sort(of_data)[:k], of_model[rows[i]]):
            gap = abs(found[i] - true)
            worst = max(worst, float(np.max(np.where(gap > 0, gap / (true + floor), 0.0))))
    return Recheck(worst if np.isfinite(worst) else np.inf, _ROUNDING, table.fingerprint)


def _all_rows(table: Table) -> Any:
    """Return the rows of a table beyond memory; a neighbour model holds them all, too."""
    blocks = map_reduce(table.blocks, _copy_of_rows, lambda first, second: first + second)
    return sp.csr_array(sp.vstack(blocks)) if sp.issparse(blocks[0]) else np.concatenate(blocks)


def _copy_of_rows(block: Any) -> list[Any]:
    return [block.X.copy()]


def _is_whole(model: Any, X: Any) -> bool:
    """Tell whether the model has as many rows, targets and weights as the data; without targets, in their order."""
    n = X.shape[0]
    if model.n_samples_fit_ != n or model.rows_.shape != X.shape:
        return False
    if any(len(getattr(model, name)) != n for name in ("targets_", "row_weights_") if hasattr(model, name)):
        return False
    if hasattr(model, "targets_"):
        return True
    if sp.issparse(X) or sp.issparse(model.rows_):  # the numbers of neighbours are those of the rows
        return bool((sp.csr_array(model.rows_) != sp.csr_array(X)).nnz == 0)
    return bool(np.array_equal(model.rows_, X, equal_nan=True))


def _checksum_of_model(model: Any) -> str:
    """Return the fingerprint of the rows, targets and weights that the model holds."""
    part = Part(model.rows_, getattr(model, "targets_", None), getattr(model, "row_weights_", None))
    return f"{scan(Blocks([part]), None, getattr(model, 'classes_', None)).checksum:016x}"


def _distances(model: Any, X: Any, q: Any) -> AnyArray:
    """Return the distances from q to every row of X, by the definition."""
    name = model.effective_metric_
    parameters = model.effective_metric_params_
    if name == "precomputed":
        distances = np.full(X.shape[0], np.inf, dtype=np.longdouble)  # a graph has no edge there
        if not sp.issparse(q):
            return np.asarray(q, dtype=np.longdouble)[0]
        distances[q.indices] = q.data
        return distances
    step = max(1, _CHUNK // X.shape[1])
    parts = (X[start : start + step] for start in range(0, X.shape[0], step))
    return np.concatenate([_distances_of_some(name, parameters, _plain(part), _plain(q)[0]) for part in parts])


def _distances_of_some(name: Any, parameters: dict[str, Any], X: AnyArray, q: AnyArray) -> AnyArray:
    orders = {**_ORDERS, "minkowski": parameters.get("p")}
    order = orders.get(name) if isinstance(name, str) else None
    if order is not None:
        gap = abs(X - q)
        if np.isinf(order):
            return np.asarray(gap.max(axis=1))
        weight = parameters.get("w")
        total = (gap**order * (1.0 if weight is None else np.asarray(weight))).sum(axis=1)
        return np.asarray(total if name == "sqeuclidean" else total ** (np.longdouble(1) / order))
    if name == "nan_euclidean":
        gap = X - q
        share = X.shape[1] / (~np.isnan(gap)).sum(axis=1, dtype=np.longdouble)
        return np.asarray(np.where(np.isinf(share), np.inf, np.sqrt(np.nansum(gap**2, axis=1) * share)))
    if name == "hamming" and not parameters:
        return np.asarray((q != X).mean(axis=1))
    if name == "cosine":
        lengths = np.sqrt((X * X).sum(axis=1) * (q * q).sum())
        return np.asarray(1 - np.where(lengths > 0, X @ q / np.where(lengths > 0, lengths, 1), 0))
    from sklearn.metrics import pairwise_distances

    return np.asarray(pairwise_distances(X.astype(float), q[None].astype(float), metric=name, **parameters)[:, 0])


def _plain(X: Any) -> AnyArray:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.longdouble)
