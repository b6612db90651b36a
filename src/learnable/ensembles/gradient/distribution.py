"""A distribution for every row: from several quantiles fitted jointly, or Normal with a learned scale.

`loss="quantile"` with levels τ₁ < … < τ_L gives quantiles that do not cross; joined by straight lines they are a
quantile function, and beyond the outermost levels tails fall exponentially from the density that the outermost
segments have. `loss="normal"` boosts the mean μ(x) and the logarithm of the standard deviation σ(x) together,

    V = log σ + ½(y − μ)²/σ²,      ∂V/∂μ = (μ − y)/σ²,   ∂V/∂log σ = 1 − u,     u = (y − μ)²/σ²,

with curvature 1/σ² for μ, and 1 + u for log σ: the mean of the expected one, 2, and the one at the row, 2u. A leaf's
step for log σ is then (ū − 1)/(ū + 1), which is bounded and agrees with the best one, ½ log ū, to second order.

References: R. Koenker, *Quantile Regression*, 2005; T. Duan et al., NGBoost, ICML 2020, whose natural gradient is the
step with the expected curvature.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.errors import DataError, ParameterError
from ...data.any_order import ALONE, World
from ...data.any_order import mean as mean_of
from ...probability.base import RandomState, Size, Univariate, require
from ...probability.normal import Normal
from .losses import BoostingLoss, Link, Targets, ends_of
from .quantiles import quantiles_by_leaf

# --------------------------------------------------------------------------------------------------------------------
# Several quantiles at once that cannot cross: the middle one, and the logarithms of the gaps beside it.


Array = NDArray[np.float64]
Ids = NDArray[np.int32]

_TINY = 1e-300  # whose logarithm is finite


class JointQuantiles(BoostingLoss):
    r"""Several quantiles at once: Σ_k pinball_{τ_k}(y − q_k), with q ascending in τ by construction.

    Score c is the quantile nearest to the median; the others are logarithms of gaps, q_{k+1} = q_k + e^{F_{k+1}} above
    it and q_{k−1} = q_k − e^{F_{k−1}} below. In one score's leaf the loss is, in s = e^{step}, a sum of pinball losses
    of (y − rest)/gap with weights w·gap, so that the best s is a weighted quantile: exact, as for a single level.
    """

    def __init__(self, levels: Array) -> None:
        super().__init__(None, JointTargets(), JointLink(self))
        self.levels = np.asarray(levels, dtype=np.float64)
        self.n_outputs = len(levels)
        self.middle = int(np.argmin(np.abs(self.levels - 0.5)))

    def value(self, y: Array, F: Array) -> Array:
        """Return the sum over the levels."""
        r = quantiles_of(F, self.middle) - y
        tau = self.levels[:, None]
        return np.asarray(np.maximum(-tau * r, (1.0 - tau) * r).sum(axis=0))

    def derivatives(self, y: Array, F: Array) -> tuple[Array, Array]:
        """Return the chain rule through the gaps, and h = the gap, the weight that a row has in its leaf."""
        c = self.middle
        q = quantiles_of(F, c)
        tau = self.levels[:, None]
        slope = np.where(q > y, 1.0 - tau, np.where(q < y, -tau, 0.0))
        g, h = np.empty_like(F), np.exp(F)
        h[c] = 1.0
        g[c] = slope.sum(axis=0)
        for k in range(c + 1, len(g)):
            g[k] = slope[k:].sum(axis=0) * h[k]
        for k in range(c):
            g[k] = -slope[: k + 1].sum(axis=0) * h[k]
        return g, h

    def best_leaf_values(
        self, k: int, leaf: Ids, n_leaves: int, y: Array, F: Array, w: Array | None, world: World = ALONE
    ) -> Array:
        """Return the exact step of score k in each leaf; of gaps at most a factor of 20 either way."""
        c = self.middle
        q = quantiles_of(F, c)
        if k == c:
            moved, gap, sign, tau = q, np.ones(len(y)), 1.0, self.levels
        elif k > c:
            moved, gap, sign, tau = q[k:], np.exp(F[k]), 1.0, self.levels[k:]
        else:
            moved, gap, sign, tau = q[: k + 1], np.exp(F[k]), -1.0, 1.0 - self.levels[: k + 1]
        shift = 0.0 if k == c else gap
        # (y − rest)/gap, where rest is the quantile without this gap
        t = np.concatenate([(sign * (y - line) + shift) / gap for line in moved])
        weight = gap if w is None else gap * w
        level, lines = float(tau.mean()), len(moved)
        s = quantiles_by_leaf(np.tile(leaf, lines), n_leaves, t, np.tile(weight, lines), level, world)
        return s if k == c else np.log(np.clip(s, 0.05, 20.0))


class JointTargets(Targets):
    """Numbers; the start are their quantiles."""

    def start(self, loss: Any, y: Array, w: Array | None, world: World = ALONE) -> Array:
        """Return the quantiles of all rows; equal ones get a gap of a millionth of the spread."""
        one = np.zeros(len(y), np.int32)
        q = np.array([quantiles_by_leaf(one, 1, y, w, level, world)[0] for level in loss.levels])
        low, high = ends_of(y, world)
        least = max(1e-6 * (high - low), _TINY)
        F = np.empty(len(q))
        c = loss.middle
        F[c] = q[c]
        F[c + 1 :] = np.log(np.maximum(np.diff(q[c:]), least))
        F[:c] = np.log(np.maximum(np.diff(q[: c + 1]), least))
        return F


class JointLink(Link):
    """From the middle quantile and the logarithms of the gaps to all quantiles."""

    def __init__(self, loss: JointQuantiles) -> None:
        self.loss = loss

    def predict(self, F: Array) -> Array:
        """Return the quantiles, (n, K), ascending in each row."""
        return np.ascontiguousarray(quantiles_of(F, self.loss.middle).T)


def quantiles_of(F: Array, c: int) -> Array:
    """Return the quantiles, (K, n), of scores whose line c is the middle one."""
    with np.errstate(over="ignore"):
        q = np.exp(F)
    q[c] = F[c]
    np.cumsum(q[c:], axis=0, out=q[c:])
    below = -q[:c][::-1]
    q[:c] = (np.cumsum(below, axis=0) + F[c])[::-1]
    return q


class QuantileDistribution(Univariate):
    r"""The distribution whose quantile function joins given quantiles by straight lines; or an array of them.

    With p₁ … p_L the levels, q₁ … q_L the quantiles and b the slope of the first line, Q(p) = q₁ + b p₁ log(p/p₁) below
    p₁; likewise above p_L. Equal quantiles are an atom, where the density is infinite.

    Parameters
    ----------
    levels : array of shape (L,)
        Ascending, between 0 and 1; at least two.
    quantiles : array of shape (..., L)
        Ascending along the last axis, finite.

    Examples
    --------
    >>> d = QuantileDistribution([0.25, 0.5, 0.75], [-1.0, 0.0, 1.0])
    >>> float(d.quantile(0.6)), float(d.cdf(0.4)), float(d.mean)
    (0.4, 0.6, 0.0)
    """

    _event_ranks = {"levels": 1, "quantiles": 1}  # noqa: RUF012  a ClassVar of the base

    def __init__(self, levels: ArrayLike, quantiles: ArrayLike) -> None:
        self._store(levels=levels, quantiles=quantiles)
        p, q = self.levels, self.quantiles
        if p.shape[-1] != q.shape[-1] or p.shape[-1] < 2:
            raise ParameterError(
                "QuantileDistribution: levels and quantiles must have the same length of at least 2, got "
                f"{p.shape[-1]} and {q.shape[-1]}."
            )
        require(self, "levels", p, (p > 0.0) & (p < 1.0), "> 0 and < 1")
        require(self, "levels", np.diff(p), np.diff(p) > 0.0, "ascending")
        require(self, "quantiles", q, np.isfinite(q), "finite")
        require(self, "quantiles", np.diff(q), np.diff(q) >= 0.0, "ascending")

    @property
    def levels(self) -> Array:
        """The levels."""
        return self._parameters["levels"]

    @property
    def quantiles(self) -> Array:
        """The quantiles at the levels."""
        return self._parameters["quantiles"]

    def _slopes(self) -> Array:
        return np.diff(self.quantiles) / np.diff(self.levels)

    def _moments(self) -> tuple[Array, Array]:
        """Return ∫Q and ∫(Q − middle)², with the middle taken out so that no digits are lost."""
        p, b = self.levels, self._slopes()
        middle = self.quantiles[..., p.shape[-1] // 2]
        q = self.quantiles - middle[..., None]
        lower, upper = p[..., 0], 1.0 - p[..., -1]
        dp, left, right = np.diff(p), q[..., :-1], q[..., 1:]
        # With c = b·p₁: the tail has ∫Q = p₁(q₁ − c) and ∫Q² = p₁(q₁² − 2q₁c + 2c²); the other one mirrored.
        c, e = b[..., 0] * lower, b[..., -1] * upper
        first, last = q[..., 0], q[..., -1]
        one = lower * (first - c) + upper * (last + e) + (dp * (left + right) / 2.0).sum(axis=-1)
        two = (dp * (left * left + left * right + right * right) / 3.0).sum(axis=-1)
        two = two + lower * (first * first - 2 * first * c + 2 * c * c)
        two = two + upper * (last * last + 2 * last * e + 2 * e * e)
        return middle + one, two - one * one

    @property
    def mean(self) -> Array:
        """The mean."""
        return self._moments()[0][()]

    @property
    def variance(self) -> Array:
        """The variance."""
        return np.maximum(self._moments()[1], 0.0)[()]

    def quantile(self, p: ArrayLike) -> Array:
        """Return the x at which the cdf is p; −∞ at 0 and ∞ at 1."""
        p = self._as_probabilities(p)
        P, Q, b = self.levels, self.quantiles, self._slopes()
        at = np.clip((P[..., 1:-1] < p[..., None]).sum(axis=-1), 0, P.shape[-1] - 2)
        p0, q0, slope = (_take(table, at) for table in (P[..., :-1], Q[..., :-1], b))
        first, last = b[..., 0] * P[..., 0], b[..., -1] * (1.0 - P[..., -1])
        with np.errstate(divide="ignore", invalid="ignore"):
            low = Q[..., 0] + np.where(first > 0.0, first * np.log(p / P[..., 0]), 0.0)
            high = Q[..., -1] - np.where(last > 0.0, last * np.log((1.0 - p) / (1.0 - P[..., -1])), 0.0)
        inside = q0 + slope * (p - p0)
        return np.where(p < P[..., 0], low, np.where(p > P[..., -1], high, inside))[()]

    def cdf(self, x: ArrayLike) -> Array:
        """Return the probability of at most x."""
        x = np.asarray(x, dtype=np.float64)
        P, Q, b = self.levels, self.quantiles, self._slopes()
        at = np.clip((Q[..., 1:-1] <= x[..., None]).sum(axis=-1), 0, P.shape[-1] - 2)
        p0, q0, slope = (_take(table, at) for table in (P[..., :-1], Q[..., :-1], b))
        first, last = b[..., 0] * P[..., 0], b[..., -1] * (1.0 - P[..., -1])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            inside = p0 + np.where(slope > 0.0, (x - q0) / slope, 0.0)
            low = np.where(first > 0.0, P[..., 0] * np.exp(np.minimum((x - Q[..., 0]) / first, 0.0)), 0.0)
            tail = np.exp(np.minimum(-(x - Q[..., -1]) / last, 0.0))
        high = 1.0 - np.where(last > 0.0, (1.0 - P[..., -1]) * tail, 0.0)
        return np.where(x < Q[..., 0], low, np.where(x >= Q[..., -1], high, inside))[()]

    def logpdf(self, x: ArrayLike) -> Array:
        """Return minus the logarithm of the slope of Q at the cdf of x."""
        x = np.asarray(x, dtype=np.float64)
        P, Q, b = self.levels, self.quantiles, self._slopes()
        slope = _take(b, np.clip((Q[..., 1:-1] <= x[..., None]).sum(axis=-1), 0, P.shape[-1] - 2))
        first, last = b[..., 0] * P[..., 0], b[..., -1] * (1.0 - P[..., -1])
        with np.errstate(divide="ignore", invalid="ignore"):
            beyond = np.where(
                x < Q[..., 0], (x - Q[..., 0]) / first, np.where(x > Q[..., -1], (Q[..., -1] - x) / last, 0.0)
            )
            value = np.where(
                x < Q[..., 0], -np.log(b[..., 0]), np.where(x > Q[..., -1], -np.log(b[..., -1]), -np.log(slope))
            )
        return np.where(np.isnan(beyond) | np.isneginf(beyond), -np.inf, value + beyond)[()]

    def _entropy_in_nats(self) -> Array:
        # E[−log p] = ∫ log Q′: a line's logarithm, and in the tails log b + 1 more.
        P, b = self.levels, self._slopes()
        lower, upper = P[..., 0], 1.0 - P[..., -1]
        with np.errstate(divide="ignore"):
            logs = np.log(b)
        return (np.diff(P) * logs).sum(axis=-1) + lower * (logs[..., 0] + 1.0) + upper * (logs[..., -1] + 1.0)

    def _kl(self, other: Any) -> Array:
        raise ParameterError("QuantileDistribution: kl is not defined for it; compare logpdf on a sample.")

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw independent samples, of shape `size` followed by the shape of the batch."""
        return self.quantile(np.random.default_rng(random_state).random(self._sample_shape(size)))


