"""What a boosting round asks of a loss, in three parts of three methods each.

    `BoostingLoss`     value, derivatives, best value of a leaf
    `Targets`          their form, which ones are refused, the constant that fits them best
    `Link`             predictions and probabilities of scores, and scores of predictions

The scores of the n rows are F, an array (K, n): one line an output. With V the loss, w the weights of the rows,

    start           argmin_c Σ w V(y, c)
    derivatives     g = ∂V/∂F and h = ∂²V/∂F², or h = 1 where V has a kink (absolute, quantile) or no second derivative
    leaf values     smooth: Newton's step −Σwg/(Σwh + λ);   with a kink, or on demand: argmin_c Σ_{leaf} w V(y, F + c)

The formulas are those of `learnable.risk.losses`; here they get weights, starts and leaves. Several quantiles are
fitted jointly by `JointQuantiles`, whose scores are the middle one and the logarithms of the gaps beside it: whatever
the scores, the quantiles cannot cross.

References: J. Friedman, Greedy function approximation: a gradient boosting machine, Annals of Statistics 29 (2001); T.
Chen and C. Guestrin, XGBoost, KDD 2016.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, log_softmax, logit, softmax

from ...core import Array, DataError, NDArray, ParameterError
from ...data.any_order import ALONE, World, counts_by_group, mean, sums_by_group
from ...risk.losses import (
    AbsoluteLoss,
    ExponentialLoss,
    GammaLoss,
    HuberLoss,
    LogisticLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredLoss,
)
from ..gradient import _kernels
from .quantiles import quantiles_by_leaf

Ids = NDArray[np.int32]

REGRESSION_LOSSES = ("squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "normal")
CLASS_LOSSES = ("log_loss", "exponential")

_TINY = 1e-300  # whose logarithm and inverse are finite


class Targets:
    """What a loss asks of its targets: their form, which ones it refuses, and the constant that fits them best."""

    def truth(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return the targets as the loss wants them."""
        return np.asarray(y, dtype=np.float64)

    def check(self, owner: str, y: Array, world: World = ALONE) -> None:
        """Raise DataError unless the loss is defined for the targets."""

    def start(self, loss: Any, y: Array, w: Array | None, world: World = ALONE) -> Array:
        """Return the best constant scores, (K,)."""
        one = np.zeros(len(y), np.int32)
        return np.asarray(loss.best_leaf_values(0, one, 1, y, np.zeros((1, len(y))), w, world))


class Link:
    """What scores F, (K, n), say in the units of the targets. Here they are predictions themselves."""

    has_probability = False  #: whether scores stand for probabilities of the classes

    def predict(self, F: Array) -> Array:
        """Return the predictions on the scale of the targets."""
        return np.asarray(F[0])

    def probability(self, F: Array) -> Array:
        """Return the probabilities of the classes, (n, K)."""
        raise TypeError(f"{type(self).__name__} knows no probabilities")

    def scores_of(self, predicted: Array) -> Array:
        """Return the scores that stand for predictions or probabilities; the inverse of the link."""
        return np.asarray(predicted, dtype=np.float64).reshape(1, -1)


