"""Leave-one-out predictive densities by Pareto-smoothed importance sampling.

Reference: A. Vehtari, D. Simpson, A. Gelman, Y. Yao and J. Gabry, Pareto smoothed importance sampling (JMLR 25, 2024);
the generalised Pareto distribution is fitted by the method of J. Zhang and M. Stephens (Technometrics 51, 2009).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from ..core.errors import DataError

Array = NDArray[np.float64]

#: Beyond this k the weights of a row have so heavy a tail that its estimate is not to be trusted.
TRUSTED = 0.7


@dataclass(frozen=True)
class LeaveOneOut:
    """Expected log predictive density of rows that were left out, without fitting again.

    Attributes
    ----------
    elpd : float
        Σᵢ log p(yᵢ | all other rows).
    se : float
        Its standard error over rows.
    p_loo : float
        Effective number of parameters.
    pointwise : array of shape (n_rows,)
        The terms of `elpd`.
    pareto_k : array of shape (n_rows,)
        Shape of the tail of each row's weights; above 0.7 the row's term is not reliable.
    """

    elpd: float
    se: float
    p_loo: float
    pointwise: Array
    pareto_k: Array

    @property
    def unreliable(self) -> Any:
        """Rows whose k is above 0.7."""
        return np.flatnonzero(self.pareto_k > TRUSTED)

    def __str__(self) -> str:
        said = f"elpd_loo {self.elpd:.1f} ± {self.se:.1f}, p_loo {self.p_loo:.1f}"
        bad = len(self.unreliable)
        return said if not bad else f"{said}; {bad} rows with Pareto k > 0.7: fit again without them to be sure"


def psis_loo(log_likelihood: ArrayLike) -> LeaveOneOut:
    """Return the leave-one-out densities of draws.

    Parameters
    ----------
    log_likelihood : array of shape (n_draws, n_rows)
        log p(yᵢ | θₛ) of every draw.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.sampling import psis_loo
    >>> rng = np.random.default_rng(0)
    >>> y, theta = rng.normal(size=20), rng.normal(scale=20**-0.5, size=(4000, 1))
    >>> loo = psis_loo(-0.5 * (y - theta) ** 2 - 0.5 * np.log(2 * np.pi))
    >>> loo.pareto_k.max() < 0.7
    np.True_
    """
    terms = np.asarray(log_likelihood, dtype=np.float64)
    if terms.ndim != 2 or terms.shape[0] < 20 or not terms.shape[1] or not np.isfinite(terms).all():
        raise DataError(f"psis_loo: log_likelihood must be finite, (n_draws ≥ 20, n_rows); got shape {terms.shape}.")
    smoothed = [smooth_weights(-terms[:, i]) for i in range(terms.shape[1])]
    k = np.array([shape for _, shape in smoothed])
    pointwise = np.array([logsumexp(weights + terms[:, i]) for i, (weights, _) in enumerate(smoothed)])
    full = logsumexp(terms, axis=0) - np.log(len(terms))
    n = len(pointwise)
    se = float(np.sqrt(n * pointwise.var(ddof=1))) if n > 1 else 0.0
    return LeaveOneOut(float(pointwise.sum()), se, float((full - pointwise).sum()), pointwise, k)


def smooth_weights(log_ratios: Array) -> tuple[Array, float]:
    """Return normalised log weights, the largest replaced by quantiles of a fitted Pareto tail, and the tail's k."""
    S = len(log_ratios)
    weights = log_ratios - log_ratios.max()
    size = int(np.ceil(min(0.2 * S, 3 * np.sqrt(S))))
    order = np.argsort(weights)
    tail = order[-size:]
    cutoff = weights[order[-size - 1]]
    k = np.inf
    if size >= 5 and weights[tail[-1]] - weights[tail[0]] > 1e-10:
        k, scale = fit_pareto(np.exp(weights[tail]) - np.exp(cutoff))
        if np.isfinite(k):
            p = (np.arange(1, size + 1) - 0.5) / size
            exceed = scale * np.expm1(-k * np.log1p(-p)) / k if k != 0 else -scale * np.log1p(-p)
            weights = weights.copy()
            weights[tail] = np.minimum(np.log(exceed + np.exp(cutoff)), 0.0)
    elif size >= 5:
        k = 0.0  # all weights of the tail are equal
    return weights - logsumexp(weights), float(k)


def fit_pareto(x: Array) -> tuple[float, float]:
    """Return shape k and scale σ of a generalised Pareto distribution for sorted excesses."""
    n = len(x)
    m = 30 + int(np.sqrt(n))
    grid = 1 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))
    theta = grid / (3 * x[int(n / 4 + 0.5) - 1]) + 1 / x[-1]
    k = np.log1p(-theta[:, None] * x).mean(axis=1)
    profile = n * (np.log(-theta / k) - k - 1)
    share = np.exp(profile - logsumexp(profile))
    best = float((theta * share).sum())
    k_hat = float(np.log1p(-best * x).mean())
    scale = -k_hat / best
    # The weak prior of the reference: ten observations at 1/2.
    return (n * k_hat + 5) / (n + 10), scale
