r"""Independent checks of the linear methods: S and its eigenpairs from the rows, by plain NumPy.

The eigenpairs of a fit must satisfy Sv = λv, be orthonormal and be the largest; every other fitted number must follow
from them and from the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ..core.checking import Recheck, has_shapes, relative
from ..core.errors import VerificationError
from ..data.blocks import map_reduce
from ..data.checking import read_table

Array = NDArray[Any]

#: What rounding may leave of a recomputed residual: both are computed in double precision.
ROUNDING = 2e-12
#: Columns up to which all eigenvalues are computed again, to see that none was missed.
_MOST_COLUMNS = 2000


def signs_are_fixed(vectors: Array) -> bool:
    """Tell whether the largest entry of each column is positive; entries within 1e-6 of it count as equal."""
    size = np.abs(vectors)
    largest = size >= (1.0 - 1e-6) * size.max(axis=0, initial=0.0)
    return bool(((vectors > 0) & largest).any(axis=0).all())


def moments_of(table: Any) -> tuple[float, Array, Array]:
    """Return W, x̄ and Σ w (x − x̄)(x − x̄)ᵀ, in two passes over the blocks."""

    def weight_of(block: Any) -> Array:
        return np.ones(block.X.shape[0]) if block.weight is None else np.asarray(block.weight)

    def sums(block: Any) -> tuple[float, Array]:
        weight = weight_of(block)
        return float(weight.sum()), np.asarray(block.X.T @ weight)

    total, first = map_reduce(table.blocks, sums, lambda a, b: (a[0] + b[0], a[1] + b[1]))
    mean = first / total

    def products(block: Any) -> Array:
        rows = np.asarray(block.X.toarray() if sp.issparse(block.X) else block.X) - mean
        return np.asarray(rows.T @ (rows * weight_of(block)[:, None]))

    scatter: Array = map_reduce(table.blocks, products, lambda a, b: a + b)
    return total, mean, scatter


@np.errstate(all="ignore")
def pca(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Recompute the certificate of a PCA."""
    table = read_table(model, X, None, sample_weight)
    k = len(model.components_)
    d = table.n_columns
    if not has_shapes(model, components_=(k, d), explained_variance_=(k,), mean_=(d,), gaps_=(k,)):
        raise VerificationError("verify: the arrays of this PCA do not fit the data.")
    if model.certificate_.kind == "ascent":
        from .verify_factors import incomplete_pca

        return incomplete_pca(model, table)
    rows, mean, scatter = moments_of(table)
    S = scatter / max(rows - 1.0, 1.0)
    V = np.asarray(model.components_).T
    values = np.asarray(model.explained_variance_)
    total = float(S.trace())
    unit = float(values.max(initial=0.0)) or 1.0
    residual = np.linalg.norm(S @ V - V * values, axis=0).max(initial=0.0) / unit
    inner = np.abs(V.T @ V - np.eye(k)).max(initial=0.0)
    facts = [
        relative(model.mean_, mean, np.sqrt(total) + 1e-3 * np.abs(mean).max()),
        relative(model.explained_variance_ratio_, values / total if total > 0 else 0.0 * values, 1.0),
        relative(model.singular_values_, np.sqrt(values * (rows - 1.0)), np.sqrt(unit * (rows - 1.0))),
        relative(np.asarray(float(model.n_samples_)), np.asarray(rows)),
    ]
    most = min(table.n_rows if table.weight is None else int(np.ceil(rows)), d)
    noise = max(0.0, total - float(values.sum())) / (most - k) if k < most else 0.0
    facts.append(relative(np.asarray(float(model.noise_variance_)), np.asarray(noise), unit))
    if not signs_are_fixed(V) or (np.diff(values) > 0).any():
        facts.append(np.inf)
    if d <= _MOST_COLUMNS:
        every = np.linalg.eigvalsh(S)[::-1]
        facts.append(relative(values, np.maximum(every[:k], 0.0), unit))
        facts.append(_gap_error(np.asarray(model.gaps_), every, unit))
    facts.append(_choice_error(model, values, total))
    if hasattr(model, "scatter_"):
        flat = 1e-21 * rows * float((mean**2).max(initial=0.0))  # rounding of a column that is constant
        facts.append(relative(model.scatter_, scatter, float(np.abs(scatter).max(initial=0.0)) + flat or 1.0))
        facts.append(0.0 if model.n_rows_seen_ == table.n_rows else np.inf)
    worst = max(facts)
    value = float(max(residual, inner))
    return Recheck(value if worst <= 1e-9 else max(value, worst, 1.0), ROUNDING, table.fingerprint)


def _gap_error(gaps: Array, every: Array, unit: float) -> float:
    """Return how far the recorded gaps are from those between all eigenvalues; the last may lack a neighbour."""
    steps = np.abs(np.diff(every))
    true = np.minimum(np.concatenate([[np.inf], steps]), np.concatenate([steps, [np.inf]]))[: len(gaps)]
    known = gaps[: len(gaps) - 1]
    error = relative(known, true[: len(known)], unit)
    if len(gaps) == 0:
        return 0.0
    before = every[len(gaps) - 2] - every[len(gaps) - 1] if len(gaps) > 1 else np.inf
    return max(error, min(relative(gaps[-1], true[-1], unit), relative(gaps[-1], before, unit)))


