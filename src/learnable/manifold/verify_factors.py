r"""Independent checks of models with normal factors: the likelihood before and after one more step of EM.

Each group of rows with the same gaps is handled by the covariance of what it shows, Σ_oo = W_oW_oᵀ + Ψ_o, inverted
whole: E[z] = W_oᵀΣ_oo⁻¹(x_o − μ_o) and cov[z] = I − W_oᵀΣ_oo⁻¹W_o. The fits never form it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.checking import Recheck, has_shapes, relative
from ..core.errors import VerificationError
from ..data.blocks import map_reduce
from ..data.checking import read_table
from .verify import ROUNDING, moments_of, signs_are_fixed

Array = NDArray[Any]


class Step(NamedTuple):
    """One step of EM, by the definitions."""

    before: float  #: log-likelihood per unit of weight
    after: float
    mean: Array  #: (d,), after the step
    loadings: Array
    noise: Array


def rows_of(table: Any) -> tuple[Array, Array]:
    """Return all rows and their weights."""

    def read(block: Any) -> list[tuple[Array, Array]]:
        rows = np.asarray(block.X.toarray() if sp.issparse(block.X) else block.X, dtype=np.float64)
        return [(rows, np.ones(len(rows)) if block.weight is None else np.asarray(block.weight))]

    parts = map_reduce(table.blocks, read, lambda a, b: a + b)
    return np.vstack([rows for rows, _ in parts]), np.concatenate([weight for _, weight in parts])


def em_step(X: Array, w: Array, mean: Array, W: Array, noise: Array, floor: Array | None) -> Step:
    """Return what one step from some parameters does; `floor` is None where all columns share their noise."""
    d, k = W.shape
    products = np.zeros((d, k + 1, k + 1))
    cross = np.zeros((d, k + 1))
    before = 0.0
    groups: dict[bytes, list[int]] = {}
    for i, gaps in enumerate(np.isnan(X)):
        groups.setdefault(gaps.tobytes(), []).append(i)
    for own in map(np.array, groups.values()):
        o = np.flatnonzero(~np.isnan(X[own[0]]))
        away = X[np.ix_(own, o)] - mean[o]
        inverse = np.linalg.inv(W[o] @ W[o].T + np.diag(noise[o]))
        z = away @ inverse @ W[o]
        spread = np.eye(k) - W[o].T @ inverse @ W[o]
        before += float(w[own] @ _log_normal(away, W[o] @ W[o].T + np.diag(noise[o])))
        lifted = np.column_stack([z, np.ones(len(own))])
        square = lifted.T @ (lifted * w[own][:, None])
        square[:k, :k] += w[own].sum() * spread
        products[o] += square
        cross[o] += (X[np.ix_(own, o)] * w[own][:, None]).T @ lifted
    found = np.stack([np.linalg.lstsq(products[j], cross[j], rcond=None)[0] for j in range(d)])
    left = np.zeros(d)
    count = np.zeros(d)
    after_mean = found[:, -1]
    after_loadings = found[:, :-1]
    for j in range(d):
        o = ~np.isnan(X[:, j])
        count[j] = w[o].sum()
        left[j] = w[o] @ X[o, j] ** 2 - cross[j] @ found[j]
    after_noise = np.full(d, left.sum() / count.sum()) if floor is None else np.maximum(left / count, floor)
    if floor is not None and not np.isnan(X).any():
        # Of complete rows the loadings are then put where the likelihood is greatest, given the noise.
        after_mean = w @ X / w.sum()
        away = (X - after_mean) / np.sqrt(after_noise)
        vectors, squares, _ = np.linalg.svd(away.T @ (away * w[:, None]) / w.sum())
        after_loadings = vectors[:, :k] * np.sqrt(np.maximum(squares[:k] - 1.0, 0.0)) * np.sqrt(after_noise)[:, None]
    after = 0.0
    for own in map(np.array, groups.values()):
        o = np.flatnonzero(~np.isnan(X[own[0]]))
        covariance = after_loadings[o] @ after_loadings[o].T + np.diag(after_noise[o])
        after += float(w[own] @ _log_normal(X[np.ix_(own, o)] - after_mean[o], covariance))
    return Step(before / w.sum(), after / w.sum(), after_mean, after_loadings, after_noise)


def _log_normal(away: Array, covariance: Array) -> Array:
    sign, log_det = np.linalg.slogdet(covariance)
    if sign <= 0:
        return np.full(len(away), np.nan)
    distance = (away * np.linalg.solve(covariance, away.T).T).sum(axis=1)
    return np.asarray(-0.5 * (distance + log_det + away.shape[1] * np.log(2.0 * np.pi)))


@np.errstate(all="ignore")
def incomplete_pca(model: Any, table: Any) -> Recheck:
    """Recompute the certificate of a PCA of rows with gaps."""
    X, w = rows_of(table)
    rows = float(w.sum())
    scale = rows / (rows - 1.0)
    values = np.asarray(model.explained_variance_)
    noise = float(model.noise_variance_)
    V = np.asarray(model.components_).T
    d, k = V.shape
    total = float(values.sum()) + (d - k) * noise
    steps = np.abs(np.diff(np.append(values, noise)))
    gaps = np.minimum(np.concatenate([[np.inf], steps[:-1]]), steps)
    facts = [
        relative(model.explained_variance_ratio_, values / total, 1.0),
        relative(model.singular_values_, np.sqrt(values * (rows - 1.0)), np.sqrt(values.max() * (rows - 1.0))),
        relative(np.asarray(float(model.n_samples_)), np.asarray(rows)),
        relative(model.gaps_, gaps, values.max()),
        float(np.abs(V.T @ V - np.eye(k)).max()),
        0.0 if signs_are_fixed(V) and (np.diff(values) <= 0).all() and k == model.n_components_ else np.inf,
    ]
    return _ascent(model, X, w, V, values / scale, noise / scale, facts, table.fingerprint)


def _ascent(
    model: Any, X: Array, w: Array, V: Array, values: Array, noise: float, facts: list[float], fingerprint: str
) -> Recheck:
    """Return the rise of one more step from principal components with equal noise."""
    d = len(V)
    W = V * np.sqrt(np.maximum(values - noise, 0.0))
    step = em_step(X, w, np.asarray(model.mean_), W, np.full(d, noise), None)
    rise = step.after - step.before
    size = 1.0 + abs(step.before)
    history = getattr(model, "loglike_", None)
    if history is not None:
        facts.append(relative(np.asarray(history)[-1], step.before, size))
        facts.append(0.0 if (np.diff(history) >= -1e-9 * size).all() else np.inf)
    worst = max(facts)
    return Recheck(max(rise, 0.0) if worst <= 1e-8 and np.isfinite(rise) else np.inf, 1e-10 * size, fingerprint)


@np.errstate(all="ignore")
def probabilistic_pca(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Recompute the certificate of a ProbabilisticPCA."""
    table = read_table(model, X, None, sample_weight)
    k = len(model.components_)
    d = table.n_columns
    if not has_shapes(model, components_=(k, d), explained_variance_=(k,), mean_=(d,)):
        raise VerificationError("verify: the arrays of this ProbabilisticPCA do not fit the data.")
    V = np.asarray(model.components_).T
    values = np.asarray(model.explained_variance_)
    noise = float(model.noise_variance_)
    wanted = max(1, min(table.n_rows, d) - 1) if model.n_components is None else model.n_components
    ordered = signs_are_fixed(V) and bool((np.diff(values) <= 0).all()) and wanted == k
    inner = float(np.abs(V.T @ V - np.eye(k)).max())
    if model.certificate_.kind == "ascent":
        rows, w = rows_of(table)
        return _ascent(model, rows, w, V, values, noise, [0.0 if ordered else np.inf, inner], table.fingerprint)
    weight, mean, scatter = moments_of(table)
    S = scatter / weight
    every = np.linalg.eigvalsh(S)[::-1]
    left = max(float(every[k:].mean()), 1e-9 * float(S.trace()) / d)
    unit = float(values.max())
    covariance = (V * (values - noise)) @ V.T + noise * np.eye(d)
    trace = float(np.linalg.solve(covariance, S).trace())
    likelihood = -0.5 * (d * np.log(2.0 * np.pi) + np.linalg.slogdet(covariance)[1] + trace)
    facts = [
        relative(model.mean_, mean, np.sqrt(float(S.trace())) + 1e-3 * np.abs(mean).max()),
        relative(values, np.maximum(every[:k], left), unit),
        relative(np.asarray(noise), np.asarray(left), unit),
        # Of rows in fewer dimensions the noise has its floor, and rounding of the trace is divided by it.
        relative(np.asarray(model.loglike_), np.array([likelihood]), 1 + abs(likelihood) + 1e-7 * S.trace() / noise),
        0.0 if ordered else np.inf,
    ]
    residual = float(np.linalg.norm(S @ V - V * every[:k], axis=0).max()) / unit
    value = max(residual, inner)
    return Recheck(value if max(facts) <= 1e-8 else max(1.0, *facts), ROUNDING, table.fingerprint)


