r"""Independent check of full-batch fits: the gradient of the objective by plain NumPy, from the model's arguments.

The file reads the flat vector by its documented layout (all weights in the order of the layers, then all biases, gains
and shifts in the same order), differentiates the network by closures written for reading, not for speed, and shares no
code with layers, kernels, objective or training. Everything else that predictions read is derived again from the data:
scales of columns and targets, classes, residuals of calibration rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import erf
from sklearn.base import clone

from ..core.checking import Recheck
from ..core.errors import DataError, VerificationError
from ..data.door import Table

Array = NDArray[np.float64]
#: x ↦ (output, gradient of the output ↦ gradient of x); parameters' gradients are collected on the way.
Op = Callable[[Array], tuple[Array, Callable[[Array], Array]]]

_EPSILON = 1e-5  # of the normalisations
#: Digits of a gradient that is a small difference of large sums.
_ROUNDING = 1e-9
#: What residuals may differ by, relative to their size.
_AGREEMENT = 1e-6


@np.errstate(all="ignore")
def network(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a network that was fitted on all rows."""
    twin = clone(model)
    try:
        table: Table = type(model)._door(twin, X, y, sample_weight)
    except DataError as error:
        raise VerificationError(f"verify: the data are not the table of a fit: {error}") from error
    if table.n_columns != model.n_features_in_:
        raise VerificationError(f"verify: the model has {model.n_features_in_} features, the data {table.n_columns}.")
    rows = table.X.toarray() if sp.issparse(table.X) else np.asarray(table.X, dtype=np.float64)
    bad = Recheck(np.inf, 0.0, table.fingerprint)
    inputs = _scaled_rows(model, rows)
    targets = rows_targets(model, table)
    if inputs is None or targets is None:
        return bad
    weight = row_weights(model, table)
    train = np.ones(len(rows), dtype=bool)
    if getattr(model, "calibration_rows_", None) is not None:
        if model.calibration_rows_.max(initial=0) >= len(rows):
            return bad
        train[model.calibration_rows_] = False
    worst = 0.0
    scores = []
    if model.gradient_ is None or model.gradient_.shape != model.theta_.shape:
        return bad
    for theta, buffers, recorded in zip(model.theta_, model.buffers_, model.gradient_, strict=True):
        value, gradient = _objective(
            model, theta.astype(np.float64), buffers.astype(np.float64), inputs[train], targets[train], weight[train]
        )
        if not np.allclose(gradient, recorded, rtol=1e-6, atol=_ROUNDING * max(abs(value), 1.0)):
            return bad
        worst = max(worst, float(np.max(np.abs(gradient), initial=0.0)))
        scores.append(_forward(model, theta.astype(np.float64), buffers.astype(np.float64), inputs))
    if not _residuals_agree(model, table, scores, weight, train):
        return bad
    return Recheck(worst if np.isfinite(worst) else np.inf, _ROUNDING, table.fingerprint)


def _scaled_rows(model: Any, rows: Array) -> Array | None:
    """Return the rows as the network sees them; None if the scales are not those of the rows."""
    if model.preset is None:
        return rows if getattr(model, "center_", None) is None else None
    low, centre, high = (np.quantile(rows, q, axis=0) for q in (0.25, 0.5, 0.75))
    width = np.where(high > low, high - low, 0.5 * (rows.max(axis=0) - rows.min(axis=0)))
    scale = np.where(width > 0, 1.0 / np.where(width > 0, width, 1.0), 0.0)
    if not (np.allclose(centre, model.center_, rtol=1e-12) and np.allclose(scale, model.scale_, rtol=1e-12)):
        return None
    z = (rows - centre) * scale
    z = np.asarray(z / np.sqrt(1.0 + z**2 / 9.0))
    shares = np.linspace(0.0, 1.0, model.edges_.shape[1])
    same = np.allclose(np.quantile(z, shares, axis=0).T, model.edges_, rtol=1e-9, atol=1e-12)
    return z if same else None


