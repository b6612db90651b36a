"""Metrics of Hamiltonian samplers: what the momentum is measured in, learned from draws and gradients.

With the transform F the sampler sees the density of F⁻¹u. The Fisher divergence between that and a standard normal is
smallest, for a normal target, where FFᵀ is the covariance; from n draws with their gradients it is estimated by the
geometric mean of the covariance of the draws and the inverse of that of the gradients (Seyboldt, Carlson and Carpenter,
arXiv 2603.18845): the gradients of a normal are exact, so that few draws suffice.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from ._hamiltonian_kernels import DENSE, DIAGONAL, FIT_METRIC, LATE, LOW_RANK, SWITCH, Metric

Array = NDArray[np.float64]

#: Share of the warm-up in which windows are short, because the chain still travels; and length of these windows.
_EARLY = 0.3
_EARLY_WINDOW = 10
#: Main windows: the first length and the growth.
_WINDOW = 80
_GROWTH = 1.5
#: Last share of the warm-up, in which only the step size adapts.
_FINAL = 0.15
#: Directions whose variance, relative to the diagonal, lies in [1/CUT, CUT] are left to the diagonal.
_CUT = 2.0
#: Pseudo-draws of a standard normal that steady the projected covariances.
_STEADY = 1e-5
#: Most directions of the low-rank part.
_MOST_DIRECTIONS = 30


def warmup_plan(n_warmup: int) -> NDArray[np.int64]:
    """Return what each step of the warm-up does, as bits: fit the metric, switch windows, late."""
    plan = np.zeros(n_warmup, dtype=np.int64)
    early = math.ceil(_EARLY * n_warmup)
    final = n_warmup - math.ceil(_FINAL * n_warmup)
    plan[:final] |= FIT_METRIC
    plan[final:] |= LATE
    for i in range(_EARLY_WINDOW, early, _EARLY_WINDOW):
        plan[i] |= SWITCH
    place = early
    window = float(_WINDOW)
    while place < final:
        plan[place] |= SWITCH
        after = place + int(window)
        window *= _GROWTH
        place = after if after + int(window) <= final else final
    if final:
        plan[final - 1] |= SWITCH
    return plan


def first_metric(gradient: Array) -> Metric:
    """Return the diagonal metric of a start: variances 1/|∇|, right for a normal about one deviation away."""
    size = np.clip(np.abs(gradient), 1e-10, 1e10)
    return diagonal_metric(1 / np.sqrt(size))


def diagonal_metric(scale: Array) -> Metric:
    """Return F = diag(scale)."""
    return Metric(DIAGONAL, np.array(scale, dtype=np.float64), np.zeros((len(scale), 0)), np.zeros(0))


def dense_metric(covariance: Array) -> Metric:
    """Return F = L, the Cholesky factor of a covariance matrix."""
    try:
        factor = np.linalg.cholesky(np.asarray(covariance, dtype=np.float64))
    except np.linalg.LinAlgError:
        raise DataError("a dense metric must be a positive definite covariance matrix.") from None
    return Metric(DENSE, np.sqrt(np.diag(covariance)).copy(), np.ascontiguousarray(factor), np.zeros(0))


def metric_of(owner: str, given: Any, dimension: int, gradient: Array) -> tuple[str, Metric]:
    """Return the kind of adaptation and the first metric of what a user passed as `metric`."""
    if isinstance(given, str):
        if given not in ("diagonal", "dense", "low-rank"):
            raise ParameterError(f"{owner}: metric must be 'diagonal', 'dense', 'low-rank' or an array; got {given!r}.")
        return given, first_metric(gradient)
    array = np.asarray(given, dtype=np.float64)
    if array.shape == (dimension,) and np.isfinite(array).all() and (array > 0).all():
        return "diagonal", diagonal_metric(np.sqrt(array))
    if array.shape == (dimension, dimension) and np.isfinite(array).all():
        return "dense", dense_metric(array)
    raise ParameterError(
        f"{owner}: an array as metric must be {dimension} variances or a {dimension} × {dimension} covariance matrix."
    )


def fit_dense(draws: Array, gradients: Array) -> Metric | None:
    """Return the dense metric of a window; None if it has too few draws.

    From fewer than twice as many draws as coordinates no covariance matrix can be told: then it is a low-rank metric.
    """
    n, d = draws.shape
    if n <= max(10, 2 * d):
        return fit_low_rank(draws, gradients)
    covariance = np.cov(draws.T).reshape(d, d)
    slopes = np.cov(gradients.T).reshape(d, d)
    scale = np.sqrt(np.diag(covariance))
    if not (scale > 0).all():
        return None
    a = covariance / np.outer(scale, scale) + _STEADY * np.eye(d)
    b = slopes * np.outer(scale, scale) + _STEADY * np.eye(d)
    joined = _geometric_mean(a, b) * np.outer(scale, scale)
    return dense_metric((joined + joined.T) / 2)


def fit_low_rank(draws: Array, gradients: Array) -> Metric | None:
    """Return a diagonal metric with stretched directions; None if the window has too few draws."""
    if len(draws) < 10:
        return None
    spread = draws.std(axis=0)
    slope = gradients.std(axis=0)
    if not ((spread > 0) & (slope > 0)).all():
        return None
    scale = np.sqrt(spread / slope)
    x = (draws - draws.mean(axis=0)) / scale
    g = (gradients - gradients.mean(axis=0)) * scale
    basis = np.linalg.qr(np.concatenate([_directions(x), _directions(g)], axis=1))[0]
    a = _projected(x, basis)
    b = _projected(g, basis)
    values, vectors = np.linalg.eigh(_geometric_mean(a, b))
    far = np.flatnonzero((values > _CUT) | (values < 1 / _CUT))
    far = far[np.argsort(-np.abs(np.log(values[far])))][:_MOST_DIRECTIONS]
    V = np.ascontiguousarray(basis @ vectors[:, far])
    return Metric(LOW_RANK, scale, V, np.sqrt(values[far]) - 1)


def _directions(x: Array) -> Array:
    """Return the leading right singular vectors of centred rows, as columns."""
    vectors = np.linalg.svd(x, full_matrices=False)[2]
    return np.asarray(vectors[: min(len(vectors), len(x) - 1, x.shape[1])].T)


def _projected(x: Array, basis: Array) -> Array:
    inside = x @ basis
    n = len(x)
    covariance = inside.T @ inside / n
    return np.asarray(covariance + _STEADY * np.eye(len(covariance)))


def _geometric_mean(a: Array, b: Array) -> Array:
    """Return the matrix S with SbS = a: the geometric mean of a and b⁻¹."""
    values, vectors = np.linalg.eigh(b)
    values = np.maximum(values, 1e-12 * values.max())
    root = (vectors * np.sqrt(values)) @ vectors.T
    inverse = (vectors / np.sqrt(values)) @ vectors.T
    inner_values, inner = np.linalg.eigh(root @ a @ root)
    middle = (inner * np.sqrt(np.maximum(inner_values, 0.0))) @ inner.T
    return np.asarray(inverse @ middle @ inverse)
