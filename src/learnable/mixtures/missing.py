"""Rows of a Gaussian mixture with missing entries: densities and expected moments given what is observed.

With o the observed and u the missing entries of a row, component k gives it the density N(xₒ; μₒ, Σₒₒ), and its
missing entries the mean μᵤ + ΣᵤₒΣₒₒ⁻¹(xₒ − μₒ) and the covariance Σᵤᵤ − ΣᵤₒΣₒₒ⁻¹Σₒᵤ. Rows with the same gaps are
treated together.

Reference: Z. Ghahramani and M. Jordan, Supervised learning from incomplete data via an EM approach, NIPS 6 (1994).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_LOG_2PI = float(np.log(2 * np.pi))


def log_joint_incomplete(kind: str, mixture: Any, X: Array) -> Array:
    """Return log πₖN(xₒ; μₖₒ, Σₖₒₒ) as (K, m); a row without any entry has the density 1."""
    out = np.empty((len(mixture.weights), len(X)))
    with np.errstate(divide="ignore"):
        log_weights = np.log(mixture.weights)
    for rows, seen in _patterns(X):
        for k in range(len(log_weights)):
            cov = _matrix(kind, mixture, k)[np.ix_(seen, seen)]
            gaps = X[np.ix_(rows, seen)] - mixture.means[k, seen]
            solved = np.linalg.solve(cov, gaps.T).T if seen.any() else gaps
            log_det = np.linalg.slogdet(cov)[1] if seen.any() else 0.0
            square = (gaps * solved).sum(axis=1)
            out[k, rows] = log_weights[k] - 0.5 * (seen.sum() * _LOG_2PI + log_det + square)
    return out


def add_incomplete(
    kind: str, mixture: Any, X: Array, w: Array, known: Array | None, counts: Array, first: Array, second: Array
) -> float:
    """Add the expected statistics of such rows to N, s and S; return their log-likelihood."""
    from .normals import normalise, restrict

    log_likelihood, r = normalise(restrict(log_joint_incomplete(kind, mixture, X), known))
    r = r * w
    counts += r.sum(axis=1)
    for rows, seen in _patterns(X):
        for k in range(len(counts)):
            cov, mine = _matrix(kind, mixture, k), r[k, rows]
            gaps = np.zeros((len(rows), X.shape[1]))
            gaps[:, seen] = X[np.ix_(rows, seen)] - mixture.means[k, seen]
            left = np.zeros_like(cov)
            left[np.ix_(~seen, ~seen)] = cov[np.ix_(~seen, ~seen)]
            if seen.any() and not seen.all():
                slope = np.linalg.solve(cov[np.ix_(seen, seen)], cov[np.ix_(seen, ~seen)])
                gaps[:, ~seen] = gaps[:, seen] @ slope
                left[np.ix_(~seen, ~seen)] -= cov[np.ix_(~seen, seen)] @ slope
            first[k] += mine @ gaps
            moments = (gaps.T * mine) @ gaps + mine.sum() * left
            second[k] += moments if second.ndim == 3 else np.diag(moments)
    return float(w @ log_likelihood)


def _patterns(X: Array) -> Iterator[tuple[Array, Array]]:
    """Yield rows with the same gaps, and which of their entries are observed."""
    patterns, which = np.unique(~np.isnan(X), axis=0, return_inverse=True)
    for number, seen in enumerate(patterns):
        yield np.flatnonzero(which.ravel() == number), seen


def _matrix(kind: str, mixture: Any, k: int) -> Array:
    d = mixture.means.shape[1]
    if kind == "full":
        return np.asarray(mixture.covariances[k])
    if kind == "tied":
        return np.asarray(mixture.covariances)
    return np.diag(np.broadcast_to(mixture.covariances[k], d))
