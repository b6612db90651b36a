r"""Families and links of generalised linear models: how the mean depends on the score, and the variance on the mean.

    E y = μ,   g(μ) = η = b + xᵀw,   Var y = φ V(μ)/s   for a row of weight s.

A family states V, its unit deviance d(y, μ) = 2 ∫ from μ to y of (y − t)/V(t) dt, and its log-likelihood. φ is 1 for
counts and proportions and is estimated elsewhere.

Reference: P. McCullagh and J. Nelder, Generalized Linear Models, 2nd ed., 1989.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln, logit, ndtr, ndtri, xlog1py, xlogy

from ...core.errors import DataError
from ...probability.binomial import Bernoulli
from ...probability.gamma import Gamma
from ...probability.normal import Normal
from ...probability.poisson import NegativeBinomial, Poisson

Array = NDArray[np.float64]

_TINY = np.finfo(float).tiny
_MOST_SCORE = 700.0  # e^700 is the last that float64 holds


class Link(NamedTuple):
    """g, its inverse and the first two derivatives of the inverse."""

    name: str
    score: Callable[[Array], Array]  #: μ ↦ η
    mean: Callable[[Array], Array]  #: η ↦ μ
    slope: Callable[[Array], Array]  #: η ↦ dμ/dη
    bend: Callable[[Array], Array]  #: η ↦ d²μ/dη²


def _exp(eta: Array) -> Array:
    return np.asarray(np.exp(np.clip(eta, -_MOST_SCORE, _MOST_SCORE)))


def _normal_density(eta: Array) -> Array:
    return np.asarray(np.exp(-0.5 * eta * eta) / np.sqrt(2 * np.pi))


def _logit_slope(eta: Array) -> Array:
    return np.asarray(expit(eta) * expit(-eta))


def _cloglog_slope(eta: Array) -> Array:
    return np.asarray(np.exp(np.clip(eta, -_MOST_SCORE, _MOST_SCORE) - _exp(eta)))


LINKS = {
    link.name: link
    for link in (
        Link("identity", lambda mu: mu, lambda eta: eta, np.ones_like, np.zeros_like),
        Link("log", np.log, _exp, _exp, _exp),
        Link("logit", logit, expit, _logit_slope, lambda eta: _logit_slope(eta) * (expit(-eta) - expit(eta))),
        Link("probit", ndtri, ndtr, _normal_density, lambda eta: -eta * _normal_density(eta)),
        Link(
            "cloglog",
            lambda mu: np.log(-np.log1p(-mu)),
            lambda eta: -np.expm1(-_exp(eta)),
            _cloglog_slope,
            lambda eta: _cloglog_slope(eta) * (1.0 - _exp(eta)),
        ),
        Link(
            "inverse", lambda mu: 1.0 / mu, lambda eta: 1.0 / eta, lambda eta: -1.0 / eta**2, lambda eta: 2.0 / eta**3
        ),
        Link("sqrt", np.sqrt, lambda eta: eta * eta, lambda eta: 2.0 * eta, lambda eta: np.full_like(eta, 2.0)),
    )
}


@dataclass(frozen=True)
class Family:
    """A variance function with its likelihood. Means and targets are arrays of one length."""

    name: str
    variance: Callable[[Array], Array]  #: V(μ)
    variance_slope: Callable[[Array], Array]  #: V′(μ)
    deviance: Callable[[Array, Array], Array]  #: d(y, μ) of every row
    log_likelihood: Callable[[Array, Array, Any], Array]  #: log p(y | μ, φ) of every row; NaN if unknown
    distribution: Callable[[Array, float], Any] | None  #: of new observations, given μ and φ
    link: str  #: used unless another is named
    canonical: str = ""  #: the link with which Xᵀ(y − μ) is the score
    knows_dispersion: bool = False  #: whether φ = 1
    allows: Callable[[Array], NDArray[np.bool_]] = np.isfinite  #: which targets there can be
    rule: str = "finite"  #: the same in words
    inside: Callable[[Array], NDArray[np.bool_]] = np.isfinite  #: which means there can be
    first_means: Callable[[Array, float], Array] = lambda y, mean: np.asarray((y + mean) / 2)  #: where to start

    def check(self, owner: str, y: Array) -> None:
        """Raise DataError for targets that the family cannot have."""
        allowed = self.allows(y)
        if not allowed.all():
            raise DataError(
                f"{owner}: y must be {self.rule} in the {self.name} family; row {int(np.argmin(allowed))} has "
                f"{y[~allowed][0]:g}. Drop such rows, or choose a family that allows them."
            )


def _above_zero(values: Array) -> NDArray[np.bool_]:
    return np.asarray(values > 0)


def _not_negative(values: Array) -> NDArray[np.bool_]:
    return np.asarray(values >= 0)


def _unknown(y: Array, mu: Array, phi: Any) -> Array:
    return np.full(np.shape(y), np.nan)


NORMAL = Family(
    "normal",
    variance=np.ones_like,
    variance_slope=np.zeros_like,
    deviance=lambda y, mu: (y - mu) ** 2,
    log_likelihood=lambda y, mu, phi: -0.5 * ((y - mu) ** 2 / phi + np.log(2 * np.pi * phi)),
    distribution=lambda mu, phi: Normal(mu, np.sqrt(phi)),
    link="identity",
    canonical="identity",
    first_means=lambda y, mean: y,
)


def _binomial_likelihood(y: Array, mu: Array) -> Array:
    inside = np.clip(mu, _TINY, 1.0 - 2.0**-53)
    return np.asarray(xlogy(y, inside) + xlog1py(1.0 - y, -inside))


def _binomial_deviance(y: Array, mu: Array) -> Array:
    return np.asarray(2.0 * (xlogy(y, y) + xlog1py(1.0 - y, -y) - _binomial_likelihood(y, mu)))


BINOMIAL = Family(  # of proportions; the weight of a row is its number of trials
    "binomial",
    variance=lambda mu: np.maximum(mu * (1.0 - mu), _TINY),
    variance_slope=lambda mu: 1.0 - 2.0 * mu,
    deviance=_binomial_deviance,
    log_likelihood=lambda y, mu, phi: _binomial_likelihood(y, mu),
    distribution=lambda mu, phi: Bernoulli(mu),
    link="logit",
    canonical="logit",
    knows_dispersion=True,
    allows=lambda y: np.asarray((y >= 0) & (y <= 1)),
    rule="between 0 and 1",
    inside=lambda mu: np.asarray((mu >= 0) & (mu <= 1)),
    first_means=lambda y, mean: np.asarray((y + 0.5) / 2),
)

POISSON = Family(
    "poisson",
    variance=lambda mu: np.maximum(mu, _TINY),
    variance_slope=np.ones_like,
    deviance=lambda y, mu: 2.0 * (xlogy(y, y / np.maximum(mu, _TINY)) - y + mu),
    log_likelihood=lambda y, mu, phi: xlogy(y, np.maximum(mu, _TINY)) - mu - gammaln(y + 1.0),
    distribution=lambda mu, phi: Poisson(mu),
    link="log",
    canonical="log",
    knows_dispersion=True,
    allows=_not_negative,
    rule=">= 0",
    inside=_above_zero,
)


def _gamma_log_likelihood(y: Array, mu: Array, phi: Any) -> Array:
    shape = 1.0 / phi
    return np.asarray(shape * (np.log(y / mu) - y / mu) - np.log(y) + shape * np.log(shape) - gammaln(shape))


GAMMA = Family(
    "gamma",
    variance=lambda mu: np.maximum(mu * mu, _TINY),
    variance_slope=lambda mu: 2.0 * mu,
    deviance=lambda y, mu: 2.0 * (np.log(mu / y) + y / mu - 1.0),
    log_likelihood=_gamma_log_likelihood,
    distribution=lambda mu, phi: Gamma(np.full(np.shape(mu), 1.0 / phi), 1.0 / (phi * mu)),
    link="log",
    canonical="inverse",
    allows=_above_zero,
    rule="> 0",
    inside=_above_zero,
)


def tweedie(power: float, name: str = "tweedie", log_likelihood: Any = _unknown) -> Family:
    """Return the family of variance μᵖ, p not 0, 1 or 2."""
    p = power

    def deviance(y: Array, mu: Array) -> Array:
        whole = np.maximum(y, 0.0) ** (2 - p) / ((1 - p) * (2 - p))
        return np.asarray(2.0 * (whole - y * mu ** (1 - p) / (1 - p) + mu ** (2 - p) / (2 - p)))

    allows: Any = np.isfinite
    rule = "finite"
    if p > 0:
        allows = _above_zero if p >= 2 else _not_negative
        rule = "> 0" if p >= 2 else ">= 0"
    return Family(
        name,
        variance=lambda mu: np.maximum(mu**p, _TINY),
        variance_slope=lambda mu: p * mu ** (p - 1.0),
        deviance=deviance,
        log_likelihood=log_likelihood,
        distribution=None,
        link="log",
        allows=allows,
        rule=rule,
        inside=_above_zero,
    )


INVERSE_GAUSSIAN = tweedie(
    3.0,
    "inverse-gaussian",
    lambda y, mu, phi: -0.5 * ((y - mu) ** 2 / (phi * mu * mu * y) + np.log(2 * np.pi * phi * y**3)),
)


def negative_binomial(overdispersion: float) -> Family:
    """Return the family of counts with variance μ + aμ², a > 0."""
    a = overdispersion
    size = 1.0 / a

    def deviance(y: Array, mu: Array) -> Array:
        inside = np.maximum(mu, _TINY)
        return np.asarray(2.0 * (xlogy(y, y / inside) - (y + size) * (np.log1p(a * y) - np.log1p(a * inside))))

    def log_likelihood(y: Array, mu: Array, phi: Any) -> Array:
        inside = np.maximum(mu, _TINY)
        urn = gammaln(y + size) - gammaln(size) - gammaln(y + 1.0)
        return np.asarray(urn + xlogy(y, a * inside) - (y + size) * np.log1p(a * inside))

    return Family(
        "negative-binomial",
        variance=lambda mu: np.maximum(mu + a * mu * mu, _TINY),
        variance_slope=lambda mu: 1.0 + 2.0 * a * mu,
        deviance=deviance,
        log_likelihood=log_likelihood,
        distribution=lambda mu, phi: NegativeBinomial(np.full(np.shape(mu), size), size / (size + mu)),
        link="log",
        knows_dispersion=True,
        allows=_not_negative,
        rule=">= 0",
        inside=_above_zero,
    )


FAMILIES = {family.name: family for family in (NORMAL, BINOMIAL, POISSON, GAMMA, INVERSE_GAUSSIAN)}


def family_of_power(power: float) -> Family:
    """Return the family of variance μᵖ.

    Examples
    --------
    >>> family_of_power(1.0).name, family_of_power(1.5).name
    ('poisson', 'tweedie')
    """
    known = {0.0: NORMAL, 1.0: POISSON, 2.0: GAMMA, 3.0: INVERSE_GAUSSIAN}
    return known[power] if power in known else tweedie(power)
