r"""Normal–inverse-Gamma prior of the mean and the variance of normal observations.

$$ \sigma^2 \sim \mathrm{IG}(\alpha, \beta), \quad \mu \mid \sigma^2 \sim N(\mu_0, \sigma^2/\kappa_0), \quad
   x_i \mid \mu, \sigma^2 \sim N(\mu, \sigma^2). $$

After n observations with the mean $\bar x$,

$$ \kappa_n = \kappa_0 + n, \quad \mu_n = \frac{\kappa_0\mu_0 + n\bar x}{\kappa_n}, \quad \alpha_n = \alpha + \frac n2,
$$

$$ \beta_n = \beta + \frac12\sum_i (x_i - \bar x)^2 + \frac{n\kappa_0}{n + \kappa_0}\frac{(\bar x - \mu_0)^2}{2}. $$

The next observation has Student's t distribution with 2α degrees of freedom around μ and the scale
$\sqrt{\beta(\kappa + 1)/(\alpha\kappa)}$; the unknown mean has the scale $\sqrt{\beta/(\alpha\kappa)}$.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ...core.errors import DataError
from ..base import Array, Parameter, RandomState, Size, require, require_positive
from ..gamma import Gamma, InverseGamma
from ..normal import Normal
from ..student_t import StudentT
from .base import Conjugate, no_mode


class NormalScale(Conjugate):
    """What the priors of a mean with its variance, and with its precision, share."""

    def __init__(
        self, mean: ArrayLike = 0.0, kappa: ArrayLike = 1.0, shape: ArrayLike = 1.0, rate: ArrayLike = 1.0
    ) -> None:
        self._store(mean=mean, kappa=kappa, shape=shape, rate=rate)
        require(self, "mean", self.mean, np.isfinite(self.mean), "finite")
        require_positive(self, kappa=self.kappa, shape=self.shape, rate=self.rate)

    mean = Parameter("The prior's mean μ₀.")

    kappa = Parameter("The number κ of observations that the mean is worth.")

    shape = Parameter("The shape α: half the number of observations that the variance is worth.")

    rate = Parameter("The rate β: half the sum of squares that the variance is worth.")

    def update_moments(self, weight: ArrayLike, mean: ArrayLike, scatter: ArrayLike) -> Self:
        """Return the posterior after observations of a total weight, a mean, and Σ w (x - x̄)².

        These keep the digits that the sums Σx, Σx² of `update(statistics=…)` lose where the mean is large.
        """
        weight, mean, scatter = (np.asarray(part, dtype=np.float64) for part in (weight, mean, scatter))
        kappa = self.kappa + weight
        away = mean - self.mean
        # (κ/κ_n)·n·(x̄ - μ₀)²/2, in an order that neither overflows nor underflows needlessly.
        with np.errstate(over="ignore"):
            pull = 0.5 * (self.kappa / kappa) * np.square(np.sqrt(weight) * away)
        return type(self)(
            self.mean + (weight / kappa) * away,
            kappa,
            self.shape + 0.5 * weight,
            self.rate + 0.5 * scatter + pull,
        )

    def _learn(self, x: Array, w: Array) -> Self:
        return self.update_moments(*moments(x, w))

    def _absorb(self, weight: Array, total: Array) -> Self:
        return self.update_moments(weight, *moments_of_sums(self, weight, total[..., 0], total[..., 1]))

    def _member(self) -> Normal:
        return Normal(self.mean, np.sqrt(self.rate / self.shape))

    def _mean_given(self, std: Array) -> Normal:
        """Return the distribution of the mean, given the standard deviation."""
        return Normal(self.mean, std / np.sqrt(self.kappa))

    def _mean_marginal(self) -> StudentT:
        return StudentT(2.0 * self.shape, self.mean, np.sqrt(self.rate / (self.shape * self.kappa)))

    def predictive(self) -> StudentT:
        """Return Student's t distribution of the next observation."""
        scale = np.sqrt(self.rate / self.shape * ((self.kappa + 1.0) / self.kappa))
        return StudentT(2.0 * self.shape, self.mean, scale)

    def sample(self, size: Size = (), random_state: RandomState = None) -> Normal:
        """Draw members, as an array of distributions of shape `size`, then the batch's."""
        rng = np.random.default_rng(random_state)
        std = np.sqrt(InverseGamma(self.shape, self.rate).sample(size, rng))
        return Normal(self._mean_given(std).sample((), rng), std)


