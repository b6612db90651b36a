r"""Student's t distribution with location and scale.

$$ p(x) = \frac{\Gamma(\frac{\nu+1}{2})}{\Gamma(\frac{\nu}{2}) \sqrt{\nu\pi}\, s}
          \Bigl(1 + \frac{t^2}{\nu}\Bigr)^{-\frac{\nu+1}{2}}, \qquad t = \frac{x - m}{s} $$

The predictive distribution of a normal sample of unknown variance; not an exponential family.

Location and scale of greatest likelihood come from EM: x is normal with the precision u/s², and u has a Gamma
distribution, so that
E[u | x] = (ν + 1)/(ν + t²) are weights that spare outliers (Dempster, Laird and Rubin, 1977; the scale's step with the
expanded parameter of Liu, Rubin and Wu, 1998). The degrees of freedom maximise what is left, the profile likelihood.
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import betaln, digamma, gammaln, stdtr, stdtrit

from ..core.errors import DataError
from .base import Array, Parameter, RandomState, Size, Univariate, check_sample, require, weighted_mean
from .laplace import weighted_median
from .saddle import kl_by_quadrature

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_DF_RANGE = (0.5, 1e6)
_MAX_STEPS = 5000


class StudentT(Univariate):
    """Student's t distribution, or an array of them.

    Parameters
    ----------
    df : float or array
        The degrees of freedom ν > 0, finite, not necessarily whole.
    loc : float or array
        The median m; also the mean if ν > 1.
    scale : float or array
        s > 0. (Not the standard deviation, which is s √(ν/(ν - 2)) if ν > 2.)

    Examples
    --------
    >>> StudentT(df=4.0, loc=1.0, scale=2.0).interval(0.95)
    (np.float64(-4.5529), np.float64(6.5529))
    >>> StudentT(df=4.0, scale=2.0).std
    np.float64(2.8284)
    """

    def __init__(self, df: ArrayLike, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0) -> None:
        self._store(df=df, loc=loc, scale=scale)
        require(self, "df", self.df, self.df > 0.0, "> 0")
        require(self, "df", self.df, np.isfinite(self.df), "finite")
        require(self, "loc", self.loc, np.isfinite(self.loc), "finite")
        require(self, "scale", self.scale, (self.scale > 0.0) & np.isfinite(self.scale), "> 0 and finite")

    @classmethod
    def fit_mle(cls, x: ArrayLike, weights: ArrayLike | None = None, *, df: float | None = None) -> Self:
        """Return the distribution of greatest likelihood, by EM.

        Parameters
        ----------
        x : array of shape (n, ...)
            Samples along the first axis; each position of the other axes gets a distribution of its own.
        weights : array of shape (n,), optional
            Non-negative; a weight of 2 counts as the same sample twice.
        df : float, optional
            The degrees of freedom, if known. Otherwise they are estimated, between ½ and 10⁶: below, the likelihood
            is unbounded at every single sample; above, the distribution is normal.
        """
        x, w = check_sample(cls, x, weights)
        columns = x.reshape(x.shape[0], -1)
        fits = [_fit_column(column, w / w.max(), df) for column in columns.T]
        nu, loc, scale = (np.reshape(part, x.shape[1:])[()] for part in zip(*fits, strict=True))
        return cls(nu, loc, scale)

    df = Parameter("The degrees of freedom ν.")

    loc = Parameter("The location m.")

    scale = Parameter("The scale s.")

    @property
    def mean(self) -> Array:
        """The mean m; NaN for ν <= 1, where there is none."""
        return np.where(self.df > 1.0, self.loc, np.nan)[()]

    @property
    def variance(self) -> Array:
        """The variance s² ν/(ν - 2); inf for ν <= 2."""
        return np.square(self.std)

    @property
    def std(self) -> Array:
        """The standard deviation s √(ν/(ν - 2)); inf for ν <= 2."""
        excess = np.where(self.df > 2.0, self.df - 2.0, 1.0)
        return np.where(self.df > 2.0, self.scale * np.sqrt(self.df / excess), np.inf)[()]

    def _entropy_in_nats(self) -> Array:
        a = 0.5 * self.df
        return (a + 0.5) * _digamma_half_step(a) - _log_gamma_ratio(a) + _HALF_LOG_2PI + np.log(self.scale)

    def _kl(self, other: StudentT) -> Array:
        return kl_by_quadrature(self, other)

    def _standardize(self, x: ArrayLike) -> Array:
        t: Array = (np.asarray(x, dtype=np.float64) - self.loc) / self.scale
        return t

    def logpdf(self, x: ArrayLike) -> Array:
        """Return the logarithm of the density, finite for every finite x."""
        return _standard_logpdf(self.df, self._standardize(x)) - np.log(self.scale)

    def cdf(self, x: ArrayLike) -> Array:
        """Return the probability of at most x, accurate in the lower tail; the upper tail is cdf(2m - x)."""
        return _standard_cdf(self.df, self._standardize(x))

    def quantile(self, p: ArrayLike) -> Array:
        """Return the x at which the cdf is p."""
        p = self._as_probabilities(p)
        t = _lower_quantile(self.df, np.minimum(p, 1.0 - p))  # 1 - p is exact for p >= ½
        return self.loc + self.scale * np.where(p < 0.5, t, -t)

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return m ± s t, where -t is the (1 - level)/2 quantile of the standard distribution."""
        half_width = -self.scale * _lower_quantile(self.df, np.asarray(self._tail_probability(level)))
        return self.loc - half_width, self.loc + half_width

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw independent samples, of shape `size` followed by the shape of the distribution."""
        standard = np.random.default_rng(random_state).standard_t(self.df, self._sample_shape(size))
        return self.loc + self.scale * standard


def _fit_column(x: Array, w: Array, df: float | None) -> tuple[float, float, float]:
    """Return (ν, m, s) of greatest likelihood for samples of positive weight."""
    centre = weighted_median(x, w)
    unit = weighted_mean(np.abs(x - centre), w)
    if not unit > 0.0:
        raise DataError(
            "StudentT: fit_mle needs two distinct values of positive weight, got a constant: "
            "its likelihood grows without bound as scale falls to 0."
        )
    z = (x - centre) / unit
    point = (0.0, 1.0)

    def profile(log_nu: float) -> float:
        nonlocal point
        nu = np.asarray(math.exp(log_nu))
        point = _em(z, w, nu, point, tolerance=1e-8)  # whose error in the likelihood is the square of that
        return -float(np.dot(w, _standard_logpdf(nu, (z - point[0]) / point[1]) - math.log(point[1])))

    if df is None:
        grid = np.log(np.geomspace(_DF_RANGE[1], _DF_RANGE[0], 15))  # from the normal end, where the likelihood is tame
        best = int(np.argmin([profile(log_nu) for log_nu in grid]))
        ends = grid[min(best + 1, 14)], grid[max(best - 1, 0)]
        df = math.exp(minimize_scalar(profile, bounds=ends, method="bounded", options={"xatol": 1e-9}).x)
    loc, scale = _em(z, w, np.asarray(df), point, tolerance=1e-13)
    return df, float(centre + unit * loc), float(unit * scale)


def _em(z: Array, w: Array, df: Array, start: tuple[float, float], tolerance: float) -> tuple[float, float]:
    """Return location and scale of greatest likelihood for ν degrees of freedom."""
    m, s = start
    for _ in range(_MAX_STEPS):
        u = w * (df + 1.0) / (df + np.square((z - m) / s))  # expectation: the samples' weights
        new_m = float(u @ z / u.sum())  # maximisation
        new_s = math.sqrt(float(u @ np.square(z - new_m)) / u.sum())
        if new_s < 1e-10:
            raise DataError(
                f"StudentT: so many samples have one value that with df = {df:.3g} the likelihood grows without bound "
                "as scale falls to 0; give a larger df."
            )
        done = abs(new_m - m) <= tolerance * s and abs(new_s - s) <= tolerance * s
        m = new_m
        s = new_s
        if done:
            break
    return m, s


def _standard_logpdf(df: Array, t: Array) -> Array:
    s = np.abs(t) / np.sqrt(df)
    # log(1 + s²), without squaring a large s.
    log_kernel = np.where(s < 1.0, np.log1p(np.square(np.minimum(s, 1.0))), 2.0 * np.log(np.hypot(1.0, s)))
    log_density: Array = _log_gamma_ratio(0.5 * df) - _HALF_LOG_2PI - 0.5 * (df + 1.0) * log_kernel
    return log_density


def _standard_cdf(df: Array, t: Array) -> Array:
    # At df = 1 (Cauchy) SciPy's stdtr has an error of 1e-9 near t = 0; the closed form has none.
    return np.where(df == 1.0, np.arctan2(1.0, -t) / math.pi, stdtr(df, t))[()]


def _lower_quantile(df: Array, p: Array) -> Array:
    """Return the p-quantile of the standard distribution for p <= ½.

    SciPy's stdtrit loses digits near p = ½, where one Newton step restores them, and fails in the far tail,
    where the leading term, cdf(t) ≈ (|t|/√ν)^-ν / (ν B(ν/2, ½)), is exact to the last digit for |t| > 1e8 √ν.
    """
    with np.errstate(divide="ignore", over="ignore"):
        log_ratio = -(np.log(p) + np.log(df) + betaln(0.5 * df, 0.5)) / df  # log(|t|/√ν)
        far = log_ratio > math.log(1e8)
        tail = -np.sqrt(df) * np.exp(log_ratio)
    t = np.where(far, 0.0, stdtrit(df, np.where(far, 0.5, p)))
    newton_step = (_standard_cdf(df, t) - np.where(far, 0.5, p)) / np.exp(_standard_logpdf(df, t))
    return np.where(far, tail, t - newton_step)[()]


def _log_gamma_ratio(a: Array) -> Array:
    """Return log Γ(a + ½) - log Γ(a) - ½ log a, which tends to 0; by its series where the terms cancel."""
    large = np.maximum(a, 30.0)
    q = 1.0 / np.square(large)
    series = (-1 / 8 + q * (1 / 192 + q * (-1 / 640 + q * 17 / 14336))) / large
    return np.where(a < 30.0, gammaln(a + 0.5) - gammaln(a) - 0.5 * np.log(a), series)[()]


def _digamma_half_step(a: Array) -> Array:
    """Return ψ(a + ½) - ψ(a), likewise: its series is the derivative of the other one."""
    large = np.maximum(a, 30.0)
    q = 1.0 / np.square(large)
    series = 0.5 / large + q * (1 / 8 + q * (-1 / 64 + q * (1 / 128 - q * 17 / 2048)))
    return np.where(a < 30.0, digamma(a + 0.5) - digamma(a), series)[()]
