"""Independent checks of clusters and mixtures: one more step, by the definition, in plain NumPy and extended precision.

Nothing here is shared with the fits but the reading of the table and its checksum.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from ..core import AnyArray, Recheck
from ..data.blocks import map_reduce
from ..data.checking import read_table

_CHUNK = 2**18  # numbers of X at a time

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


def _rounding(rows: list[Any], labels: list[AnyArray], centres: AnyArray) -> Any:
    """Return the inertia that centres rounded to float64 may leave: (8·2⁻⁵³)² Σ w x², over entries off their centre."""
    total = np.longdouble(0)
    for (Z, w), k in zip(rows, labels, strict=True):
        total += (w @ np.where(centres[k] == Z, 0.0, Z * Z)).sum()
    return (8 * np.longdouble(2.0) ** -53) ** 2 * total


def _moments(rows: list[Any]) -> tuple[AnyArray, Any]:
    """Return the mean of the rows and the sum of squared distances to it."""
    mean = sum(w @ Z for Z, w in rows) / sum(w.sum() for _, w in rows)
    return mean, sum(w @ ((Z - mean) ** 2).sum(axis=1) for Z, w in rows)


@np.errstate(all="ignore")
def kmedoids(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a KMedoids: the relative fall of J by the best swap of a medoid for a row."""
    table = read_table(model, X, None, sample_weight)
    rows = np.asarray(table.X, dtype=float)
    weight = np.ones(table.n_rows) if table.weight is None else table.weight
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


def _chunks(table: Any) -> Iterator[tuple[AnyArray, AnyArray]]:
    """Yield some rows and their weights at a time, in extended precision."""
    for X, weight in map_reduce(table.blocks, _rows_of, _chain):
        step = max(1, _CHUNK // max(1, X.shape[1]))
        for start in range(0, X.shape[0], step):
            some = X[start : start + step]
            dense = some.toarray() if sp.issparse(some) else some
            yield dense.astype(np.longdouble), weight[start : start + step].astype(np.longdouble)


def _rows_of(block: Any) -> list[tuple[Any, AnyArray]]:
    return [(block.X.copy(), np.ones(block.X.shape[0]) if block.weight is None else block.weight.copy())]


def _chain(a: list[Any], b: list[Any]) -> list[Any]:
    return a + b


def _assign(rows: list[Any], centres: AnyArray) -> tuple[Any, list[AnyArray], list[AnyArray], AnyArray, AnyArray]:
    inertia = np.longdouble(0)
    labels = []
    nearest = []
    counts = np.zeros(len(centres), np.longdouble)
    sums = np.zeros(centres.shape, np.longdouble)
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
    model: Any,
    table: Any,
    labels: list[AnyArray],
    nearest: list[AnyArray],
    rows: list[Any],
    centres: AnyArray,
    blur: Any,
) -> bool:
    """Tell whether the model's labels name nearest centres, up to ties and a blur of the squares."""
    recorded = np.asarray(model.labels_)
    recorded = recorded if table.kept is None else recorded[table.kept]
    found = np.concatenate(labels)
    best = np.concatenate(nearest)
    if recorded.shape != found.shape or recorded.min() < 0 or recorded.max() >= len(centres):
        return False
    own = np.concatenate([((Z - centres[k]) ** 2).sum(axis=1) for (Z, _), k in _with_labels(rows, recorded)])
    return bool((own <= best * (1 + 1e-9) + blur).all())


def _with_labels(rows: list[Any], labels: AnyArray) -> Iterator[tuple[Any, AnyArray]]:
    done = 0
    for Z, w in rows:
        yield (Z, w), labels[done : done + len(Z)]
        done += len(Z)


def _whitens(table: Any, whitening: AnyArray) -> bool:
    """Tell whether the rows have the identity as covariance after the change of coordinates."""
    rows = [(Z @ whitening, w) for Z, w in _chunks(table)]
    total = sum(w.sum() for _, w in rows)
    mean = sum(w @ Z for Z, w in rows) / total
    cov = sum(((Z - mean).T * w) @ (Z - mean) for Z, w in rows) / total
    return bool(abs(cov - np.eye(len(cov))).max() <= 1e-6)