def rows_targets(model: Any, table: Table) -> Array | None:
    """Return the targets (n, k) of the loss: indicators of classes, or numbers; None if they do not fit the model."""
    if table.classes is None:
        y = np.asarray(table.y, dtype=np.float64)
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if model.single_ != (y.ndim == 1):
            return None
        y = y.reshape(len(y), -1)
        if getattr(model, "y_mean_", None) is None:
            return y if getattr(model, "preset", None) is None or model.out_activation_ != "identity" else None
        mean = np.average(y, axis=0, weights=table.weight)
        spread = np.sqrt(np.average((y - mean) ** 2, axis=0, weights=table.weight))
        spread = np.where(spread > 0, spread, 1.0)
        agree = np.allclose(mean, model.y_mean_, rtol=1e-9) and np.allclose(spread, model.y_scale_, rtol=1e-9)
        return np.asarray((y - mean) / spread) if agree else None
    if isinstance(table.classes, list):
        columns = [np.asarray(labels)[table.y[:, k]] for k, labels in enumerate(table.classes)]
        whole = np.array_equal(model.classes_, np.arange(len(columns)))
        found = np.column_stack(columns).astype(np.float64)
        return found if model.multilabel_ and whole else None
    if model.multilabel_ or not np.array_equal(model.classes_, table.classes):
        return None
    K = len(table.classes)
    indicator = (np.asarray(table.y)[:, None] == np.arange(K)).astype(np.float64)
    return np.asarray(indicator[:, 1:] if K == 2 else indicator)


def row_weights(model: Any, table: Table) -> Array:
    """Return the weight of each row, that of its class included."""
    weight = np.ones(table.n_rows) if table.weight is None else np.asarray(table.weight)
    given = getattr(model, "class_weight", None)
    if given is None or isinstance(table.classes, list):
        return weight
    K = len(table.classes)
    if isinstance(given, str):
        of_class = weight.sum() / (K * np.bincount(table.y, weight, K))
    else:
        of_class = np.array([given.get(label, 1.0) for label in np.asarray(table.classes).tolist()])
    return np.asarray(weight * of_class[table.y])


def _residuals_agree(model: Any, table: Table, scores: list[Array], weight: Array, train: NDArray[np.bool_]) -> bool:
    """Tell whether the noise and the calibration scores are those of the model's own predictions."""
    if not hasattr(model, "noise_"):
        return True
    means = [np.exp(z) if model.out_activation_ == "exp" else z for z in scores]
    prediction = np.mean(means, axis=0)
    if getattr(model, "y_mean_", None) is not None:
        prediction = prediction * model.y_scale_ + model.y_mean_
    residual = prediction - np.asarray(table.y, dtype=np.float64).reshape(len(prediction), -1)
    rows = train if train.all() else ~train
    noise = np.average(residual[rows] ** 2, axis=0, weights=weight[rows])
    size = float(np.abs(residual).max()) + 1e-12
    if np.shape(model.noise_) != noise.shape or not np.allclose(
        noise, model.noise_, rtol=1e-4, atol=_AGREEMENT * size**2
    ):
        return False
    stored = model.calibration_scores_
    if stored is None:
        return True
    found = np.sort(np.abs(residual[rows]).max(axis=1))
    return stored.shape == found.shape and bool(np.allclose(found, stored, rtol=1e-6, atol=_AGREEMENT * size))


# The objective ---------------------------------------------------------------------------------------------------


def _objective(model: Any, theta: Array, buffers: Array, X: Array, y: Array, weight: Array) -> tuple[float, Array]:
    """Return f(θ) and ∇f(θ)."""
    reader = _Reader(model, theta, buffers)
    z, back = _compose(reader.ops())(X)
    value, slope = row_loss(model, z, y)
    total = weight.sum()
    back(slope * (weight / total)[:, None])
    gradient = reader.collect()
    W = theta[: reader.n_weights]
    gradient[: reader.n_weights] += model.alpha * W / total
    return float(weight @ value / total + 0.5 * model.alpha * (W @ W) / total), gradient


def _forward(model: Any, theta: Array, buffers: Array, X: Array) -> Array:
    return _compose(_Reader(model, theta, buffers).ops())(X)[0]


