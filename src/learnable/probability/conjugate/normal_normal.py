r"""Normal prior of the mean of normal observations whose variance is known.

$$ \mu \sim N(\mu_0, \sigma_0^2), \quad x_i \mid \mu \sim N(\mu, \sigma^2) \quad\Longrightarrow\quad
   \mu \mid x \sim N\Bigl(\frac{\sigma_0^2}{\sigma^2/n + \sigma_0^2}\,\bar x +
   \frac{\sigma^2/n}{\sigma^2/n + \sigma_0^2}\,\mu_0,\; \bigl(\sigma_0^{-2} + n\sigma^{-2}\bigr)^{-1}\Bigr). $$

The next observation is $N(\mu_n, \sigma_n^2 + \sigma^2)$.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from ..base import Array, RandomState, Size, require, require_positive
from ..normal import Normal
from .base import Conjugate
from .moments import moments


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

    @property
    def mean(self) -> Array:
        """The mean μ₀ of the unknown mean."""
        return self._parameters["mean"]

    @property
    def std(self) -> Array:
        """The standard deviation σ₀ of the unknown mean."""
        return self._parameters["std"]

    @property
    def noise_std(self) -> Array:
        """The known standard deviation σ of an observation."""
        return self._parameters["noise_std"]

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
