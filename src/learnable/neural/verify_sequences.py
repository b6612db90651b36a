r"""Independent check of full-batch fits of recurrent models: the gradient through time by plain NumPy.

Every cell is one function that makes a step and returns how to go back through it, written from its equations
(`neural.layers.recurrent` and `neural.layers.lstm` state them). It shares no code with layers, kernels or training.
Sequences that were fitted with `lengths` are passed as a list of arrays of their own lengths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..core.checking import Recheck
from ..core.errors import DataError, VerificationError
from ..data.door import Table
from .verify import row_loss, row_weights, rows_targets

Array = NDArray[np.float64]
#: (x, h, c) → (h, c) after the step, and the way back: their gradients → those of x, h and c before it.
Step = Callable[[Array, Array, Array], tuple[Array, Array, Callable[[Array, Array], tuple[Array, Array, Array]]]]

#: Digits of a gradient that is a small difference of large sums.
_ROUNDING = 1e-9
_GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}


@np.errstate(all="ignore")
def sequences(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a recurrent model that was fitted on all sequences."""
    twin = clone(model)
    try:
        table: Table = type(model)._door(twin, X, y, sample_weight)
    except DataError as error:
        raise VerificationError(f"verify: the data are not the sequences of a fit: {error}") from error
    if (twin.n_inputs_, twin.n_features_in_) != (model.n_inputs_, model.n_features_in_):
        raise VerificationError(
            f"verify: the model has {model.n_inputs_} numbers for each step and {model.n_features_in_} features, the "
            f"data {twin.n_inputs_} and {twin.n_features_in_}."
        )
    bad = Recheck(np.inf, 0.0, table.fingerprint)
    rows = np.asarray(table.X, dtype=np.float64)
    x = rows.reshape(len(rows), -1, model.n_inputs_).transpose(1, 0, 2)
    alive = np.arange(len(x))[:, None] < twin._ends
    targets = _targets(model, twin, table, len(x))
    extras = [getattr(model, name, None) for name in ("center_", "scale_", "edges_", "y_mean_", "y_scale_")]
    if targets is None or any(extra is not None for extra in extras):
        return bad
    weight = row_weights(model, table)
    if model.gradient_ is None or model.gradient_.shape != model.theta_.shape or model.buffers_.size:
        return bad
    worst = 0.0
    for k, (theta, recorded) in enumerate(zip(model.theta_, model.gradient_, strict=True)):
        value, gradient = _objective(model, theta.astype(np.float64), x, alive, targets, weight)
        if not np.allclose(gradient, recorded, rtol=1e-6, atol=_ROUNDING * max(abs(value), 1.0)):
            return bad
        told = getattr(model, "loss_", value)  # a file may leave it out: no prediction reads it
        if k == 0 and not np.isclose(value, told, rtol=1e-6):
            return bad
        worst = max(worst, float(np.max(np.abs(gradient), initial=0.0)))
    return Recheck(worst if np.isfinite(worst) else np.inf, _ROUNDING, table.fingerprint)


def _targets(model: Any, twin: Any, table: Table, T: int) -> Array | None:
    """Return targets (n, k), or (T, n, k) for every step; None if they do not fit the model."""
    if model.predicts == "end":
        return rows_targets(model, table)
    y = np.asarray(table.y, dtype=np.float64)
    classes = getattr(twin, "_step_classes", None)
    if classes is None:
        found = y.reshape(len(y), T, -1)
        return found.transpose(1, 0, 2) if model.single_ == twin._step_single else None
    if model.multilabel_ or not np.array_equal(model.classes_, classes):
        return None
    K = len(classes)
    indicator = (y.T[:, :, None] == np.arange(K)).astype(np.float64)
    return np.asarray(indicator[:, :, 1:] if K == 2 else indicator)


def _objective(
    model: Any, theta: Array, x: Array, alive: NDArray[np.bool_], y: Array, weight: Array
) -> tuple[float, Array]:
    """Return f(θ) and ∇f(θ): the loss of the last steps, or of all that count, and the penalty."""
    shapes = _shapes(model)
    n_weights = sum(int(np.prod(shape)) for name, shape in shapes if name.startswith("W"))
    if sum(int(np.prod(shape)) for _, shape in shapes) != len(theta):
        raise VerificationError("verify: the parameters do not fit the layers that the arguments describe.")
    by_role = sorted(range(len(shapes)), key=lambda j: not shapes[j][0].startswith("W"))
    arrays: list[Array] = [np.empty(0)] * len(shapes)
    at = 0
    for j in by_role:  # all weights, then all others, in the order of the layers
        size = int(np.prod(shapes[j][1]))
        arrays[j] = theta[at : at + size].reshape(shapes[j][1])
        at += size
    slopes = [np.zeros_like(array) for array in arrays]
    cells = model._described()[:-1]
    backs = []
    first = 0
    h = x
    for kind, _, units in cells:
        count = 4 if kind == "gru" else 3
        part = slice(first, first + count)
        h, back = _through_time(_CELLS[kind](kind, arrays[part], slopes[part]), h, units, alive)
        backs.append(back)
        first += count
    W, b = arrays[first:]
    every = model.predicts == "every_step"
    states = h if every else h[-1]
    z = states @ W + b
    counts = alive * weight if every else weight
    total = counts.sum()
    flat = z.reshape(-1, z.shape[-1])
    loss, slope = row_loss(model, flat, y.reshape(flat.shape))
    dz = (slope * (counts.reshape(-1, 1) / total)).reshape(z.shape)
    slopes[first][...] = states.reshape(-1, W.shape[0]).T @ dz.reshape(-1, W.shape[1])
    slopes[first + 1][...] = dz.reshape(-1, W.shape[1]).sum(axis=0)
    dh = np.zeros_like(h)
    if every:
        dh[...] = dz @ W.T
    else:
        dh[-1] = dz @ W.T
    for back in reversed(backs):
        dh = back(dh)
    gradient = np.concatenate([slopes[j].ravel() for j in by_role])
    decayed = theta[:n_weights]
    gradient[:n_weights] += model.alpha * decayed / total
    value = float(counts.ravel() @ loss / total + 0.5 * model.alpha * (decayed @ decayed) / total)
    return value, gradient


