"""Forward stagewise additive modelling: any loss, any weak learner, one term at a time.

    f₀ = 0 or the best constant;   for m = 1 … M:
        h_m = the learner's answer to −g,   gᵢ = ∂V(yᵢ, f_{m−1}(xᵢ))/∂f
        β_m = argmin_β Σ wᵢ V(yᵢ, f_{m−1}(xᵢ) + β h_m(xᵢ)),        f_m = f_{m−1} + ν β_m h_m.

It is coordinate descent on n⁻¹ Σ wᵢ V(yᵢ, f(xᵢ)), without a penalty (λ = 0), in the space whose coordinates are all
functions that the learner can return: the slope along h is ⟨g, h⟩, the learner finds a coordinate of steep descent, and
the line search minimises along it. A regressor is fitted to −g by least squares; a classifier is given the labels
sign(−g) with weights |g|, so that the one of least weighted error is the one of largest −⟨g, h⟩ over h ∈ ±1.

With the exponential loss and stumps these are the rounds of AdaBoost: |gᵢ| ∝ e^{−yᵢf(xᵢ)}, and the line search gives
½ log((1−ε)/ε). With the squared loss, −g are the residuals. Where V has kinks (hinge, absolute, quantile), the rounds
can end at a point that no single coordinate improves, though f is not optimal; ν < 1 keeps off the kinks.

References: T. Hastie, R. Tibshirani and J. Friedman, *The Elements of Statistical Learning*, 2009, algorithm 10.2; J.
Friedman, Greedy function approximation, Annals of Statistics 29 (2001), algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from sklearn.base import MetaEstimatorMixin, clone, is_classifier
from sklearn.utils.metaestimators import available_if

from ..core import (
    MAX_SECONDS,
    N_JOBS,
    RANDOM_STATE,
    Array,
    Certificate,
    DataError,
    Estimator,
    Matches,
    NDArray,
    Number,
    Options,
    Run,
    fitted,
    is_labels,
    law,
    laws,
    optional,
    param,
    passes,
    tags,
)
from ..data.door import Table, door, read_features
from ..data.rows import weight_keyword
from ..data.sources import rowwise
from ..meta.binary import MODEL
from ..trees._random import seed_of
from ..trees.decision_tree import DecisionTreeRegressor
from ._members import check_stumps
from .adaboost.stumps import Stump, Stumps, StumpSearch, stump_outputs
from .loss_names import LOSSES, classifies, flat, for_classes, n_scores, named_loss, targets_of
from .weak_learners import seed_parts

# --------------------------------------------------------------------------------------------------------------------
# Directions of descent: what a weak learner answers to the negative gradient −g of the loss.
#
# A regressor is fitted to −g. A classifier, and the stump over all columns and thresholds, get the labels sign(−g)
# and the weights |g|: of all h ∈ ±1 that they can return, the one of least weighted error has the largest −⟨g, h⟩.


#: A direction whose slope is this small against ‖g‖‖h‖ does not descend: sums are not more exact.
NO_SLOPE = 1e-10
_BITS = 40  # of the largest entry of the gradient that learners see


class Direction(NamedTuple):
    """One direction and what it says of the training rows."""

    outputs: Array  #: (n, K)
    stump: Stump | None
    models: list[Any]  #: one for each of the K scores, where it is no stump


Find = Callable[[Array], "Direction | None"]


def direction_of(
    learner: Any,
    X: Any,
    y: NDArray[Any],
    given: Array | None,
    n_scores: int,
    seed: int,
    n_jobs: int | None,
    signs: bool,
) -> Find:
    """Return the function that answers −g (n, K) with a direction, or None where nothing descends.

    Parameters
    ----------
    learner : estimator or None
        Cloned; None is a stump.
    X, y, given : arrays
        Rows; targets as the loss takes them; weights or None, which the learners get as they are.
    n_scores : int
        K.
    seed : int
        Of the ensemble.
    n_jobs : int or None
        Threads of the search for stumps.
    signs : bool
        Whether targets are ±1.
    """
    weight = np.ones(len(y)) if given is None else given
    if learner is None and signs:
        search = StumpSearch(X, (y > 0).astype(np.int64), 2, n_jobs=n_jobs)
        return lambda towards: _stump(search, towards, weight, y)
    model = DecisionTreeRegressor(max_depth=1) if learner is None else learner
    if is_classifier(model) and n_scores > 1:
        raise DataError(
            f"ForwardStagewiseAdditive: {type(model).__name__} names one of two signs, but there are {n_scores} scores "
            "a row; use a regressor as learner."
        )
    weighted = given is not None or is_classifier(model)
    keyword = weight_keyword("ForwardStagewiseAdditive", model) if weighted else None
    count = iter(range(2**62))

    def fit(towards: Array) -> Any:
        one = clone(model)
        seed_parts(one, seed, next(count))
        if is_classifier(one):
            return one.fit(X, np.where(towards > 0, 1, -1), **{str(keyword): weight * np.abs(towards)})
        return one.fit(X, towards) if keyword is None else one.fit(X, towards, **{keyword: weight})

    def find(towards: Array) -> Direction | None:
        if is_classifier(model) and ((towards > 0).all() or (towards <= 0).all()):
            return None
        size = float(np.abs(towards).max(initial=0.0))
        if not (0.0 < size < np.inf):
            return None
        # Without the last bits, so that equal residuals are equal and ties do not depend on how they were computed.
        unit = 2.0 ** (np.floor(np.log2(size)) - _BITS)
        rounded = np.rint(towards / unit) * unit if unit > 0.0 else towards
        models = [fit(rounded[:, k]) for k in range(n_scores)]
        return _if_it_descends(Direction(direction_outputs(models, X), None, models), towards, weight)

    return find


def direction_outputs(learners: list[Any], X: Any) -> Array:
    """Return what the learners of one round say of rows, (n, K)."""
    if isinstance(learners[0], Stump):
        return stump_outputs(learners[0], X)
    return np.column_stack([np.asarray(model.predict(X), dtype=np.float64).ravel() for model in learners])


def _stump(search: StumpSearch, towards: Array, weight: Array, y: Array) -> Direction | None:
    D = weight * towards[:, 0] * y  # negative where the loss pulls away from the label
    total = float(np.abs(D).sum())
    if not (0.0 < total < np.inf):
        return None
    stump, right = search.find(D / total)
    outputs = stump.value[right.astype(np.int64)]
    return _if_it_descends(Direction(outputs, stump, []), towards, weight)


def _if_it_descends(direction: Direction, towards: Array, weight: Array) -> Direction | None:
    h = direction.outputs
    g = towards
    largest = float(np.abs(h).max(initial=0.0))
    steepest = float(np.abs(g).max(initial=0.0))
    if not (0.0 < largest < np.inf and 0.0 < steepest < np.inf):
        return None
    # no square overflows
    h = h / largest
    g = g / steepest
    slope = float(weight @ (h * g).sum(axis=1))
    sizes = np.sqrt(float(weight @ (h * h).sum(axis=1)) * float(weight @ (g * g).sum(axis=1)))
    return direction if slope > NO_SLOPE * sizes else None


# --------------------------------------------------------------------------------------------------------------------
# The best step along a direction: β = argmin Σ wᵢ V(yᵢ, fᵢ + β hᵢ), for any loss with a gradient.
#
# The derivative in β, Σ wᵢ V′(yᵢ, fᵢ + βhᵢ) hᵢ, never falls where V is convex: the first β where it is not negative
# is found by widening steps and Brent's method, which needs no second derivative and finds a kink as well as a zero.
# Where the loss falls for ever, as the exponential loss does along an h without error, the step ends where the slope
# has become negligible.


#: A minimum lies within this share of the step that is returned.
STEP = 1e-7
_NEGLIGIBLE = 1e-12  # of the slope at the start
_MOST = 1e300  # beyond it a step or a slope would overflow


class Step(NamedTuple):
    """A step and what is left of the slope."""

    step: float  #: β
    residual: float  #: slope of the wrong sign at β(1 ± 1e-7), relative to the slope at zero


def best_step(loss: Any, y: NDArray[Any], f: Array, h: Array, weight: Array, *, both_ways: bool = False) -> Step:
    """Return the best step; zero if h does not descend.

    Parameters
    ----------
    loss : loss
        With `gradient`.
    y, f, h : arrays
        Targets, scores and the direction; scores may be (n, K).
    weight : (n,) float64
        Weights of the rows.
    both_ways : bool
        Whether the step may be negative.

    Examples
    --------
    >>> from learnable.risk.losses import AbsoluteLoss
    >>> y, one = np.array([1.0, 2.0, 9.0]), np.ones(3)
    >>> round(best_step(AbsoluteLoss(), y, 0 * one, one, one).step, 6)
    2.0
    """
    slope = _slope_along(loss, y, f, h, weight)
    at_zero = slope(0.0)
    if at_zero > 0.0 and both_ways:
        found = best_step(loss, y, f, -h, weight)
        return Step(-found.step, found.residual)
    if not at_zero < 0.0:
        return Step(0.0, 0.0)
    low = 0.0
    high = _first_guess(loss, y, f, h, weight, at_zero)
    while (there := slope(high)) < _NEGLIGIBLE * at_zero and high < _MOST:
        low = high
        high = high * 4.0
    if there <= 0.0:
        step = high
    else:
        step = float(brentq(slope, low, high, xtol=1e-300, rtol=4 * np.finfo(np.float64).eps, maxiter=2000, disp=False))
    return Step(step, _residual(slope, step, at_zero))


def _slope_along(loss: Any, y: NDArray[Any], f: Array, h: Array, weight: Array) -> Callable[[float], float]:
    weighted = weight * h if h.ndim == 1 else weight[:, None] * h

    @np.errstate(all="ignore")  # a step that is too long is answered by a huge slope
    def slope(beta: float) -> float:
        value = float(np.sum(loss.gradient(y, f + beta * h) * weighted))
        return _MOST if value != value else min(max(value, -_MOST), _MOST)

    return slope


@np.errstate(all="ignore")
def _first_guess(loss: Any, y: NDArray[Any], f: Array, h: Array, weight: Array, slope: float) -> float:
    """Return Newton's step where the loss has a second derivative, else one."""
    if h.ndim == 1 and hasattr(loss, "curvature"):
        guess = float(-slope / np.float64(weight @ (loss.curvature(y, f) * h * h)))
        if np.isfinite(guess) and 1e-300 < guess < 1e300:
            return guess
    return 1.0


