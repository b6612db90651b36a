r"""Gaussian densities of rows, expected moments, and the M-step, for four shapes of covariance.

Missing entries are integrated out: a diagonal density leaves them away; a full one takes the marginal density of what
is there, and its expected moments use E[x | what is there] and the conditional covariance (R. Little and D. Rubin,
Statistical Analysis with Missing Data, 2nd ed. 2002, §11.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular

from ..core.errors import DataError
from ._row_kernels import log_normal_rows, scatter_rows
from .inference import padded_size

Array = NDArray[Any]

_LOG_2PI = float(np.log(2 * np.pi))
_LEAST_SHARE = 1e-26


def expand(covars: Array, kind: str, K: int, d: int) -> Array:
    """Return covariances as full matrices, (K, d, d)."""
    if kind == "full":
        return covars
    if kind == "tied":
        return np.broadcast_to(covars, (K, d, d))
    return _diagonal(covars, kind, d)[:, :, None] * np.eye(d)


def gaussian_frames(X: Array, means: Array, covars: Array, kind: str) -> Array:
    """Return log N(x | μ_k, Σ_k), (n, K)."""
    K, d = means.shape
    if kind in ("diag", "spherical"):
        variance = _diagonal(covars, kind, d)
        share = -0.5 * (_LOG_2PI + np.log(variance))
        out = np.empty((len(X), padded_size(K)))
        log_normal_rows(X, _lanes(means), _lanes(0.5 / variance), _lanes(share), out.reshape(-1))
        return out[:, :K]
    full, out = expand(covars, kind, K, d), np.zeros((len(X), K))
    for rows, there in _patterns(X):
        if not there.any():
            continue
        x = X[rows][:, there]
        for k in range(K):
            factor = np.linalg.cholesky(full[k][np.ix_(there, there)])
            z = solve_triangular(factor, (x - means[k, there]).T, lower=True, check_finite=False)
            out[rows, k] = -0.5 * (z * z).sum(axis=0) - np.log(np.diag(factor)).sum() - 0.5 * len(factor) * _LOG_2PI
    return out


def gaussian_statistics(X: Array, weight: Array, means: Array, covars: Array, kind: str) -> tuple[Array, ...]:
    """Return n, Σγ(x − μ) and Σγ(x − μ)(x − μ)ᵀ about the present means; their diagonals for diagonal shapes.

    The weights γ are (n, K), or padded with columns of zeros to a multiple of four.
    """
    K, d = means.shape
    if kind in ("diag", "spherical"):
        M = padded_size(K)
        if weight.shape[1] != M:
            weight = np.pad(weight, ((0, 0), (0, M - weight.shape[1])))
        sums = np.zeros((3, d * M))
        scatter_rows(X, weight.ravel(), _lanes(means), *sums)
        count, first, second = sums.reshape(3, d, M)[:, :, :K]
        return count.T, first.T, second.T
    full, weight = expand(covars, kind, K, d), weight[:, :K]
    count, first, second = np.zeros(K), np.zeros((K, d)), np.zeros((K, d, d))
    for rows, there in _patterns(X):
        if not there.any():
            continue  # a row without entries says nothing about the emissions
        gone, gamma = ~there, weight[rows]
        count += gamma.sum(axis=0)
        for k in range(K):
            z = np.zeros((len(gamma), d))
            z[:, there] = X[rows][:, there] - means[k, there]
            if gone.any():
                factor = np.linalg.cholesky(full[k][np.ix_(there, there)])
                slope = cho_solve((factor, True), full[k][np.ix_(there, gone)])
                z[:, gone] = z[:, there] @ slope
                rest = full[k][np.ix_(gone, gone)] - full[k][np.ix_(gone, there)] @ slope
                second[k][np.ix_(gone, gone)] += gamma[:, k].sum() * rest
            first[k] += gamma[:, k] @ z
            second[k] += (z * gamma[:, k, None]).T @ z
    return count, first, second


@dataclass(frozen=True)
class Covariances:
    """The priors of means and covariances, and the M-step under them."""

    kind: str
    mean: Array  #: μ₀ (K, d)
    mean_weight: Array  #: m (K, 1)
    scale: Array  #: C₀, shaped as the covariances: (K, d), (K, d, d) or (d, d)
    excess: float  #: c
    owner: str = "GaussianHMM"  #: the class that an error names

    @classmethod
    def build(
        cls, kind: str, K: int, d: int, mean: Any, weight: Any, scale: Any, excess: Any, owner: str = "GaussianHMM"
    ) -> Self:
        """Return the rule with everything broadcast to K states of d columns."""
        mean0, weight0 = np.asarray(mean, dtype=float), np.asarray(weight, dtype=float)
        mean0 = mean0[:, None] if mean0.shape == (K,) and mean0.shape != (d,) else mean0
        weight0 = weight0[:, None] if weight0.ndim == 1 else weight0
        scale0 = np.asarray(scale, dtype=float)
        matrix = kind in ("full", "tied")
        if matrix and scale0.ndim == 0:
            scale0 = scale0 * np.eye(d)
        elif scale0.shape == (K,) and not matrix:
            scale0 = scale0[:, None]
        shape = {"full": (K, d, d), "tied": (d, d)}.get(kind, (K, d))
        degrees = max(float(excess) - (d if matrix else 1), 0.0)
        return cls(
            kind,
            np.broadcast_to(mean0, (K, d)),
            np.broadcast_to(weight0, (K, 1)),
            np.broadcast_to(scale0, shape),
            degrees,
            owner,
        )

    def update(self, statistics: tuple[Array, ...], means: Array, covars: Array, letters: str) -> tuple[Array, Array]:
        """Return the means and covariances that maximise the expected log-likelihood plus the log-prior."""
        count, first, second = statistics
        n = count if count.ndim == 2 else count[:, None]
        m = self.mean_weight
        shift = np.zeros_like(means)
        if "m" in letters:
            total = m + n
            shift = np.where(total > 0, (m * (self.mean - means) + first) / np.where(total > 0, total, 1.0), 0.0)
        if "c" in letters:
            covars = self._covariances(n, first, second, shift, means + shift - self.mean, covars)
        return means + shift, covars

    def _covariances(self, n: Array, first: Array, second: Array, shift: Array, away: Array, covars: Array) -> Array:
        if self.kind in ("diag", "spherical"):
            spread = np.maximum(second - 2 * shift * first + n * shift**2, 0.0)
            top, bottom = self.scale + self.mean_weight * away**2 + spread, self.excess + n
            if self.kind == "spherical":
                top, bottom = top.sum(axis=1), np.broadcast_to(bottom, top.shape).sum(axis=1)
            found = np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), covars)
            variance = _diagonal(found, self.kind, away.shape[1])
        else:
            cross = shift[:, :, None] * first[:, None, :]
            spread = second - cross - cross.transpose(0, 2, 1) + n[:, :, None] * _outer(shift)
            spread = spread + self.mean_weight[:, :, None] * _outer(away)
            if self.kind == "tied":
                total = self.excess + n.sum()
                found = (self.scale + spread.sum(axis=0)) / total if total > 0 else covars
            else:
                bottom = self.excess + n[:, :, None]
                found = np.where(bottom > 0, (self.scale + spread) / np.where(bottom > 0, bottom, 1.0), covars)
            found = (found + np.swapaxes(found, -1, -2)) / 2
            variance = np.where(np.linalg.eigvalsh(found) > 0, np.diagonal(found, axis1=-2, axis2=-1), 0.0)
        # A variance that float64 cannot tell from zero beside the mean is none.
        if not (variance > _LEAST_SHARE * (self.mean + away) ** 2).all():
            raise DataError(
                f"{self.owner}: a covariance collapsed onto a few equal rows, where the likelihood has no maximum; "
                "raise covars_prior, use fewer states, divide large columns, or leave constant ones out."
            )
        return found

    def log_prior(self, means: Array, covars: Array) -> float:
        """Return −½ Σ_k [c log|Σ_k| + tr Σ_k⁻¹ (C₀ + m (μ_k − μ₀)(μ_k − μ₀)ᵀ)]; the first two terms once if tied."""
        d = means.shape[1]
        away = means - self.mean
        if self.kind in ("diag", "spherical"):
            variance = _diagonal(covars, self.kind, d)
            top = self.scale + self.mean_weight * away**2
            return float(-0.5 * (self.excess * np.log(variance) + top / variance).sum())
        full = covars[None] if self.kind == "tied" else covars
        pull = self.mean_weight[:, :, None] * _outer(away)
        top = (self.scale + pull.sum(axis=0))[None] if self.kind == "tied" else self.scale + pull
        trace = np.trace(np.linalg.solve(full, top), axis1=1, axis2=2)
        return float(-0.5 * (self.excess * np.linalg.slogdet(full)[1] + trace).sum())


def _diagonal(covars: Array, kind: str, d: int) -> Array:
    return np.repeat(covars[:, None], d, axis=1) if kind == "spherical" else covars


def _lanes(values: Array) -> Array:
    """Return values (K, d) as rows over states, padded with zeros to a multiple of four: (d · M,)."""
    K, d = values.shape
    out = np.zeros((d, padded_size(K)))
    out[:, :K] = values.T
    return out.ravel()


def _outer(v: Array) -> Array:
    return v[:, :, None] * v[:, None, :]


def _patterns(X: Array) -> Iterator[tuple[Any, Array]]:
    """Yield rows with the same missing entries, and which entries they have."""
    gone = np.isnan(X)
    if not gone.any():
        yield slice(None), np.ones(X.shape[1], dtype=bool)
        return
    kinds, of = np.unique(gone, axis=0, return_inverse=True)
    for number, pattern in enumerate(kinds):
        yield np.flatnonzero(of.ravel() == number), ~pattern
