"""Losses and rounds of boosted models once more, for the checker.

A loss is one line of plain NumPy; scores are F, (K, n). No round raises the loss, no step is needlessly small.

Nothing here is used by a fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logsumexp

from ...core import Array, ModelFileError, NDArray

Ids = NDArray[np.int64]

_ROUNDING = 1e-9  # relative; what sums in another order may add
_LOGARITHMIC = ("log_loss", "poisson", "gamma", "LogisticLoss", "PoissonLoss", "GammaLoss")


def sizes_agree(model: Any) -> bool:
    """Tell whether there are as many trees, steps and losses as rounds, and whether the figures made of them agree."""
    steps, K, d = np.asarray(model.steps_), int(model.n_trees_per_iteration_), int(model.n_features_in_)
    trees, losses = model.trees_, np.asarray(model.training_loss_)
    rounds = getattr(model, "n_iter_", getattr(model, "n_estimators_", len(steps)))
    whole = trees.n_trees == len(steps) * K and len(losses) == len(steps) + 1 and rounds == len(steps)
    if not whole or len(model.baseline_) != K or not np.isfinite(steps).all():
        return False
    try:
        trees.check(d, 1)
    except ModelFileError:
        return False
    if hasattr(model, "n_estimators_"):  # scikit-learn's figures: twice the loss of squares and of log-odds
        two = model.loss == "squared_error" or (model.loss == "log_loss" and K == 1)
        if len(model.train_score_) != len(steps) or not _depths_agree(model, K):
            return False
        return bool(np.allclose(model.train_score_, (2.0 if two else 1.0) * losses[1:], rtol=1e-12, atol=0.0))
    return True


def _depths_agree(model: Any, K: int) -> bool:
    """Tell whether no tree is deeper than its round allowed, and the limits are those asked for."""
    limits = np.asarray(model.depth_limits_)
    if limits.shape != (len(model.steps_),):
        return False
    asked = -1 if model.max_depth is None else int(model.max_depth)
    if not model.warm_start and not (limits == asked).all():  # rounds before a warm start may have had another limit
        return False
    allowed = np.repeat(np.where(limits < 0, np.iinfo(np.int64).max, limits), K)
    return all(model.trees_.tree(t).max_depth <= most for t, most in enumerate(allowed.tolist()))


def same_categories(model: Any, again: Any) -> bool:
    """Tell whether a model's columns of categories and their levels are those that the table has."""
    masks, levels = (model.is_categorical_, again.is_categorical_), (model.levels_, again.levels_)
    if (masks[0] is None) != (masks[1] is None):
        return False
    if masks[0] is None:
        return model.levels_ is None
    same = len(levels[0]) == len(levels[1]) and np.array_equal(*masks)
    return bool(same and all(np.array_equal(a, b) for a, b in zip(*levels, strict=True)))


def planned_step(model: Any, m: int) -> float | None:
    """Return the step of round m before any damping; None where it was searched."""
    if model.step == "line-search":
        return None
    return float(model.learning_rate) / (np.sqrt(m + 1.0) if model.step == "sqrt-decay" else 1.0)


def trusted(model: Any, step: Array) -> Array:
    """Return Newton's steps, cut at max(Δ, log(1 + |step|)) on logarithmic scales."""
    name = model.loss if isinstance(model.loss, str) else type(model.loss).__name__
    if name not in _LOGARITHMIC or (not isinstance(model.loss, str) and int(model.n_trees_per_iteration_) > 1):
        return step
    limit = np.maximum(2.0 if model.direction == "newton" else 32.0, np.log(1.0 + np.abs(step)))
    return np.minimum(np.maximum(step, -limit), limit)


def keeps_law(
    value: Callable[[Array, Array], Array], y: Array, F: Array, moves: Array, w: Array, drawn: Array, used: Ids,
    first: float,
) -> Callable[[float, float], bool]:  # fmt: skip
    """Return keeps(factor, slack): whether `factor` times the moves raise the loss by no more than slack.

    Where rows were drawn, either the loss of all rows or that of the drawn ones may be meant.
    """

    def means(scores: Array) -> tuple[float, float]:
        each = value(y, scores)
        return float(w @ each / w.sum()), float(drawn[used] @ each[used] / drawn[used].sum())

    before = means(F)

    def keeps(factor: float, slack: float = _ROUNDING) -> bool:
        after = means(F + factor * moves)
        return any(b <= a + slack * max(abs(a), abs(first)) for a, b in zip(before, after, strict=True))

    return keeps


def step_agrees(step: float, planned: float | None, keeps: Callable[[float, float], bool]) -> bool:
    """Tell whether a step is the planned one, halved only while the law would have been broken."""
    if planned is None or step == planned:
        return True
    if step == 0.0:
        return True  # refused: the moves are zero too, and cannot be tried again
    halvings = np.log2(planned / step) if step > 0 else np.nan
    return bool(halvings == np.rint(halvings) and halvings > 0 and not keeps(2.0, -_ROUNDING))


class Formulas(NamedTuple):
    """Value and derivatives of a loss, and how its leaves are found."""

    value: Callable[[Array, Array], Array]  #: (y, F) → (n,)
    slope: Callable[[Array, Array], Array]  #: (y, F) → (K, n)
    curvature: Callable[[Array, Array], Array] | None  #: None: h = 1, and leaves minimise the loss
    mass: Callable[[Array], Array] | None = None  #: F → h of rows in the search for splits, where it is not 1


