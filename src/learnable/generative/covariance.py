r"""Covariances of the classes, shrunk or not.

    Σ(λ) = (1 − λ) Σ + λ (tr Σ / d) I

The shrinkage of Ledoit and Wolf is the λ of least expected squared error, estimated from the data. As in scikit-learn's
discriminants it is computed in standardised columns; there

    λ = min(β, δ)/δ,   δ = ‖R − I‖²/d,   β = (n⁻¹ Σᵢ ‖zᵢ‖⁴ − ‖R‖²)/(nd),

with R the correlation matrix of the class and zᵢ its standardised rows (Σᵢ ‖zᵢ‖⁴ takes one more pass over the rows).

Reference: O. Ledoit and M. Wolf, A well-conditioned estimator for large-dimensional covariance matrices, Journal of
Multivariate Analysis 88 (2004), 365–411.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..core.errors import DataError, ParameterError
from ..data.blocks import map_reduce
from .scatter import ClassScatter, add_fourth_powers

Array = NDArray[np.float64]


def shrink(cov: Array, shrinkage: float) -> Array:
    """Return (1 − λ) Σ + λ (tr Σ / d) I."""
    d = cov.shape[-1]
    level = np.trace(cov, axis1=-2, axis2=-1) / d
    return (1.0 - shrinkage) * cov + shrinkage * level[..., None, None] * np.eye(d)


def class_covariances(
    owner: str, table: Any, sums: ClassScatter, shrinkage: Any, estimator: Any, n_jobs: int | None
) -> Array:
    """Return the (K, d, d) covariances of the classes by the method asked for."""
    if estimator is not None:
        if shrinkage not in (None, 0):
            raise ParameterError(
                f"{owner}: covariance_estimator and shrinkage parameters are not None. Only one of the two can be set."
            )
        part = table.blocks.joined()
        weight = part.weight
        rows = [np.asarray(part.X[part.y == k], dtype=np.float64) for k in range(len(sums.weight))]
        if weight is not None and np.ptp(weight) > 0:
            raise DataError(
                f"{owner}: covariance_estimator takes no weights; leave out sample_weight, or the estimator."
            )
        return np.stack([_covariance_by(owner, estimator, X) for X in rows])
    cov = sums.scatter / sums.weight[:, None, None]
    if shrinkage == "auto":
        cov = auto_shrunk(table.blocks, sums.weight, sums.mean, cov, by_class=True, n_jobs=n_jobs)
    elif shrinkage is not None:
        cov = shrink(cov, float(shrinkage))
    return cov


def total_covariance(owner: str, table: Any, sums: ClassScatter, shrinkage: Any, estimator: Any, n_jobs: Any) -> Array:
    """Return the (d, d) covariance of all rows about one mean, by the same method."""
    if estimator is not None:
        return _covariance_by(owner, estimator, np.asarray(table.blocks.joined().X, dtype=np.float64))
    n = sums.weight.sum()
    mean = sums.weight @ sums.mean / n
    away = np.sqrt(sums.weight / n)[:, None] * (sums.mean - mean)
    cov = (sums.within / n + away.T @ away)[None]
    if shrinkage == "auto":
        cov = auto_shrunk(table.blocks, np.array([n]), mean[None], cov, by_class=False, n_jobs=n_jobs)
    elif shrinkage is not None:
        cov = shrink(cov, float(shrinkage))
    return cov[0]


def auto_shrunk(blocks: Any, count: Array, mean: Array, cov: Array, *, by_class: bool, n_jobs: int | None) -> Array:
    """Return the covariances shrunk by Ledoit and Wolf's estimate, each in its own standardised columns."""
    d = cov.shape[-1]
    std = np.sqrt(np.einsum("kii->ki", cov))
    std = np.where(std > 0, std, 1.0)
    R = cov / (std[:, :, None] * std[:, None, :])
    sums = partial(add_fourth_powers, mean=mean, scale=std, by_class=by_class)
    fourth = map_reduce(blocks, sums, np.add, n_jobs=n_jobs)
    square, level = (R**2).sum(axis=(1, 2)), np.trace(R, axis1=1, axis2=2) / d
    n = np.maximum(count, 1.0)
    beta = (fourth / n - square) / (n * d)
    delta = (square - d * level**2) / d
    beta = np.minimum(beta, delta)
    shrinkage = np.where((beta > 0) & (delta > 0), beta / np.where(delta > 0, delta, 1.0), 0.0)
    shrunk = (1.0 - shrinkage)[:, None, None] * R + (shrinkage * level)[:, None, None] * np.eye(d)
    return shrunk * (std[:, :, None] * std[:, None, :])


def _covariance_by(owner: str, estimator: Any, X: Array) -> Array:
    fitted = clone(estimator, safe=False)  # anything with `fit` and `covariance_` will do
    fitted.fit(X)
    if not hasattr(fitted, "covariance_"):
        raise ParameterError(f"{owner}: {type(estimator).__name__} does not have a covariance_ attribute")
    return np.atleast_2d(fitted.covariance_)
