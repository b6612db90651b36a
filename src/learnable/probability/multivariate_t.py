r"""Student's t distribution of vectors.

$$ p(x) = \frac{\Gamma(\frac{\nu+d}2)}{\Gamma(\frac\nu2)\,(\nu\pi)^{d/2}\,|S|^{1/2}}
   \Bigl(1 + \frac{(x - m)^\top S^{-1}(x - m)}{\nu}\Bigr)^{-\frac{\nu+d}2} $$

The predictive distribution of normal vectors of unknown mean and covariance; not an exponential family.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaln

from ..core.errors import DataError, ParameterError
from .base import Array, Multivariate, Parameter, RandomState, Size, require, require_positive
from .multivariate_normal import MultivariateNormal
from .student_t import StudentT


class MultivariateStudentT(Multivariate):
    """Student's t distribution of vectors, or an array of them.

    Parameters
    ----------
    df : float or array
        The degrees of freedom ν > 0, finite.
    loc : array of shape (..., d)
        The centre m.
    scale : array of shape (..., d, d)
        S, symmetric and positive definite. (Not the covariance, which is Sν/(ν - 2) if ν > 2.)

    Examples
    --------
    >>> MultivariateStudentT(4.0, [0.0, 1.0], [[1.0, 0.5], [0.5, 2.0]]).covariance
    array([[2., 1.],
           [1., 4.]])
    """

    _event_ranks: ClassVar[Mapping[str, int]] = {"loc": 1, "scale": 2}

    def __init__(self, df: ArrayLike, loc: ArrayLike, scale: ArrayLike) -> None:
        self._store(df=df, loc=loc, scale=scale)
        require_positive(self, df=self.df)
        require(self, "loc", self.loc, np.isfinite(self.loc), "finite")
        d = self.loc.shape[-1]
        if self.scale.shape[-2:] != (d, d):
            raise ParameterError(f"{type(self).__name__}: scale must be {d} by {d}, got shape {self.scale.shape}.")
        try:
            factor = np.linalg.cholesky(self.scale)
        except np.linalg.LinAlgError:
            raise ParameterError(
                f"{type(self).__name__}: scale must be positive definite, got {self.scale!s}."
            ) from None
        object.__setattr__(self, "_factor", factor)

    df = Parameter("The degrees of freedom ν.")

    loc = Parameter("The centre m.")

    scale = Parameter("The scale matrix S.")

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape (d,) of one draw."""
        return (int(self.loc.shape[-1]),)

    @property
    def mean(self) -> Array:
        """The mean m; NaN for ν <= 1, where there is none."""
        return np.where(np.asarray(self.df)[..., None] > 1.0, self.loc, np.nan)

    @property
    def covariance(self) -> Array:
        """The covariance Sν/(ν - 2); inf times S for ν <= 2."""
        df = np.asarray(self.df)
        share = np.where(df > 2.0, df / np.where(df > 2.0, df - 2.0, 1.0), np.inf)
        with np.errstate(invalid="ignore"):
            return share[..., None, None] * self.scale

    def marginal(self, k: int) -> StudentT:
        """Return the distribution of entry k."""
        return StudentT(self.df, self.loc[..., k], np.sqrt(self.scale[..., k, k]))

    def _log_det(self) -> Array:
        factor: Array = self._factor  # type: ignore[attr-defined]
        return 2.0 * np.sum(np.log(np.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)

    def logpdf(self, x: ArrayLike) -> Array:
        """Return the log-density at x of shape (..., d)."""
        x = np.asarray(x, dtype=np.float64)
        d = self.loc.shape[-1]
        if x.ndim == 0 or x.shape[-1] != d:
            raise DataError(f"{type(self).__name__}: x must have {d} entries along its last axis, got shape {x.shape}.")
        factor: Array = self._factor  # type: ignore[attr-defined]
        white = np.linalg.solve(factor, np.asarray(x - self.loc)[..., None])[..., 0]
        square = np.sum(np.square(white), axis=-1)
        half = 0.5 * (self.df + d)
        constant = gammaln(half) - gammaln(0.5 * self.df) - 0.5 * d * np.log(self.df * math.pi) - 0.5 * self._log_det()
        return (constant - half * np.log1p(square / self.df))[()]  # type: ignore[no-any-return]

    def _entropy_in_nats(self) -> Array:
        d = self.loc.shape[-1]
        half = 0.5 * self.df
        rest = half + 0.5 * d
        norm = gammaln(half) - gammaln(rest) + 0.5 * d * np.log(self.df * math.pi) + 0.5 * self._log_det()
        return (norm + rest * (digamma(rest) - digamma(half)))[()]  # type: ignore[no-any-return]

    def _kl(self, other: Any) -> Array:
        raise ParameterError(
            f"{type(self).__name__}: its divergence has no closed form; average the difference of logpdf over samples."
        )

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw vectors, of shape `size`, then the batch's, then (d,)."""
        rng = np.random.default_rng(random_state)
        normal = MultivariateNormal(np.zeros_like(self.loc), self.scale).sample(size, rng)
        share = 2.0 * rng.standard_gamma(0.5 * self.df, self._sample_shape(size)) / self.df
        return self.loc + normal / np.sqrt(share)[..., None]
