r"""The Wishart distribution of scatter matrices, and that of their inverses.

$$ p(X) = \frac{|X|^{(\nu-d-1)/2}\, e^{-\frac12\mathrm{tr}(V^{-1}X)}}{2^{\nu d/2} |V|^{\nu/2}\, \Gamma_d(\nu/2)}, \qquad
   p(Y) = \frac{|\Psi|^{\nu/2}\, |Y|^{-(\nu+d+1)/2}\, e^{-\frac12\mathrm{tr}(\Psi Y^{-1})}}
   {2^{\nu d/2}\, \Gamma_d(\nu/2)}
   \quad (Y = X^{-1},\; \Psi = V^{-1}). $$

As exponential families, with matrices row by row: $t(X) = (\log|X|, X)$ with $\eta = (\frac{\nu-d-1}2, -\frac12
V^{-1})$,
and $t(Y) = (\log|Y|, Y^{-1})$ with $\eta = (-\frac{\nu+d+1}2, -\frac12\Psi)$; $h = 1$ and
$A = \frac{\nu d}2\log 2 + \frac\nu2\log|V| + \log\Gamma_d(\frac\nu2)$. Draws are Bartlett's (1933): X = LTTᵀLᵀ
with a triangular T.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, multigammaln

from ..core.errors import DataError, ParameterError
from .base import (
    Array,
    ExponentialFamily,
    Parameter,
    RandomState,
    Size,
    check_sample,
    require,
    require_support,
    weighted_mean,
)
from .saddle import solve_wishart_df

_LOG_2 = math.log(2.0)


class _WishartLike(ExponentialFamily):
    """What the two distributions of positive definite matrices share."""

    _event_ranks: ClassVar[Mapping[str, int]] = {"scale": 2}
    _event_rank = 2
    _support = "symmetric positive definite matrices"

    def __init__(self, df: ArrayLike, scale: ArrayLike) -> None:
        self._store(df=df, scale=scale)
        d = self.scale.shape[-1]
        if self.scale.shape[-2] != d:
            raise ParameterError(f"{type(self).__name__}: scale must be a square matrix, got shape {self.scale.shape}.")
        require(
            self, "df", self.df, (self.df > d - 1.0) & np.isfinite(self.df), f"> {d - 1}, the size less one, and finite"
        )
        if not np.all(_is_positive_definite(self.scale)):
            raise ParameterError(
                f"{type(self).__name__}: scale must be symmetric and positive definite, got {self.scale!s}."
            )

    @classmethod
    def fit_mle(cls, x: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Return the distribution of greatest likelihood.

        Parameters
        ----------
        x : array of shape (n, ..., d, d)
            Positive definite matrices along the first axis.
        weights : array of shape (n,), optional
            Non-negative; a weight of 2 counts as the same sample twice.
        """
        x, w = check_sample(cls, x, weights, rank=2)
        require_support(cls, x, _is_positive_definite(x))
        if np.any(np.all(x == x[:1], axis=(0, -2, -1))):
            raise DataError(
                f"{cls.__name__}: fit_mle needs two distinct matrices of positive weight, got a constant: "
                "its likelihood grows without bound."
            )
        return cls.from_mean_statistic(weighted_mean(cls._statistic(x), w))

    @staticmethod
    def _linear_part(x: Array) -> Array:
        """Return the matrix of t(x)."""
        raise NotImplementedError

    @classmethod
    def _statistic(cls, x: Array) -> Array:
        log_det = np.linalg.slogdet(x)[1]
        return np.concatenate([log_det[..., None], cls._linear_part(x).reshape(*x.shape[:-2], -1)], axis=-1)

    df = Parameter("The degrees of freedom ν.")

    scale = Parameter("The scale matrix: V of a Wishart, Ψ of an inverse Wishart distribution.")

    @property
    def _size(self) -> int:
        return int(self.scale.shape[-1])

    def _log_det_mean(self) -> Array:
        """Return E log|X| for the Wishart distributed matrix of scale one: d log 2 + ψ_d(ν/2)."""
        return self._size * _LOG_2 + multidigamma(0.5 * self.df, self._size)

    def sufficient_statistic(self, x: ArrayLike) -> Array:
        """Return t(x): log|x|, then x or its inverse row by row, of 1 + d² entries."""
        return self._statistic(np.asarray(x, dtype=np.float64))

    def log_base_measure(self, x: ArrayLike) -> Array:
        """Return log h(x) = 0 for a positive definite matrix."""
        return np.where(_is_positive_definite(np.asarray(x, dtype=np.float64)), 0.0, -np.inf)[()]

    def logpdf(self, x: ArrayLike) -> Array:
        """Return ⟨η, t(x)⟩ - A(η); -inf unless x is symmetric and positive definite."""
        x = np.asarray(x, dtype=np.float64)
        inside = _is_positive_definite(x)
        safe = np.where(inside[..., None, None], x, np.eye(self._size))
        value = np.sum(self.natural_parameter * self._statistic(safe), axis=-1) - self.log_partition
        return np.where(inside, value, np.where(np.isnan(x).any(axis=(-2, -1)), np.nan, -np.inf))[()]

    def _entropy_in_nats(self) -> Array:
        return self.log_partition - np.sum(self.natural_parameter * self.mean_statistic, axis=-1)

    def _standard_factors(self, size: Size, random_state: RandomState) -> Array:
        """Draw Bartlett's T: χ on the diagonal, standard normal below it; TTᵀ is Wishart with the scale one."""
        rng = np.random.default_rng(random_state)
        d = self._size
        shape = self._sample_shape(size)
        T = np.tril(rng.standard_normal((*shape, d, d)), -1)
        halves = 0.5 * (np.asarray(self.df)[..., None] - np.arange(d))
        T[..., np.arange(d), np.arange(d)] = np.sqrt(2.0 * rng.standard_gamma(halves, (*shape, d)))
        return T