def _residual(slope: Callable[[float], float], step: float, at_zero: float) -> float:
    below = slope(step * (1.0 - STEP))
    above = slope(step * (1.0 + STEP))
    return max(below, -above, 0.0) / -at_zero


_LOSS = Options(*LOSSES) | Matches(
    lambda loss: all(callable(getattr(loss, name, None)) for name in ("value", "gradient", "predict")),
    "a loss with value, gradient and predict",
)
_CLASSES = door(target="classes")
_NUMBERS = door(target="numeric")


def _open(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, run: Any = None) -> Table:
    """Read labels or numbers, as the loss takes them."""
    return (_CLASSES if classifies(estimator.loss) else _NUMBERS)(estimator, X, y, sample_weight, run)


def _has_probabilities(self: Any) -> bool:
    return hasattr(named_loss(self.loss), "probability")


class ForwardStagewiseAdditive(MetaEstimatorMixin, Estimator):
    r"""f = Σ νβ_m h_m, minimising n⁻¹ Σ w V(y, f(x)) one term at a time; a regressor or a classifier, as the loss is.

    Memory beyond the data and the learners: O(n), or O(nK) for K classes. `fit` takes M fits of the learner; each step
    costs some twenty evaluations of the loss.

    Examples
    --------
    >>> from learnable import ForwardStagewiseAdditive
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0.0, 0.1, 2.0, 2.1, 1.0, 1.1]
    >>> model = ForwardStagewiseAdditive("huber", n_estimators=50).fit(X, y)
    >>> model.predict([[2.5]]).round(2).tolist(), bool((model.train_loss_[1:] <= model.train_loss_[:-1]).all())
    ([2.0], True)
    """

    _theory = "gradient-boosting"

    loss: Any = param(
        _LOSS,
        'V: "squared_error", "absolute_error", "huber", "poisson", … for numbers, "exponential", '
        '"log_loss", "hinge", "squared_hinge", … for labels (with more than two, "log_loss" is the '
        'softmax loss, "hinge" that of Crammer and Singer), or any object of `learnable.risk.losses` or '
        "like them, with `value`, `gradient` and `predict`.",
        default="squared_error",
        kw_only=False,
    )
    learner: Any = param(
        optional(MODEL),
        "A regressor, fitted to −g; or, for numbers and two classes, a classifier, fitted to the signs of −g "
        "with the weights |g|. None: for two classes the stump h ∈ ±1 of largest −⟨g, h⟩, else a regression "
        "tree of one split.",
        default=None,
        kw_only=False,
    )
    n_estimators: int = param(Number(low=1, integer=True), "Rounds M; fewer if no learner descends.", default=100)
    step: str = param(
        Options("line-search", "fixed", "sqrt-decay"), "β_m: the best one, 1, or 1/√m.", default="line-search"
    )
    learning_rate: float = param(Number(low=0.0, low_open=True, high=1e6), "ν.", default=1.0)
    start: str = param(Options("constant", "zero"), "f₀: the best constant score, or zero.", default="constant")
    random_state: Any = param(RANDOM_STATE, "Seeds the learners' `random_state`.", default=None)
    n_jobs: int | None = param(N_JOBS, "Threads of the stumps' search; the model does not depend on it.", default=None)
    max_seconds: float | None = param(MAX_SECONDS, "Time limit.", default=None)

    classes_: NDArray[Any] = fitted("(n_classes,)", "Labels, for losses of labels.", kind="biufOUST", optional=True)
    start_: Array = fitted("(n_scores,)", "f₀.", kind="f8")
    steps_: Array = fitted("(n_rounds,)", "β_m, without ν.", kind="f8")
    train_loss_: Array = fitted(
        "array of shape (n_rounds + 1,)",
        "Weighted mean loss of f₀, f₁, …; with the line search and ν ≤ 1 it never rises where V is convex.",
    )
    stumps_: Stumps | None = fitted("Stumps or None", "The learners, if they are stumps.")
    models_: list[Any] = fitted("list", "The learners otherwise; of K classes, K for each round.")
    certificate_: Certificate = fitted(
        "Certificate",
        "Default stumps for labels: `greedy`, the share of rounds whose stump is not the one of steepest descent, or "
        "whose step is not the best. Other learners: `closed-form`, the largest slope that a line search left, "
        "relative to the slope at its start; the learners' own fits are not judged. Without line search: how far the "
        "losses are from those recorded.",
    )

    _door = staticmethod(_open)
    _remedy = "raise max_seconds, or scale the targets"
    _tags = tags(
        role=lambda model: "classifier" if classifies(model.loss) else "regressor",
        sparse=True,
        required=True,
        multi_class=lambda model: model.loss in ("log_loss", "hinge"),
    )

    def _fit(self, table: Table, run: Run) -> Certificate:
        table.require_memory(
            "ForwardStagewiseAdditive: every round reads all rows again, so they have to fit into memory; read the "
            "table into an array, or take a sample."
        )
        if table.classes is not None:
            self.classes_ = np.asarray(table.classes)
        loss = for_classes(named_loss(self.loss), len(self.classes_) if table.classes is not None else 0)
        y = targets_of(loss, table.y)
        weight = np.ones(table.n_rows) if table.weight is None else table.weight
        weight = weight / weight.sum()
        self.start_ = self._first_scores(loss, y, weight)
        f = np.tile(self.start_, (table.n_rows, 1))
        before = _mean_loss(loss, y, f, weight)
        if not np.isfinite(before):
            raise DataError(
                f"ForwardStagewiseAdditive: the {type(loss).__name__} of the targets is {before}; the loss is not made "
                "for these targets, or they are too large: scale them."
            )
        K = len(self.start_)
        seed = seed_of(self.random_state)
        signs = table.classes is not None and K == 1
        find = direction_of(self.learner, table.X, y, table.weight, K, seed, self.n_jobs, signs)
        steps: list[float] = []
        found: list[Direction] = []
        losses = [before]
        residual = 0.0
        for m in range(self.n_estimators):
            if run.progress(m + 1, losses[-1]) and steps:
                break
            direction = find(-loss.gradient(y, flat(f)).reshape(f.shape))
            if direction is None:
                break
            beta, left = self._step(loss, y, f, direction.outputs, weight, m)
            if beta <= 0.0:
                break
            further = f + self.learning_rate * beta * direction.outputs
            after = _mean_loss(loss, y, further, weight)
            if not after < (losses[-1] if self.step == "line-search" else np.inf):
                break  # at a kink the subgradient promises more than there is
            f = further
            losses.append(after)
            steps.append(beta)
            found.append(direction)
            residual = max(residual, left)
            if 0.0 <= losses[-1] <= _NO_LOSS * losses[0]:
                break
        self._store(steps, found, losses)
        if self.stumps_ is not None and self.step == "line-search":
            return Certificate("greedy", 0.0, 0.0, None, len(steps), by_construction=True)
        return Certificate("closed-form", residual, 1e-6, None, max(1, len(steps)))

    def _first_scores(self, loss: Any, y: NDArray[Any], weight: Array) -> Array:
        K = n_scores(loss, len(getattr(self, "classes_", ())))
        if K > 1:
            shares = np.bincount(y, weights=weight, minlength=K).astype(np.float64)
            constant = self.start == "constant" and hasattr(loss, "probability")
            return np.log(shares) - np.log(shares).mean() if constant else np.zeros(K)
        if self.start == "zero":
            return np.zeros(1)
        zero = np.zeros(len(y))
        one = np.ones(len(y))
        return np.array([best_step(loss, y, zero, one, weight, both_ways=True).step])

    def _step(self, loss: Any, y: NDArray[Any], f: Array, h: Array, weight: Array, m: int) -> tuple[float, float]:
        """Return β, and the slope that is left there."""
        if self.step != "line-search":
            return (1.0 if self.step == "fixed" else 1.0 / np.sqrt(m + 1.0)), 0.0
        found = best_step(loss, y, flat(f), flat(h), weight)
        return found.step, found.residual

    def _store(self, steps: list[float], found: list[Direction], losses: list[float]) -> None:
        self.steps_ = np.array(steps)
        self.train_loss_ = np.array(losses)
        stumps = [d.stump for d in found if d.stump is not None]
        self.stumps_ = Stumps.pack(stumps) if stumps else None
        self.models_ = [model for d in found for model in d.models]

    def _classifies(self) -> bool:
        return classifies(self.loss)

    @property
    def n_classes_(self) -> int:
        """The number of classes."""
        return len(self.classes_)

    def raw_score(self, X: Any) -> Array:
        """Return f(x), (n,); for more than two classes (n, n_classes)."""
        scores = np.zeros(0)
        for scores in self._staged(X):  # noqa: B007  the last one is wanted
            pass
        return scores

    @rowwise
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the number or the label that f(x) stands for."""
        return self._predicted(self.raw_score(X))

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    @rowwise
    def decision_function(self, X: Any) -> Array:
        """Return f(x)."""
        return self.raw_score(X)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @rowwise
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes that the loss gives to f(x)."""
        scores = self.raw_score(X)
        p = self._loss().probability(scores)
        return p if p.ndim == 2 else np.column_stack([1.0 - p, p])

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield the predictions of f₀, f₁, f₂ and so on."""
        for scores in self._staged(X):
            yield self._predicted(scores)

    def staged_raw_score(self, X: Any) -> Iterator[Array]:
        """Yield f₀, f₁, f₂ and so on."""
        for scores in self._staged(X):
            yield scores.copy()

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of labels, R² of numbers."""
        from sklearn.metrics import accuracy_score, r2_score

        metric = accuracy_score if classifies(self.loss) else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))

    def _loss(self) -> Any:
        return for_classes(named_loss(self.loss), len(self.classes_) if classifies(self.loss) else 0)

    def _predicted(self, scores: Array) -> NDArray[Any]:
        named = self._loss().predict(scores)
        if not classifies(self.loss):
            return np.asarray(named)
        return self.classes_[named if scores.ndim == 2 else (named > 0).astype(np.int64)]

    def _staged(self, X: Any) -> Iterator[Array]:
        X = read_features(self, X)
        f = np.tile(self.start_, (X.shape[0], 1))
        K = len(self.start_)
        yield flat(f)
        for m, beta in enumerate(self.steps_):
            learners = list(self.stumps_)[m : m + 1] if self.stumps_ is not None else self.models_[m * K : m * K + K]
            f = f + self.learning_rate * beta * direction_outputs(learners, X)
            yield flat(f)

    _laws = laws(
        law(
            "{owner}: classes_ must hold at least two labels",
            lambda m: not classifies(m.loss) or is_labels(m.classes_),
        ),
        law(
            "{owner}: start_ must hold one score for each class",
            lambda m: len(m.start_) == n_scores(m._loss(), len(m.classes_) if classifies(m.loss) else 0),
        ),
        law(
            "{owner}: stumps_ must hold one stump for each step",
            lambda m: (
                m.stumps_ is None
                or (
                    isinstance(m.stumps_, Stumps)
                    and len(m.stumps_) == len(m.steps_)
                    and m.models_ == []
                    and passes(check_stumps, "ForwardStagewiseAdditive", m.stumps_, 1, m.n_features_in_)
                )
            ),
        ),
        law(
            "{owner}: models_ must hold a learner for each step and score, with the features of the ensemble",
            lambda m: (
                m.stumps_ is not None
                or (
                    isinstance(m.models_, list)
                    and len(m.models_) == len(m.steps_) * len(m.start_)
                    and all(model.n_features_in_ == m.n_features_in_ for model in m.models_)
                )
            ),
        ),
    )


#: A loss that is as good as zero, relative to that of f₀.
_NO_LOSS = 1e-30


def _mean_loss(loss: Any, y: NDArray[Any], f: Array, weight: Array) -> float:
    return float(weight @ loss.value(y, flat(f)))