# Independent check of mixtures of experts: the objective before and after one more step, by the definitions.
#
# Gate and logistic experts take one damped Newton step; its gradient and Hessian are summed here row by row, over
# Kronecker products, and the equations are solved by a pseudo-inverse. Gaussian experts are least squares of y
# itself,
# not of residuals. Nothing is shared with the fit but the reading of the table.

_EXPERT_CHUNK = 2**22  # numbers of the rows' Hessians at a time: 32 MB


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def mixture_of_experts(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a MixtureOfExperts: what one more step adds to the objective, per unit of weight."""
    table = read_table(model, X, y, sample_weight)
    wrong = Recheck(np.inf, 0.0, table.fingerprint)
    rows, y, w = map_reduce(table.blocks, _labelled_rows, _join)
    classes = model.experts == "logistic"
    if classes and not np.array_equal(np.asarray(table.classes), np.asarray(model.classes_)):
        return wrong
    mean = np.average(rows, axis=0, weights=w)
    spread = np.sqrt(np.average((rows - mean) ** 2, axis=0, weights=w))
    reach = np.abs(rows - mean).max(axis=0)
    spread = np.where(reach > 1e-12 * np.abs(mean), np.where(spread > 0, spread, reach), 1.0)
    largest = np.r_[1.0, reach / spread]
    var_y = 0.0 if classes else float(np.average((y - np.average(y, weights=w)) ** 2, weights=w))
    var_y = var_y if classes or var_y > 0 else max(1e-12, float(np.average(y, weights=w)) ** 2)
    pairs = [(model.shift_, mean), (model.scale_, spread), (model.largest_, largest), (model.y_variance_, var_y)]
    if not all(np.allclose(a, b, rtol=1e-6, atol=1e-9 * (np.abs(b).max() + 1e-300)) for a, b in pairs):
        return wrong
    check = _Objective(model, np.column_stack([np.ones(len(rows)), (rows - mean) / spread]), y, w, largest, var_y)
    gate = _with_intercept(model.gate_coef_, model.gate_intercept_, mean, spread)
    weights = _with_intercept(model.coef_, model.intercept_, mean, spread)
    before, r = check.value(gate, weights, model.variances_)
    after = check.value(*check.step(r, gate, weights, model.variances_))[0]
    size = 1.0 + abs(before) / w.sum()
    # Saturated probabilities hardly depend on their scores: only a sharp comparison tells. Scores lose the digits that
    # columns far from the origin take.
    blur = 1e-12 + 1e-15 * float(np.abs(mean / spread).max())
    if not abs(before / w.sum() - model.lower_bound_) <= blur * size:
        return wrong
    rise = (after - before) / w.sum()
    return Recheck(max(rise, 0.0) if np.isfinite(rise) else np.inf, 1e-10 * size, table.fingerprint)


class _Objective:
    """The objective and its step, on all rows at once."""

    def __init__(self, model: Any, Z: AnyArray, y: AnyArray, w: AnyArray, largest: AnyArray, var_y: float) -> None:
        self.Z = Z
        self.y = y
        self.w = w
        self.largest = largest
        self.K = model.n_experts
        self.C = len(model.classes_) if model.experts == "logistic" else 0
        self.alpha = model.alpha
        self.gamma = model.gate_alpha
        self.rho = model.reg_variance * var_y * w.sum() / self.K
        self.D = np.diag(np.r_[0.0, np.ones(Z.shape[1] - 1)])

    def value(self, gate: AnyArray, weights: AnyArray, variances: AnyArray) -> tuple[float, AnyArray]:
        Z = self.Z
        K = self.K
        logs = np.log(_softmax(Z @ gate.T))
        for k in range(K):
            if self.C:
                logs[:, k] += np.log(_softmax(Z @ weights[k].T)[np.arange(len(Z)), self.y])
            else:
                gap = self.y - Z @ weights[k]
                logs[:, k] -= 0.5 * (np.log(2 * np.pi * variances[k]) + gap**2 / variances[k])
        top = logs.max(axis=1, keepdims=True)
        sums = np.exp(logs - top).sum(axis=1, keepdims=True)
        total = float(self.w @ (top + np.log(sums))[:, 0]) - 0.5 * self.gamma * sum(v @ self.D @ v for v in gate)
        for k in range(K):
            if self.C:
                total -= 0.5 * self.alpha * sum(v @ self.D @ v for v in weights[k])
            else:
                total -= 0.5 * (self.alpha * weights[k] @ self.D @ weights[k] + self.rho) / variances[k]
        return total, np.exp(logs - top) / sums

    def step(
        self, r: AnyArray, gate: AnyArray, weights: AnyArray, variances: AnyArray
    ) -> tuple[AnyArray, AnyArray, AnyArray]:
        Z = self.Z
        y = self.y
        wr = self.w[:, None] * r
        new_gate = gate + self._newton(gate, r, self.w, self.gamma)
        weights = weights.copy()
        variances = np.array(variances)
        for k in range(self.K):
            if self.C:
                weights[k] += self._newton(weights[k], np.eye(self.C)[y], wr[:, k], self.alpha)
            elif wr[:, k].sum() > 0:
                penalty = self.alpha * self.D
                # About the weighted mean of y, where the intercept is free: smaller numbers, fewer digits lost.
                center = np.average(y, weights=wr[:, k])
                found = np.linalg.pinv((Z.T * wr[:, k]) @ Z + penalty, 1e-12, hermitian=True)
                found = found @ (Z.T @ (wr[:, k] * (y - center)))
                found[0] += center
                rest = wr[:, k] @ (y - Z @ found) ** 2 + found @ penalty @ found + self.rho
                weights[k] = found
                variances[k] = rest / wr[:, k].sum()
        return new_gate, weights, variances

    def _newton(self, at: AnyArray, target: AnyArray, w: AnyArray, penalty: float) -> AnyArray:
        """Return the damped Newton step of a softmax regression on target probabilities."""
        Z = self.Z
        C, p = at.shape
        P = _softmax(Z @ at.T)
        gradient = ((target - P) * w[:, None]).T @ Z - penalty * at @ self.D
        H = penalty * np.kron(np.eye(C), self.D)
        for start in range(0, len(Z), max(1, _EXPERT_CHUNK // (C * p) ** 2)):
            part = slice(start, start + max(1, _EXPERT_CHUNK // (C * p) ** 2))
            outer = np.einsum("i,ia,ib->iab", w[part], Z[part], Z[part])
            spread = np.einsum("ia,ab->iab", P[part], np.eye(C)) - np.einsum("ia,ib->iab", P[part], P[part])
            H = H + np.einsum("iab,icd->acbd", spread, outer).reshape(C * p, C * p)
        step = (np.linalg.pinv(H, 1e-12, hermitian=True) @ gradient.ravel()).reshape(C, p)
        reach = float(self.largest @ (step.max(axis=0) - step.min(axis=0)))
        return step * (np.log(1 + reach) / reach if reach > 1e-12 else 1.0)


def _softmax(scores: AnyArray) -> AnyArray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _with_intercept(coef: AnyArray, intercept: AnyArray, mean: AnyArray, spread: AnyArray) -> AnyArray:
    coef = np.asarray(coef)
    intercept = np.asarray(intercept)
    return np.concatenate([(intercept + coef @ mean)[..., None], coef * spread], axis=-1)


def _labelled_rows(block: Any) -> tuple[AnyArray, AnyArray, AnyArray]:
    X = np.array(block.X, dtype=np.float64)
    return X, np.array(block.y), np.ones(len(X)) if block.weight is None else block.weight.copy()


def _join(a: tuple[AnyArray, ...], b: tuple[AnyArray, ...]) -> tuple[AnyArray, ...]:
    return tuple(np.concatenate([x, y]) for x, y in zip(a, b, strict=True))