@np.errstate(all="ignore")
def factor_analysis(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Recompute the certificate of a FactorAnalysis."""
    table = read_table(model, X, None, sample_weight)
    rows, w = rows_of(table)
    k = len(model.components_)
    d = table.n_columns
    if not has_shapes(model, components_=(k, d), noise_variance_=(d,), mean_=(d,)):
        raise VerificationError("verify: the arrays of this FactorAnalysis do not fit the data.")
    seen = ~np.isnan(rows)
    count = w @ seen
    mean = w @ np.where(seen, rows, 0.0) / count
    variance = w @ np.where(seen, rows - mean, 0.0) ** 2 / count
    floor = 1e-9 * np.where(variance > 0, variance, 1.0)
    W = np.asarray(model.components_).T
    noise = np.asarray(model.noise_variance_)
    step = em_step(rows, w, np.asarray(model.mean_), W, noise, floor)
    rise = step.after - step.before
    size = 1.0 + abs(step.before)
    history = np.asarray(model.loglike_)
    facts = [
        relative(history[-1], step.before * w.sum(), size * w.sum()),
        0.0 if (np.diff(history) >= -1e-9 * size * w.sum()).all() and k == min(model.n_components or d, d) else np.inf,
        _rotation_error(model, W, noise),
    ]
    worst = max(facts)
    return Recheck(max(rise, 0.0) if worst <= 1e-7 and np.isfinite(rise) else np.inf, 1e-10 * size, table.fingerprint)


def _rotation_error(model: Any, W: Array, noise: Array) -> float:
    """Return how far the loadings are from the rotation that the parameters state."""
    if not signs_are_fixed(W[:, (W != 0).any(axis=0)]):
        return np.inf
    if model.rotation is None:
        inner = W.T @ (W / noise[:, None])
        off = inner - np.diag(np.diag(inner))
        if (np.diff(np.diag(inner)) > 1e-9 * np.diag(inner).max(initial=0.0)).any():
            return np.inf
        return float(np.abs(off).max(initial=0.0) / (np.abs(inner).max(initial=0.0) or 1.0))
    lengths = (W**2).sum(axis=0)
    if (np.diff(lengths) > 1e-9 * lengths.max(initial=0.0)).any():
        return np.inf
    # At a maximum of the varimax or quartimax criterion ΛᵀG is symmetric, G the gradient.
    share = 1.0 if model.rotation == "varimax" else 0.0
    G = W**3 - share * W * (W**2).mean(axis=0)
    turn = W.T @ G
    return 1e-4 * float(np.abs(turn - turn.T).max(initial=0.0) / (np.abs(turn).max(initial=0.0) or 1.0))