def largest(y: Array, world: World) -> float:
    """Return the largest magnitude of the targets of all parts."""
    return float(world.most(np.array([np.abs(y).max(initial=0.0)]))[0])


class NormalScale(BoostingLoss):
    """Minus the log-likelihood of N(F₀, e^{2F₁}), without the constant; two scores per row."""

    n_outputs = 2

    def __init__(self) -> None:
        super().__init__(None, NormalTargets(), MeanLink())
        self.smooth = True

    @np.errstate(over="ignore")
    def value(self, y: Array, F: Array) -> Array:
        """Return log σ + ½(y − μ)²/σ²."""
        return F[1] + 0.5 * np.square((y - F[0]) * np.exp(-F[1]))

    @np.errstate(over="ignore")
    def derivatives(self, y: Array, F: Array) -> tuple[Array, Array]:
        """Return the gradient and the positive curvature of the module's docstring."""
        precision = np.exp(-2.0 * F[1])
        r = F[0] - y
        u = r * r * precision
        return np.stack([r * precision, 1.0 - u]), np.stack([precision, 1.0 + u])


class NormalTargets(Targets):
    """Numbers whose squares are finite; the start is their mean and the logarithm of their spread."""

    def start(self, loss: Any, y: Array, w: Array | None, world: World = ALONE) -> Array:
        """Return the mean and the logarithm of the standard deviation, which is not zero."""
        mean = mean_of(y, w, world)
        std = float(np.sqrt(mean_of(np.square(y - mean), w, world)))
        return np.array([mean, np.log(max(std, 1e-9 * largest(y, world), 1e-150))])

    def check(self, owner: str, y: Array, world: World = ALONE) -> None:
        """Raise DataError where squares overflow."""
        if largest(y, world) > 1e150:
            raise DataError(f"{owner}: loss='normal' squares the targets, which reach 1e150; rescale them.")