class Wishart(_WishartLike):
    """The distribution of Σ xᵢxᵢᵀ for ν draws xᵢ from N(0, V); or an array of such.

    Parameters
    ----------
    df : float or array
        The degrees of freedom ν > d - 1, not necessarily whole.
    scale : array of shape (..., d, d)
        V, symmetric and positive definite.

    Examples
    --------
    >>> Wishart(5.0, [[1.0, 0.5], [0.5, 2.0]]).mean
    array([[ 5. ,  2.5],
           [ 2.5, 10. ]])
    """

    @staticmethod
    def _linear_part(x: Array) -> Array:
        return x

    @property
    def mean(self) -> Array:
        """The mean νV."""
        return np.asarray(self.df)[..., None, None] * self.scale

    @property
    def variance(self) -> Array:
        """The variance ν(V_ij² + V_ii V_jj) of each entry."""
        return np.asarray(self.df)[..., None, None] * (np.square(self.scale) + _products_of_diagonal(self.scale))

    @property
    def mode(self) -> Array:
        """The mode (ν - d - 1)V; NaN unless ν > d + 1."""
        excess = np.asarray(self.df)[..., None, None] - self._size - 1.0
        return np.where(excess > 0.0, excess * self.scale, np.nan)

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw matrices, of shape `size`, then the batch's, then (d, d)."""
        half = np.linalg.cholesky(self.scale) @ self._standard_factors(size, random_state)
        return half @ np.swapaxes(half, -1, -2)

    @property
    def natural_parameter(self) -> Array:
        """The natural parameter η = ((ν - d - 1)/2, -½V⁻¹), of 1 + d² entries."""
        return _join(0.5 * (self.df - self._size - 1.0), -0.5 * np.linalg.inv(self.scale))

    @property
    def log_partition(self) -> Array:
        """The log-partition function ½νd log 2 + ½ν log|V| + log Γ_d(ν/2)."""
        return _log_normaliser(self.df, np.linalg.slogdet(self.scale)[1], self._size)

    @property
    def mean_statistic(self) -> Array:
        """The mean of (log|X|, X)."""
        return _join(self._log_det_mean() + np.linalg.slogdet(self.scale)[1], self.mean)

    @classmethod
    def from_natural_parameter(cls, natural_parameter: ArrayLike) -> Self:
        """Return the member with η = ((ν - d - 1)/2, -½V⁻¹)."""
        first, matrix = _split(natural_parameter)
        return cls(2.0 * first + matrix.shape[-1] + 1.0, _symmetrise(np.linalg.inv(-2.0 * matrix)))

    @classmethod
    def from_mean_statistic(cls, mean_statistic: ArrayLike) -> Self:
        """Return the member with the means of (log|X|, X)."""
        mean_log_det, mean = _split(mean_statistic)
        df = _solve_df(cls, np.linalg.slogdet(mean)[1] - mean_log_det, mean.shape[-1])
        return cls(df, _symmetrise(mean) / np.asarray(df)[..., None, None])


