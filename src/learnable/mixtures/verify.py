"""Independent checks of clusters and mixtures: one more step, by the definition, in plain NumPy and extended precision.

Nothing here is shared with the fits but the reading of the table and its checksum.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ..core.checking import Recheck
from ..data.blocks import map_reduce
from ..data.checking import read_table

Array = NDArray[Any]

_CHUNK = 2**18
_WRONG = np.inf


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def kmeans(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a KMeans: the relative fall of the inertia in one more iteration."""
    table = read_table(model, X, None, sample_weight)
    rows = list(_chunks(table))
    centres = np.asarray(model.cluster_centers_, dtype=np.longdouble)
    if centres.shape != (model.n_clusters, model.n_features_in_):
        return Recheck(_WRONG, 0.0, table.fingerprint)
    if model.metric == "mahalanobis":
        whitening = np.asarray(model.whitening_, dtype=np.longdouble)
        centres = centres @ whitening
        if not _whitens(table, whitening):
            return Recheck(_WRONG, 0.0, table.fingerprint)
        rows = [(Z @ whitening, w) for Z, w in _chunks(table)]
    if model.metric == "cosine":
        rows = [(Z / np.sqrt((Z * Z).sum(axis=1, keepdims=True)), w) for Z, w in rows]
    scatter = _moments(rows)[1]
    inertia, labels, squares, counts, sums = _assign(rows, centres)
    # The change of coordinates rounds; distances of rows as they are do not.
    changed = 0.0 if model.metric == "euclidean" else 1e-12 * scatter / sum(w.sum() for _, w in rows)
    if not _labels_agree(model, table, labels, squares, rows, centres, changed):
        return Recheck(_WRONG, 0.0, table.fingerprint)
    rounding = _rounding(rows, labels, centres) + (0.0 if model.metric == "euclidean" else 1e-14 * scatter)
    floor = max(inertia, rounding)
    if not _is_close(inertia, model.inertia_, 1e-9 * floor):
        return Recheck(_WRONG, 0.0, table.fingerprint)
    stepped = np.where(counts[:, None] > 0, sums / np.where(counts > 0, counts, 1)[:, None], centres)
    if model.metric == "cosine":
        lengths = np.sqrt((stepped * stepped).sum(axis=1, keepdims=True))
        stepped = np.where(lengths > 1e-12, stepped / lengths, centres)
    fall = inertia - _assign(rows, stepped)[0]
    blur = 1e-12 * min(float(scatter / floor), 1e5) if floor > 0 else 0.0
    return Recheck(float(max(fall, 0.0) / floor) if floor > 0 else 0.0, blur, table.fingerprint)