class NormalInverseGamma(NormalScale):
    """A prior of the mean and the variance of normal observations; or an array of them.

    Parameters
    ----------
    mean : float or array
        μ₀: where the mean is expected.
    kappa : float or array
        κ₀ > 0: how many observations this is worth; the mean has the variance σ²/κ₀ around μ₀.
    shape : float or array
        α > 0: 2α observations is the worth of what is known about the variance.
    rate : float or array
        β > 0: the variance is expected near β/α.

    Examples
    --------
    >>> posterior = NormalInverseGamma(mean=0.0, kappa=1.0, shape=1.0, rate=1.0).update([1.0, 2.0, 3.0])
    >>> posterior
    NormalInverseGamma(mean=1.5, kappa=4.0, shape=2.5, rate=3.5)
    >>> posterior.predictive()
    StudentT(df=5.0, loc=1.5, scale=1.3229)
    >>> posterior.interval(0.9)["variance"]
    (np.float64(0.6323), np.float64(6.1110))
    """

    _unknown = ("mean", "variance")

    def marginal(self, name: str | None = None) -> Any:
        """Return the t distribution of the "mean" or the inverse-Gamma distribution of the "variance"."""
        return self._mean_marginal() if self._name(name) == "mean" else InverseGamma(self.shape, self.rate)

    def logpdf(self, member: Normal) -> Array:
        """Return the log-density of the mean and the variance of a normal distribution."""
        return self._mean_given(member.std).logpdf(member.mean) + self.marginal("variance").logpdf(member.variance)

    def map(self) -> Normal:
        """Return the member with the most probable mean and variance, μ and β/(α + 3/2), jointly."""
        return Normal(self.mean, np.sqrt(self.rate / (self.shape + 1.5)))


# Weight, mean and scatter of observations: what normal likelihoods need, computed without cancellation.


def moments(x: Array, w: Array) -> tuple[Array, Array, Array]:
    """Return the total weight, the mean and Σ w (x - x̄)² over the first axis; zeros without observations."""
    if len(w) == 0:
        return np.zeros(()), np.zeros(x.shape[1:]), np.zeros(x.shape[1:])
    share = w / w.max()
    total = share.sum()
    mean = np.tensordot(share / total, x, axes=1)
    away = x - mean
    # One correction by the mean of what is left makes the mean exact to rounding.
    left = np.tensordot(share / total, away, axes=1)
    with np.errstate(over="ignore"):  # the prior refuses what is not finite
        scatter = np.tensordot(w, np.square(away - left), axes=1)
    return np.asarray(w.sum()), np.asarray(mean + left), np.asarray(scatter)


def vector_moments(x: Array, w: Array) -> tuple[Array, Array, Array]:
    """Return the total weight, the mean (..., d) and the scatter matrix Σ w (x - x̄)(x - x̄)ᵀ (..., d, d)."""
    d = x.shape[-1]
    if len(w) == 0:
        return np.zeros(()), np.zeros(x.shape[1:]), np.zeros((*x.shape[1:], d))
    weight, mean, _ = moments(x, w)
    columns = np.moveaxis((x - mean) * np.sqrt(w).reshape(-1, *(1,) * (x.ndim - 1)), 0, -1)
    with np.errstate(over="ignore", invalid="ignore"):
        return weight, mean, columns @ np.swapaxes(columns, -1, -2)