class InverseWishart(_WishartLike):
    """The distribution of X⁻¹ for a Wishart distributed X: the conjugate prior of a covariance matrix.

    Parameters
    ----------
    df : float or array
        The degrees of freedom ν > d - 1, not necessarily whole.
    scale : array of shape (..., d, d)
        Ψ, symmetric and positive definite: the inverse of the Wishart distribution's V.

    Examples
    --------
    >>> InverseWishart(5.0, [[2.0, 0.0], [0.0, 4.0]]).mean
    array([[1., 0.],
           [0., 2.]])
    """

    @staticmethod
    def _linear_part(x: Array) -> Array:
        return np.asarray(np.linalg.inv(x), dtype=np.float64)

    @property
    def mean(self) -> Array:
        """The mean Ψ/(ν - d - 1); NaN unless ν > d + 1."""
        excess = np.asarray(self.df)[..., None, None] - self._size - 1.0
        return np.where(excess > 0.0, self.scale / np.where(excess > 0.0, excess, 1.0), np.nan)

    @property
    def variance(self) -> Array:
        """The variance of each entry; NaN unless ν > d + 3."""
        nu = np.asarray(self.df)[..., None, None]
        d = self._size
        e = np.where(nu > d + 3.0, nu - d - 1.0, 3.0)
        squares = (e + 2.0) * np.square(self.scale) + e * _products_of_diagonal(self.scale)
        value = squares / ((e + 1.0) * np.square(e) * (e - 2.0))
        return np.where(nu > d + 3.0, value, np.nan)

    @property
    def mode(self) -> Array:
        """The mode Ψ/(ν + d + 1)."""
        return self.scale / (np.asarray(self.df)[..., None, None] + self._size + 1.0)

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw matrices, of shape `size`, then the batch's, then (d, d)."""
        # With Ψ = LLᵀ, X = L⁻ᵀTTᵀL⁻¹ is Wishart and X⁻¹ = (LT⁻ᵀ)(LT⁻ᵀ)ᵀ.
        T = self._standard_factors(size, random_state)
        lower = np.broadcast_to(np.linalg.cholesky(self.scale), T.shape)
        half = np.swapaxes(np.linalg.solve(T, np.swapaxes(lower, -1, -2)), -1, -2)
        return half @ np.swapaxes(half, -1, -2)

    @property
    def natural_parameter(self) -> Array:
        """The natural parameter η = (-(ν + d + 1)/2, -½Ψ), of 1 + d² entries."""
        return _join(-0.5 * (self.df + self._size + 1.0), -0.5 * self.scale)

    @property
    def log_partition(self) -> Array:
        """The log-partition function ½νd log 2 - ½ν log|Ψ| + log Γ_d(ν/2)."""
        return _log_normaliser(self.df, -np.linalg.slogdet(self.scale)[1], self._size)

    @property
    def mean_statistic(self) -> Array:
        """The mean of (log|Y|, Y⁻¹)."""
        linear = np.asarray(self.df)[..., None, None] * np.linalg.inv(self.scale)
        return _join(np.linalg.slogdet(self.scale)[1] - self._log_det_mean(), linear)

    @classmethod
    def from_natural_parameter(cls, natural_parameter: ArrayLike) -> Self:
        """Return the member with η = (-(ν + d + 1)/2, -½Ψ)."""
        first, matrix = _split(natural_parameter)
        return cls(-2.0 * first - matrix.shape[-1] - 1.0, _symmetrise(-2.0 * matrix))

    @classmethod
    def from_mean_statistic(cls, mean_statistic: ArrayLike) -> Self:
        """Return the member with the means of (log|Y|, Y⁻¹)."""
        mean_log_det, mean_inverse = _split(mean_statistic)
        df = _solve_df(cls, np.linalg.slogdet(mean_inverse)[1] + mean_log_det, mean_inverse.shape[-1])
        return cls(df, _symmetrise(np.linalg.inv(mean_inverse)) * np.asarray(df)[..., None, None])


