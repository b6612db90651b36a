r"""How gradients flow through a fitted network, and what the loss looks like where the fit ended.

Back-propagation multiplies the gradient by Wᵀ and by σ′ in every layer, so that between the layers j < i

    ‖dL/da_j‖ ≤ ‖dL/da_i‖ · Π_{k = j+1..i} ‖W_k‖₂ · max|σ′|,

a factor of (‖W‖ max|σ′|)^{i−j} when all layers are alike. Below one it vanishes, above one it may explode. The report
puts this bound beside what is measured on the data. Around the point itself it looks at the curvature: the largest and
smallest eigenvalue of the Hessian by Lanczos' method on Hessian–vector products, and ½η²gᵀHg against ηgᵀg.

Reference: I. Goodfellow, Y. Bengio and A. Courville, Deep Learning, 2016, sections 8.2 and 10.7.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from ..core.errors import ParameterError
from ..core.threads import one_thread_blas
from .layers.activations import ReLU, Unit
from .layers.base import Layer
from .layers.recurrent import OverTime
from .layers.residual import Residual
from .model import Data, NetworkModel
from .network import Network
from .objective import NetworkObjective
from .presets import effective

Array = NDArray[Any]

_VANISHED = 1e-3  # of the last layer's gradient: three decades are what learning rates cannot make up for
_EXPLODED = 1e3
_SATURATED = 0.05  # of the steepest slope: a unit that passes less than a twentieth of its gradient on
_MOST_ROWS = 2000  # rows that the report looks at
_CLIFF = 3.0  # an epoch's loss above three times the best before it
_PLATEAU = 1e-3  # relative fall over the last quarter of the epochs
_NEGATIVE = 1e-3  # of the largest eigenvalue: below minus this share the point is a saddle


@dataclass(frozen=True)
class LayerFlow:
    """One layer of the report."""

    name: str  #: the layer
    activation: float  #: root mean square of its output
    gradient: float  #: norm of dL/d(output), a mean over rows
    weight_norm: float  #: ‖W‖₂ of its largest weights; 1 where it has none
    steepest: float  #: max|σ′| of a unit; 1 otherwise
    dead: float  #: share of units that are zero on every row; NaN where that is no failure
    saturated: float  #: share of entries where σ′ is below a twentieth of its maximum; NaN for other layers


@dataclass(frozen=True)
class GradientReport:
    """What `gradient_report` found; printing it says it in words.

    Attributes
    ----------
    layers : tuple of LayerFlow
        From the input to the scores.
    measured : (L,) array
        ‖dL/d(output of layer)‖ over that of the last layer.
    bound : (L,) array
        The product bound of the same ratio; infinite past a layer for which none is known.
    by_step : (T,) array or None
        Of recurrent networks: norm of the gradient at every step, over that at the last.
    loss, gradient_norm : float
        At the point, in inference mode.
    eigenvalues : (2,) array
        Smallest and largest eigenvalue of the Hessian (NaN if Lanczos' method did not converge).
    step : float
        η.
    linear, quadratic : float
        ηgᵀg and ½η²gᵀHg.
    words : tuple of str
        What stands out, in sentences.
    """

    layers: tuple[LayerFlow, ...]
    measured: Array
    bound: Array
    by_step: Array | None
    loss: float
    gradient_norm: float
    eigenvalues: Array
    step: float
    linear: float
    quadratic: float
    words: tuple[str, ...] = field(default=())

    @property
    def kind(self) -> str:
        """What the Hessian says of the point, if the gradient is small: a "minimum", a "saddle", or "unknown"."""
        low, high = self.eigenvalues
        if not np.isfinite(low):
            return "unknown"
        return "saddle" if low < -_NEGATIVE * abs(high) else "minimum"

    def __str__(self) -> str:
        rows = [f"{'layer':<34}{'activation':>12}{'gradient':>12}{'‖W‖':>9}{'measured':>12}{'bound':>12}"]
        for flow, measured, bound in zip(self.layers, self.measured, self.bound, strict=True):
            rows.append(
                f"{flow.name[:33]:<34}{flow.activation:>12.3g}{flow.gradient:>12.3g}{flow.weight_norm:>9.3g}"
                f"{measured:>12.3g}{bound:>12.3g}"
            )
        return "\n".join([*rows, *self.words])


def gradient_report(
    model: NetworkModel, X: Any, y: Any, sample_weight: Any = None, *, step: float | None = None
) -> GradientReport:
    """Report how gradients flow through a fitted network, and the curvature where its fit ended.

    Parameters
    ----------
    model : MLPClassifier, ResNetRegressor, LSTMClassifier, …
        A fitted model of `learnable.neural`; of an ensemble, the first network.
    X, y, sample_weight
        Data; at most the first 2000 rows are looked at.
    step : float, optional
        η; by default the model's `learning_rate_init`.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import MLPClassifier
    >>> from learnable.neural import gradient_report
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> deep = MLPClassifier((8,) * 12, activation="logistic", max_iter=1, random_state=0)
    >>> import warnings; warnings.simplefilter("ignore")
    >>> report = gradient_report(deep.fit(X, X[:, 0] > 0), X, X[:, 0] > 0)
    >>> bool(report.measured[0] < 1e-6), "vanish" in str(report)
    (True, True)
    """
    if not isinstance(model, NetworkModel) or not hasattr(model, "theta_"):
        raise ParameterError(f"gradient_report: model must be a fitted model of learnable.neural; got {model!r}.")
    network, theta, buffers, data = rows_of(model, X, y, sample_weight)
    eta = float(model.learning_rate_init) if step is None else float(step)
    with one_thread_blas():
        f = objective_of(model, network, buffers, data)
        now = f.evaluate(theta)
        layers, by_step = _flows(model, network, theta, buffers, data)
        gradients = np.array([flow.gradient for flow in layers])
        measured = gradients / gradients[-1] if gradients[-1] > 0 else np.zeros_like(gradients)
        product = f.hessian(theta)
        g = now.gradient
        quadratic = 0.5 * eta**2 * float(g @ product(g))
        eigenvalues = _ends_of_the_spectrum(product, len(theta))
    report = GradientReport(
        tuple(layers), measured, _bounds(network, layers), by_step, now.value, float(np.linalg.norm(g)),
        eigenvalues, eta, eta * float(g @ g), quadratic,
    )  # fmt: skip
    words = [*_words_of_flow(report), *_words_of_curvature(report), *_words_of_trace(model.loss_curve_)]
    return GradientReport(**{**vars(report), "words": tuple(words)})


def rows_of(model: NetworkModel, X: Any, y: Any, sample_weight: Any) -> tuple[Network, Array, Array, Data]:
    """Return a model's network in float64, its first parameters and moments, and its data as the network sees them."""
    twin = model._draft()
    table = type(model)._door(twin, X, y, sample_weight)
    settings = effective(twin)
    if hasattr(model, "classes_") and not isinstance(table.classes, list):
        twin._known_classes = model.classes_  # type: ignore[attr-defined]
    data = twin._prepare(table, settings).part(slice(0, _MOST_ROWS))
    if settings.preset is not None:
        rows = np.asarray(table.X, dtype=np.float64)[:_MOST_ROWS]
        data = data._replace(X=model._inputs(rows))
    built = model._built()
    network = Network(built.layers, built.n_inputs, dtype=np.float64)
    return network, model.theta_[0].astype(np.float64), model.buffers_[0].astype(np.float64), data


def objective_of(model: NetworkModel, network: Network, buffers: Array, data: Data) -> NetworkObjective:
    """Return the training objective of a model on some data."""
    settings = effective(model)
    if data.lengths is not None:
        return model._objective(network, data, model._head(), settings, buffers)
    y = data.y if data.y.dtype.kind in "iu" else data.y.astype(np.float64)
    return NetworkObjective(
        network, data.X, y, model._head(), weight=data.weight, alpha=settings.alpha, buffers=buffers
    )


def _flows(
    model: NetworkModel, network: Network, theta: Array, buffers: Array, data: Data
) -> tuple[list[LayerFlow], Array | None]:
    """Return sizes of activations and gradients of every layer, and of every step of a recurrent one."""
    source = model._source(data, np.float64)
    n = source.n_rows
    X, y, weight, lengths = source.cut(source.take(np.arange(n)), 0, n)
    tape = network.open(theta, X.shape[:-1], buffers=buffers, input_gradient=X.ndim == 3)  # so that all steps are kept
    tape.set_lengths(lengths)
    z = tape.forward(X)
    flat = z.reshape(-1, z.shape[-1])
    weight = np.ones(len(flat)) if weight is None else weight
    dz = np.empty_like(z)
    model._head().evaluate(flat, y, weight, 1.0, dz.reshape(flat.shape))
    tape.backward(dz)
    flows = []
    after = [*tape.grads[1:], dz]
    for k, layer in enumerate(network.layers):
        out = tape.outs[k]
        before = X if k == 0 else tape.outs[k - 1]
        grad = after[k]
        size = float(np.mean(np.linalg.norm(_as_rows(grad), axis=1)))
        dead = saturated = float("nan")
        if isinstance(layer, Unit):
            saturated = float(np.mean(np.abs(layer.slope(np.ascontiguousarray(before))) < _SATURATED * layer.steepest))
            if isinstance(layer, ReLU):
                dead = float(np.mean(~(_as_rows(out) > 0).any(axis=0)))
        norm = _weight_norm(network, theta, k)
        rms = float(np.sqrt(np.mean(out**2)))
        flows.append(LayerFlow(repr(layer), rms, size, norm, _steepest(layer), dead, saturated))
    over_time = zip(network.layers, tape.caches, strict=True)
    recurrent = [layer.step_gradients(cache) for layer, cache in over_time if isinstance(layer, OverTime)]
    by_step = None
    if recurrent:
        sizes = np.linalg.norm(recurrent[-1], axis=2).mean(axis=1)
        by_step = sizes / sizes[-1] if sizes[-1] > 0 else sizes
    return flows, by_step


def _weight_norm(network: Network, theta: Array, k: int) -> float:
    norms = [
        float(np.linalg.norm(array, 2))
        for name, array in network.views(theta, k).items()
        if array.ndim == 2 and not name.startswith("E") and name != "Wx"
    ]
    return max(norms, default=1.0)


def _steepest(layer: Layer) -> float:
    return layer.steepest if isinstance(layer, Unit) else 1.0


def _bounds(network: Network, flows: list[LayerFlow]) -> Array:
    """Return Π ‖W‖ max|σ′| over the layers after each; infinite past layers of another kind."""
    bound = np.ones(len(flows))
    for k in range(len(flows) - 2, -1, -1):
        layer = network.layers[k + 1]
        known = isinstance(layer, Unit) or set(network.views(np.zeros(network.n_parameters), k + 1)) <= {"W", "b"}
        factor = flows[k + 1].weight_norm * flows[k + 1].steepest
        if isinstance(layer, Residual) or not known:
            factor = np.inf
        bound[k] = bound[k + 1] * factor
    return bound


def _ends_of_the_spectrum(product: Any, p: int) -> Array:
    """Return the smallest and the largest eigenvalue of a symmetric operator by Lanczos' method."""
    if p <= 3:
        H = np.column_stack([product(row) for row in np.eye(p)])
        return np.asarray(np.linalg.eigvalsh(0.5 * (H + H.T))[[0, -1]])
    operator = LinearOperator((p, p), matvec=lambda v: product(np.ravel(v)), dtype=np.float64)
    start = np.random.default_rng(0).normal(size=p)
    try:
        found = eigsh(operator, k=2, which="BE", v0=start, tol=1e-3, maxiter=300, return_eigenvectors=False)
    except ArpackNoConvergence as stuck:
        found = stuck.eigenvalues if len(stuck.eigenvalues) else np.full(2, np.nan)
    return np.array([np.min(found), np.max(found)])


def _words_of_flow(report: GradientReport) -> list[str]:
    words = []
    first = report.measured[0]
    if first < _VANISHED:
        words.append(
            f"Gradients vanish: the first layer gets {first:.2g} of the last one's gradient. Use ReLU, normalisation, "
            "residual blocks, or fewer layers."
        )
    elif first > _EXPLODED:
        words.append(
            f"Gradients explode: the first layer gets {first:.2g} times the last one's gradient. Clip them, or start "
            "from smaller weights."
        )
    if report.by_step is not None:
        oldest = float(report.by_step[0])
        if oldest < _VANISHED:
            words.append(f"Through time they vanish: the first step gets {oldest:.2g} of the last step's gradient.")
        elif oldest > _EXPLODED:
            words.append(f"Through time they explode: the first step gets {oldest:.2g} times the last step's gradient.")
    for flow in report.layers:
        if flow.dead > 0.1:
            words.append(f"{flow.name}: {flow.dead:.0%} of the units are dead, zero on every row.")
        if flow.saturated > 0.5 and not flow.dead >= 0:
            words.append(f"{flow.name}: {flow.saturated:.0%} of its values are saturated, where σ′ is almost zero.")
    return words


def _words_of_curvature(report: GradientReport) -> list[str]:
    low, high = report.eigenvalues
    words = []
    if np.isfinite(low):
        shape = {
            "saddle": "a saddle, or still on the way down: some directions curve downwards",
            "minimum": "no direction curves downwards beyond rounding: a minimum, flat or not",
        }[report.kind]
        words.append(f"Curvature between {low:.3g} and {high:.3g}: {shape}.")
    if report.quadratic > report.linear:
        words.append(
            f"½η²gᵀHg = {report.quadratic:.3g} exceeds ηgᵀg = {report.linear:.3g}: steps of η = {report.step:g} are "
            "too long for the curvature."
        )
    return words


def _words_of_trace(losses: list[float]) -> list[str]:
    """Return what the losses of the epochs show: plateaus and cliffs."""
    values = np.asarray(losses, dtype=np.float64)
    words = []
    if len(values) >= 8:
        tail = values[-max(4, len(values) // 4) :]
        if tail[0] - tail.min() < _PLATEAU * abs(tail[0]):
            words.append(f"Plateau: over the last {len(tail)} epochs the loss fell by less than {_PLATEAU:.1%}.")
        best = np.minimum.accumulate(values)
        cliffs = np.flatnonzero(values[1:] > _CLIFF * np.maximum(best[:-1], 1e-12)) + 1
        if len(cliffs):
            words.append(
                f"Cliff: in epoch {int(cliffs[0])} the loss jumped to {values[cliffs[0]]:.3g}. Clip gradients."
            )
    return words


def _as_rows(x: Any) -> Array:
    return np.asarray(x).reshape(-1, np.shape(x)[-1])