def moments_of_sums(owner: object, weight: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """Return the mean and the scatter from Σx and Σx²; an error where they are the sums of no data."""
    safe = np.where(weight > 0.0, weight, 1.0)
    mean = first / safe
    scatter = second - first * mean
    if np.any(scatter < -1e-9 * np.abs(second)):
        raise DataError(f"{type(owner).__name__}: statistics must have Σx² >= (Σx)²/n, got {second!s} and {first!s}.")
    return mean, np.maximum(scatter, 0.0)


# Normal–Gamma prior of the mean and the precision of normal observations.
#
# $$ \tau \sim \mathrm{Ga}(\alpha, \beta), \quad \mu \mid \tau \sim N(\mu_0, (\kappa_0\tau)^{-1}), \quad
#    x_i \mid \mu, \tau \sim N(\mu, \tau^{-1}). $$
#
# The update is that of the normal–inverse-Gamma prior: the two are one distribution, of (μ, 1/τ) and of (μ, τ).


class NormalGamma(NormalScale):
    """A prior of the mean and the precision τ = 1/σ² of normal observations; or an array of them.

    The same belief as `NormalInverseGamma` with the same numbers; it differs in the density, hence in `map`.

    Parameters
    ----------
    mean : float or array
        μ₀: where the mean is expected.
    kappa : float or array
        κ₀ > 0: how many observations this is worth; the mean has the precision κ₀τ around μ₀.
    shape : float or array
        α > 0: 2α observations is the worth of what is known about the precision.
    rate : float or array
        β > 0: the precision is expected near α/β.

    Examples
    --------
    >>> posterior = NormalGamma(mean=0.0, kappa=1.0, shape=1.0, rate=1.0).update([1.0, 2.0, 3.0])
    >>> posterior.marginal("precision")
    Gamma(shape=2.5, rate=3.5)
    >>> posterior.map().variance
    np.float64(1.75)
    """

    _unknown = ("mean", "precision")

    def marginal(self, name: str | None = None) -> Any:
        """Return the t distribution of the "mean" or the Gamma distribution of the "precision"."""
        return self._mean_marginal() if self._name(name) == "mean" else Gamma(self.shape, self.rate)

    def logpdf(self, member: Normal) -> Array:
        """Return the log-density of the mean and the precision of a normal distribution."""
        precision = 1.0 / member.variance
        return self._mean_given(member.std).logpdf(member.mean) + self.marginal("precision").logpdf(precision)

    def map(self) -> Normal:
        """Return the member with the most probable mean and precision, μ and (α - 1/2)/β, jointly; for α > ½."""
        if not np.all(self.shape > 0.5):
            raise no_mode(self, "shape > 1/2")
        return Normal(self.mean, np.sqrt(self.rate / (self.shape - 0.5)))


# Normal prior of the mean of normal observations whose variance is known.
#
# $$ \mu \sim N(\mu_0, \sigma_0^2), \quad x_i \mid \mu \sim N(\mu, \sigma^2) \quad\Longrightarrow\quad
#    \mu \mid x \sim N\Bigl(\frac{\sigma_0^2}{\sigma^2/n + \sigma_0^2}\,\bar x +
#    \frac{\sigma^2/n}{\sigma^2/n + \sigma_0^2}\,\mu_0,\; \bigl(\sigma_0^{-2} + n\sigma^{-2}\bigr)^{-1}\Bigr). $$
#
# The next observation is $N(\mu_n, \sigma_n^2 + \sigma^2)$.


class NormalNormal(Conjugate):
    """A normal prior of a mean, for normal observations of known standard deviation; or an array of them.

    Parameters
    ----------
    mean : float or array
        The prior's mean μ₀.
    std : float or array
        The prior's standard deviation σ₀ > 0.
    noise_std : float or array
        The known standard deviation σ > 0 of an observation.

    Examples
    --------
    >>> posterior = NormalNormal(mean=0.0, std=1.0, noise_std=1.0).update([3.0])
    >>> posterior.map()
    Normal(mean=1.5, std=1.0)
    >>> posterior.predictive()
    Normal(mean=1.5, std=1.2247)
    """

    _unknown = ("mean",)

    def __init__(self, mean: ArrayLike = 0.0, std: ArrayLike = 1.0, noise_std: ArrayLike = 1.0) -> None:
        self._store(mean=mean, std=std, noise_std=noise_std)
        require(self, "mean", self.mean, np.isfinite(self.mean), "finite")
        require_positive(self, std=self.std, noise_std=self.noise_std)

    mean = Parameter("The mean μ₀ of the unknown mean.")

    std = Parameter("The standard deviation σ₀ of the unknown mean.")

    noise_std = Parameter("The known standard deviation σ of an observation.")

    def _learn(self, x: Array, w: Array) -> Self:
        weight, mean, _ = moments(x, w)
        return self._towards(weight, mean)

    def _absorb(self, weight: Array, total: Array) -> Self:
        return self._towards(weight, total[..., 0] / np.where(weight > 0.0, weight, 1.0))

    def _towards(self, weight: Array, mean: Array) -> Self:
        """Return the posterior after observations of a total weight and a mean."""
        # With r = σ₀√W/σ the mean moves by r²/(1 + r²) of the way; hypot keeps the squares within the floats.
        r = self.std * np.sqrt(weight) / self.noise_std
        size = np.hypot(1.0, r)
        share = np.square(r / size)
        return type(self)(self.mean + share * (mean - self.mean), self.std / size, self.noise_std)

    def _member(self) -> Normal:
        return Normal(self.mean, self.noise_std)

    def marginal(self, name: str | None = None) -> Normal:
        """Return the normal distribution of the unknown mean."""
        self._name(name)
        return Normal(self.mean, self.std)

    def logpdf(self, member: Normal) -> Array:
        """Return the log-density of the mean of a normal distribution."""
        return self.marginal().logpdf(member.mean)

    def predictive(self) -> Normal:
        """Return the normal distribution of the next observation."""
        return Normal(self.mean, np.hypot(self.std, self.noise_std))

    def map(self) -> Normal:
        """Return the member with the posterior's mean."""
        return self._member()

    def sample(self, size: Size = (), random_state: RandomState = None) -> Normal:
        """Draw members, as an array of distributions of shape `size`, then the batch's."""
        return Normal(self.marginal().sample(size, random_state), self.noise_std)