def formulas(model: Any, delta: float = 1.0) -> Formulas:
    """Return the formulas of the loss that a model names; δ of Huber's loss is given."""
    if not isinstance(model.loss, str):
        return _custom(model)
    if getattr(model, "_classes", False):
        return _softmax() if len(model.classes_) > 2 else _margins(model.loss)
    if model.loss == "quantile" and np.ndim(model._level()) > 0:
        return _joint(np.asarray(model._level(), dtype=np.float64))
    tau = float(np.ravel(model._level())[0]) if model.loss == "quantile" else 0.5
    one = np.ones_like
    table: dict[str, Formulas] = {
        "squared_error": Formulas(lambda y, F: (y - F[0]) ** 2 / 2, lambda y, F: F - y, lambda y, F: one(F)),
        "absolute_error": Formulas(lambda y, F: abs(y - F[0]), lambda y, F: np.sign(F - y), None),
        "huber": Formulas(
            lambda y, F: np.where(abs(y - F[0]) <= delta, (y - F[0]) ** 2 / 2, delta * (abs(y - F[0]) - delta / 2)),
            lambda y, F: np.clip(F - y, -delta, delta),
            None,
        ),
        "quantile": Formulas(
            lambda y, F: np.where(y > F[0], tau * (y - F[0]), (1 - tau) * (F[0] - y)),
            lambda y, F: np.where(y < F, 1 - tau, np.where(y > F, -tau, 0.0)),
            None,
        ),
        "poisson": Formulas(lambda y, F: np.exp(F[0]) - y * F[0], lambda y, F: np.exp(F) - y, lambda y, F: np.exp(F)),
        "gamma": Formulas(
            lambda y, F: F[0] + y / np.exp(F[0]), lambda y, F: 1 - y / np.exp(F), lambda y, F: y / np.exp(F)
        ),
        "normal": Formulas(
            lambda y, F: F[1] + ((y - F[0]) / np.exp(F[1])) ** 2 / 2,
            lambda y, F: np.stack([(F[0] - y) / np.exp(2 * F[1]), 1 - ((y - F[0]) / np.exp(F[1])) ** 2]),
            lambda y, F: np.stack([np.exp(-2 * F[1]), 1 + ((y - F[0]) / np.exp(F[1])) ** 2]),
        ),
    }
    return table[model.loss]


def _margins(loss: str) -> Formulas:
    if loss == "exponential":
        return Formulas(lambda y, F: np.exp(-y * F[0]), lambda y, F: -y * np.exp(-y * F), lambda y, F: np.exp(-y * F))
    return Formulas(
        lambda y, F: np.logaddexp(0.0, -y * F[0]),
        lambda y, F: expit(F) - (y > 0),
        lambda y, F: expit(F) * expit(-F),
    )


def _softmax() -> Formulas:
    def chances(F: Array) -> Array:
        return np.asarray(np.exp(F - logsumexp(F, axis=0)))

    return Formulas(
        lambda y, F: np.asarray(logsumexp(F, axis=0)) - F[y, np.arange(F.shape[1])],
        lambda y, F: chances(F) - (np.arange(len(F))[:, None] == y),
        lambda y, F: chances(F) * (1 - chances(F)) * len(F) / (len(F) - 1),
    )


def _joint(levels: Array) -> Formulas:
    c = int(np.argmin(np.abs(levels - 0.5)))
    K = len(levels)

    def quantile(F: Array, k: int) -> Array:
        gaps = [np.exp(F[j]) for j in (range(c + 1, k + 1) if k > c else range(k, c))]
        return np.asarray(F[c] + (1.0 if k > c else -1.0) * sum(gaps, np.zeros(F.shape[1])))

    def slope(y: Array, F: Array) -> Array:
        each = [np.where(quantile(F, k) > y, 1 - levels[k], np.where(quantile(F, k) < y, -levels[k], 0.0))
                for k in range(K)]  # fmt: skip
        out = []
        for k in range(K):
            moved = range(k, K) if k > c else range(k + 1)
            sign = np.exp(F[k]) if k > c else -np.exp(F[k])
            if k == c:
                moved, sign = range(K), np.ones(len(y))
            out.append(sign * sum((each[j] for j in moved), np.zeros(len(y))))
        return np.stack(out)

    return Formulas(
        lambda y, F: np.asarray(
            sum(np.maximum(levels[k] * (y - quantile(F, k)), (levels[k] - 1) * (y - quantile(F, k))) for k in range(K))
        ),
        slope,
        None,
        lambda F: np.stack([np.exp(F[k]) if k != c else np.ones(F.shape[1]) for k in range(K)]),
    )


def _custom(model: Any) -> Formulas:
    loss, several = model.loss, getattr(model, "_classes", False) and len(model.classes_) > 2
    curved = hasattr(loss, "curvature")
    if several:
        return Formulas(
            lambda y, F: loss.value(y, F.T.copy()),
            lambda y, F: np.asarray(loss.gradient(y, F.T.copy())).T,
            (lambda y, F: np.asarray(loss.curvature(y, F.T.copy())).T) if curved else None,
        )
    return Formulas(
        lambda y, F: loss.value(y, F[0]),
        lambda y, F: np.asarray(loss.gradient(y, F[0]))[None],
        (lambda y, F: np.asarray(loss.curvature(y, F[0]))[None]) if curved else None,
    )
