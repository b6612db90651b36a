"""Parameters and fitted attributes that all network models share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.declare import (
    MAX_ITER,
    MAX_SECONDS,
    N_JOBS,
    RANDOM_STATE,
    TOLERANCE,
    Boolean,
    Matches,
    Nothing,
    Number,
    Options,
    fitted,
    optional,
    param,
)
from ..core.estimator import Certificate, Estimator
from .initial import NAMES as STARTS
from .layers.activations import UNITS, Unit

Array = NDArray[Any]

UPDATE = Matches(lambda v: hasattr(v, "move") and hasattr(v, "look"), "an optimiser of learnable.solvers")
RULE = Matches(lambda v: hasattr(v, "begin"), "a step rule of learnable.solvers")
SIZES = Matches(lambda v: _are_sizes(v), "an integer >= 1, or a list of them: the units of each hidden layer")
CLIP = Matches(lambda v: callable(v) and hasattr(v, "threshold"), "Rescale or Truncate of learnable.solvers")


def _are_sizes(value: Any) -> bool:
    rule = Number(low=1, integer=True)
    if np.ndim(value) == 0:
        return rule.allows(value)
    try:
        return all(rule.allows(v) for v in value)
    except TypeError:
        return False


ACTIVATION = Options(*UNITS) | Matches(lambda v: isinstance(v, Unit), "a unit of learnable.neural such as LeakyReLU()")
NO_NORMALISATION = Nothing() | Options("batch", "layer")


def unit_of(activation: Any) -> Unit:
    """Return the unit that a name or a layer stands for."""
    return UNITS[activation] if isinstance(activation, str) else activation


class NetworkParameters(Estimator):
    """What is declared once for all models."""

    solver: Any = param(
        Options("adam", "sgd", "lbfgs") | UPDATE,
        "Optimiser: a name, or an object of `solvers` such as `RMSprop()`; `lbfgs` uses all rows at once.",
        default="adam",
    )
    alpha: float = param(
        Number(low=0.0),
        "α of the penalty ½α‖W‖²/n on the weights, n the rows of a batch (scikit-learn's). The gradient of the penalty "
        "is part of every step.",
        default=0.0001,
    )
    batch_size: Any = param(
        Options("auto") | Number(low=1, integer=True), "Rows of a batch; auto: 200, or all if fewer.", default="auto"
    )
    learning_rate: Any = param(
        Options("constant", "invscaling", "adaptive", "cosine", "one_cycle") | RULE,
        "Step rule: a name, or an object of `solvers` such as `Plateau(0.01)`, which then has the rate itself. "
        "`invscaling` and `adaptive` only change steps of `sgd`.",
        default="constant",
    )
    learning_rate_init: float = param(Number(low=0.0, low_open=True), "η, the rate of the named rules.", default=0.001)
    power_t: float = param(Number(low=0.0), "Exponent of `invscaling`.", default=0.5)
    max_iter: int = param(MAX_ITER, "Most epochs; of `lbfgs` most iterations.", default=200)
    shuffle: bool = param(Boolean(), "Whether every epoch has a new order of the rows.", default=True)
    random_state: Any = param(RANDOM_STATE, "Start, order of the rows, dropout.", default=None)
    tol: float = param(
        TOLERANCE,
        "An epoch that lowers the loss (or raises the validation score) by less is no progress; for `lbfgs` and "
        "`polish` the largest entry of the gradient to reach (scikit-learn's too).",
        default=1e-4,
    )
    verbose: Any = param(Boolean() | Number(low=0, integer=True), "Whether losses are printed.", default=False)
    warm_start: bool = param(
        Boolean(), "Whether a fit goes on from the last one, with the optimiser's memory.", default=False
    )
    momentum: float = param(Number(low=0.0, high=1.0), "Momentum of `sgd`.", default=0.9)
    nesterovs_momentum: bool = param(Boolean(), "Whether `sgd` uses Nesterov's.", default=True)
    early_stopping: Any = param(
        Boolean() | Options("loss", "score"),
        "Whether training stops by the score (True) or the loss on rows set aside, or on `X_val` and `y_val` of `fit`; "
        "the best weights are kept.",
        default=False,
    )
    validation_fraction: float = param(
        Number(low=0.0, high=1.0, high_open=True), "Share of rows set aside for it.", default=0.1
    )
    beta_1: float = param(Number(low=0.0, high=1.0, high_open=True), "ρ₁ of Adam.", default=0.9)
    beta_2: float = param(Number(low=0.0, high=1.0, high_open=True), "ρ₂ of Adam.", default=0.999)
    epsilon: float = param(Number(low=0.0, low_open=True), "δ of Adam.", default=1e-8)
    n_iter_no_change: Any = param(
        Number(low=1, integer=True) | Matches(lambda v: v == math.inf, "inf"),
        "Epochs without progress before the end.",
        default=10,
    )
    init: str = param(Options(*STARTS), "How weights start; see `neural.initial`.", default="glorot")
    weight_decay: float = param(
        Number(low=0.0), "λ′: weights shrink by ηλ′ after every step (decoupled, AdamW).", default=0.0
    )
    clip: Any = param(
        optional(Number(low=0.0, low_open=True) | CLIP),
        "Clipping of gradients: `Rescale(c)` or `Truncate(c)` of `solvers`; a number is `Rescale`.",
        default=None,
    )
    polish: bool = param(
        Boolean(), "Whether L-BFGS on all rows, in float64, ends a stochastic fit; it certifies.", default=False
    )
    ensemble_size: int = param(
        Number(low=1, integer=True), "Networks that are trained from different seeds and averaged.", default=1
    )
    dtype: str = param(
        Options("auto", "float32", "float64"), "Of training; auto: float32, with `lbfgs` float64.", default="auto"
    )
    max_seconds: float | None = param(MAX_SECONDS, "Time limit of a fit.", default=None)
    n_jobs: int | None = param(N_JOBS, "Threads; the result does not depend on them.", default=None)

    theta_: Array = fitted("(n_members, n_parameters)", "All weights, then all biases and gains.")
    buffers_: Array = fitted("(n_members, n_buffers)", "Running moments of batch normalisation.")
    optimiser_v_: Array = fitted("(n_members, n_parameters)", "The optimiser's mean gradient or velocity.")
    optimiser_r_: Array = fitted("(n_members, n_parameters)", "Its mean of squares.", low=0.0)
    gradient_: Any = fitted(
        "(n_members, n_parameters)", "Gradient of the objective where a full-batch fit ended.", optional=True
    )
    n_updates_: int = fitted("int", "Steps made; a resumed fit counts on.")
    n_epochs_: int = fitted("int", "Epochs made in all, resumed ones included.")
    seed_: int = fitted("int", "What orders of rows follow from.")
    n_iter_: int = fitted("int", "Epochs, or iterations of `lbfgs`, of the last fit.")
    t_: int = fitted("int", "Rows seen in training.")
    loss_: float = fitted("float", "Loss of the last epoch, penalty included.")
    best_loss_: Any = fitted("float or None", "The least loss of an epoch; None with early stopping.")
    loss_curve_: list[float] = fitted("list of float", "Loss of every epoch; of `lbfgs` of every iteration.")
    validation_scores_: Any = fitted("list of float, or None", "On the rows set aside, by epoch.")
    best_validation_score_: Any = fitted("float or None", "The best of them.")
    n_outputs_: int = fitted("int", "Width of the scores.")
    n_layers_: int = fitted("int", "Dense layers plus one, the input.")
    out_activation_: str = fitted("str", "What turns scores into predictions.")
    certificate_: Certificate = fitted("Certificate", "`stationarity` for `lbfgs` and `polish`, else `none`.")