class BoostingLoss:
    """V of each row, its derivatives, and the best value of a leaf; base: one score, a loss of `risk.losses`.

    Parameters
    ----------
    loss : object
        Has `value(y, z)` and `gradient(y, z)`; `curvature(y, z)` if it is smooth; `predict(z)`, `probability(z)`.
    targets : Targets
        Their form, and the start.
    link : Link or None
        From scores to predictions; None: as the loss says.
    fused : int or None
        Which kernel computes derivatives and losses in one pass.
    """

    n_outputs = 1
    moving: float | None = None  #: the quantile of |y − F| that is Huber's δ in each round (`prepare`)

    def __init__(self, loss: Any, targets: Targets, link: Link | None = None, fused: int | None = None) -> None:
        self.loss = loss
        self.targets = targets
        self.link = OwnLink(loss) if link is None else link
        self.fused = fused
        #: Whether leaves get Newton's step.
        self.smooth = hasattr(loss, "curvature")
        #: Whether scores are logarithms (of odds, of means), on which Newton's steps need a bound.
        self.logarithmic = isinstance(loss, (LogisticLoss, PoissonLoss, GammaLoss))

    def value(self, y: Array, F: Array) -> Array:
        """Return V of each row."""
        return np.asarray(self.loss.value(y, F[0]), dtype=np.float64)

    def derivatives(self, y: Array, F: Array) -> tuple[Array, Array]:
        """Return g and h, each (K, n)."""
        g = np.asarray(self.loss.gradient(y, F[0]), dtype=np.float64)[None]
        if not self.smooth:
            return g, np.ones_like(g)
        return g, np.asarray(self.loss.curvature(y, F[0]), dtype=np.float64)[None]

    def best_leaf_values(
        self, k: int, leaf: Ids, n_leaves: int, y: Array, F: Array, w: Array | None, world: World = ALONE
    ) -> Array:
        """Return argmin over c of Σ w V(y, F + c·e_k) in each leaf, by bisection on the derivative."""
        moved = F.copy()

        def slope(c: Array) -> Array:
            moved[k] = F[k] + c[leaf]
            g = self.derivatives(y, moved)[0][k]
            return sums_by_group(leaf, g if w is None else g * w, n_leaves, world)

        return bisect(slope, n_leaves)


def prepare(loss: BoostingLoss, y: Array, F: Array, w: Array | None, world: World = ALONE) -> None:
    """Adapt a loss to the scores at the beginning of a round: Huber's δ follows the residuals."""
    if loss.moving is not None:
        one = np.zeros(len(y), np.int32)
        delta = float(quantiles_by_leaf(one, 1, np.abs(y - F[0]), w, loss.moving, world)[0])
        loss.loss = HuberLoss(max(delta, _TINY))


def ends_of(y: Array, world: World = ALONE) -> tuple[float, float]:
    """Return the smallest and the largest target of all parts."""
    low, high = (-np.inf, -np.inf) if not len(y) else (-float(y.min()), float(y.max()))
    found = world.most(np.array([low, high]))
    return -float(found[0]), float(found[1])


def bisect(slope: Any, n_leaves: int) -> Array:
    """Return the zeros of increasing functions, one per leaf, to float64's digits; where one has none, a far end."""
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


# --------------------------------------------------------------------------------------------------------------------
# Numbers as targets.


class Squared(BoostingLoss):
    """½(y − F)²; the start is the mean."""

    def __init__(self) -> None:
        super().__init__(SquaredLoss(), SquaredTargets(), Link(), _kernels.SQUARED)


class SquaredTargets(Targets):
    """Numbers whose squares are finite; the start is their mean."""

    def start(self, loss: Any, y: Array, w: Array | None, world: World = ALONE) -> Array:
        """Return the mean, without overflow."""
        scale = float(world.most(np.array([np.abs(y).max(initial=0.0)]))[0]) or 1.0
        return np.array([mean(y / scale, w, world) * scale])

    def check(self, owner: str, y: Array, world: World = ALONE) -> None:
        """Refuse what has no finite squares."""
        low, high = ends_of(y, world)
        spread = high / 2 - low / 2
        if spread > 1e150:
            raise DataError(f"{owner}: y spreads over {spread:.3g}, and its squares overflow; divide it by a constant.")


class Quantile(BoostingLoss):
    """Pinball or absolute loss: starts and leaves are quantiles of the residuals."""

    def __init__(self, level: float, absolute: bool = False) -> None:
        super().__init__(AbsoluteLoss() if absolute else QuantileLoss(level), Targets(), Link())
        self.level = level

    def best_leaf_values(
        self, k: int, leaf: Ids, n_leaves: int, y: Array, F: Array, w: Array | None, world: World = ALONE
    ) -> Array:
        """Return the quantile of the residuals in each leaf."""
        return quantiles_by_leaf(leaf, n_leaves, y - F[0], w, self.level, world)