def row_loss(model: Any, z: Array, y: Array) -> tuple[Array, Array]:
    """Return the loss of every row and its slope in z."""
    if model.out_activation_ == "softmax":
        shifted = z - z.max(axis=1, keepdims=True)
        log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return -(y * log_p).sum(axis=1), np.exp(log_p) - y
    if model.out_activation_ == "logistic":
        return (np.logaddexp(0.0, z) - y * z).sum(axis=1), 1.0 / (1.0 + np.exp(-z)) - y
    loss: Any = getattr(model, "loss", "squared_error")
    r = z - y
    name = loss if isinstance(loss, str) else type(loss).__name__
    if name in ("squared_error", "SquaredLoss"):
        return 0.5 * (r**2).sum(axis=1), r
    if name in ("poisson", "PoissonLoss"):
        return (np.exp(z) - y * z).sum(axis=1), np.exp(z) - y
    if name in ("gamma", "GammaLoss"):
        return (z + y * np.exp(-z)).sum(axis=1), 1.0 - y * np.exp(-z)
    if name in ("absolute_error", "AbsoluteLoss"):
        return np.abs(r).sum(axis=1), np.sign(r)
    if name in ("huber", "HuberLoss"):
        delta = getattr(loss, "delta", 1.0)
        c = np.clip(r, -delta, delta)
        return (c * (r - 0.5 * c)).sum(axis=1), c
    values = loss.value(y, z)
    return values.reshape(len(z), -1).sum(axis=1), loss.gradient(y, z)


class _Reader:
    """Hands out the arrays of a flat vector in their order, and takes their gradients back."""

    def __init__(self, model: Any, theta: Array, buffers: Array) -> None:
        self.model = model
        self.theta = theta
        self.buffers = buffers
        self.gradient = np.zeros_like(theta)
        shapes = list(_shapes(model))
        self.n_weights = sum(int(np.prod(shape)) for role, shape in shapes if role == "weight")
        if self.n_weights + sum(int(np.prod(s)) for role, s in shapes if role != "weight") != len(theta):
            raise VerificationError("verify: the parameters do not fit the layers that the arguments describe.")
        self.at = {"weight": 0, "other": self.n_weights, "buffer": 0}
        self.slots: list[tuple[slice, list[Array]]] = []

    def take(self, role: str, *shape: int) -> tuple[Array, list[Array]]:
        """Return the next array and the list that its gradient goes to."""
        key = "weight" if role == "weight" else "other"
        place = slice(self.at[key], self.at[key] + int(np.prod(shape)))
        self.at[key] = place.stop
        slot: list[Array] = []
        self.slots.append((place, slot))
        return self.theta[place].reshape(shape), slot

    def take_buffer(self, size: int) -> Array:
        """Return the next running moment."""
        place = slice(self.at["buffer"], self.at["buffer"] + size)
        self.at["buffer"] = place.stop
        return self.buffers[place]

    def collect(self) -> Array:
        """Return the whole gradient."""
        for place, slot in self.slots:
            self.gradient[place] = np.sum(slot, axis=0).ravel()
        return self.gradient

    def ops(self) -> list[Op]:
        """Return the network's operations."""
        return [self._op(step) for step in _steps(self.model)]

    def _op(self, step: tuple[Any, ...]) -> Op:
        kind = step[0]
        if kind == "dense":
            return _dense(*self.take("weight", *step[1:]), *self.take("bias", step[2]))
        if kind in ("batch", "layer"):
            gain = self.take("gain", step[1])
            shift = self.take("shift", step[1])
            moments = (self.take_buffer(step[1]), self.take_buffer(step[1])) if kind == "batch" else None
            return _normalise(gain, shift, moments)
        if kind == "piecewise":
            return _piecewise(step[1])
        if kind == "residual":
            return _residual(_compose([self._op(inner) for inner in step[1]]))
        return _unit(step[1])


def _steps(model: Any) -> list[tuple[Any, ...]]:
    """Return the layers that the arguments describe: (kind, sizes …)."""
    return list(model._described())


