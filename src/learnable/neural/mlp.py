r"""Multi-layer perceptrons: z = W_L σ(… σ(x W₁ + b₁) …) + b_L.

Objective, with the data weights w, and the weights W but not the biases penalised:

    min  Σᵢ wᵢ V(yᵢ, z(xᵢ)) / Σ w  +  ½ α ‖W‖² / Σ w,

V the squared error ½‖z − y‖², the Poisson deviance, or the logarithmic loss. On mini-batches both sums run over the
batch, as in scikit-learn: the smaller the batch, the stronger α. In the form n⁻¹ΣV + λΩ with Ω = ½‖W‖²: λ = α/n. The
function is not convex; nothing says how far a fit is from the optimum.

Reference: I. Goodfellow, Y. Bengio and A. Courville, Deep Learning, 2016, chapters 6 to 8.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from ..core.declare import Number, Options, optional, param, tags
from ..core.errors import ParameterError
from ..data.door import door
from .layers.activations import Logistic
from .layers.base import Layer
from .layers.dense import Dense
from .layers.piecewise import PiecewiseLinear
from .layers.regularise import BatchNorm, Dropout, LayerNorm
from .model import Data, NetworkModel
from .parameters import ACTIVATION, NO_NORMALISATION, SIZES, unit_of
from .presets import PRESETS, effective
from .tables import TableClasses, TableNumbers

Array = NDArray[Any]


class _Perceptrons(NetworkModel):
    """What both models share."""

    hidden_layer_sizes: Any = param(SIZES, "Units of each hidden layer; () for none.", default=(100,), kw_only=False)
    activation: Any = param(
        ACTIVATION, "Unit of the hidden layers: a name, or a layer such as `LeakyReLU(0.1)`.", default="relu",
        kw_only=False,
    )  # fmt: skip
    max_fun: int = param(Number(low=1, integer=True), "Most evaluations of `lbfgs`.", default=15000)
    dropout: float = param(
        Number(low=0.0, high=1.0, high_open=True), "Share of hidden units that training drops.", default=0.0
    )
    normalization: str | None = param(
        NO_NORMALISATION, "Normalisation before each unit, over the batch or over the layer.", default=None
    )
    preset: str | None = param(
        optional(Options(*PRESETS)),
        "Settings for a kind of data, in place of arguments left at their defaults; `table`: see `neural.presets`.",
        default=None,
    )

    def _layers(self, settings: SimpleNamespace, n_inputs: int, n_outputs: int) -> list[Layer]:
        layers: list[Layer] = [] if self.edges_of_bins() is None else [PiecewiseLinear(self.edges_)]
        for units in np.atleast_1d(np.asarray(settings.hidden_layer_sizes, dtype=np.int64)).tolist():
            layers.append(Dense(units))
            if settings.normalization == "batch":
                layers.append(BatchNorm())
            elif settings.normalization == "layer":
                layers.append(LayerNorm())
            layers.append(unit_of(settings.activation))
            if settings.dropout > 0.0:
                layers.append(Dropout(settings.dropout))
        return [*layers, Dense(n_outputs)]

    def edges_of_bins(self) -> Array | None:
        """Return the edges of the bins that a preset encodes columns by; None without one."""
        return getattr(self, "edges_", None)

    def _described(self) -> list[tuple[Any, ...]]:
        """Return the layers as plain words and sizes, for the independent check."""
        settings = effective(self)
        found: list[tuple[Any, ...]] = []
        width = self.n_features_in_
        if self.edges_of_bins() is not None:
            found.append(("piecewise", self.edges_))
            width *= self.edges_.shape[1]
        for units in np.atleast_1d(np.asarray(settings.hidden_layer_sizes, dtype=np.int64)).tolist():
            found.append(("dense", width, units))
            if settings.normalization is not None:
                found.append((settings.normalization, units))
            found.append(("unit", settings.activation))
            width = units
        return [*found, ("dense", width, self.n_outputs_)]

    def _train(self, data: Data, settings: SimpleNamespace, previous: Any, run: Any) -> Any:
        if settings.solver == "lbfgs" and (settings.dropout > 0.0 or settings.normalization == "batch"):
            raise ParameterError(
                f"{type(self).__name__}: solver='lbfgs' needs a function that does not change from call to call; "
                "dropout and batch normalisation do. Use solver='adam', or dropout=0 and normalization='layer'."
            )
        if isinstance(unit_of(settings.activation), Logistic):
            settings.activation = "logistic"
        return super()._train(data, settings, previous, run)


class MLPClassifier(TableClasses, ClassifierMixin, _Perceptrons):
    """A multi-layer perceptron for classes, by the logarithmic loss.

    Minimises Σ w V/Σ w + ½α‖W‖²/Σ w (λ = α/n in n⁻¹ΣV + λΩ), V = −log P(y | x), by mini-batches or by L-BFGS. Two
    classes have one logistic output, more have a softmax; an indicator matrix y has one logistic output for each label.
    scikit-learn's parameters and defaults; the others are ours. Training is in float32 unless `dtype` says otherwise.
    Memory: O(p) for p parameters, four times, plus O(batch · units).

    Examples
    --------
    >>> from learnable import MLPClassifier
    >>> X, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], ["same", "other", "other", "same"]
    >>> model = MLPClassifier((8,), activation="tanh", solver="lbfgs", alpha=1e-3, random_state=0).fit(X, y)
    >>> model.predict(X).tolist()
    ['same', 'other', 'other', 'same']
    >>> model.certificate_.kind, model.certificate_.holds
    ('stationarity', True)
    """

    _theory = "network"

    class_weight: Any = param(
        TableClasses.CLASS_WEIGHT, "Weights of the classes; `balanced`: all classes weigh the same.", default=None
    )

    _door = staticmethod(door(target="classes", multi_output=True, one_class=True))
    _tags = tags(sparse=True, multi_label=True)


class MLPRegressor(TableNumbers, RegressorMixin, _Perceptrons):
    """A multi-layer perceptron for numbers.

    Minimises Σ w V/Σ w + ½α‖W‖²/Σ w (λ = α/n in n⁻¹ΣV + λΩ) by mini-batches or by L-BFGS; V = ½‖z − y‖² by default.
    scikit-learn's parameters and defaults; the others are ours. Of several targets the squared errors are added up
    (scikit-learn reports their mean and follows the gradient of the sum). Training is in float32 unless `dtype` says
    otherwise. Memory: O(p) for p parameters, four times, plus O(batch · units), and O(n) for the residuals of the
    rows, of which `noise_` is the mean square.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import MLPRegressor
    >>> X = np.linspace(-2.0, 2.0, 50)[:, None]
    >>> model = MLPRegressor(hidden_layer_sizes=(10,), activation="tanh", solver="lbfgs", random_state=0, max_iter=1000)
    >>> bool(model.fit(X, np.sin(2 * X[:, 0])).score(X, np.sin(2 * X[:, 0])) > 0.99)
    True
    """

    _theory = "network"

    loss: Any = param(
        Options("squared_error", "poisson", "absolute_error", "huber", "gamma") | TableNumbers.LOSS,
        "V: a name, or a loss of `learnable.risk`.",
        default="squared_error",
        kw_only=False,
    )
    calibration_fraction: float | None = param(
        optional(Number(low=0.0, high=1.0, low_open=True, high_open=True)),
        "Share of rows kept out of training, to calibrate `predict_interval`.",
        default=None,
    )

    _positional = ("loss", "hidden_layer_sizes", "activation")
    _door = staticmethod(door(target="numeric", multi_output=True))
    _tags = tags(sparse=True)
