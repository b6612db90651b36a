r"""Residual networks for tables: x ← x + F(x), block after block.

    h₀ = x W + b,    h ← h + Dropout(Dense(Dropout(σ(Dense(BatchNorm(h)))))),    z = Dense(σ(BatchNorm(h)))

The shortcut carries gradients past every block, whatever F is: dh_L/dh_l = I + …, so that they do not vanish with the
number of blocks. Objective and penalty are those of the perceptrons (`neural.mlp`).

Reference: Y. Gorishniy et al., Revisiting deep learning models for tabular data, NeurIPS 2021, eq. 1; K. He et al.,
CVPR 2016.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin

from ..core.declare import Number, Options, optional, param, tags
from ..data.door import door
from .layers.base import Layer
from .layers.dense import Dense
from .layers.piecewise import PiecewiseLinear
from .layers.regularise import BatchNorm, Dropout
from .layers.residual import Residual
from .model import NetworkModel
from .parameters import ACTIVATION, UPDATE, unit_of
from .presets import PRESETS, effective
from .tables import TableClasses, TableNumbers


class _Blocks(NetworkModel):
    """What both models share."""

    n_blocks: int = param(Number(low=1, integer=True), "Residual blocks.", default=2, kw_only=False)
    units: int = param(Number(low=1, integer=True), "Width of the shortcut.", default=192, kw_only=False)
    block_units: int | None = param(
        optional(Number(low=1, integer=True)), "Hidden units of a block; None: as wide as the shortcut.", default=None
    )
    activation: Any = param(ACTIVATION, "Unit of the blocks.", default="relu")
    dropout: float = param(
        Number(low=0.0, high=1.0, high_open=True), "Share of units that training drops.", default=0.0
    )
    init: str = param(NetworkModel._parameters["init"], "How weights start; see `neural.initial`.", default="uniform")
    solver: Any = param(
        Options("adam", "sgd") | UPDATE,
        "Optimiser: a name, or an object of `solvers` such as `RMSprop()`.",
        default="adam",
    )
    preset: str | None = param(
        optional(Options(*PRESETS)),
        "Settings for a kind of data, in place of arguments left at their defaults; `table`: see `neural.presets`.",
        default=None,
    )
    _tags = tags(sparse=True)

    def _layers(self, settings: SimpleNamespace, n_inputs: int, n_outputs: int) -> list[Layer]:
        unit = unit_of(settings.activation)
        inner = settings.block_units or settings.units
        drop = [Dropout(settings.dropout)] if settings.dropout > 0.0 else []
        block = (BatchNorm(), Dense(inner), unit, *drop, Dense(settings.units), *drop)
        start = [] if getattr(self, "edges_", None) is None else [PiecewiseLinear(self.edges_)]
        return [
            *start,
            Dense(settings.units),
            *[Residual(block)] * settings.n_blocks,
            BatchNorm(),
            unit,
            Dense(n_outputs),
        ]

    def _described(self) -> list[tuple[Any, ...]]:
        """Return the layers as plain words and sizes, for the independent check."""
        settings = effective(self)
        units = settings.units
        inner = settings.block_units or units
        block = [("batch", units), ("dense", units, inner), ("unit", settings.activation), ("dense", inner, units)]
        end = [("batch", units), ("unit", settings.activation), ("dense", units, self.n_outputs_)]
        start: list[tuple[Any, ...]] = []
        width = self.n_features_in_
        if getattr(self, "edges_", None) is not None:
            start = [("piecewise", self.edges_)]
            width *= self.edges_.shape[1]
        return [*start, ("dense", width, units), *[("residual", block)] * settings.n_blocks, *end]


class ResNetClassifier(TableClasses, ClassifierMixin, _Blocks):
    """A residual network for classes: h ← h + F(h), by the logarithmic loss.

    Minimises Σ w V/Σ w + ½α‖W‖²/Σ w over mini-batches (λ = α/n in n⁻¹ΣV + λΩ), V = −log P(y | x). Predictions use the
    running moments of batch normalisation. Memory: O(p) for p parameters, four times, plus O(batch · units · blocks).

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import ResNetClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = ResNetClassifier(units=16, max_iter=60, learning_rate_init=0.01, random_state=0, n_iter_no_change=60)
    >>> bool(model.fit(X, y).score(X, y) > 0.95)
    True
    """

    _theory = "network"

    class_weight: Any = param(
        TableClasses.CLASS_WEIGHT, "Weights of the classes; `balanced`: all classes weigh the same.", default=None
    )

    _door = staticmethod(door(target="classes", multi_output=True, one_class=True))
    _tags = tags(multi_label=True)


class ResNetRegressor(TableNumbers, RegressorMixin, _Blocks):
    """A residual network for numbers: h ← h + F(h).

    Minimises Σ w V/Σ w + ½α‖W‖²/Σ w over mini-batches (λ = α/n in n⁻¹ΣV + λΩ), V = ½‖z − y‖² or another loss.
    Predictions use the running moments of batch normalisation. Memory: O(p) for p parameters, four times, plus
    O(batch · units · blocks).

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import ResNetRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] * X[:, 1]
    >>> model = ResNetRegressor(units=16, max_iter=60, learning_rate="cosine", learning_rate_init=0.02, random_state=0)
    >>> bool(model.fit(X, y).score(X, y) > 0.9)
    True
    """

    _theory = "network"

    loss: Any = param(
        Options("squared_error", "poisson", "absolute_error", "huber", "gamma") | TableNumbers.LOSS,
        "V: a name, or a loss of `learnable.risk`.",
        default="squared_error",
    )
    calibration_fraction: float | None = param(
        optional(Number(low=0.0, high=1.0, low_open=True, high_open=True)),
        "Share of rows kept out of training, to calibrate `predict_interval`.",
        default=None,
    )

    _door = staticmethod(door(target="numeric", multi_output=True))
