r"""Learning Dirichlet parameters from counts: one number for all, or one per topic.

With θ integrated out, counts n_dk of documents say of α

$$ \log p(n \mid \alpha) = \sum_d \log \frac{\Gamma(\sum_k α_k)}{\Gamma(\sum_k α_k + N_d)}
   + \sum_{d,k} \log \frac{\Gamma(α_k + n_{dk})}{\Gamma(α_k)} , $$

a function of how often each count occurs. The prior is uniform on (0, 10], as in STRUCTURE. A slice sampler
(R. Neal, Annals of Statistics 31, 2003) on log α draws from the posterior and has nothing to tune.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Array = NDArray[np.float64]

LARGEST = 10.0
_SMALLEST = 1e-6
_WIDTH = 1.0  # of log α, first guess of a slice


def frequencies_of(counts: Any) -> tuple[Array, Array]:
    """Return the different positive counts and how often each occurs."""
    flat = np.asarray(counts).ravel()
    flat = flat[flat > 0].astype(np.int64)
    if not flat.size:
        return np.zeros(0), np.zeros(0)
    if flat.max() < 10 * flat.size:
        times = np.bincount(flat)
        values = np.flatnonzero(times)
        return values.astype(np.float64), times[values].astype(np.float64)
    values, times = np.unique(flat, return_counts=True)
    return values.astype(np.float64), times.astype(np.float64)


def log_rising(a: float, values: Array, times: Array) -> float:
    """Return Σ times · log Γ(a + values)/Γ(a)."""
    return float(times @ (gammaln(a + values) - gammaln(a)))


def slice_step(log_density: Callable[[float], float], x: float, rng: np.random.Generator) -> float:
    """Return the next draw of log x between the ends of the prior, by stepping out and shrinking."""
    low = np.log(_SMALLEST)
    high = np.log(LARGEST)

    def density(t: float) -> float:
        return log_density(float(np.exp(t))) + t  # uniform in x

    t = float(np.log(x))
    level = density(t) - rng.exponential()
    left = max(low, t - _WIDTH * rng.random())
    right = min(high, left + _WIDTH)
    while left > low and density(left) > level:
        left = max(low, left - _WIDTH)
    while right < high and density(right) > level:
        right = min(high, right + _WIDTH)
    while True:
        new = left + (right - left) * rng.random()
        if density(new) > level:
            return float(np.exp(new))
        if new < t:
            left = new
        else:
            right = new


def draw_symmetric(counts: Any, lengths: Any, width: int, a: float, rng: np.random.Generator) -> float:
    """Return the next draw of a symmetric parameter.

    Parameters
    ----------
    counts : array
        All counts n_dk, in any shape.
    lengths : array
        Their sums N_d.
    width : int
        Entries of each Dirichlet vector.
    a : float
        The last draw.
    rng : Generator
        Random numbers.
    """
    seen = frequencies_of(counts)
    sums = frequencies_of(lengths)
    return slice_step(lambda x: log_rising(x, *seen) - log_rising(width * x, *sums), a, rng)


def draw_asymmetric(counts: Any, lengths: Any, alpha: Array, rng: np.random.Generator) -> Array:
    """Return the next draw of one parameter per topic, each given the others."""
    new = alpha.copy()
    sums = frequencies_of(lengths)
    for k in range(len(alpha)):
        seen = frequencies_of(counts[:, k])
        rest = float(new.sum() - new[k])
        new[k] = slice_step(
            lambda x, seen=seen, rest=rest: log_rising(x, *seen) - log_rising(rest + x, *sums),  # type: ignore[misc]
            float(new[k]),
            rng,
        )
    return new
