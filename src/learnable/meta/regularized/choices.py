"""The losses and penalties that a regularised risk knows by name, and what targets a loss is made for."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import Array, DataError, Matches, ParameterError
from ...risk.losses import (
    AbsoluteLoss,
    DevianceLoss,
    EpsilonInsensitiveLoss,
    ExponentialLoss,
    GammaLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    MulticlassHingeLoss,
    PerceptronLoss,
    PoissonLoss,
    QuantileLoss,
    SoftmaxLoss,
    SquaredEpsilonInsensitiveLoss,
    SquaredHingeLoss,
    SquaredLoss,
)
from ...risk.losses.margin import MarginLoss
from ...risk.losses.multiclass import ArgmaxLoss
from ...risk.norms import NormPenalty, NuclearPenalty, SupNormPenalty, TotalVariationPenalty
from ...risk.penalties import ElasticNetPenalty, L1Penalty, L2Penalty

LOSSES: dict[str, Any] = {
    "squared": SquaredLoss(),
    "absolute": AbsoluteLoss(),
    "huber": HuberLoss(),
    "epsilon_insensitive": EpsilonInsensitiveLoss(),
    "squared_epsilon_insensitive": SquaredEpsilonInsensitiveLoss(),
    "quantile": QuantileLoss(),
    "poisson": PoissonLoss(),
    "gamma": GammaLoss(),
    "logistic": LogisticLoss(),
    "hinge": HingeLoss(),
    "squared_hinge": SquaredHingeLoss(),
    "exponential": ExponentialLoss(),
    "perceptron": PerceptronLoss(),
    "softmax": SoftmaxLoss(),
    "multiclass_hinge": MulticlassHingeLoss(),
}
PENALTIES: dict[str, Any] = {
    "l1": L1Penalty(),
    "l2": L2Penalty(),
    "elasticnet": ElasticNetPenalty(),
    "norm": NormPenalty(),
    "sup": SupNormPenalty(),
    "tv": TotalVariationPenalty(),
    "fused": TotalVariationPenalty(l1_ratio=0.5),
    "nuclear": NuclearPenalty(),
}
LOSS_RULE = Matches(
    lambda v: v in LOSSES if isinstance(v, str) else all(hasattr(v, name) for name in ("value", "conjugate", "prox")),
    f"one of {', '.join(LOSSES)}, or a convex loss of learnable.risk with value, conjugate and prox",
)
PENALTY_RULE = Matches(
    lambda v: (
        v in PENALTIES if isinstance(v, str) else all(hasattr(v, name) for name in ("value", "conjugate", "prox"))
    ),
    f"one of {', '.join(PENALTIES)}, or a penalty with value, prox and conjugate; ProximalPenalty makes one of two "
    "functions",
)


def loss_of(model: Any) -> Any:
    """Return the loss that a model's parameter names."""
    return LOSSES[model.loss] if isinstance(model.loss, str) else model.loss


def penalty_of(model: Any) -> Any:
    """Return the penalty likewise."""
    return PENALTIES[model.penalty] if isinstance(model.penalty, str) else model.penalty


def is_classification(loss: Any) -> bool:
    """Tell whether a loss is one of labels."""
    return isinstance(loss, (MarginLoss, ArgmaxLoss))


def refuse_nonconvex(owner: str, loss: Any, penalty: Any) -> None:
    """Raise ParameterError for a loss or a penalty that says of itself that it is not convex."""
    for name, part in (("loss", loss), ("penalty", penalty)):
        if not getattr(part, "convex", True):
            raise ParameterError(f"{owner}: {name} must be convex; got {part!r}, which is not.")
    if getattr(penalty, "strength", 1.0) == 0.0:
        raise ParameterError(f"{owner}: penalty must have a positive strength; got {penalty!r}.")


def targets_of(owner: str, loss: Any, y: Array, n_classes: int) -> tuple[Any, int]:
    """Return the targets as the loss wants them, (n, k) numbers or (n,) codes, and the number of scores."""
    if isinstance(loss, ArgmaxLoss):
        return y, n_classes
    if isinstance(loss, MarginLoss):
        if n_classes > 2:
            raise DataError(
                f"{owner}: Only binary classification is supported. {type(loss).__name__} is for two classes; y has "
                f"{n_classes}. Use loss='softmax' or "
                "'multiclass_hinge', or OneVsRestClassifier."
            )
        return np.where(y == 1, 1.0, -1.0)[:, None], 1
    Y = y.reshape(len(y), -1).astype(np.float64)
    least = float(Y.min())
    zero_allowed = isinstance(loss, PoissonLoss) or (isinstance(loss, DevianceLoss) and 1 <= loss.power < 2)
    zero_refused = isinstance(loss, GammaLoss) or (isinstance(loss, DevianceLoss) and loss.power == 2)
    if (zero_allowed and least < 0.0) or (zero_refused and least <= 0.0):
        rule = ">= 0" if zero_allowed else "> 0"
        raise DataError(f"{owner}: {type(loss).__name__} needs targets {rule}; the least is {least:g}.")
    return Y, Y.shape[1]
