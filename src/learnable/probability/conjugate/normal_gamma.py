r"""Normal–Gamma prior of the mean and the precision of normal observations.

$$ \tau \sim \mathrm{Ga}(\alpha, \beta), \quad \mu \mid \tau \sim N(\mu_0, (\kappa_0\tau)^{-1}), \quad
   x_i \mid \mu, \tau \sim N(\mu, \tau^{-1}). $$

The update is that of the normal–inverse-Gamma prior: the two are one distribution, of (μ, 1/τ) and of (μ, τ).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import Array
from ..gamma import Gamma
from ..normal import Normal
from .base import no_mode
from .normal_inverse_gamma import NormalScale


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