@np.errstate(all="ignore")
def mini_batch_kmeans(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a MiniBatchKMeans: the relative fall of J when centres move to their means."""
    table = read_table(model, X, None, sample_weight)
    rows = list(_chunks(table))
    centres = np.asarray(model.cluster_centers_, dtype=np.longdouble)
    if centres.shape != (model.n_clusters, model.n_features_in_):
        return Recheck(_WRONG, 0.0, table.fingerprint)
    inertia, labels, squares, counts, sums = _assign(rows, centres)
    floor = max(inertia, _rounding(rows, labels, centres), np.finfo(np.longdouble).tiny)
    agree = _labels_agree(model, table, labels, squares, rows, centres, 0.0)
    if not agree or not _is_close(inertia, model.inertia_, 1e-9 * floor):
        return Recheck(_WRONG, 0.0, table.fingerprint)
    means = np.where(counts[:, None] > 0, sums / np.where(counts > 0, counts, 1)[:, None], centres)
    fall = counts @ ((centres - means) ** 2).sum(axis=1)
    return Recheck(float(fall / floor), 1e-9, table.fingerprint)


def _is_close(inertia: Any, recorded: float, tolerance: Any) -> bool:
    """Tell whether the recorded number is the inertia, which float64 may hold only as zero or infinity."""
    there = abs(inertia - np.longdouble(recorded)) <= tolerance + np.finfo(float).tiny
    return bool(there or (np.isinf(recorded) and np.isinf(float(inertia))))


def _rounding(rows: list[Any], labels: list[Array], centres: Array) -> Any:
    """Return the inertia that centres rounded to float64 may leave: (8·2⁻⁵³)² Σ w x², over entries off their centre."""
    total = np.longdouble(0)
    for (Z, w), k in zip(rows, labels, strict=True):
        total += (w @ np.where(centres[k] == Z, 0.0, Z * Z)).sum()
    return (8 * np.longdouble(2.0) ** -53) ** 2 * total


def _moments(rows: list[Any]) -> tuple[Array, Any]:
    """Return the mean of the rows and the sum of squared distances to it."""
    mean = sum(w @ Z for Z, w in rows) / sum(w.sum() for _, w in rows)
    return mean, sum(w @ ((Z - mean) ** 2).sum(axis=1) for Z, w in rows)


@np.errstate(all="ignore")
def kmedoids(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a KMedoids: the relative fall of J by the best swap of a medoid for a row."""
    table = read_table(model, X, None, sample_weight)
    rows, weight = np.asarray(table.X, dtype=float), np.ones(table.n_rows) if table.weight is None else table.weight
    kept = np.ones(table.n_rows, bool) if table.kept is None else table.kept
    medoids = (np.cumsum(kept) - 1)[np.asarray(model.medoid_indices_)]
    if model.metric == "precomputed":
        D = rows[:, kept]
    else:
        alike = {"manhattan": "cityblock", "l1": "cityblock", "l2": "euclidean"}
        D = cdist(rows, rows, alike.get(model.metric, model.metric) if isinstance(model.metric, str) else model.metric)
        if not np.array_equal(rows[medoids], model.cluster_centers_):
            return Recheck(_WRONG, 0.0, table.fingerprint)
    own = D[np.arange(len(D)), medoids[np.asarray(model.labels_)[kept]]]
    inertia = float(weight @ D[:, medoids].min(axis=1))
    size = max(inertia, 1e-300)
    if not (own <= D[:, medoids].min(axis=1)).all() or not abs(inertia - model.inertia_) <= 1e-9 * size:
        return Recheck(_WRONG, 0.0, table.fingerprint)
    best = inertia
    for k in range(len(medoids)):
        others = np.delete(D[:, medoids], k, axis=1).min(axis=1, initial=np.inf)
        for start in range(0, len(D), 512):
            swapped = weight @ np.minimum(D[:, start : start + 512], others[:, None])
            best = min(best, float(swapped.min()))
    return Recheck((inertia - best) / size, 1e-12, table.fingerprint)


def _chunks(table: Any) -> Iterator[tuple[Array, Array]]:
    """Yield some rows and their weights at a time, in extended precision."""
    for X, weight in map_reduce(table.blocks, _rows_of, _chain):
        step = max(1, _CHUNK // max(1, X.shape[1]))
        for start in range(0, X.shape[0], step):
            some = X[start : start + step]
            dense = some.toarray() if sp.issparse(some) else some
            yield dense.astype(np.longdouble), weight[start : start + step].astype(np.longdouble)


def _rows_of(block: Any) -> list[tuple[Any, Array]]:
    return [(block.X.copy(), np.ones(block.X.shape[0]) if block.weight is None else block.weight.copy())]


def _chain(a: list[Any], b: list[Any]) -> list[Any]:
    return a + b


def _assign(rows: list[Any], centres: Array) -> tuple[Any, list[Array], list[Array], Array, Array]:
    inertia, labels, nearest = np.longdouble(0), [], []
    counts, sums = np.zeros(len(centres), np.longdouble), np.zeros(centres.shape, np.longdouble)
    for Z, w in rows:
        squares = np.stack([((Z - c) ** 2).sum(axis=1) for c in centres], axis=1)
        k = squares.argmin(axis=1)
        labels.append(k)
        nearest.append(squares.min(axis=1))
        inertia += w @ nearest[-1]
        for number in range(len(centres)):
            counts[number] += w[k == number].sum()
            sums[number] += w[k == number] @ Z[k == number]
    return inertia, labels, nearest, counts, sums


def _labels_agree(
    model: Any, table: Any, labels: list[Array], nearest: list[Array], rows: list[Any], centres: Array, blur: Any
) -> bool:
    """Tell whether the model's labels name nearest centres, up to ties and a blur of the squares."""
    recorded = np.asarray(model.labels_)
    recorded = recorded if table.kept is None else recorded[table.kept]
    found, best = np.concatenate(labels), np.concatenate(nearest)
    if recorded.shape != found.shape or recorded.min() < 0 or recorded.max() >= len(centres):
        return False
    own = np.concatenate([((Z - centres[k]) ** 2).sum(axis=1) for (Z, _), k in _with_labels(rows, recorded)])
    return bool((own <= best * (1 + 1e-9) + blur).all())


def _with_labels(rows: list[Any], labels: Array) -> Iterator[tuple[Any, Array]]:
    done = 0
    for Z, w in rows:
        yield (Z, w), labels[done : done + len(Z)]
        done += len(Z)


def _whitens(table: Any, whitening: Array) -> bool:
    """Tell whether the rows have the identity as covariance after the change of coordinates."""
    rows = [(Z @ whitening, w) for Z, w in _chunks(table)]
    total = sum(w.sum() for _, w in rows)
    mean = sum(w @ Z for Z, w in rows) / total
    cov = sum(((Z - mean).T * w) @ (Z - mean) for Z, w in rows) / total
    return bool(abs(cov - np.eye(len(cov))).max() <= 1e-6)
