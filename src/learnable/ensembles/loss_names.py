"""Losses by name, and what their targets and scores look like.

A loss of `learnable.risk.losses` takes numbers, signs ±1 or class codes as targets; scores are (n,), or (n, K) for
losses of class codes. Any other object with `value`, `gradient` and `predict` is taken for a loss of numbers.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..core import Array, DataError, NDArray
from ..risk.losses.margin import (
    ExponentialLoss,
    HingeLoss,
    LogisticLoss,
    MarginLoss,
    SquaredHingeLoss,
)
from ..risk.losses.multiclass import ArgmaxLoss, MulticlassHingeLoss, SoftmaxLoss
from ..risk.losses.regression import (
    AbsoluteLoss,
    EpsilonInsensitiveLoss,
    GammaLoss,
    HuberLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredLoss,
)

LOSSES: Final[dict[str, Any]] = {
    "squared_error": SquaredLoss(),
    "absolute_error": AbsoluteLoss(),
    "huber": HuberLoss(),
    "epsilon_insensitive": EpsilonInsensitiveLoss(),
    "quantile": QuantileLoss(),
    "poisson": PoissonLoss(),
    "gamma": GammaLoss(),
    "exponential": ExponentialLoss(),
    "log_loss": LogisticLoss(),
    "hinge": HingeLoss(),
    "squared_hinge": SquaredHingeLoss(),
}
_FOR_MANY: Final[dict[type, Any]] = {LogisticLoss: SoftmaxLoss(), HingeLoss: MulticlassHingeLoss()}


def named_loss(loss: Any) -> Any:
    """Return the loss of this name; a loss is returned as it is."""
    return LOSSES.get(loss, loss) if isinstance(loss, str) else loss


def classifies(loss: Any) -> bool:
    """Tell whether the targets of a loss are labels.

    Examples
    --------
    >>> classifies("exponential"), classifies("huber"), classifies(SoftmaxLoss())
    (True, False, True)
    """
    return isinstance(named_loss(loss), (MarginLoss, ArgmaxLoss))


def for_classes(loss: Any, n_classes: int) -> Any:
    """Return the loss for so many classes: with more than two, the softmax loss for the logistic one, and so on."""
    if n_classes <= 2 or isinstance(loss, ArgmaxLoss):
        return loss
    if type(loss) not in _FOR_MANY:
        raise DataError(
            f"Only binary classification is supported by the {type(loss).__name__}. The type of the target is "
            f"multiclass, with {n_classes} classes; use loss='log_loss', or OneVsRestClassifier."
        )
    return _FOR_MANY[type(loss)]


def n_scores(loss: Any, n_classes: int) -> int:
    """Return how many scores a row has."""
    return n_classes if isinstance(loss, ArgmaxLoss) else 1


def targets_of(loss: Any, y: NDArray[Any]) -> NDArray[Any]:
    """Return codes or numbers as the loss takes them."""
    if isinstance(loss, MarginLoss):
        return np.where(y == 1, 1.0, -1.0)
    if isinstance(loss, ArgmaxLoss):
        return y.astype(np.intp)
    if isinstance(loss, PoissonLoss) and (y < 0).any():
        raise DataError(f"ForwardStagewiseAdditive: the Poisson loss is for counts, but a target is {y.min():g}.")
    if isinstance(loss, GammaLoss) and (y <= 0).any():
        raise DataError(f"ForwardStagewiseAdditive: the gamma loss is for targets > 0, but one is {y.min():g}.")
    return y.astype(np.float64)


def flat(scores: Array) -> Array:
    """Return scores (n, K) as a loss takes them: (n,) for K = 1."""
    return scores[:, 0] if scores.shape[1] == 1 else scores
