"""Independent check of t-SNE: affinities by bisection, divergence and gradient over all pairs, by plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ..core.checking import Recheck, relative
from ..core.errors import VerificationError
from ..data.checking import read_table
from .verify_graphs import distances_of, search_flaw

Array = NDArray[Any]

_BLOCK = 512
#: Rows from which on a fit computes its divergence and its gradient through a grid, and what that may cost of them.
_GRID_ROWS = 100_000
_GRID_ERROR = 1e-3


@np.errstate(all="ignore")
def tsne(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Recompute the certificate of a TSNE."""
    table = read_table(model, X, None, sample_weight)
    n = table.n_rows
    Y = np.asarray(model.embedding_, dtype=np.float64)
    if Y.shape != (n, model.n_components):
        raise VerificationError(f"verify: this TSNE has coordinates of shape {Y.shape}, the data {n} rows.")
    P, near_error = _affinities(model, table.X)
    logs = 0.0
    pulled = np.zeros_like(Y)
    pushed = np.zeros_like(Y)
    total = 0.0
    for start in range(0, n, _BLOCK):
        part = np.arange(start, min(n, start + _BLOCK))
        W = 1.0 / (1.0 + cdist(Y[part], Y, "sqeuclidean"))
        W[np.arange(len(part)), part] = 0.0
        total += float(W.sum())
        p = P[part].toarray()
        pulled[part] = _forces(p * W, Y, part)
        pushed[part] = _forces(W * W, Y, part)
        known = p > 0
        logs += float((p[known] * np.log(p[known] / W[known])).sum())
    divergence = logs + np.log(total)
    size = float(np.linalg.norm(pulled))
    share = float(np.linalg.norm(pulled - pushed / total)) / size if size > 0 else 0.0
    auto = max(n / 4.0, 50.0)
    rate = auto if model.learning_rate == "auto" else float(model.learning_rate)
    flawed = search_flaw(model.nbrs_, table.X, {"metric": model.metric, "metric_params": model.metric_params})
    facts = [
        relative(np.asarray(float(model.kl_divergence_)), np.asarray(divergence), max(abs(divergence), 1e-3)),
        relative(np.asarray(float(model.learning_rate_)), np.asarray(rate), rate),
        0.0 if not flawed and 1 <= model.n_iter_ <= model.max_iter else np.inf,
        0.0 if model.n_iter_ == model.certificate_.n_iter else np.inf,
        near_error,
    ]
    limit = 1e-6 if n <= _GRID_ROWS else _GRID_ERROR
    return Recheck(share if max(facts) <= limit else max(share, 1.0, *facts), 1e-7, table.fingerprint)


def _forces(weights: Array, Y: Array, part: Array) -> Array:
    """Return Σⱼ aᵢⱼ (yᵢ − yⱼ)."""
    return np.asarray(weights.sum(axis=1)[:, None] * Y[part] - weights @ Y)


def _neighbours(model: Any, X: Any) -> tuple[Array, Array, float]:
    """Return the distances of every row to its neighbours, these, and how far they are from the nearest.

    Of rows at equal distances any may be the last neighbour: which ones were taken stands in the model.
    """
    n = X.shape[0]
    k = n - 1 if model.method == "exact" else min(n - 1, int(3.0 * model.perplexity + 1.0))
    D = distances_of(model.nbrs_, X)
    away, who = D.nearest(k)
    if model.method == "exact":
        return away, who, 0.0
    stored = np.asarray(model.neighbors_, dtype=np.int64)
    own = np.repeat(np.arange(n), k)
    distinct = np.diff(np.sort(stored, axis=1), axis=1).min(initial=1) > 0 if stored.shape == (n, k) else False
    if not distinct or (stored.ravel() == own).any():
        return away, who, np.inf
    true = D.pairs(own, stored.ravel()).reshape(n, k)
    return true, stored, relative(true, away, float(away.max(initial=0.0)) or 1.0)


def _affinities(model: Any, X: Any) -> tuple[sp.csr_array, float]:
    """Return P, every row's bandwidth by bisection until the entropy is that of the perplexity, and an error."""
    n = X.shape[0]
    away, who, near_error = _neighbours(model, X)
    k = away.shape[1]
    squares = away**2
    squares -= squares.min(axis=1, keepdims=True)
    wanted = np.log(model.perplexity)
    # The exponents of the two ends of the bracket, in units of the mean squared distance.
    scale = 1.0 / np.where(squares.mean(axis=1) > 0, squares.mean(axis=1), 1.0)
    low = np.full(n, -60.0)
    high = np.full(n, 300.0)
    for _ in range(70):
        middle = 0.5 * (low + high)
        P = np.exp(-(scale * np.exp(middle))[:, None] * squares)
        P /= P.sum(axis=1, keepdims=True)
        entropy = -(P * np.log(np.where(P > 0, P, 1.0))).sum(axis=1)
        low = np.where(entropy > wanted, middle, low)
        high = np.where(entropy > wanted, high, middle)
    given = sp.csr_array((P.ravel(), who.ravel(), np.arange(n + 1) * k), shape=(n, n))
    both = sp.csr_array(given + given.T)
    both.data /= both.data.sum()
    return both, near_error
