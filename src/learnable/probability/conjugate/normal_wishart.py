r"""Normal–Wishart prior of the mean and the precision matrix of normal vectors.

$$ \Lambda \sim \mathrm{Wi}(\nu_0, \Psi_0^{-1}), \quad \mu \mid \Lambda \sim N(\mu_0, (\kappa_0\Lambda)^{-1}), \quad
   x_i \mid \mu, \Lambda \sim N(\mu, \Lambda^{-1}). $$

After n observations with the mean $\bar x$ and the scatter $S = \sum_i (x_i - \bar x)(x_i - \bar x)^\top$,

$$ \kappa_n = \kappa_0 + n, \quad \mu_n = \frac{\kappa_0\mu_0 + n\bar x}{\kappa_n}, \quad \nu_n = \nu_0 + n, \quad
   \Psi_n = \Psi_0 + S + \frac{n\kappa_0}{n + \kappa_0} (\bar x - \mu_0)(\bar x - \mu_0)^\top. $$

The inverse Ψ of the Wishart distribution's scale matrix is what adds, so it is the parameter. In one dimension this is
the normal–Gamma prior with α = ν/2, β = Ψ/2. The next vector has Student's t distribution with ν - d + 1 degrees
of freedom.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ...core.errors import DataError, ParameterError
from ..base import Array, Parameter, RandomState, Size, require, require_positive
from ..gamma import InverseGamma
from ..multivariate_normal import MultivariateNormal
from ..multivariate_t import MultivariateStudentT
from ..student_t import StudentT
from ..wishart import InverseWishart, Wishart
from .base import Conjugate, no_mode
from .normal_inverse_gamma import vector_moments


class NormalWishart(Conjugate):
    """A prior of the mean and the precision matrix of normal vectors; or an array of them.

    Parameters
    ----------
    mean : array of shape (..., d)
        μ₀: where the mean is expected.
    kappa : float or array
        κ₀ > 0: how many observations this is worth.
    df : float or array, optional
        ν₀ > d - 1: how many observations Ψ₀ is worth; d + 2 if left out.
    scatter : array of shape (..., d, d), optional
        Ψ₀, symmetric and positive definite: the scatter matrix of those observations; the covariance is expected near
        Ψ₀/ν₀. The identity if left out.

    Examples
    --------
    >>> posterior = NormalWishart([0.0, 0.0]).update([[1.0, 2.0], [3.0, 1.0]])
    >>> posterior.mean
    array([1.3333, 1.    ])
    >>> posterior.predictive().df
    np.float64(5.0)
    """

    _event_ranks: ClassVar[Mapping[str, int]] = {"mean": 1, "scatter": 2}
    _rank = 1
    _unknown = ("mean", "precision")

    def __init__(
        self,
        mean: ArrayLike,
        kappa: ArrayLike = 1.0,
        df: ArrayLike | None = None,
        scatter: ArrayLike | None = None,
    ) -> None:
        d = np.shape(mean)[-1] if np.ndim(mean) else 1
        df = d + 2.0 if df is None else df
        self._store(mean=mean, kappa=kappa, df=df, scatter=np.eye(d) if scatter is None else scatter)
        require(self, "mean", self.mean, np.isfinite(self.mean), "finite")
        require_positive(self, kappa=self.kappa)
        require(
            self, "df", self.df, (self.df > d - 1.0) & np.isfinite(self.df), f"> {d - 1}, the size less one, finite"
        )
        if self.scatter.shape[-2:] != (d, d):
            raise ParameterError(f"{type(self).__name__}: scatter must be {d} by {d}, got shape {self.scatter.shape}.")
        InverseWishart(self.df, self.scatter)  # refuses what is not positive definite

    mean = Parameter("The prior's mean μ.")

    kappa = Parameter("The number κ of observations that the mean is worth.")

    df = Parameter("The degrees of freedom ν.")

    scatter = Parameter("The scatter matrix Ψ, the inverse of the Wishart distribution's scale.")

    @property
    def _size(self) -> int:
        return int(self.mean.shape[-1])

    def update_moments(self, weight: ArrayLike, mean: ArrayLike, scatter: ArrayLike) -> Self:
        """Return the posterior after observations of a total weight, a mean, and Σ w (x - x̄)(x - x̄)ᵀ."""
        weight, mean, scatter = (np.asarray(part, dtype=np.float64) for part in (weight, mean, scatter))
        kappa = self.kappa + weight
        away = mean - self.mean
        with np.errstate(over="ignore", invalid="ignore"):
            outer = away[..., :, None] * away[..., None, :]
            pull = np.asarray(weight * (self.kappa / kappa))[..., None, None] * outer
        return type(self)(
            self.mean + np.asarray(weight / kappa)[..., None] * away,
            kappa,
            self.df + weight,
            self.scatter + scatter + pull,
        )

    def _learn(self, x: Array, w: Array) -> Self:
        return self.update_moments(*vector_moments(x, w))

    def _absorb(self, weight: Array, total: Array) -> Self:
        d = self._size
        if total.shape[-1] != d + d * d:
            raise DataError(f"{type(self).__name__}: statistics must have {d + d * d} entries, got {total.shape[-1]}.")
        first = total[..., :d]
        second = total[..., d:].reshape(*total.shape[:-1], d, d)
        mean = first / np.where(weight > 0.0, weight, 1.0)[..., None]
        return self.update_moments(weight, mean, second - first[..., :, None] * mean[..., None, :])

    def _require_support(self, x: Array) -> None:
        if x.shape[-1] != self._size:
            raise DataError(f"{type(self).__name__}: an observation must have {self._size} entries, got {x.shape[-1]}.")

    def _scaled(self, divisor: Array) -> Array:
        return self.scatter / np.asarray(divisor)[..., None, None]

    def _member(self) -> MultivariateNormal:
        return MultivariateNormal(self.mean, self._scaled(self.df))

    def marginal(self, name: str | None = None) -> Any:
        """Return the t distribution of the "mean", or the Wishart distribution of the "precision" matrix."""
        if self._name(name) == "mean":
            df = self.df - self._size + 1.0
            return MultivariateStudentT(df, self.mean, self._scaled(self.kappa * df))
        return Wishart(self.df, np.linalg.inv(self.scatter))

    @property
    def covariance_marginal(self) -> InverseWishart:
        """The inverse Wishart distribution of the covariance matrix."""
        return InverseWishart(self.df, self.scatter)

    def logpdf(self, member: MultivariateNormal) -> Array:
        """Return the log-density of the mean and the precision matrix of a normal distribution."""
        cov = member.cov
        given = MultivariateNormal(self.mean, cov / np.asarray(self.kappa)[..., None, None])
        # The density of Λ = Σ⁻¹ is that of Σ times |Σ|^(d + 1).
        log_det = np.linalg.slogdet(cov)[1]
        return given.logpdf(member.mean) + self.covariance_marginal.logpdf(cov) + (self._size + 1.0) * log_det

    def predictive(self) -> MultivariateStudentT:
        """Return Student's t distribution of the next vector."""
        df = self.df - self._size + 1.0
        return MultivariateStudentT(df, self.mean, self._scaled(df * self.kappa / (self.kappa + 1.0)))

    def map(self) -> MultivariateNormal:
        """Return the member with the most probable mean and precision, μ and (ν - d)Ψ⁻¹, jointly; for ν > d."""
        excess = self.df - self._size
        if not np.all(excess > 0.0):
            raise no_mode(self, f"df > {self._size}")
        return MultivariateNormal(self.mean, self._scaled(excess))

    def sample(self, size: Size = (), random_state: RandomState = None) -> MultivariateNormal:
        """Draw members, as an array of distributions of shape `size`, then the batch's."""
        rng = np.random.default_rng(random_state)
        cov = self.covariance_marginal.sample(size, rng)
        given = MultivariateNormal(self.mean, cov / np.asarray(self.kappa)[..., None, None])
        return MultivariateNormal(given.sample((), rng), cov)

    def interval(self, level: float = 0.95) -> dict[str, tuple[Array, Array]]:
        """Return credible intervals of the entries of the "mean", and of the "variance" of each entry of a vector."""
        df = np.asarray(self.df)[..., None] - self._size + 1.0
        spread = np.diagonal(self.scatter, axis1=-2, axis2=-1)
        mean = StudentT(df, self.mean, np.sqrt(spread / (np.asarray(self.kappa)[..., None] * df)))
        return {"mean": mean.interval(level), "variance": InverseGamma(0.5 * df, 0.5 * spread).interval(level)}
