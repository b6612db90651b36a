r"""The multivariate normal distribution and its algebra.

$$ p(x) = (2\pi)^{-d/2} |\Sigma|^{-1/2} \exp\bigl(-\tfrac12 (x - \mu)^\top \Sigma^{-1} (x - \mu)\bigr) $$

Marginals, conditionals, affine images and products of normal densities are normal again. Everything works on a factor
F with Σ = FFᵀ: the Cholesky factor where Σ is positive definite, that of the eigenvectors where it is singular to
working
precision. Conditioning triangularises the factor by orthogonal transformations, so that no covariance is ever a
difference of covariances: it stays positive semidefinite however nearly singular it is.

As an exponential family: $t(x) = (x, xx^\top)$ with the matrix row by row, $\eta = (\Sigma^{-1}\mu,
-\tfrac12\Sigma^{-1})$,
$h = (2\pi)^{-d/2}$ and $A = \tfrac12\mu^\top\Sigma^{-1}\mu + \tfrac12\log|\Sigma|$.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import DataError, ParameterError
from ..core.jit import kernel
from .base import (
    Array,
    ExponentialFamily,
    Multivariate,
    Parameter,
    RandomState,
    Size,
    check_sample,
    require,
    weighted_mean,
)
from .saddle import HALF_LOG_2PI

# --------------------------------------------------------------------------------------------------------------------
# The one loop of this package that BLAS does badly: whitening many short rows.


_TILE = 64  # rows worked on side by side: the innermost loop, which vectorises


@kernel
def squared_lengths(X: Array, mean: Array, L: Array, out: Array) -> None:
    """Set out[i] = ‖L⁻¹(x_i - μ)‖² by forward substitution, for a lower triangular L with a positive diagonal.

    IN  X (n, d), mean (d,), L (d, d); OUT out (n,).
    """
    n, d = X.shape
    Z = np.zeros((d, _TILE))
    total = np.empty(_TILE)
    for start in range(0, n, _TILE):
        m = min(_TILE, n - start)
        rows = X[start : start + m]
        total[:] = 0.0
        for j in range(d):
            z = Z[j]
            for r in range(m):
                z[r] = rows[r, j] - mean[j]
            for k in range(j):
                c = L[j, k]
                earlier = Z[k]
                for r in range(_TILE):
                    z[r] -= c * earlier[r]
            scale = 1.0 / L[j, j]
            for r in range(_TILE):
                z[r] *= scale
                total[r] += z[r] * z[r]
        part = out[start : start + m]
        for r in range(m):
            part[r] = total[r]


class MultivariateNormal(Multivariate, ExponentialFamily):
    """The normal distribution N(μ, Σ) of vectors, or an array of them.

    A covariance matrix may be singular: eigenvalues of the correlation matrix below 4dε, where ε is the rounding
    of float64,
    count as zero. The density is then that on the affine subspace which holds all draws, and zero at points
    further from it than
    1e-6 standard deviations.

    Parameters
    ----------
    mean : array of shape (..., d)
        μ, finite.
    cov : array of shape (..., d, d)
        Σ, symmetric and positive semidefinite.

    Examples
    --------
    >>> joint = MultivariateNormal([0.0, 1.0], [[2.0, 1.0], [1.0, 2.0]])
    >>> joint.condition(on=[0], values=[1.0])
    MultivariateNormal(mean=[1.5], cov=<array of shape (1, 1)>)
    >>> joint.marginal([1]).variance
    array([2.])
    """

    _event_ranks: ClassVar[Mapping[str, int]] = {"mean": 1, "cov": 2}

    def __init__(self, mean: ArrayLike, cov: ArrayLike) -> None:
        self._store(mean=mean, cov=cov)
        d = self.mean.shape[-1]
        require(self, "mean", self.mean, np.isfinite(self.mean), "finite")
        if self.cov.shape[-2:] != (d, d):
            raise ParameterError(
                f"{type(self).__name__}: cov must be {d} by {d}, as mean has {d} entries, got shape {self.cov.shape}."
            )
        object.__setattr__(self, "_factor", factorise(type(self).__name__, compact(self.cov, 2)))

    @classmethod
    def fit_mle(cls, x: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Return the distribution of greatest likelihood: mean and covariance, divisor n.

        Parameters
        ----------
        x : array of shape (n, ..., d)
            Samples along the first axis.
        weights : array of shape (n,), optional
            Non-negative; a weight of 2 counts as the same sample twice.
        """
        x, w = check_sample(cls, x, weights, rank=1)
        mean = weighted_mean(x, w)
        # Dividing by the spread keeps squares of very large and very small deviations within the floats.
        spread = np.ptp(x, axis=0)
        if not np.all(spread > 0.0):
            _refuse_flat(cls, x)
        root = np.sqrt(w / w.max())
        deviation = (x - mean) / spread * (root / np.sqrt(np.square(root).sum())).reshape(-1, *(1,) * (x.ndim - 1))
        columns = np.moveaxis(deviation, 0, -1)
        cov = (columns @ np.swapaxes(columns, -1, -2)) * (spread[..., :, None] * spread[..., None, :])
        fitted = cls(mean, cov)
        if np.any(fitted.rank < x.shape[-1]):
            _refuse_flat(cls, x)
        return fitted

    mean = Parameter("The mean μ.")

    cov = Parameter("The covariance matrix Σ.")

    @property
    def covariance(self) -> Array:
        """The covariance matrix Σ."""
        return self.cov

    @property
    def mode(self) -> Array:
        """The mode μ."""
        return self.mean

    @property
    def rank(self) -> NDArray[np.intp]:
        """The rank of Σ; below d where it is singular to working precision."""
        return np.broadcast_to(self._factor.rank, self.batch_shape)[()]  # type: ignore[attr-defined, no-any-return]

    @property
    def factor(self) -> Array:
        """A matrix F with Σ = FFᵀ: lower triangular where Σ has full rank."""
        matrix = self._factor.matrix  # type: ignore[attr-defined]
        return np.broadcast_to(matrix, (*self.batch_shape, *matrix.shape[-2:]))

    @property
    def log_det(self) -> Array:
        """The logarithm of |Σ|, or of the product of its eigenvalues that are not zero."""
        return np.broadcast_to(self._factor.log_det, self.batch_shape)[()]  # type: ignore[attr-defined, no-any-return]

    @property
    def precision(self) -> Array:
        """The inverse Σ⁻¹; an error where there is none."""
        if np.any(self.rank < self.event_shape[0]):
            raise ParameterError(
                f"{type(self).__name__}: cov must have full rank to have an inverse; its rank is {self.rank}."
            )
        half = np.linalg.inv(self._factor.matrix)  # type: ignore[attr-defined]
        inverse = np.swapaxes(half, -1, -2) @ half
        return np.broadcast_to(inverse, self.cov.shape)

    def _entropy_in_nats(self) -> Array:
        return self.rank * (0.5 + HALF_LOG_2PI) + 0.5 * self.log_det

    def _kl(self, other: MultivariateNormal) -> Array:
        # ½(tr M - d - log|M| + ‖F_q⁻¹(μ_p - μ_q)‖²) with M = F_q⁻¹ Σ_p F_q⁻ᵀ.
        if np.any(other.rank < other.event_shape[0]) or np.any(self.rank < self.event_shape[0]):
            raise ParameterError(f"{type(self).__name__}: the divergence needs covariances of full rank.")
        d = self.event_shape[0]
        ratio = np.linalg.solve(other.factor, self.factor)
        trace = np.sum(np.square(ratio), axis=(-2, -1)) - d
        away = np.linalg.solve(other.factor, (self.mean - other.mean)[..., None])[..., 0]
        value = 0.5 * (trace + other.log_det - self.log_det + np.sum(np.square(away), axis=-1))
        return np.maximum(value, 0.0)

    def logpdf(self, x: ArrayLike) -> Array:
        """Return the log-density at x of shape (..., d); in blocks, without a copy of x where the batch is one."""
        x = np.asarray(x, dtype=np.float64)
        d = self.event_shape[0]
        if x.ndim == 0 or x.shape[-1] != d:
            raise DataError(f"{type(self).__name__}: x must have {d} entries along its last axis, got shape {x.shape}.")
        return log_densities(x, compact(self.mean, 1), self._factor, self.batch_shape)  # type: ignore[attr-defined]

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw vectors, of shape `size`, then the batch's, then (d,)."""
        shape = (*self._sample_shape(size), self.event_shape[0])
        standard = np.random.default_rng(random_state).standard_normal(shape)
        if not self.batch_shape:
            return self.mean + standard @ self.factor.T
        return self.mean + np.einsum("...ij,...j->...i", self.factor, standard)

    def marginal(self, of: Sequence[int]) -> Self:
        """Return the distribution of some entries, in the order in which they are named."""
        index = self._as_entries("of", of)
        return type(self)(self.mean[..., index], self.cov[..., index, :][..., :, index])

    def condition(self, on: Sequence[int], values: ArrayLike) -> Self:
        """Return the distribution of the other entries, given that those named in `on` have the given values.

        Parameters
        ----------
        on : sequence of int
            Which entries are known.
        values : array of shape (..., len(on))
            What they are; the leading axes broadcast against the batch.
        """
        given = self._as_entries("on", on)
        values = np.asarray(values, dtype=np.float64)
        if values.ndim == 0 or values.shape[-1] != given.size:
            raise ParameterError(
                f"{type(self).__name__}: values must have {given.size} entries along the last axis, as on has, "
                f"got shape {values.shape}."
            )
        require(self, "values", values, np.isfinite(values), "finite")
        rest = np.setdiff1d(np.arange(self.event_shape[0]), given)
        if rest.size == 0:
            raise ParameterError(f"{type(self).__name__}: on must leave at least one entry, got all {given.size}.")
        matrix = self._factor.matrix[..., np.r_[given, rest], :]  # type: ignore[attr-defined]
        shift, cov = condition(type(self).__name__, matrix, given.size, values - self.mean[..., given])
        return type(self)(self.mean[..., rest] + shift, cov)

    def affine(self, A: ArrayLike, b: ArrayLike = 0.0) -> Self:
        """Return the distribution of Ax + b, for a matrix A of shape (..., m, d)."""
        A = np.asarray(A, dtype=np.float64)
        d = self.event_shape[0]
        if A.ndim < 2 or A.shape[-1] != d:
            raise ParameterError(f"{type(self).__name__}: A must have {d} columns, got shape {A.shape}.")
        image = A @ self._factor.matrix  # type: ignore[attr-defined]
        mean = (A @ self.mean[..., None])[..., 0] + np.asarray(b, dtype=np.float64)
        return type(self)(mean, image @ np.swapaxes(image, -1, -2))

    def product(self, other: MultivariateNormal) -> tuple[Self, Array]:
        """Return the normal distribution and the log c with p(x) q(x) = c N(x; m, C).

        C⁻¹ = Σ_p⁻¹ + Σ_q⁻¹ and c = N(μ_p; μ_q, Σ_p + Σ_q): the distribution of x ~ p, given that x plus noise of q's
        covariance was seen to be μ_q. It is computed as such, so that one of the two may be singular.
        """
        d = self.event_shape[0]
        if other.event_shape != (d,):
            raise ParameterError(f"{type(self).__name__}: other must have {d} entries, got {other.event_shape[0]}.")
        mine = self.factor
        theirs = other.factor
        batch = np.broadcast_shapes(mine.shape[:-2], theirs.shape[:-2])
        mine, theirs = (np.broadcast_to(m, (*batch, *m.shape[-2:])) for m in (mine, theirs))
        joint = np.concatenate(
            [np.concatenate([mine, theirs], axis=-1), np.concatenate([mine, np.zeros_like(theirs)], axis=-1)], axis=-2
        )
        shift, cov = condition(type(self).__name__, joint, d, other.mean - self.mean)
        seen = MultivariateNormal(other.mean, self.cov + other.cov)
        return type(self)(self.mean + shift, cov), seen.logpdf(self.mean)

    @property
    def natural_parameter(self) -> Array:
        """The natural parameter η = (Σ⁻¹μ, -½Σ⁻¹), of d + d² entries."""
        precision = self.precision
        first = (precision @ self.mean[..., None])[..., 0]
        return np.concatenate([first, -0.5 * precision.reshape(*precision.shape[:-2], -1)], axis=-1)

    @property
    def log_partition(self) -> Array:
        """The log-partition function A(η) = ½μᵀΣ⁻¹μ + ½ log|Σ|."""
        white = np.linalg.solve(self.factor, self.mean[..., None])[..., 0]
        return 0.5 * np.sum(np.square(white), axis=-1) + 0.5 * self.log_det

    @property
    def mean_statistic(self) -> Array:
        """The mean (μ, Σ + μμᵀ) of t(x)."""
        second = self.cov + self.mean[..., :, None] * self.mean[..., None, :]
        return np.concatenate([self.mean, second.reshape(*second.shape[:-2], -1)], axis=-1)

    def sufficient_statistic(self, x: ArrayLike) -> Array:
        """Return t(x) = (x, xxᵀ), of d + d² entries; `sum_statistic` forms their sum without them."""
        x = np.asarray(x, dtype=np.float64)
        outer = x[..., :, None] * x[..., None, :]
        return np.concatenate([x, outer.reshape(*x.shape[:-1], -1)], axis=-1)

    def sum_statistic(self, x: ArrayLike, weights: ArrayLike | None = None) -> tuple[float, Array]:
        """Return the total weight and the weighted sum of t(x) over the first axis; sums of blocks add."""
        x, w = check_sample(self, x, weights, rank=1)
        if x.ndim > 2:
            return super().sum_statistic(x, w)
        return float(w.sum()), np.concatenate([w @ x, ((x.T * w) @ x).ravel()])

    def log_base_measure(self, x: ArrayLike) -> Array:
        """Return log h(x) = -½d log 2π, whatever x."""
        return np.full(np.shape(x)[:-1], -HALF_LOG_2PI * np.shape(x)[-1])[()]

    @classmethod
    def from_natural_parameter(cls, natural_parameter: ArrayLike) -> Self:
        """Return the member with η = (Σ⁻¹μ, -½Σ⁻¹)."""
        first, second = _split(np.asarray(natural_parameter, dtype=np.float64))
        cov = np.linalg.inv(-2.0 * second)
        return cls((cov @ first[..., None])[..., 0], 0.5 * (cov + np.swapaxes(cov, -1, -2)))

    @classmethod
    def from_mean_statistic(cls, mean_statistic: ArrayLike) -> Self:
        """Return the member with the means (E x, E xxᵀ); where the mean is large, prefer `fit_mle` on the data."""
        first, second = _split(np.asarray(mean_statistic, dtype=np.float64))
        cov = second - first[..., :, None] * first[..., None, :]
        return cls(first, 0.5 * (cov + np.swapaxes(cov, -1, -2)))

    def _as_entries(self, name: str, of: Sequence[int]) -> NDArray[np.intp]:
        """Return the named entries as indices in range, none of them twice."""
        d = self.event_shape[0]
        index = np.atleast_1d(np.asarray(of))
        whole = index.dtype.kind in "iu" and index.ndim == 1 and index.size > 0
        if not whole or np.any(index < -d) or np.any(index >= d) or np.unique(index % d).size != index.size:
            raise ParameterError(
                f"{type(self).__name__}: {name} must name entries from 0 to {d - 1}, none of them twice, got {of!r}."
            )
        return (index % d).astype(np.intp)


