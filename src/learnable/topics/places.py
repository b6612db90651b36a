r"""Where individuals were sampled, as a prior of their proportions (Hubisz, Falush, Stephens and Pritchard 2009).

Individuals from place c have q_i ~ Dirichlet(α_c1, …, α_cK), and the parameters of a place are drawn around common
ones: α_ck ~ Gamma with mean α and variance α/r. Small r says that places differ, so that the place of an individual
tells of its proportions; large r that it does not, and r is learned (uniform on (0, 20]) like α (uniform on (0, 10]).
Weak data then borrow from the place, and places that tell nothing do no harm.

Reference: M. Hubisz et al., Molecular Ecology Resources 9 (2009).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ..sampling.states import Rng

Array = NDArray[np.float64]

MOST_ALPHA = 10.0
MOST_STRENGTH = 20.0
#: Standard deviation of a step of log α_ck, log α and log r; about a third of them are taken on simulated tables.
_STEP = 0.6
#: Below this gamma draws are zero in float64, and their logarithm is the smallest number's.
_TINY = 1e-300


class PlacePrior(NamedTuple):
    """Where the prior stands."""

    local: Array  #: (n_places, K), α_ck
    alpha: float  #: α
    strength: float  #: r


def start(n_places: int, n_populations: int, alpha: float) -> PlacePrior:
    """Return places that are all alike."""
    return PlacePrior(np.full((n_places, n_populations), alpha), alpha, 1.0)


def draw(
    prior: PlacePrior, own: NDArray[np.int32], places: NDArray[np.int64], rng: Rng, *, learns_alpha: bool
) -> PlacePrior:
    """Return α_ck, α and r after one Metropolis step each, with Q integrated out.

    Parameters
    ----------
    prior : PlacePrior
        Where it stands.
    own : (n, K) int array
        Copies that each individual has from each population.
    places : (n,) int array
        Place of each individual.
    rng : Generator
        Source of random numbers.
    learns_alpha : bool
        Whether α moves.
    """
    local = prior.local.copy()
    C, K = local.shape
    totals = own.sum(axis=1)

    def level(local: Array) -> Array:
        """Return log p(own | α_c) of each place."""
        rows = local[places]
        width = rows.sum(axis=1)
        terms = gammaln(width) - gammaln(width + totals) + (gammaln(rows + own) - gammaln(rows)).sum(axis=1)
        return np.asarray(np.bincount(places, terms, minlength=C), dtype=np.float64)

    now = level(local)
    for k in range(K):
        moved = local.copy()
        moved[:, k] = np.maximum(local[:, k] * np.exp(_STEP * rng.standard_normal(C)), _TINY)
        then = level(moved)
        change = log_gamma_density(moved[:, k], prior.alpha, prior.strength)
        change -= log_gamma_density(local[:, k], prior.alpha, prior.strength)
        gain = then - now + change + np.log(moved[:, k] / local[:, k])
        taken = np.log(rng.random(C)) < gain
        local[taken, k] = moved[taken, k]
        now = np.where(taken, then, now)
    alpha = prior.alpha
    strength = prior.strength
    if learns_alpha:
        alpha = _step(alpha, MOST_ALPHA, lambda value: log_gamma_density(local, value, strength).sum(), rng)
    strength = _step(strength, MOST_STRENGTH, lambda value: log_gamma_density(local, alpha, value).sum(), rng)
    return PlacePrior(local, alpha, strength)


def draw_proportions(prior: PlacePrior, own: NDArray[np.int32], places: NDArray[np.int64], rng: Rng) -> Array:
    """Return Q (n, K) given the copies of each individual."""
    gammas = np.maximum(rng.standard_gamma(own + prior.local[places]), _TINY)
    return np.asarray(gammas / gammas.sum(axis=1, keepdims=True))


def log_gamma_density(x: Array, alpha: float, strength: float) -> Array:
    """Return log p(x) of the gamma distribution with mean α and variance α/r."""
    shape = alpha * strength
    return np.asarray(shape * np.log(strength) - gammaln(shape) + (shape - 1.0) * np.log(x) - strength * x)


def _step(value: float, most: float, level: Callable[[float], float], rng: Rng) -> float:
    """Return a positive number below `most` after one step of its logarithm."""
    new = value * float(np.exp(_STEP * rng.standard_normal()))
    uniform = float(rng.random())
    if not 0 < new <= most:
        return value
    gain = level(new) - level(value) + np.log(new / value)
    return new if np.log(uniform) < gain else value