class Huber(BoostingLoss):
    """Huber's loss, whose δ is in every round the quantile `level` of |y − F|, as in Friedman's M-TreeBoost.

    The start is the median; a leaf has the median of its residuals plus the mean of what is left, clipped to ±δ.
    """

    def __init__(self, level: float) -> None:
        super().__init__(HuberLoss(), MedianTargets(), Link())
        self.smooth = False  # leaves have a formula of their own
        self.moving = level

    def best_leaf_values(
        self, k: int, leaf: Ids, n_leaves: int, y: Array, F: Array, w: Array | None, world: World = ALONE
    ) -> Array:
        """Return median + mean of the clipped rest."""
        r = y - F[0]
        middle = quantiles_by_leaf(leaf, n_leaves, r, w, 0.5, world)
        rest = np.clip(r - middle[leaf], -self.loss.delta, self.loss.delta)
        weight = counts_by_group(leaf, n_leaves, world) if w is None else sums_by_group(leaf, w, n_leaves, world)
        total = sums_by_group(leaf, rest if w is None else rest * w, n_leaves, world)
        return middle + total / np.where(weight > 0, weight, 1.0)


class MedianTargets(Targets):
    """Numbers; the start is their median."""

    def start(self, loss: Any, y: Array, w: Array | None, world: World = ALONE) -> Array:
        """Return the median."""
        return quantiles_by_leaf(np.zeros(len(y), np.int32), 1, y, w, 0.5, world)


class Deviance(BoostingLoss):
    """Poisson or gamma deviance of a mean e^F."""

    def __init__(self, name: str) -> None:
        loss = PoissonLoss() if name == "poisson" else GammaLoss()
        fused = _kernels.POISSON if name == "poisson" else _kernels.GAMMA
        super().__init__(loss, PositiveTargets(name), LogLink(loss), fused)


class PositiveTargets(Targets):
    """Counts or positive numbers; the start is the logarithm of their mean."""

    def __init__(self, name: str) -> None:
        self.name = name

    def start(self, loss: Any, y: Array, w: Array | None, world: World = ALONE) -> Array:
        """Return the logarithm of the mean."""
        return np.log([max(mean(y, w, world), _TINY)])

    def check(self, owner: str, y: Array, world: World = ALONE) -> None:
        """Refuse negative counts, or none at all; gamma's targets are positive."""
        low, high = ends_of(y, world)
        bad = low < 0 or high <= 0 if self.name == "poisson" else low <= 0
        if bad:
            rule = "non-negative y and sum(y) > 0" if self.name == "poisson" else "strictly positive y"
            raise DataError(
                f"{owner}: loss={self.name!r} requires {rule}. The smallest target is {low:g}. Use "
                "loss='squared_error'."
            )


class OwnLink(Link):
    """What a loss of `risk.losses`, or one that the user brings, says of its scores."""

    def __init__(self, loss: Any) -> None:
        self.loss = loss
        self.has_probability = hasattr(loss, "probability")

    def predict(self, F: Array) -> Array:
        """Return what the loss says; scores themselves where it says nothing."""
        return np.asarray(self.loss.predict(F[0]) if hasattr(self.loss, "predict") else F[0])

    def probability(self, F: Array) -> Array:
        """Return the probabilities of the two classes, (n, 2)."""
        p = np.asarray(self.loss.probability(F[0]))
        return np.column_stack([1.0 - p, p])


class LogLink(OwnLink):
    """Scores are logarithms of means."""

    def scores_of(self, predicted: Array) -> Array:
        """Return log μ."""
        return np.log(np.maximum(np.asarray(predicted, dtype=np.float64), _TINY)).reshape(1, -1)


# --------------------------------------------------------------------------------------------------------------------
# Classes as targets.