def _split(flat: Array) -> tuple[Array, Array]:
    """Return the vector and the matrix of a statistic of d + d² entries."""
    d = round((np.sqrt(4 * flat.shape[-1] + 1) - 1) / 2)
    if d * (d + 1) != flat.shape[-1]:
        raise ParameterError(f"MultivariateNormal: a statistic has d + d² entries for some d, got {flat.shape[-1]}.")
    return flat[..., :d], flat[..., d:].reshape(*flat.shape[:-1], d, d)


def _refuse_flat(cls: type, x: Array) -> None:
    raise DataError(
        f"{cls.__name__}: fit_mle needs samples that do not lie in a plane of fewer dimensions, got {x.shape[0]} "
        f"samples of {x.shape[-1]} entries that do: the likelihood grows without bound; use fit_map with a prior."
    )


# The linear algebra of normal distributions: factors of covariance matrices, and what is computed with them.
#
# A matrix is factorised after its rows and columns are divided by the standard deviations, so that units do not
# matter;
# the threshold below which an eigenvalue counts as zero is relative to a correlation matrix, whose diagonal is one.

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
        lower = np.zeros_like(correlation)
        sound = np.zeros(cov.shape[:-2], dtype=bool)
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
    n_factors = factor.rank.size
    n_rows = squares.size
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
    d = x.shape[-1]
    shape = x.shape[:-1]
    single = all(stride == 0 for stride in mean.strides[:-1])
    rows = (x if single else x - mean).reshape(-1, d)
    centre = mean.reshape(-1, d)[0] if single and mean.size else np.zeros(d)
    if factor.rank < d:
        return _squares_on_support(rows - centre, factor).reshape(shape)
    from ..data.blocks import reduce_loads  # here: they load what small problems do not need

    out = np.empty(rows.shape[0])
    matrix = np.ascontiguousarray(factor.matrix)
    centre = np.ascontiguousarray(centre)

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
    first = lower[..., :n_given, :n_given]
    mixed = lower[..., n_given:, :n_given]
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
