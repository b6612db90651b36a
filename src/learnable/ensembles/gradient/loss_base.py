"""What the boosting loop asks of a loss, and sums and quantiles of the rows of each leaf."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...risk.losses import GammaLoss, LogisticLoss, PoissonLoss

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

_TINY = 1e-300


class BoostingLoss:
    """Base: one score a row, a loss object of `risk.losses` or one like it.

    Parameters
    ----------
    loss : object
        Has `value(y, z)` and `gradient(y, z)`; `curvature(y, z)` if it is smooth; `predict(z)`, `probability(z)`.
    margin : bool
        Whether targets are class codes 0, 1 that the loss wants as ∓1.
    """

    n_outputs = 1
    fused: int | None = None  #: which kernel computes derivatives and losses in one pass
    logarithmic = False  #: whether scores are logarithms (of odds, of means), on which Newton's steps need a bound
    moving = False  #: whether `prepare` changes the loss from round to round

    def __init__(self, loss: Any, margin: bool = False) -> None:
        self.loss, self.margin = loss, margin
        self.logarithmic = isinstance(loss, (LogisticLoss, PoissonLoss, GammaLoss))

    @property
    def smooth(self) -> bool:
        """Whether leaves get Newton's step."""
        return hasattr(self.loss, "curvature")

    @property
    def has_probability(self) -> bool:
        """Whether scores stand for probabilities of the classes."""
        return hasattr(self.loss, "probability")

    def truth(self, y: NDArray[Any]) -> Array:
        """Return the targets as the loss wants them."""
        return np.where(y == 1, 1.0, -1.0) if self.margin else np.asarray(y, dtype=np.float64)

    def prepare(self, y: Array, F: Array, w: Array | None) -> None:
        """Adapt to the scores at the beginning of a round; Huber's δ follows the residuals."""

    def value(self, y: Array, F: Array) -> Array:
        """Return V of each row."""
        return np.asarray(self.loss.value(y, F[0]), dtype=np.float64)

    def derivatives(self, y: Array, F: Array) -> tuple[Array, Array]:
        """Return g and h, each (K, n)."""
        g = np.asarray(self.loss.gradient(y, F[0]), dtype=np.float64)[None]
        if not self.smooth:
            return g, np.ones_like(g)
        return g, np.asarray(self.loss.curvature(y, F[0]), dtype=np.float64)[None]

    def start(self, y: Array, w: Array | None) -> Array:
        """Return the best constant scores, (K,)."""
        one = np.zeros(len(y), np.int32)
        return self.best_leaf_values(0, one, 1, y, np.zeros((1, len(y))), w)

    def best_leaf_values(self, k: int, leaf: Ids, n_leaves: int, y: Array, F: Array, w: Array | None) -> Array:
        """Return argmin over c of Σ w V(y, F + c·e_k) in each leaf, by bisection on the derivative."""
        moved = F.copy()

        def slope(c: Array) -> Array:
            moved[k] = F[k] + c[leaf]
            g = self.derivatives(y, moved)[0][k]
            return sum_by_leaf(leaf, g if w is None else g * w, n_leaves)

        return bisect(slope, n_leaves)

    def predict(self, F: Array) -> Array:
        """Return the predictions on the scale of the targets."""
        return np.asarray(self.loss.predict(F[0]) if hasattr(self.loss, "predict") else F[0])

    def probability(self, F: Array) -> Array:
        """Return the probabilities of the two classes, (n, 2)."""
        p = np.asarray(self.loss.probability(F[0]))
        return np.column_stack([1.0 - p, p])

    def scores_of(self, predicted: Array) -> Array:
        """Return the scores that stand for predictions or probabilities; the inverse of the link."""
        return np.asarray(predicted, dtype=np.float64).reshape(1, -1)

    def check_targets(self, owner: str, y: Array) -> None:
        """Raise DataError unless the loss is defined for the targets."""


def quantiles_by_leaf(leaf: Ids, n_leaves: int, x: Array, w: Array | None, level: float) -> Array:
    """Return the weighted quantile of x in each leaf: the middle of both where the level falls between two values.

    Examples
    --------
    >>> leaf, x = np.array([0, 1, 0, 1, 0], np.int32), np.array([3.0, 1.0, 1.0, 2.0, 2.0])
    >>> quantiles_by_leaf(leaf, 2, x, None, 0.5)
    array([2. , 1.5])
    """
    order = np.argsort(x, kind="stable")
    order = order[np.argsort(leaf[order].astype(np.int16 if n_leaves < 2**15 else np.int32), kind="stable")]
    weight = np.ones(len(x)) if w is None else w[order]
    counts = np.bincount(leaf, minlength=n_leaves)
    first = np.r_[0, np.cumsum(counts)]
    total = np.r_[0.0, np.cumsum(weight)]
    base, whole = total[first[:-1]], total[first[1:]] - total[first[:-1]]
    wanted = base + level * whole
    slack = 1e-12 * np.maximum(whole, total[-1] * 1e-3)
    at = np.clip(np.searchsorted(total[1:], wanted - slack), first[:-1], np.maximum(first[1:] - 1, first[:-1]))
    at = np.minimum(at, len(x) - 1)
    between = np.abs(total[at + 1] - wanted) <= slack
    above = np.where(between & (at + 1 < first[1:]), at + 1, at)
    found = x[order[at]] / 2 + x[order[np.minimum(above, len(x) - 1)]] / 2
    return np.where(counts > 0, found, 0.0)


def sum_by_leaf(leaf: NDArray[Any], x: Array | None, n_leaves: int) -> Array:
    """Return the sums of x over the rows of each leaf; None counts them."""
    return np.bincount(leaf, x, n_leaves).astype(np.float64)


def bisect(slope: Any, n_leaves: int) -> Array:
    """Return the zeros of increasing functions, one a leaf, to float64's digits; where one has none, a far end."""
    low, high = np.full(n_leaves, -1.0), np.full(n_leaves, 1.0)
    for _ in range(60):
        outside = slope(high) < 0
        if not outside.any():
            break
        high = np.where(outside, 2.0 * high, high)
    for _ in range(60):
        outside = slope(low) > 0
        if not outside.any():
            break
        low = np.where(outside, 2.0 * low, low)
    for _ in range(120):
        middle = (low + high) / 2
        rising = slope(middle) > 0
        low, high = np.where(rising, low, middle), np.where(rising, middle, high)
    return (low + high) / 2


def centred_log(shares: Array) -> Array:
    """Return log p of rows of shares, minus its mean over the classes, as (K, n)."""
    p = np.asarray(shares, dtype=np.float64)
    eps = np.finfo(np.float64).eps
    z = np.log(np.clip(p / p.sum(axis=1, keepdims=True), eps, None))
    return np.ascontiguousarray((z - z.mean(axis=1, keepdims=True)).T)