def _shapes(model: Any) -> list[tuple[str, tuple[int, ...]]]:
    """Return name and shape of every array, layer by layer."""
    found: list[tuple[str, tuple[int, ...]]] = []
    *cells, dense = model._described()
    for kind, d, units in cells:
        wide = _GATES[kind] * units
        found += [("Wx", (d, wide)), ("Wh", (units, wide)), ("b", (wide,))]
        if kind == "gru":
            found.append(("bn", (units,)))
    return [*found, ("W", dense[1:]), ("b", (dense[2],))]


def _through_time(step: Step, x: Array, units: int, alive: NDArray[np.bool_]) -> tuple[Array, Callable[[Array], Array]]:
    """Return all states; sequences that have ended keep theirs. And the way back: gradients of states → of x."""
    T, n = alive.shape
    h = np.zeros((n, units))
    c = np.zeros((n, units))
    states = np.empty((T, n, units))
    backs = []
    for t in range(T):
        new_h, new_c, back = step(x[t], h, c)
        live = alive[t][:, None]
        h = np.where(live, new_h, h)
        c = np.where(live, new_c, c)
        states[t] = h
        backs.append(back)

    def go_back(g: Array) -> Array:
        dh = np.zeros((n, units))
        dc = np.zeros((n, units))
        dx = np.empty_like(x)
        for t in range(T - 1, -1, -1):
            dh = dh + g[t]
            live = alive[t][:, None]
            dx[t], before, cell_before = backs[t](dh * live, dc * live)
            dh = before + dh * ~live
            dc = cell_before + dc * ~live
        return dx

    return states, go_back


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * x))


def _lstm(kind: str, arrays: list[Array], slopes: list[Array]) -> Step:
    Wx, Wh, b = arrays

    def step(x: Array, h: Array, c: Array) -> Any:
        to_i, to_f, to_g, to_o = np.split(x @ Wx + h @ Wh + b, 4, axis=1)
        i = _sigmoid(to_i)
        f = _sigmoid(to_f)
        g = np.tanh(to_g)
        o = _sigmoid(to_o)
        cell = f * c + i * g
        squashed = np.tanh(cell)

        def back(dh: Array, dc: Array) -> tuple[Array, Array, Array]:
            d = dc + dh * o * (1 - squashed**2)
            parts = d * g * i * (1 - i), d * c * f * (1 - f), d * i * (1 - g**2), dh * squashed * o * (1 - o)
            dz = np.concatenate(parts, axis=1)
            _collect(slopes, x, h, dz)
            return dz @ Wx.T, dz @ Wh.T, d * f

        return o * squashed, cell, back

    return step


def _gru(kind: str, arrays: list[Array], slopes: list[Array]) -> Step:
    Wx, Wh, b, bn = arrays
    u = len(bn)

    def step(x: Array, h: Array, c: Array) -> Any:
        from_x = x @ Wx + b
        from_h = h @ Wh
        z = _sigmoid(from_x[:, :u] + from_h[:, :u])
        r = _sigmoid(from_x[:, u : 2 * u] + from_h[:, u : 2 * u])
        inner = from_h[:, 2 * u :] + bn
        new = np.tanh(from_x[:, 2 * u :] + r * inner)

        def back(dh: Array, dc: Array) -> tuple[Array, Array, Array]:
            d_new = dh * (1 - z) * (1 - new**2)
            d_z = dh * (h - new) * z * (1 - z)
            d_r = d_new * inner * r * (1 - r)
            dx = np.concatenate([d_z, d_r, d_new], axis=1)
            dr = np.concatenate([d_z, d_r, d_new * r], axis=1)
            slopes[0][...] += x.T @ dx
            slopes[1][...] += h.T @ dr
            slopes[2][...] += dx.sum(axis=0)
            slopes[3][...] += (d_new * r).sum(axis=0)
            return dx @ Wx.T, dr @ Wh.T + dh * z, np.zeros_like(dc)

        return (1 - z) * new + z * h, c, back

    return step


def _plain(kind: str, arrays: list[Array], slopes: list[Array]) -> Step:
    Wx, Wh, b = arrays

    def step(x: Array, h: Array, c: Array) -> Any:
        a = x @ Wx + h @ Wh + b
        new = np.maximum(a, 0.0) if kind == "relu" else np.tanh(a)

        def back(dh: Array, dc: Array) -> tuple[Array, Array, Array]:
            slope = (a > 0).astype(float) if kind == "relu" else 1 - new**2
            dz = dh * slope
            _collect(slopes, x, h, dz)
            return dz @ Wx.T, dz @ Wh.T, np.zeros_like(dc)

        return new, c, back

    return step


def _collect(slopes: list[Array], x: Array, h: Array, dz: Array) -> None:
    slopes[0][...] += x.T @ dz
    slopes[1][...] += h.T @ dz
    slopes[2][...] += dz.sum(axis=0)


_CELLS: dict[str, Callable[[str, list[Array], list[Array]], Step]] = {
    "lstm": _lstm,
    "gru": _gru,
    "tanh": _plain,
    "relu": _plain,
}
