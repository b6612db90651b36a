r"""How many principal components: Minka's evidence, Horn's parallel analysis, Gavish and Donoho's threshold.

References: T. Minka, Automatic choice of dimensionality for PCA, NIPS 2000 (equation 77); J. Horn, A rationale and test
for the number of factors in factor analysis, Psychometrika 30 (1965); M. Gavish and D. Donoho, The optimal hard
threshold for singular values is 4/√3, IEEE Transactions on Information Theory 60 (2014).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import gammaln

Array = NDArray[np.float64]

#: Permuted tables of a parallel analysis, and the quantile of their eigenvalues that a component has to exceed.
PERMUTATIONS = 20
QUANTILE = 0.95


def minka(values: Array, n_rows: float) -> int:
    """Return the number of components with the greatest evidence, given all d eigenvalues of the covariance."""
    evidences = np.array([minka_evidence(values, k, n_rows) for k in range(1, len(values))])
    return int(evidences.argmax()) + 1 if len(evidences) else 1


def minka_evidence(values: Array, k: int, n_rows: float) -> float:
    """Return Laplace's approximation of log p(rows | k components)."""
    d = len(values)
    smallest = float(np.finfo(np.float64).eps)
    if values[k - 1] < smallest:  # no evidence for a direction without variance
        return -np.inf
    noise = max(smallest, float(values[k:].mean()))
    directions = np.arange(d, d - k, -1) / 2.0
    uniform = -k * np.log(2.0) + float((gammaln(directions) - directions * np.log(np.pi)).sum())
    fit = -n_rows / 2.0 * (float(np.log(values[:k]).sum()) + (d - k) * np.log(noise))
    free = d * k - k * (k + 1) / 2.0
    smoothed = np.concatenate([values[:k], np.full(d - k, noise)])
    i, j = np.triu_indices(d, 1)
    kept = i < k
    i = i[kept]
    j = j[kept]
    with np.errstate(divide="ignore", invalid="ignore"):
        curvature = np.log((values[i] - values[j]) * (1.0 / smoothed[j] - 1.0 / smoothed[i])) + np.log(n_rows)
    total = float(curvature.sum())
    if not np.isfinite(total):  # equal eigenvalues: the Laplace approximation does not tell them apart
        return -np.inf
    return uniform + fit + (free + k) / 2.0 * np.log(2.0 * np.pi) - total / 2.0 - k / 2.0 * np.log(n_rows)


def parallel(X: Array, values: Array, rng: np.random.Generator) -> int:
    """Return how many leading eigenvalues exceed those of tables whose columns are shuffled, each by itself."""
    n, d = X.shape
    centred = X - X.mean(axis=0)
    drawn = np.empty((PERMUTATIONS, min(n, d)))
    for row in drawn:
        shuffled = rng.permuted(centred, axis=0)
        row[:] = np.linalg.svd(shuffled, compute_uv=False) ** 2 / max(n - 1, 1)
    limit = np.quantile(drawn, QUANTILE, axis=0)
    above = values[: len(limit)] > limit
    return max(1, int(above.argmin()) if not above.all() else len(above))


def gavish_donoho(singular_values: Array, shape: tuple[int, int]) -> int:
    """Return how many of all singular values exceed the best threshold for noise of unknown size."""
    return max(1, int((singular_values > noise_threshold(shape) * np.median(singular_values)).sum()))


def noise_threshold(shape: tuple[int, int]) -> float:
    """Return ω(β) = λ(β)/√μ(β), with μ the median of the Marchenko–Pastur law and β = smaller / larger side.

    Examples
    --------
    >>> round(noise_threshold((100, 100)), 4)
    2.8584
    """
    beta = min(shape) / max(shape)
    root = np.sqrt(2.0 * (beta + 1.0) + 8.0 * beta / (beta + 1.0 + np.sqrt(beta**2 + 14.0 * beta + 1.0)))
    return float(root / np.sqrt(_marchenko_pastur_median(beta)))


def _marchenko_pastur_median(beta: float) -> float:
    low = (1.0 - np.sqrt(beta)) ** 2
    high = (1.0 + np.sqrt(beta)) ** 2

    def share_below(x: float) -> float:
        # t = low + (x − low) sin²θ takes the square roots at the ends away.
        def density(angle: float) -> float:
            t = low + (high - low) * np.sin(angle) ** 2
            return float((high - low) ** 2 * (np.sin(angle) * np.cos(angle)) ** 2 / (np.pi * beta * max(t, 1e-300)))

        top = np.arcsin(np.sqrt(min(1.0, (x - low) / (high - low))))
        return float(quad(density, 0.0, top)[0])

    return float(brentq(lambda x: share_below(x) - 0.5, low, high))