class SignTargets(Targets):
    """Class codes 0, 1 that the loss wants as ∓1."""

    def truth(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return the signs."""
        return np.where(y == 1, 1.0, -1.0)


class OddsTargets(SignTargets):
    """The same; the start is the logarithm of the odds times a factor."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def start(self, loss: Any, y: Array, w: Array | None, world: World = ALONE) -> Array:
        """Return the log-odds, or half of them."""
        p = mean(y > 0, w, world)
        return np.array([self.factor * logit(np.clip(p, 1e-15, 1 - 1e-15))])


class OddsLink(OwnLink):
    """Scores are log-odds times a factor."""

    def __init__(self, loss: Any, factor: float) -> None:
        super().__init__(loss)
        self.factor = factor

    def scores_of(self, predicted: Array) -> Array:
        """Return the (half) log-odds of probabilities (n, 2)."""
        eps = np.finfo(np.float64).eps
        return self.factor * logit(np.clip(predicted[:, 1], eps, 1 - eps))[None]

    def probability(self, F: Array) -> Array:
        """Return both probabilities, each with its own digits."""
        z = F[0] / self.factor
        return np.column_stack([expit(-z), expit(z)])


class _ClassLoss(BoostingLoss):
    def best_leaf_values(
        self, k: int, leaf: Ids, n_leaves: int, y: Array, F: Array, w: Array | None, world: World = ALONE
    ) -> Array:
        """Return the minimisers; of leaves with one class only, whose loss has none, ±4."""
        return np.clip(super().best_leaf_values(k, leaf, n_leaves, y, F, w, world), -4.0, 4.0)


class TwoClasses(_ClassLoss):
    """Logistic (scores are log-odds) or exponential loss (half of them)."""

    def __init__(self, name: str) -> None:
        loss = LogisticLoss() if name == "log_loss" else ExponentialLoss()
        self.factor = 1.0 if name == "log_loss" else 0.5
        fused = _kernels.LOGISTIC if name == "log_loss" else _kernels.EXPONENTIAL
        super().__init__(loss, OddsTargets(self.factor), OddsLink(loss, self.factor), fused)


class Softmax(_ClassLoss):
    """Cross-entropy of K classes; h = K/(K − 1)·p(1 − p).

    The factor is Friedman's: the K trees of a round move together, and the diagonal p(1 − p) alone leaves out what
    they do to each other.
    """

    def __init__(self, n_classes: int) -> None:
        super().__init__(None, CodeTargets(), SoftmaxLink(), _kernels.CLASSES)
        self.n_outputs = n_classes
        self.logarithmic = True
        self.smooth = True

    def value(self, y: Array, F: Array) -> Array:
        """Return −log p_y."""
        return -np.asarray(log_softmax(F, axis=0))[y.astype(np.int64), np.arange(F.shape[1])]

    def derivatives(self, y: Array, F: Array) -> tuple[Array, Array]:
        """Return p − e_y and K/(K − 1)·p(1 − p)."""
        p = np.asarray(softmax(F, axis=0))
        h = p * (1.0 - p) * (self.n_outputs / (self.n_outputs - 1.0))
        p[y.astype(np.int64), np.arange(F.shape[1])] -= 1.0
        return p, h


class CodeTargets(Targets):
    """Class codes; the start are the logarithms of their shares."""

    def truth(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return the class codes."""
        return np.asarray(y, dtype=np.int64)

    def start(self, loss: Any, y: Array, w: Array | None, world: World = ALONE) -> Array:
        """Return the logarithms of the shares of the classes, their mean zero."""
        codes = y.astype(np.int64)
        if w is None:
            shares = counts_by_group(codes, loss.n_outputs, world).astype(np.float64)
        else:
            shares = sums_by_group(codes, w, loss.n_outputs, world)
        return centred_log(shares[None])[:, 0]


class SoftmaxLink(Link):
    """Scores are logarithms of probabilities, up to a constant per row."""

    has_probability = True

    def predict(self, F: Array) -> Array:
        """Return the most probable class."""
        return np.argmax(F, axis=0)

    def probability(self, F: Array) -> Array:
        """Return the probabilities of the classes, (n, K)."""
        return np.ascontiguousarray(np.asarray(softmax(F, axis=0)).T)

    def scores_of(self, predicted: Array) -> Array:
        """Return the logarithms of probabilities, centred."""
        return centred_log(predicted)


class CustomClasses(_ClassLoss):
    """A loss of K > 2 classes that the user brings: rows of scores (n, K), truth in codes."""

    def __init__(self, loss: Any, n_classes: int) -> None:
        super().__init__(loss, CustomTargets(), CustomLink(loss))
        self.n_outputs = n_classes
        self.logarithmic = False

    def value(self, y: Array, F: Array) -> Array:
        """Return V of each row."""
        return np.asarray(self.loss.value(y, np.ascontiguousarray(F.T)), dtype=np.float64)

    def derivatives(self, y: Array, F: Array) -> tuple[Array, Array]:
        """Return g, and h if the loss has it."""
        z = np.ascontiguousarray(F.T)
        g = np.ascontiguousarray(np.asarray(self.loss.gradient(y, z), dtype=np.float64).T)
        h = np.asarray(self.loss.curvature(y, z), dtype=np.float64).T if self.smooth else np.ones_like(g)
        return g, np.ascontiguousarray(h)


class CustomTargets(CodeTargets):
    """Class codes of a loss that the user brings, of which the best constant is not known."""

    def start(self, loss: Any, y: Array, w: Array | None, world: World = ALONE) -> Array:
        """Return zeros."""
        return np.zeros(loss.n_outputs)


class CustomLink(SoftmaxLink):
    """What a loss of several classes that the user brings says of its scores."""

    def __init__(self, loss: Any) -> None:
        self.loss = loss
        self.has_probability = hasattr(loss, "probability")

    def probability(self, F: Array) -> Array:
        """Return what the loss says."""
        return np.asarray(self.loss.probability(np.ascontiguousarray(F.T)))


def regression_loss(owner: str, loss: Any, level: Any) -> BoostingLoss:
    """Return the loss that a regressor names; `level` is a quantile, several, or None."""
    if not isinstance(loss, str):
        return BoostingLoss(loss, Targets())
    if loss == "quantile":
        if level is None:
            raise ParameterError(f"{owner}: loss='quantile' needs a level; got quantile=None. Set quantile=0.5.")
        levels = np.atleast_1d(np.asarray(level, dtype=np.float64))
        if levels.ndim != 1 or not ((levels > 0) & (levels < 1)).all() or not (np.diff(levels) > 0).all():
            raise ParameterError(
                f"{owner}: quantile must be a level > 0 and < 1, or several of them, ascending; got {level!r}."
            )
        if np.ndim(level) == 0:
            return Quantile(float(levels[0]))
        from .distribution import JointQuantiles  # built on this file

        return JointQuantiles(levels)
    if loss == "huber":
        return Huber(0.9 if level is None else float(level))
    if loss == "absolute_error":
        return Quantile(0.5, absolute=True)
    if loss == "normal":
        from .distribution import NormalScale  # built on this file

        return NormalScale()
    return Squared() if loss == "squared_error" else Deviance(loss)


def class_loss(owner: str, loss: Any, n_classes: int) -> BoostingLoss:
    """Return the loss that a classifier names, for this many classes."""
    if not isinstance(loss, str):
        return BoostingLoss(loss, SignTargets()) if n_classes == 2 else CustomClasses(loss, n_classes)
    if n_classes == 2:
        return TwoClasses(loss)
    if loss == "exponential":
        raise DataError(
            f"{owner}: loss='exponential' is only suitable for a binary classification; got {n_classes} classes. Use "
            f"loss='log_loss', or OneVsRestClassifier({owner}(loss='exponential'))."
        )
    return Softmax(n_classes)