def multidigamma(a: Array, d: int) -> Array:
    """Return ψ_d(a) = Σ_{j<d} ψ(a - j/2), the derivative of log Γ_d."""
    value: Array = sum(digamma(a - 0.5 * j) for j in range(d))  # type: ignore[assignment]
    return value


def _log_normaliser(df: Array, log_det: Array, d: int) -> Array:
    log_gamma = np.vectorize(multigammaln, otypes=[np.float64])(0.5 * df, d)
    return (0.5 * df * (d * _LOG_2 + log_det) + log_gamma)[()]  # type: ignore[no-any-return]


def _is_positive_definite(x: Array) -> NDArray[np.bool_]:
    """Return, for each matrix, whether it is symmetric to rounding and positive definite."""
    with np.errstate(invalid="ignore"):
        size = np.sqrt(np.abs(_products_of_diagonal(x)))
        symmetric = np.all(np.abs(x - np.swapaxes(x, -1, -2)) <= 1e-8 * size, axis=(-2, -1))
    finite = np.all(np.isfinite(x), axis=(-2, -1))
    safe = np.where((symmetric & finite)[..., None, None], x, np.eye(x.shape[-1]))
    std = np.sqrt(np.maximum(np.diagonal(safe, axis1=-2, axis2=-1), 0.0))
    std = np.where(std > 0.0, std, 1.0)
    least = np.linalg.eigvalsh(safe / std[..., :, None] / std[..., None, :])[..., 0]
    return np.asarray(symmetric & finite & (least > 0.0))


def _products_of_diagonal(x: Array) -> Array:
    diagonal = np.diagonal(x, axis1=-2, axis2=-1)
    return diagonal[..., :, None] * diagonal[..., None, :]


def _symmetrise(x: NDArray[Any]) -> Array:
    return 0.5 * (x + np.swapaxes(x, -1, -2))


def _join(first: Array, matrix: NDArray[Any]) -> Array:
    return np.concatenate([np.asarray(first)[..., None], matrix.reshape(*matrix.shape[:-2], -1)], axis=-1)


def _split(flat: ArrayLike) -> tuple[Array, Array]:
    """Return the number and the matrix of a statistic of 1 + d² entries."""
    flat = np.asarray(flat, dtype=np.float64)
    d = math.isqrt(flat.shape[-1] - 1)
    if 1 + d * d != flat.shape[-1]:
        raise ParameterError(f"Wishart: a statistic has 1 + d² entries for some d, got {flat.shape[-1]}.")
    return flat[..., 0], flat[..., 1:].reshape(*flat.shape[:-1], d, d)


def _solve_df(cls: type[Any], gap: Array, d: int) -> Array:
    """Return the ν with d log(ν/2) - ψ_d(ν/2) = gap."""
    if not np.all(gap > 0.0):
        raise DataError(f"{cls.__name__}: the means are those of a constant; there must be two distinct matrices.")
    return solve_wishart_df(gap, d)