def _shapes(model: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
    def walk(steps: list[tuple[Any, ...]]) -> Iterator[tuple[str, tuple[int, ...]]]:
        for step in steps:
            if step[0] == "dense":
                yield "weight", step[1:]
                yield "bias", (step[2],)
            elif step[0] in ("batch", "layer"):
                yield "gain", (step[1],)
                yield "shift", (step[1],)
            elif step[0] == "residual":
                yield from walk(step[1])

    return walk(_steps(model))


# Operations ------------------------------------------------------------------------------------------------------


def _compose(ops: list[Op]) -> Op:
    def run(x: Array) -> tuple[Array, Callable[[Array], Array]]:
        backs = []
        for op in ops:
            x, back = op(x)
            backs.append(back)

        def back_through(g: Array) -> Array:
            for back in reversed(backs):
                g = back(g)
            return g

        return x, back_through

    return run


def _dense(W: Array, W_slot: list[Array], b: Array, b_slot: list[Array]) -> Op:
    def run(x: Array) -> tuple[Array, Callable[[Array], Array]]:
        def back(g: Array) -> Array:
            W_slot.append(x.T @ g)
            b_slot.append(g.sum(axis=0))
            return np.asarray(g @ W.T)

        return x @ W + b, back

    return run


def _normalise(gain: Any, shift: Any, moments: tuple[Array, Array] | None) -> Op:
    gamma, gamma_slot = gain
    beta, beta_slot = shift

    def run(x: Array) -> tuple[Array, Callable[[Array], Array]]:
        mean, var = moments if moments else (x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True))
        scaled = (x - mean) / np.sqrt(var + _EPSILON)

        def back(g: Array) -> Array:
            gamma_slot.append((g * scaled).sum(axis=0))
            beta_slot.append(g.sum(axis=0))
            d = g * gamma
            if moments is None:  # a row's own moments move with it
                d = d - d.mean(axis=1, keepdims=True) - scaled * (d * scaled).mean(axis=1, keepdims=True)
            return np.asarray(d / np.sqrt(var + _EPSILON))

        return gamma * scaled + beta, back

    return run


def _piecewise(edges: Array) -> Op:
    """Encode the first columns; nothing stands before them that needs their gradient."""

    def run(x: Array) -> tuple[Array, Callable[[Array], Array]]:
        left = edges[:, :-1]
        width = np.diff(edges, axis=1)
        place = (x[:, :, None] - left) / np.where(width > 0, width, 1.0) * (width > 0)
        low = np.zeros(width.shape[1])
        high = np.ones(width.shape[1])
        low[0] = -np.inf
        high[-1] = np.inf
        return np.concatenate([x, np.clip(place, low, high).reshape(len(x), -1)], axis=1), lambda g: g

    return run


def _residual(inner: Op) -> Op:
    def run(x: Array) -> tuple[Array, Callable[[Array], Array]]:
        y, back = inner(x)
        return x + y, lambda g: g + back(g)

    return run


def _unit(activation: Any) -> Op:
    name = activation if isinstance(activation, str) else type(activation).__name__.lower()
    slope_below = getattr(activation, "slope_below", 0.01)

    def run(x: Array) -> tuple[Array, Callable[[Array], Array]]:
        y, slope = _value_and_slope(name, x, slope_below)
        return y, lambda g: g * slope

    return run


def _value_and_slope(name: str, x: Array, slope_below: float) -> tuple[Array, Array]:
    if name in ("identity", "linear"):
        return x, np.ones_like(x)
    if name == "relu":
        return np.maximum(x, 0.0), (x > 0).astype(float)
    if name in ("leaky_relu", "leakyrelu"):
        return np.where(x > 0, x, slope_below * x), np.where(x > 0, 1.0, slope_below)
    if name == "tanh":
        return np.tanh(x), 1.0 - np.tanh(x) ** 2
    s = 1.0 / (1.0 + np.exp(-x))
    if name == "logistic":
        return s, s * (1.0 - s)
    if name == "silu":
        return x * s, s * (1.0 + x * (1.0 - s))
    if name == "gelu":
        cdf = 0.5 * (1.0 + erf(x / np.sqrt(2.0)))
        return x * cdf, cdf + x * np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)
    if name == "threshold":
        return (x > 0).astype(float), (np.abs(x) <= 1.0).astype(float)
    raise VerificationError(f"verify: unknown unit {name!r}.")
