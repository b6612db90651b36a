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

from ..base import Array, RandomState, Size, require, require_positive
from ..gamma import InverseGamma
from ..normal import Normal
from ..student_t import StudentT
from .base import Conjugate
from .moments import moments, moments_of_sums


class NormalScale(Conjugate):
    """What the priors of a mean with its variance, and with its precision, share."""

    def __init__(
        self, mean: ArrayLike = 0.0, kappa: ArrayLike = 1.0, shape: ArrayLike = 1.0, rate: ArrayLike = 1.0
    ) -> None:
        self._store(mean=mean, kappa=kappa, shape=shape, rate=rate)
        require(self, "mean", self.mean, np.isfinite(self.mean), "finite")
        require_positive(self, kappa=self.kappa, shape=self.shape, rate=self.rate)

    @property
    def mean(self) -> Array:
        """The prior's mean μ₀."""
        return self._parameters["mean"]

    @property
    def kappa(self) -> Array:
        """The number κ of observations that the mean is worth."""
        return self._parameters["kappa"]

    @property
    def shape(self) -> Array:
        """The shape α: half the number of observations that the variance is worth."""
        return self._parameters["shape"]

    @property
    def rate(self) -> Array:
        """The rate β: half the sum of squares that the variance is worth."""
        return self._parameters["rate"]

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
