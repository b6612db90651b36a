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
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri

from ..core.errors import DataError
from ..core.threads import one_thread_blas, resolve_n_jobs, run_tasks
from ._diagnostics_kernels import DIGITS, initial_times, judge, sort_all, take_halves

Array = NDArray[np.float64]

#: Parameters that are looked at together: few enough that their spectra stay in the processor's cache.
_AT_A_TIME = 8
#: Draws, parameters together, that `convergence` gathers at a time, a cache line of each row; and parameters of a task.
_ENTRIES = 2**15
_STRETCH = 64
#: Lags that are looked at one by one before Fourier transforms give all of them, and what says that they are too few.
_MOST_LAGS = 100
_TOO_FEW = -2.0
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
    >>> bool(rhat(chains) < 1.01), bool(rhat(chains + [[0], [0], [0], [3]]) > 1.1)
    (True, True)
    """

    def measure(x: Array) -> Array:
        halves = _split(x)
        folded = np.abs(halves - np.median(halves, axis=(1, 2), keepdims=True))
        return np.fmax(_plain_rhat(_normal_scores(halves)), _plain_rhat(_normal_scores(folded)))

    return per_parameter("rhat", draws, measure, n_jobs)


def ess_bulk(draws: ArrayLike, *, n_jobs: int | None = None) -> Any:
    """Return the effective sample size of the rank-normalised draws: how well the centre is known."""
    return per_parameter("ess_bulk", draws, lambda x: _plain_ess(_normal_scores(_split(x))), n_jobs)


def ess_tail(draws: ArrayLike, *, n_jobs: int | None = None) -> Any:
    """Return the smaller effective sample size of the indicators of the 5 % and the 95 % quantile."""
    return per_parameter("ess_tail", draws, lambda x: np.fmin(*(_ess_of_quantile(x, p) for p in (0.05, 0.95))), n_jobs)


def ess_mean(draws: ArrayLike, *, n_jobs: int | None = None) -> Any:
    """Return the effective sample size of the mean of the draws as they are."""
    return per_parameter("ess_mean", draws, lambda x: _plain_ess(_split(x)), n_jobs)


def ess_sd(draws: ArrayLike, *, n_jobs: int | None = None) -> Any:
    """Return the effective sample size of the squared distances to the mean."""
    return per_parameter("ess_sd", draws, lambda x: _plain_ess(_split(_squares(x))), n_jobs)


def ess_quantile(draws: ArrayLike, probability: float, *, n_jobs: int | None = None) -> Any:
    """Return the effective sample size of the indicator of a quantile."""
    p = _checked_probability("ess_quantile", probability)
    return per_parameter("ess_quantile", draws, lambda x: _ess_of_quantile(x, p), n_jobs)


def mcse_mean(draws: ArrayLike, *, n_jobs: int | None = None) -> Any:
    """Return the Monte Carlo standard error of the mean, sd/√ESS.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.sampling import mcse_mean
    >>> round(float(mcse_mean(np.random.default_rng(0).normal(size=(4, 2500)))), 2)
    0.01
    """
    return per_parameter(
        "mcse_mean", draws, lambda x: x.std(axis=(1, 2), ddof=1) / np.sqrt(_plain_ess(_split(x))), n_jobs
    )


def mcse_sd(draws: ArrayLike, *, n_jobs: int | None = None) -> Any:
    """Return the Monte Carlo standard error of the standard deviation, by the delta method."""

    def measure(x: Array) -> Array:
        squares = _squares(x)
        variance = squares.mean(axis=(1, 2))
        spread = (squares**2).mean(axis=(1, 2)) - variance**2
        return np.asarray(np.sqrt(spread / _plain_ess(_split(squares)) / variance / 4))

    return per_parameter("mcse_sd", draws, measure, n_jobs)


def mcse_quantile(draws: ArrayLike, probability: float, *, n_jobs: int | None = None) -> Any:
    """Return the Monte Carlo standard error of a quantile.

    It is half the distance of the order statistics that lie one standard deviation of Beta(Np + 1, N(1 − p) + 1) on
    either side, N the effective sample size of the quantile.
    """
    p = _checked_probability("mcse_quantile", probability)

    def measure(x: Array) -> Array:
        effective = _ess_of_quantile(x, p)
        ordered = np.sort(x.reshape(len(x), -1), axis=1)
        S = ordered.shape[1]
        ends = [betaincinv(effective * p + 1, effective * (1 - p) + 1, q) * S for q in _ONE_SD]
        defined = np.isfinite(effective)
        low = np.where(defined, np.maximum(np.floor(ends[0]), 1), 1).astype(np.int64) - 1
        high = np.where(defined, np.minimum(np.ceil(ends[1]), S), 1).astype(np.int64) - 1
        rows = np.arange(len(x))
        return np.where(defined, (ordered[rows, high] - ordered[rows, low]) / 2, np.nan)

    return per_parameter("mcse_quantile", draws, measure, n_jobs)


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
    moved = np.moveaxis(x, 1, -1)
    spectrum = _spectrum(moved - moved.mean(axis=-1, keepdims=True))
    covariance = scipy.fft.irfft(spectrum, axis=-1)[..., : lags + 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.ascontiguousarray(np.moveaxis(covariance / covariance[..., :1], -1, 1))


def ebfmi(energy: ArrayLike) -> Array:
    """Return, for each chain, the share of the energy's variance that a momentum draw can bridge: mean(ΔE²)/var(E).

    Below 0.3 the momentum cannot follow: heavy tails, or a funnel (Betancourt, arXiv 1604.00695).
    """
    E = np.asarray(energy, dtype=np.float64)
    if E.ndim != 2 or E.shape[1] < 3:
        raise DataError(f"ebfmi: energy must have shape (n_chains, n_draws) with 3 draws or more; got {E.shape}.")
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((np.diff(E, axis=1) ** 2).mean(axis=1) / E.var(axis=1, ddof=1))


def convergence(draws: ArrayLike, *, n_jobs: int | None = None) -> tuple[Array, Array, Array]:
    """Return R-hat, bulk and tail ESS of each parameter of (n_chains, n_draws, n_parameters).

    One sort of each parameter serves all: its quantiles, its ranks, and those of the distances to the median, which
    fall and then rise along it.
    """
    x = _checked_draws("convergence", draws)
    d = x.shape[2]
    stretch = max(1, min(_STRETCH, -(-d // 4)))
    firsts = range(0, d, stretch)
    if not firsts:
        return np.zeros(0), np.zeros(0), np.zeros(0)

    def work(number: int) -> Array:
        return _judge_stretch(x, firsts[number], min(firsts[number] + stretch, d))

    pieces = run_tasks(work, len(firsts), resolve_n_jobs(n_jobs))
    found = np.concatenate(pieces, axis=1)
    return found[0], found[1], found[2]


def _judge_stretch(x: Array, first: int, last: int) -> Array:
    """Return R-hat, bulk and tail ESS of the parameters from `first` to `last`; arrays are made once for all."""
    n_chains, n_draws, _ = x.shape
    n = n_draws // 2
    m = 2 * n_chains
    S = m * n
    most = min(max(1, _ENTRIES // S), last - first)
    halves = np.empty((most, m, n))
    series = np.empty((most, 3, m, n))
    scratch = np.empty((4, S))
    bits = scratch[0].view(np.uint64)
    places = np.empty((most + 1, S), dtype=np.int64)
    counts = np.empty(3 * DIGITS, dtype=np.int64)
    is_sorted = np.empty(most, dtype=np.int64)
    measured = np.empty((3, last - first))
    for start in range(first, last, most):
        k = min(most, last - start)
        columns = slice(start, start + k)
        if x.flags.c_contiguous:
            take_halves(x, start, halves[:k])
        else:
            take_halves(np.ascontiguousarray(x[:, :, columns]), 0, halves[:k])
        rows = halves[:k].reshape(k, S)
        sort_all(rows, scratch[0], bits, places[: k + 1], counts, is_sorted)
        for j in np.flatnonzero(is_sorted[:k] == 0):
            places[j] = np.argsort(rows[j])
        cuts = np.full((k, 2), np.nan)
        is_finite: Any = True
        if n_draws % 2:  # the middle draw is in no half, but counts for the quantiles
            is_finite = np.isfinite(x[:, :, columns]).all(axis=(0, 1))
            with np.errstate(invalid="ignore"):
                cuts[:] = np.quantile(x[:, :, columns].reshape(-1, k), (0.05, 0.95), axis=0).T
        found = np.empty((k, 4))
        judge(halves[:k], _scores_of_ranks(S), cuts, _MOST_LAGS, series[:k], scratch, places[: k + 1], found)
        tau = found[:, 1:]
        if (slow := np.argwhere(tau == _TOO_FEW)).size:
            tau[slow[:, 0], slow[:, 1]] = _times_by_fourier(series[slow[:, 0], slow[:, 1]])
        sizes = S / np.maximum(tau, 1 / np.log10(S)) if n >= 3 else np.full((k, 3), np.nan)
        numbers = np.stack([found[:, 0], sizes[:, 0], np.fmin(sizes[:, 1], sizes[:, 2])])
        measured[:, start - first : start - first + k] = np.where(is_finite, numbers, np.nan)
    return measured


def _checked_draws(owner: str, draws: ArrayLike) -> Array:
    """Return draws as (n_chains, n_draws, n_parameters)."""
    x = np.asarray(draws, dtype=np.float64)
    if x.ndim not in (2, 3) or x.shape[0] < 1 or x.shape[1] < 4:
        raise DataError(
            f"{owner}: draws must be (n_chains, n_draws) or (n_chains, n_draws, n_parameters) with 4 draws or more; "
            f"got shape {x.shape}. One chain is an array of shape (1, n_draws)."
        )
    return x[:, :, None] if x.ndim == 2 else x


def per_parameter(owner: str, draws: ArrayLike, measure: Callable[[Array], Array], n_jobs: int | None = None) -> Any:
    """Apply a measure of (k, n_chains, n_draws) to a few parameters at a time, on threads."""
    wide = _checked_draws(owner, draws)
    single = np.ndim(draws) == 2
    cuts = range(0, wide.shape[2], _AT_A_TIME)

    def work(start: int) -> Array:
        piece = np.ascontiguousarray(np.moveaxis(wide[:, :, start : start + _AT_A_TIME], 2, 0))
        with np.errstate(invalid="ignore", divide="ignore"):
            return measure(piece)

    if not cuts:
        return np.zeros(0)
    with one_thread_blas():
        pieces = run_tasks(lambda number: work(cuts[number]), len(cuts), resolve_n_jobs(n_jobs))
    found = np.concatenate(pieces, axis=-1)
    return found[..., 0] if single else found


def _split(x: Array) -> Array:
    """Return each chain as two halves; of an odd number of draws the middle one is left out."""
    half = x.shape[2] // 2
    return np.concatenate([x[:, :, :half], x[:, :, -half:]], axis=1)


def _normal_scores(x: Array) -> Array:
    """Return Φ⁻¹((rank − 3/8)/(S + 1/4)) of each number among all of its parameter."""
    from scipy.stats import rankdata  # half a second, and few ask for scores

    scores = np.empty_like(x)
    for j in range(len(x)):
        ranks = rankdata(x[j])
        scores[j] = ndtri((ranks - 0.375) / (ranks.size + 0.25)).reshape(x.shape[1:])
    return np.where(np.isfinite(x).all(axis=(1, 2), keepdims=True), scores, np.nan)


@lru_cache(maxsize=4)
def _scores_of_ranks(S: int) -> Array:
    """Return the scores of the ranks 1, 1½, 2, …, S; halves are mean ranks of ties."""
    scores = np.asarray(ndtri((np.arange(2, 2 * S + 1) / 2 - 0.375) / (S + 0.25)))
    scores.flags.writeable = False
    return scores


def _plain_rhat(halves: Array) -> Array:
    n = halves.shape[2]
    means = halves.mean(axis=2)
    between = n * means.var(axis=1, ddof=1) if halves.shape[1] > 1 else np.zeros(len(halves))
    centred = halves - means[:, :, None]
    within = np.einsum("kmn,kmn->k", centred, centred) / (halves.shape[1] * (n - 1))
    still = (halves == halves[:, :, :1]).all(axis=(1, 2))  # rounding of the mean must not count as movement
    found = np.sqrt((between / within + n - 1) / n)
    # Chains that stand still at different places have W = 0: infinitely far apart. At one place nothing is known.
    apart = (halves[:, :, 0] != halves[:, :1, 0]).any(axis=1)
    return np.where(still, np.where(apart, np.inf, np.nan), found)


def _plain_ess(halves: Array) -> Array:
    """Return S/τ of each parameter of split chains."""
    k, m, n = halves.shape
    if n < 3:
        return np.full(k, np.nan)
    halves = np.ascontiguousarray(halves)
    tau = np.empty(k)
    initial_times(halves, _MOST_LAGS, np.empty((m, n)), tau)
    if (slow := np.flatnonzero(tau == _TOO_FEW)).size:
        tau[slow] = _times_by_fourier(halves[slow])
    S = m * n
    undefined = (halves == halves[:, :1, :1]).all(axis=(1, 2)) | ~np.isfinite(halves).all(axis=(1, 2))
    return np.where(undefined, np.nan, S / np.maximum(tau, 1 / np.log10(S)))


def _times_by_fourier(halves: Array) -> Array:
    """Return τ of each parameter from all lags at once."""
    _, m, n = halves.shape
    mean = halves.mean(axis=2)
    spectrum = _spectrum(halves - mean[:, :, None]).mean(axis=1)
    covariance = scipy.fft.irfft(spectrum, axis=1)[:, :n] / n
    within = covariance[:, :1] * n / (n - 1)
    total = covariance[:, :1] + (mean.var(axis=1, ddof=1)[:, None] if m > 1 else 0.0)
    rho = 1 - (within - covariance) / total
    rho[:, 0] = 1.0
    return np.array([_autocorrelation_time(row) for row in rho])


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
    """Return |FFT|² along the last axis, padded so that lags do not wrap around."""
    length = scipy.fft.next_fast_len(2 * centred.shape[-1], real=True)
    length += length % 2  # irfft returns an even number by default
    transformed = scipy.fft.rfft(centred, n=length, axis=-1)
    return np.asarray(transformed.real**2 + transformed.imag**2)


def _indicator(x: Array, probability: float) -> Array:
    quantile = np.quantile(x.reshape(len(x), -1), probability, axis=1)
    return (x <= quantile[:, None, None]).astype(np.float64)


def _ess_of_quantile(x: Array, probability: float) -> Array:
    found = _plain_ess(_split(_indicator(x, probability)))
    return np.where(np.isfinite(x).all(axis=(1, 2)), found, np.nan)


def _squares(x: Array) -> Array:
    return np.asarray((x - x.mean(axis=(1, 2), keepdims=True)) ** 2)


def _checked_probability(owner: str, probability: float) -> float:
    if not 0 < probability < 1:
        raise DataError(f"{owner}: probability must lie between 0 and 1; got {probability!r}.")
    return float(probability)
