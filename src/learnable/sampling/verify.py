"""Re-derive the certificate of chains from their draws: ranks by sorting, autocovariances by their definition.

It shares no code with `diagnostics`: sums instead of Fourier transforms, and one parameter at a time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

from ..core.checking import Recheck
from ..core.errors import VerificationError

Array = NDArray[np.float64]


def chains(model: Any, X: Any = None, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Return max((R̂ − 1)/0.01, 400/ESS) over all parameters, and more than 1 if a draw diverged."""
    if X is not None or y is not None:
        raise VerificationError("verify: chains hold their draws and need no data; call verify(chains).")
    draws = model.draws
    moving = [j for j in range(draws.shape[2]) if (draws[:, :, j] != draws[0, 0, j]).any()]
    value = max((_worst_of(draws[:, :, j]) for j in moving), default=math.inf)
    value = value if math.isfinite(value) and draws.shape[1] >= 4 else math.inf
    diverging = model.stats.get("diverging")
    if diverging is not None and diverging.any():
        value = max(value, 1.0 + float(diverging.mean()))
    return Recheck(value, 1e-9, model.certificate_.fingerprint)


def _worst_of(x: Array) -> float:
    half = x.shape[1] // 2
    parts = np.concatenate([x[:, :half], x[:, x.shape[1] - half :]])
    bulk = _scores(parts)
    folded = _scores(np.abs(parts - np.median(parts)))
    rhats = [r for r in (_rhat(bulk), _rhat(folded)) if r == r]
    sizes = [_ess(bulk)]
    for p in (0.05, 0.95):
        low = (x <= np.quantile(x, p)).astype(np.float64)
        size = _ess(np.concatenate([low[:, :half], low[:, x.shape[1] - half :]]))
        if size == size:  # an indicator that never changes says nothing
            sizes.append(size)
    if not rhats or min(sizes) <= 0 or min(sizes) != min(sizes):
        return math.inf
    return max((max(rhats) - 1) / 0.01, 400.0 / min(sizes))


def _scores(parts: Array) -> Array:
    ranks = rankdata(parts.ravel()).reshape(parts.shape)
    return np.asarray(norm.ppf((ranks - 0.375) / (parts.size + 0.25)))


def _rhat(parts: Array) -> float:
    n = parts.shape[1]
    within = float(np.mean([np.var(part, ddof=1) for part in parts]))
    between = n * float(np.var([part.mean() for part in parts], ddof=1))
    if within == 0:
        return math.inf if between > 0 else math.nan
    return math.sqrt((n - 1 + between / within) / n)


def _ess(parts: Array) -> float:
    """Return S/τ, each autocovariance as the sum that defines it, until Geyer's pairs are no longer positive."""
    m, n = parts.shape
    if (parts == parts[0, 0]).all():
        return math.nan
    centred = parts - parts.mean(axis=1, keepdims=True)

    def covariance(lag: int) -> float:
        return float(np.mean([part[: n - lag] @ part[lag:] for part in centred]) / n)

    within = covariance(0) * n / (n - 1)
    total = covariance(0) + (float(np.var(parts.mean(axis=1), ddof=1)) if m > 1 else 0.0)

    def correlation(lag: int) -> float:
        return 1.0 if lag == 0 else 1 - (within - covariance(lag)) / total

    tau = -1.0
    smallest = math.inf
    lag = 0
    while True:
        even = correlation(lag)
        odd = correlation(lag + 1)
        if not even + odd > 0 or lag >= 2 * ((n - 4) // 2):
            tau += even if even + odd >= 0 else max(even, 0.0)
            break
        smallest = min(smallest, even + odd)
        tau += 2 * smallest
        lag += 2
    S = m * n
    return float(S / max(tau, 1 / math.log10(S)))