def _choice_error(model: Any, values: Array, total: float) -> float:
    """Return infinity unless the number of components is the one that the parameter asks for."""
    wanted = model.n_components
    k = len(values)
    if isinstance(wanted, (int, np.integer)):
        fewer = hasattr(model, "scatter_") and k == min(wanted, model.n_rows_seen_, len(model.mean_))
        return 0.0 if k == wanted or fewer else np.inf
    if isinstance(wanted, float) and total > 0:
        shares = np.cumsum(values) / total
        reached = shares[-1] >= wanted - 1e-9
        needed = k == 1 or shares[-2] <= wanted + 1e-9
        return 0.0 if reached and needed else np.inf
    return 0.0


@np.errstate(all="ignore")
def truncated_svd(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Recompute the certificate of a TruncatedSVD."""
    table = read_table(model, X, None, sample_weight)
    rows = np.asarray(table.X.toarray() if sp.issparse(table.X) else table.X, dtype=np.float64)
    k = len(model.components_)
    d = table.n_columns
    if not has_shapes(model, components_=(k, d), singular_values_=(k,)):
        raise VerificationError("verify: the arrays of this TruncatedSVD do not fit the data.")
    V = np.asarray(model.components_).T
    largest = float(np.asarray(model.singular_values_).max(initial=0.0)) or 1.0
    power = 2.0 ** int(np.frexp(largest)[1])  # squares of the rows themselves may leave the range of float64
    rows = rows / power
    values = np.asarray(model.singular_values_) / power
    unit = largest / power
    image = rows @ V
    residual = np.linalg.norm(rows.T @ image - V * values**2, axis=0).max() / unit**2
    inner = np.abs(V.T @ V - np.eye(k)).max()
    centred = rows - rows.mean(axis=0)
    total = float((centred**2).mean(axis=0).sum())
    variances = ((image - image.mean(axis=0)) ** 2).mean(axis=0)
    facts = [
        relative(model.explained_variance_, variances * power * power, (unit * power) ** 2 / len(rows)),
        relative(model.explained_variance_ratio_, variances / total if total > 0 else 0.0 * variances, 1.0),
        0.0 if k == min(model.n_components, len(rows)) and signs_are_fixed(V) else np.inf,
    ]
    if min(rows.shape) <= _MOST_COLUMNS:
        every = np.linalg.svd(rows, compute_uv=False)
        facts.append(relative(values, every[:k], unit))
    value = float(max(residual, inner))
    return Recheck(value if max(facts) <= 1e-8 else max(value, 1.0, *facts), ROUNDING, table.fingerprint)


@np.errstate(all="ignore")
def classical_mds(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Recompute the certificate of a ClassicalMDS."""
    table = read_table(model, X, None, sample_weight)
    n = table.n_rows
    k = np.asarray(model.embedding_).shape[1]
    stored = model.X_fit_
    same = stored.shape == table.X.shape and abs(stored - table.X).max() == 0
    D = stated_dissimilarities(model, table, model.metric)
    B = -0.5 * D**2
    B = B - B.mean(axis=0)
    B = B - B.mean(axis=1, keepdims=True)
    value, facts = embedding_error(B, np.asarray(model.embedding_), np.asarray(model.eigenvalues_))
    facts.append(relative(model.dissimilarity_matrix_, D, np.abs(D).max(initial=0.0)))
    facts.append(0.0 if same and k == min(model.n_components, n) else np.inf)
    if n <= 2000:
        every = np.linalg.eigvalsh((B + B.T) / 2.0)
        size = np.abs(every).max(initial=0.0)
        below = every[every < -1e-13 * n * size]
        share = -below.sum() / np.abs(every).sum() if size > 0 else 0.0
        facts.append(relative(np.asarray(float(model.negative_share_)), np.asarray(share), 1.0))
        facts.append(relative(model.eigenvalues_, every[::-1][:k], size))
    return Recheck(value if max(facts) <= 1e-8 else max(value, 1.0, *facts), ROUNDING, table.fingerprint)


def stated_dissimilarities(model: Any, table: Any, metric: Any) -> Array:
    """Return the dissimilarities of the rows by a metric."""
    rows = table.X
    if metric == "precomputed":
        D = np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)
    elif metric in ("euclidean", "l2") and not sp.issparse(rows) and not model.metric_params:
        rows = np.asarray(rows, dtype=np.float64)
        D = cdist(rows, rows)  # of differences: squares of columns far from zero would lack their digits
    else:
        from sklearn.metrics import pairwise_distances

        D = pairwise_distances(rows, metric=metric, **(model.metric_params or {})).astype(np.float64)
    return np.asarray((D + D.T) / 2.0)


def embedding_error(B: Array, embedding: Array, values: Array) -> tuple[float, list[float]]:
    """Return the residual of coordinates √λ u as eigenpairs of B, and what else must hold of them, in units of λ₁."""
    size = float(np.abs(values).max(initial=0.0)) or 1.0
    squares = (embedding**2).sum(axis=0)
    kept = values > 0
    U = embedding[:, kept] / np.sqrt(np.where(squares > 0, squares, 1.0))[kept]
    residual = np.linalg.norm(B @ U - U * values[kept], axis=0).max(initial=0.0) / size
    inner = np.abs(U.T @ U - np.eye(U.shape[1])).max(initial=0.0)
    ordered = bool((np.diff(values) <= 0).all()) and signs_are_fixed(U)
    facts = [relative(squares, np.maximum(values, 0.0), size), 0.0 if ordered else np.inf]
    return float(max(residual, inner)), facts