class MeanLink(Link):
    """Predictions are the mean."""

    def predict(self, F: Array) -> Array:
        """Return the mean."""
        return np.ascontiguousarray(F[0])


def predict_dist(model: Any, X: Any) -> Univariate:
    """Return the predictive distribution of each row, as an array of distributions.

    Parameters
    ----------
    model : estimator
        A fitted boosted regressor with `loss="quantile"` and at least two levels, or `loss="normal"`.
    X : array, sparse array or dataframe of shape (n_samples, n_features)
        New rows.

    Returns
    -------
    distribution
        `QuantileDistribution` or `Normal`, with `mean`, `std`, `interval(level)`, `logpdf`, `cdf`, `sample`.
    """
    loss = model._fitted_loss() if hasattr(model, "_fitted_loss") else None
    if isinstance(loss, JointQuantiles) and loss.n_outputs > 1:
        return QuantileDistribution(loss.levels, np.asarray(model.predict(X)))
    if isinstance(loss, NormalScale):
        mean, log_scale = model._raw(X)
        return Normal(mean, np.exp(np.clip(log_scale, -690.0, 690.0)))
    raise DataError(
        f"{type(model).__name__}: predict_dist needs loss='quantile' with at least two levels, or loss='normal'; for "
        "intervals of any other regressor use evaluation.ConformalRegressor."
    )


def predict_interval(model: Any, X: Any, level: float = 0.9) -> tuple[Array, Array]:
    """Return the ends of the equal-tailed interval that has probability `level`, of each row."""
    return predict_dist(model, X).interval(level)


def _take(table: Array, at: NDArray[np.int64]) -> Array:
    """Return the entry `at` of the last axis, with the axes before it broadcast."""
    shape = np.broadcast_shapes(table.shape[:-1], np.shape(at))
    wide = np.broadcast_to(table, (*shape, table.shape[-1]))
    return np.take_along_axis(wide, np.broadcast_to(at, shape)[..., None], axis=-1)[..., 0]
