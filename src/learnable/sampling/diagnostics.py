r"""What a set of chains says about itself: R-hat, effective sample sizes, Monte Carlo errors.

All functions take draws of shape (n_chains, n_draws) or (n_chains, n_draws, n_parameters) and return one number per
parameter. Definitions are those of Vehtari, Gelman, Simpson, Carpenter and Bürkner, *Rank-normalization, folding, and
localization: an improved R-hat for assessing convergence of MCMC* (Bayesian Analysis 16, 2021), and of the R package
posterior: every chain is split into halves; draws are replaced by normal scores z = Φ⁻¹((r − 3/8)/(S + 1/4)) of their
ranks r among all S draws (ties share their mean rank);

$$ \hat R = \sqrt{\frac{n - 1 + B/W}{n}}, \qquad \text{ESS} = S / \tau, \qquad
   \tau = -1 + 2\sum_{k<K} P_k + \rho_{2K}, $$

B and W the variances between and within the halves, n their length, P_k = ρ_{2k} + ρ_{2k+1} Geyer's pairs of
autocorrelations, cut at the first K that is not positive and made monotone. τ is at least 1/log₁₀ S.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri

from ..core.errors import DataError
from ..core.threads import on_threads, resolve_n_jobs

Array = NDArray[np.float64]

#: Parameters that are looked at together: few enough that their spectra stay in the processor's cache.
_AT_A_TIME = 8
#: Probabilities of a normal variable within one standard deviation: the width of a Monte Carlo error.
_ONE_SD = (0.15865525393145705, 0.8413447460685429)


def rhat(draws: ArrayLike, *, n_jobs: int | None = None) -> Any:
    """Return the rank-normalised split R-hat: the larger of those of the draws and of their distances to the median.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws) or (n_chains, n_draws, n_parameters)
        At least four draws in each chain.
    n_jobs : int, optional
        Threads; by default all. The result does not depend on it.

    Returns
    -------
    float or array of shape (n_parameters,)
        Near 1 where chains agree. NaN for a parameter that never moves or is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.sampling import rhat
    >>> chains = np.random.default_rng(0).normal(size=(4, 1000))
    >>> bool(rhat(chains) < 1.01), bool(rhat(chains + [[0], [0], [0], [3]]) > 1.5)
    (True, True)
    """

    def measure(x: Array) -> Array:
        halves = _split(x)
        folded = np.abs(halves - np.median(halves, axis=(0, 1)))
        return np.fmax(_plain_rhat(_normal_scores(halves)), _plain_rhat(_normal_scores(folded)))

    return _per_parameter("rhat", draws, measure, n_jobs)


def ess_bulk(draws: ArrayLike, *, n_jobs: int | None = None) -> Any:
    """Return the effective sample size of the rank-normalised draws: how well the centre is known."""
    return _per_parameter("ess_bulk", draws, lambda x: _plain_ess(_normal_scores(_split(x))), n_jobs)


def ess_tail(draws: ArrayLike, *, n_jobs: int | None = None) -> Any:
    """Return the smaller effective sample size of the indicators of the 5 % and the 95 % quantile."""
    return _per_parameter("ess_tail", draws, lambda x: np.fmin(*(_ess_of_quantile(x, p) for p in (0.05, 0.95))), n_jobs)


def ess_mean(draws: ArrayLike, *, n_jobs: int | None = None) -> Any:
    """Return the effective sample size of the mean of the draws as they are."""
    return _per_parameter("ess_mean", draws, lambda x: _plain_ess(_split(x)), n_jobs)


def ess_sd(draws: ArrayLike, *, n_jobs: int | None = None) -> Any:
    """Return the effective sample size of the squared distances to the mean."""
    return _per_parameter("ess_sd", draws, lambda x: _plain_ess(_split(_squares(x))), n_jobs)


def ess_quantile(draws: ArrayLike, probability: float, *, n_jobs: int | None = None) -> Any:
    """Return the effective sample size of the indicator of a quantile."""
    p = _checked_probability("ess_quantile", probability)
    return _per_parameter("ess_quantile", draws, lambda x: _ess_of_quantile(x, p), n_jobs)


def mcse_mean(draws: ArrayLike, *, n_jobs: int | None = None) -> Any:
    """Return the Monte Carlo standard error of the mean, sd/√ESS.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.sampling import mcse_mean
    >>> round(float(mcse_mean(np.random.default_rng(0).normal(size=(4, 2500)))), 2)
    0.01
    """
    return _per_parameter(
        "mcse_mean", draws, lambda x: x.std(axis=(0, 1), ddof=1) / np.sqrt(_plain_ess(_split(x))), n_jobs
    )


def mcse_sd(draws: ArrayLike, *, n_jobs: int | None = None) -> Any:
    """Return the Monte Carlo standard error of the standard deviation, by the delta method."""

    def measure(x: Array) -> Array:
        squares = _squares(x)
        variance = squares.mean(axis=(0, 1))
        spread = (squares**2).mean(axis=(0, 1)) - variance**2
        return np.asarray(np.sqrt(spread / _plain_ess(_split(squares)) / variance / 4))

    return _per_parameter("mcse_sd", draws, measure, n_jobs)


def mcse_quantile(draws: ArrayLike, probability: float, *, n_jobs: int | None = None) -> Any:
    """Return the Monte Carlo standard error of a quantile.

    It is half the distance of the order statistics that lie one standard deviation of Beta(Np + 1, N(1 − p) + 1) on
    either side, N the effective sample size of the quantile.
    """
    p = _checked_probability("mcse_quantile", probability)

    def measure(x: Array) -> Array:
        effective = _ess_of_quantile(x, p)
        ordered = np.sort(x.reshape(-1, x.shape[2]), axis=0)
        S = len(ordered)
        ends = [betaincinv(effective * p + 1, effective * (1 - p) + 1, q) * S for q in _ONE_SD]
        defined = np.isfinite(effective)
        low = np.where(defined, np.maximum(np.floor(ends[0]), 1), 1).astype(np.int64) - 1
        high = np.where(defined, np.minimum(np.ceil(ends[1]), S), 1).astype(np.int64) - 1
        columns = np.arange(x.shape[2])
        return np.where(defined, (ordered[high, columns] - ordered[low, columns]) / 2, np.nan)

    return _per_parameter("mcse_quantile", draws, measure, n_jobs)


def autocorrelation(draws: ArrayLike, max_lag: int = 100) -> Array:
    """Return the autocorrelations of each chain.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws) or (n_chains, n_draws, n_parameters)
        Draws.
    max_lag : int
        The largest lag; at most n_draws − 1.

    Returns
    -------
    array of shape (n_chains, max_lag + 1) or (n_chains, max_lag + 1, n_parameters)
        ρ₀ = 1, ρ₁, …
    """
    x = np.asarray(draws, dtype=np.float64)
    if x.ndim not in (2, 3) or x.shape[1] < 2:
        raise DataError(f"autocorrelation: draws must be (n_chains, n_draws[, n_parameters]); got shape {x.shape}.")
    lags = min(int(max_lag), x.shape[1] - 1)
    spectrum = _spectrum(x - x.mean(axis=1, keepdims=True))
    covariance = scipy.fft.irfft(spectrum, axis=1)[:, : lags + 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(covariance / covariance[:, :1])


def ebfmi(energy: ArrayLike) -> Array:
    """Return, for each chain, the share of the energy's variance that a momentum draw can bridge: mean(ΔE²)/var(E).

    Below 0.3 the momentum cannot follow: heavy tails, or a funnel (Betancourt, arXiv 1604.00695).
    """
    E = np.asarray(energy, dtype=np.float64)
    if E.ndim != 2 or E.shape[1] < 3:
        raise DataError(f"ebfmi: energy must have shape (n_chains, n_draws) with 3 draws or more; got {E.shape}.")
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((np.diff(E, axis=1) ** 2).mean(axis=1) / E.var(axis=1, ddof=1))


def convergence(draws: Array, *, n_jobs: int | None = None) -> tuple[Array, Array, Array]:
    """Return R-hat, bulk and tail ESS of each parameter of (n_chains, n_draws, n_parameters); shares the ranks."""

    def measure(x: Array) -> Array:
        halves = _split(x)
        scores = _normal_scores(halves)
        folded = np.abs(halves - np.median(halves, axis=(0, 1)))
        worst = np.fmax(_plain_rhat(scores), _plain_rhat(_normal_scores(folded)))
        tail = np.fmin(*(_ess_of_quantile(x, p) for p in (0.05, 0.95)))
        return np.stack([worst, _plain_ess(scores), tail])

    found = _per_parameter("convergence", draws, measure, n_jobs)
    return found[0], found[1], found[2]


def _per_parameter(owner: str, draws: ArrayLike, measure: Callable[[Array], Array], n_jobs: int | None) -> Any:
    """Apply a measure of (n_chains, n_draws, k) to a few parameters at a time, on threads."""
    x = np.asarray(draws, dtype=np.float64)
    if x.ndim not in (2, 3) or x.shape[0] < 1 or x.shape[1] < 4:
        raise DataError(
            f"{owner}: draws must be (n_chains, n_draws) or (n_chains, n_draws, n_parameters) with 4 draws or more; "
            f"got shape {x.shape}. One chain is an array of shape (1, n_draws)."
        )
    single = x.ndim == 2
    wide = x[:, :, None] if single else x
    cuts = range(0, wide.shape[2], _AT_A_TIME)

    def work(start: int) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            return measure(np.ascontiguousarray(wide[:, :, start : start + _AT_A_TIME]))

    if not cuts:
        return np.zeros(0)
    found = np.concatenate(on_threads(work, cuts, resolve_n_jobs(n_jobs)), axis=-1)
    return found[..., 0] if single else found


def _split(x: Array) -> Array:
    """Return each chain as two halves; of an odd number of draws the middle one is left out."""
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, -half:]])


def _normal_scores(x: Array) -> Array:
    """Return Φ⁻¹((rank − 3/8)/(S + 1/4)) of each number among all of its parameter."""
    flat = x.reshape(-1, x.shape[2])
    S = len(flat)
    scores = np.empty_like(flat)
    distinct = ndtri((np.arange(1, S + 1) - 0.375) / (S + 0.25))
    for j in range(flat.shape[1]):
        column = np.ascontiguousarray(flat[:, j])
        order = np.argsort(column)
        ordered = column[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        if len(starts) == S:
            scores[order, j] = distinct
            continue
        ends = np.r_[starts[1:], S]
        mean_rank = (starts + 1 + ends) / 2
        scores[order, j] = np.repeat(ndtri((mean_rank - 0.375) / (S + 0.25)), ends - starts)
    scores[:, ~np.isfinite(flat).all(axis=0)] = np.nan
    return scores.reshape(x.shape)


def _plain_rhat(halves: Array) -> Array:
    n = halves.shape[1]
    between = n * halves.mean(axis=1).var(axis=0, ddof=1)
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    found = np.sqrt((between / within + n - 1) / n)
    # Chains that stand still at different places have W = 0: infinitely far apart. At one place nothing is known.
    return np.where(within > 0, found, np.where(between > 0, np.inf, np.nan))


def _plain_ess(halves: Array) -> Array:
    """Return S/τ of each parameter of split chains."""
    m, n, d = halves.shape
    if n < 3:
        return np.full(d, np.nan)
    mean = halves.mean(axis=1)
    spectrum = _spectrum(halves - mean[:, None]).mean(axis=0)
    covariance = scipy.fft.irfft(spectrum, axis=0)[:n] / n
    within = covariance[0] * n / (n - 1)
    total = covariance[0] + (mean.var(axis=0, ddof=1) if m > 1 else 0.0)
    rho = 1 - (within - covariance) / total
    rho[0] = 1.0
    tau = np.array([_autocorrelation_time(rho[:, j]) for j in range(d)])
    S = m * n
    undefined = (halves == halves[:1, :1]).all(axis=(0, 1)) | ~np.isfinite(halves).all(axis=(0, 1))
    return np.where(undefined, np.nan, S / np.maximum(tau, 1 / np.log10(S)))


def _autocorrelation_time(rho: Array) -> float:
    """Return τ by Geyer's initial monotone sequence."""
    n = len(rho)
    pairs = rho[: n - n % 2 : 2] + rho[1::2][: n // 2]
    last = max(0, (n - 4) // 2)  # the last pair that is looked at
    stops = np.flatnonzero(~(pairs[: last + 1] > 0))
    K = int(stops[0]) if len(stops) else last
    even = rho[2 * K]
    if pairs[K] < 0 or np.isnan(pairs[K]):
        even = max(even, 0.0) if even == even else 0.0
    return float(-1 + 2 * np.minimum.accumulate(pairs[:K]).sum() + even)


def _spectrum(centred: Array) -> Array:
    """Return |FFT|² along the draws, padded so that lags do not wrap around."""
    length = scipy.fft.next_fast_len(2 * centred.shape[1], real=True)
    length += length % 2  # irfft returns an even number by default
    transformed = scipy.fft.rfft(centred, n=length, axis=1)
    return np.asarray(transformed.real**2 + transformed.imag**2)


def _ess_of_quantile(x: Array, probability: float) -> Array:
    quantile = np.quantile(x, probability, axis=(0, 1))
    below = (x <= quantile).astype(np.float64)
    found = _plain_ess(_split(below))
    return np.where(np.isfinite(x).all(axis=(0, 1)), found, np.nan)


def _squares(x: Array) -> Array:
    return np.asarray((x - x.mean(axis=(0, 1))) ** 2)


def _checked_probability(owner: str, probability: float) -> float:
    if not 0 < probability < 1:
        raise DataError(f"{owner}: probability must lie between 0 and 1; got {probability!r}.")
    return float(probability)
