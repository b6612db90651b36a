"""Ways down a surface: gradient descent, momentum and Newton's method on the same function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import Array
from ...plots import path_plot
from ..drawing import HEIGHT, WIDTH, progress, quietly
from ..scene import Scene, Step
from ..tables import labelled_points, standardised

#: Steps of gradient descent and of momentum: as long as they can be without leaving the valley of the built-in surface.
_RATE = 0.04
_MOMENTUM_RATE = 0.02
_GRID = 45


def valley(w: Array) -> float:
    """Return (1 − w₁)² + 2(w₂ − w₁²)², a bent valley with its lowest point at (1, 1)."""
    return float((1 - w[0]) ** 2 + 2 * (w[1] - w[0] ** 2) ** 2)


def valley_gradient(w: Array) -> Array:
    """Return the gradient of `valley`."""
    bend = w[1] - w[0] ** 2
    return np.array([-2 * (1 - w[0]) - 8 * w[0] * bend, 4 * bend])


def valley_hessian(w: Array) -> Array:
    """Return the Hessian of `valley`."""
    return np.array([[2 - 8 * w[1] + 24 * w[0] ** 2, -8 * w[0]], [-8 * w[0], 4.0]])


class LogisticSurface:
    """The mean logistic loss of two columns, with a small penalty that keeps the lowest point finite."""

    def __init__(self, X: Array, sign: Array, penalty: float = 0.02) -> None:
        self.Z = X * sign[:, None]
        self.penalty = penalty

    def value(self, w: Array) -> float:
        """Return the loss at w."""
        return float(np.mean(np.logaddexp(0.0, -self.Z @ w)) + 0.5 * self.penalty * (w @ w))

    def gradient(self, w: Array) -> Array:
        """Return its gradient."""
        return np.asarray(-self.Z.T @ self._miss(w) / len(self.Z) + self.penalty * w)

    def hessian(self, w: Array) -> Array:
        """Return its Hessian."""
        p = self._miss(w)
        return np.asarray((self.Z * (p * (1 - p))[:, None]).T @ self.Z / len(self.Z) + self.penalty * np.eye(2))

    def _miss(self, w: Array) -> Array:
        return np.asarray(0.5 * (1 - np.tanh(0.5 * (self.Z @ w))))


Function = Callable[[Array], Any]


def read_descent(table: Any = None) -> tuple[Function, Function, Function, Array, float, float, list[str]]:
    """Return f, ∇f, the Hessian, the start, the rates of descent and of momentum, and the names of the axes."""
    if table is None:
        start = np.array([-1.5, 2.0])
        return valley, valley_gradient, valley_hessian, start, _RATE, _MOMENTUM_RATE, ["w₁", "w₂"]
    X, labels, names = labelled_points("descent", table, two=True)
    surface = LogisticSurface(standardised(X), np.where(labels == np.unique(labels)[1], 1.0, -1.0))
    # The Hessian is at most ZᵀZ/(4n) + penalty: a step of its inverse is safe, one a tenth as long for momentum.
    rate = 1.0 / float(np.linalg.eigvalsh(surface.Z.T @ surface.Z / (4 * len(X)))[-1] + surface.penalty)
    axes = [f"weight of {name}" for name in names]
    return surface.value, surface.gradient, surface.hessian, np.array([-3.0, 3.0]), rate, 0.2 * rate, axes


def build_descent(
    f: Function,
    gradient: Function,
    hessian: Function,
    start: Array,
    rate: float,
    slow: float,
    names: list[str],
    *,
    n_steps: int = 24,
) -> list[Step]:
    """Return a step for each iteration that all three methods take side by side."""
    from ...solvers import minimize

    n_steps = min(max(n_steps, 2), 60)
    ways: dict[str, tuple[str, Function | None, dict[str, Any]]] = {
        "gd": ("gd", None, {"step": rate}),
        "momentum": ("momentum", None, {"step": slow}),
        "newton": ("newton", hessian, {}),
    }
    runs: dict[str, list[Any]] = {}
    for name, (method, curvature, options) in ways.items():
        with quietly():
            runs[name] = [
                minimize(f, start, gradient, curvature, method=method, max_iter=steps, tol=1e-8, **options)
                for steps in range(1, n_steps + 1)
            ]
    whole = {name: found[-1].trace for name, found in runs.items()}
    low = np.min([trace.path.min(axis=0) for trace in whole.values()], axis=0)
    high = np.max([trace.path.max(axis=0) for trace in whole.values()], axis=0)
    room = 0.15 * (high - low)
    x = np.linspace(low[0] - room[0], high[0] + room[0], _GRID)
    y = np.linspace(low[1] - room[1], high[1] + room[1], _GRID)
    z = np.array([[f(np.array([a, b])) for a in x] for b in y])
    best = min(float(found[-1].value) for found in runs.values())
    above = {name: (np.arange(len(trace)), np.maximum(trace.value - best, 1e-16)) for name, trace in whole.items()}
    made = []
    for steps in range(1, n_steps + 1):
        now = {name: found[steps - 1] for name, found in runs.items()}
        paths = {name: run.trace.path for name, run in now.items()}
        reached = {name: float(run.trace.value[-1]) for name, run in now.items()}
        main = path_plot(
            x,
            y,
            z,
            paths,
            title=f"Three ways after {steps} steps",
            x_label=names[0],
            y_label=names[1],
            width=WIDTH,
            height=HEIGHT,
        )
        chart = progress(
            above, steps, y_log=True, title="Height above the lowest point", x_label="iteration", y_label="f − lowest"
        )
        arrived = len(now["newton"].trace) <= steps
        words = "Newton's method has arrived." if arrived else "All three are still on their way."
        made.append(
            Step(
                title=f"Iteration {steps}",
                pictures=(main, chart),
                text="Gradient descent follows the slope and crawls along the valley. Momentum remembers its last "
                "steps. "
                f"Newton's method divides the slope by the curvature. {words}",
                formula=r"w_{k+1} = w_k − η∇f(w_k)"
                "\n"
                r"w_{k+1} = w_k − [∇^2 f(w_k)]^{−1} ∇f(w_k)",
                code=f'gd = minimize(f, start, gradient,\n    method="gd", step=rate, max_iter={steps})\n'
                f'momentum = minimize(f, start, gradient,\n    method="momentum", step=slow, max_iter={steps})\n'
                f'newton = minimize(f, start, gradient,\n    hessian, method="newton", max_iter={steps})',
                certificates={name: run.certificate for name, run in now.items()},
                numbers={f"f, {name}": value for name, value in reached.items()},
            )
        )
    return made


DESCENT = Scene(
    name="descent",
    title="From gradient descent to Newton's method",
    text="Three methods start at one point. The gradient says where it is steep; only the curvature says how far "
    "to go.",
    built_in="The built-in surface is a bent valley, f(w) = (1 − w₁)² + 2(w₂ − w₁²)².",
    setup="from learnable.lab import SCENES\nfrom learnable.solvers import minimize\n\n"
    'f, gradient, hessian, start, rate, slow, names = SCENES["descent"].read(None)  # or a table of your own',
    takes="two columns of numbers and one of classes; of more than two, the most frequent two are kept; the surface "
    "is then the loss of logistic regression.",
    read=read_descent,
    build=build_descent,
    cover=11,
)
