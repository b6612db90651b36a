"""The linear algebra of normal distributions: factors of covariance matrices, and what is computed with them.

A matrix is factorised after its rows and columns are divided by the standard deviations, so that units do not matter;
the threshold below which an eigenvalue counts as zero is relative to a correlation matrix, whose diagonal is one.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from .base import Array
from .saddle import HALF_LOG_2PI

_EPS = float(np.finfo(np.float64).eps)
_ASYMMETRY = 1e-8  # relative to the standard deviations
_OFF_SUPPORT = 1e-6  # likewise: the square root of the eigenvalues that count as zero, with room
_MANY_ROWS = 512  # from here on, a kernel; below, LAPACK on the whole batch
_BLOCK = 2**15  # rows


class Factor(NamedTuple):
    """Σ = FFᵀ for a batch of matrices."""

    matrix: Array  #: F, (..., d, d): lower triangular, or for a singular Σ scaled eigenvectors, some of them zero
    rank: NDArray[np.intp]  #: (...)
    log_det: Array  #: log|Σ|, of the eigenvalues that are not zero, (...)
    std: Array  #: √diag Σ, one where that is zero, (..., d)


def compact(array: Array, rank: int) -> Array:
    """Return a broadcast array with its repeated batch axes cut to length one; the last `rank` axes stay."""
    n_batch = array.ndim - rank
    once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in array.strides[:n_batch])
    return array[once]


def factorise(owner: str, cov: Array) -> Factor:
    """Factorise covariance matrices; those that are not positive definite by their eigenvectors."""
    diagonal = np.diagonal(cov, axis1=-2, axis2=-1)
    if not np.all(np.isfinite(cov)):
        raise ParameterError(f"{owner}: cov must be finite, got NaN or infinity.")
    if not np.all(diagonal >= 0.0):
        raise ParameterError(f"{owner}: cov must have a diagonal >= 0, got {float(diagonal.min())!r}.")
    std = np.where(diagonal > 0.0, np.sqrt(diagonal), 1.0)
    correlation = cov / std[..., :, None] / std[..., None, :]
    asymmetry = np.max(np.abs(correlation - np.swapaxes(correlation, -1, -2)))
    if asymmetry > _ASYMMETRY:
        raise ParameterError(
            f"{owner}: cov must be symmetric, got entries that differ by {asymmetry:.2g} relative to the scale."
        )
    threshold = 4.0 * cov.shape[-1] * _EPS
    try:
        lower = np.linalg.cholesky(correlation)
        sound = np.min(np.square(np.diagonal(lower, axis1=-2, axis2=-1)), axis=-1) > threshold
    except np.linalg.LinAlgError:
        lower, sound = np.zeros_like(correlation), np.zeros(cov.shape[:-2], dtype=bool)
    rank = np.full(cov.shape[:-2], cov.shape[-1], dtype=np.intp)
    pivots = np.where(sound[..., None], np.diagonal(lower, axis1=-2, axis2=-1), 1.0)
    log_det = 2.0 * np.sum(np.log(pivots) + np.log(std), axis=-1)
    matrix = std[..., :, None] * lower
    for index in zip(*np.nonzero(~np.atleast_1d(sound)), strict=True):
        at = index if cov.ndim > 2 else ()
        matrix[at], rank[at], value = _factorise_one(owner, correlation[at], std[at], threshold)
        log_det = np.asarray(log_det)
        log_det[at] = value
    return Factor(matrix, rank, np.asarray(log_det), std)


def _factorise_one(owner: str, correlation: Array, std: Array, threshold: float) -> tuple[Array, int, float]:
    """Return factor, rank and log-determinant of one matrix whose Cholesky factorisation failed or nearly did."""
    values, vectors = np.linalg.eigh(0.5 * (correlation + correlation.T))
    if values[0] < -max(_ASYMMETRY, threshold):
        raise ParameterError(
            f"{owner}: cov must be positive semidefinite, got the eigenvalue {values[0]:.3g} (of correlations)."
        )
    if values[0] > threshold:
        lower = np.linalg.cholesky(correlation)  # regular itself: another one of the batch was not
        pivots = np.diagonal(lower)
        return std[:, None] * lower, values.size, float(2.0 * np.sum(np.log(pivots) + np.log(std)))
    kept = values > threshold
    factor = std[:, None] * vectors * np.sqrt(np.where(kept, values, 0.0))
    stretch = np.linalg.svd(factor[:, kept], compute_uv=False)
    return factor, int(kept.sum()), float(2.0 * np.sum(np.log(stretch)))


def log_densities(x: Array, mean: Array, factor: Factor, batch: tuple[int, ...]) -> Array:
    """Return log N(x; μ, FFᵀ) for x (..., d) and compact parameters of a batch."""
    d = x.shape[-1]
    shape = np.broadcast_shapes(x.shape[:-1], batch)
    squares = np.empty(shape)
    n_factors, n_rows = factor.rank.size, squares.size
    full = bool(np.all(factor.rank == d))
    if full and n_rows < _MANY_ROWS * n_factors:
        away = (x - mean)[..., None]
        white = np.linalg.solve(factor.matrix, away)[..., 0]
        squares = np.sum(np.square(white), axis=-1)
    else:
        # One factor after the other, each with all its rows.
        x, mean = (np.broadcast_to(a, (*shape, d)) for a in (x, mean))
        for index in np.ndindex(factor.rank.shape):
            lengths = factor.rank.shape
            at = (..., *(i if length > 1 else slice(None) for i, length in zip(index, lengths, strict=True)))
            one = Factor(factor.matrix[index], factor.rank[index], factor.log_det[index], factor.std[index])
            squares[at] = _squares(x[(*at, slice(None))], mean[(*at, slice(None))], one)
    constant = factor.rank * HALF_LOG_2PI + 0.5 * factor.log_det
    return np.asarray(-0.5 * squares - constant)[()]


def _squares(x: Array, mean: Array, factor: Factor) -> Array:
    """Return ‖F⁻¹(x - μ)‖² for one factor, inf off the support of a singular one."""
    d, shape = x.shape[-1], x.shape[:-1]
    single = all(stride == 0 for stride in mean.strides[:-1])
    rows = (x if single else x - mean).reshape(-1, d)
    centre = mean.reshape(-1, d)[0] if single and mean.size else np.zeros(d)
    if factor.rank < d:
        return _squares_on_support(rows - centre, factor).reshape(shape)
    from ..data.blocks import reduce_loads  # here: they load what small problems do not need
    from ._kernels import squared_lengths

    out = np.empty(rows.shape[0])
    matrix, centre = np.ascontiguousarray(factor.matrix), np.ascontiguousarray(centre)

    def work(part: slice) -> int:
        squared_lengths(np.ascontiguousarray(rows[part]), centre, matrix, out[part])
        return 0

    parts = [slice(start, start + _BLOCK) for start in range(0, rows.shape[0], _BLOCK)]
    from ..core.threads import resolve_n_jobs

    loads = (partial(slice, part.start, part.stop) for part in parts)
    if parts:
        reduce_loads(loads, work, lambda a, b: 0, threads=min(resolve_n_jobs(None), len(parts)))
    return out.reshape(shape)


def _squares_on_support(away: Array, factor: Factor) -> Array:
    """Return ‖F⁺(x - μ)‖², with columns of F that are orthogonal after division by the standard deviations."""
    scaled = factor.matrix / factor.std[:, None]
    sizes = np.sum(np.square(scaled), axis=0)
    kept = sizes > 0.0
    away = away / factor.std
    white = away @ scaled[:, kept] / sizes[kept]
    residual = np.max(np.abs(away - white @ scaled[:, kept].T), axis=-1, initial=0.0)
    tolerance = _OFF_SUPPORT * np.maximum(1.0, np.max(np.abs(away), axis=-1, initial=0.0))
    return np.where(residual <= tolerance, np.sum(np.square(white), axis=-1), np.inf)


def condition(owner: str, factor: Array, n_given: int, away: Array) -> tuple[Array, Array]:
    """Return the shift of the mean and the covariance of the last entries, given the deviation of the first ones.

    With Fᵀ = QR, Σ = RᵀR, and L = Rᵀ = [[L₁, 0], [L₂₁, L₂]] is triangular: the shift is L₂₁ L₁⁻¹ (v - μ), the
    covariance L₂L₂ᵀ.
    """
    size = np.max(np.abs(factor), axis=-1, keepdims=True)
    size = np.where(size > 0.0, size, 1.0)
    lower = np.swapaxes(np.linalg.qr(np.swapaxes(factor / size, -1, -2), mode="r"), -1, -2)
    first, mixed = lower[..., :n_given, :n_given], lower[..., n_given:, :n_given]
    rest = lower[..., n_given:, n_given:]
    away = away / size[..., :n_given, 0]
    pivots = np.abs(np.diagonal(first, axis1=-2, axis2=-1))
    if pivots.shape[-1] == n_given and np.all(pivots > np.sqrt(4.0 * factor.shape[-2] * _EPS)):
        white = np.linalg.solve(first, away[..., None])
    else:
        white = np.linalg.pinv(first, rcond=_OFF_SUPPORT) @ away[..., None]
        residual = np.max(np.abs((first @ white)[..., 0] - away), initial=0.0)
        if residual > _OFF_SUPPORT * max(1.0, float(np.max(np.abs(away), initial=0.0))):
            raise DataError(f"{owner}: the values are impossible: they lie off the plane that holds all draws.")
    cov = rest @ np.swapaxes(rest, -1, -2)
    scale = size[..., n_given:, 0]
    return (mixed @ white)[..., 0] * scale, cov * scale[..., :, None] * scale[..., None, :]
