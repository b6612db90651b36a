"""Surrogate losses side by side, losses of a residual, and the unit balls of the Lp norms.

Run with the name of a folder to get the figures as SVG files: python examples/plot_losses.py figures
"""

import sys
from pathlib import Path

import numpy as np

from learnable.plots import labelled_lines, side_by_side
from learnable.risk import losses

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None


def keep(name, figure):
    """Write a figure, if there is a folder for it."""
    if FOLDER is not None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")


# 1. What a classifier minimises instead of its errors: convex functions of the margin yz. Those above the 0/1 loss
# bound the error; the logistic loss does so in bits, that is, divided by log 2.
margin = np.sort(np.r_[np.linspace(-2.5, 3.0, 221), -1e-9, 1e-9])  # the 0/1 loss jumps at zero
ones = np.ones_like(margin)
error = losses.ZeroOneLoss().value(ones, margin)
surrogates = {
    "0/1": error,
    "hinge": losses.HingeLoss().value(ones, margin),
    "squared hinge": losses.SquaredHingeLoss().value(ones, margin),
    "logistic, bits": losses.LogisticLoss().value(ones, margin) / np.log(2.0),
    "exponential": losses.ExponentialLoss().value(ones, margin),
    "perceptron": losses.PerceptronLoss().value(ones, margin),
}
figure = labelled_lines(
    {name: (margin, value) for name, value in surrogates.items()},
    x_range=(-2.5, 3.0), y_range=(-0.05, 4.0), reference="0/1",
    title="Surrogate losses", x_label="margin yz", y_label="loss",
)  # fmt: skip
keep("surrogate_losses", figure)
print("Surrogates of the 0/1 loss:")
for name, value in surrogates.items():
    bound = "is never below the 0/1 loss" if (value >= error - 1e-12).all() else "falls below it at small margins"
    print(f"  {name:14s} {bound}")

# 2. What a regression minimises: how much an outlier pulls is the slope far out.
residual = np.linspace(-3.0, 3.0, 121)
zero = np.zeros_like(residual)
of_residual = {
    "squared": losses.SquaredLoss(),
    "absolute": losses.AbsoluteLoss(),
    "Huber, δ = 1": losses.HuberLoss(1.0),
    "ε = 1 tube": losses.EpsilonInsensitiveLoss(1.0),
}
figure = labelled_lines(
    {name: (residual, loss.value(zero, residual)) for name, loss in of_residual.items()},
    y_range=(-0.05, 4.0), title="Losses of a residual", x_label="residual z − y", y_label="loss",
)  # fmt: skip
keep("regression_losses", figure)
print("\nPull of a residual of 3:")
for name, loss in of_residual.items():
    print(f"  {name:14s} {loss.gradient(zero, residual)[-1]:.1f}")

# 3. The sets |x|^p + |y|^p ≤ 1: corners on the axes, which set coefficients to zero, for p ≤ 1; convex for p ≥ 1.
angle = np.linspace(0.0, 2.0 * np.pi, 481) + np.pi / 4
direction = np.array([np.cos(angle), np.sin(angle)])


def boundary(p):
    """Return the points of the unit ball's boundary in every direction."""
    size = np.abs(direction).max(axis=0) if np.isinf(p) else (np.abs(direction) ** p).sum(axis=0) ** (1.0 / p)
    return direction / size


powers = {"p = ½": 0.5, "p = 1 (lasso)": 1.0, "p = 4/3": 4 / 3, "p = 2 (ridge)": 2.0, "p = 4": 4.0, "p = ∞": np.inf}
figure = labelled_lines(
    {name: tuple(boundary(p)) for name, p in powers.items()},
    x_range=(-1.15, 1.15), y_range=(-1.15, 1.15), square=True,
    title="Unit balls of the Lp norms", x_label="first coefficient", y_label="second coefficient",
)  # fmt: skip
keep("lp_balls", figure)
print("\nHalfway between two points of the boundary, on the axes, the ball of")
for name, p in powers.items():
    middle = np.array([0.5, 0.5])
    size = middle.max() if np.isinf(p) else (middle**p).sum() ** (1.0 / p)
    print(f"  {name:14s} measures {size:.3f}: {'convex' if size <= 1 + 1e-12 else 'not convex'}")

# 4. Why corners make zeros: the least error within a ball lies where an ellipse of equal error first touches it.
H, centre = np.array([[1.4, 0.6], [0.6, 1.0]]), np.array([0.3, 1.8])  # error (w − centre)ᵀH(w − centre)
ellipse = np.linalg.solve(np.linalg.cholesky(H).T, direction)
panels = []
print("\nThe least error within the ball of")
for name, p in {"p = 1 (lasso)": 1.0, "p = 2 (ridge)": 2.0}.items():
    ball = boundary(p)
    away = ball - centre[:, None]
    error = (away * (H @ away)).sum(axis=0)
    best = ball[:, error.argmin()]
    sizes = np.sqrt(error.min() * np.array([0.15, 0.5, 1.0]))
    rings = np.hstack([np.c_[centre[:, None] + size * ellipse, [np.nan, np.nan]] for size in sizes])
    panels.append(
        labelled_lines(
            {"ball": tuple(ball), "error": tuple(rings), "optimum": tuple(best[:, None] + 0.035 * direction)},
            x_range=(-1.4, 2.2), y_range=(-1.1, 2.5), square=True, reference="ball",
            title=f"Ball of {name}", x_label="first coefficient", y_label="second coefficient",
        )
    )  # fmt: skip
    print(f"  {name} is at ({best[0]:.2f}, {best[1]:.2f})")
keep("balls_and_errors", side_by_side(*panels, title="Ellipses of equal error touch the lasso's ball at a corner"))
