"""Duality in pictures: the saddle of a Lagrangian, the forces at an optimum, dual functions, and a gap without Slater.

Run with the name of a folder to get the figures as SVG files: python examples/plot_duality.py figures
"""

import sys
from pathlib import Path

import numpy as np

from learnable.plots import labelled_lines, program_plot, saddle_plot, side_by_side
from learnable.solvers import ConvexProgram, dual_value, duality_gap, lasso_duality, sensitivity, slater_point

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None


def keep(name, figure):
    """Write a figure, if there is a folder for it."""
    if FOLDER is not None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")


# 1. One variable: min x² + 1 subject to (x − 2)(x − 4) ≤ 0. The optimum is x = 2; its multiplier is 2.
program = ConvexProgram(lambda v: v[0] ** 2 + 1.0, inequality=lambda v: (v[0] - 2.0) * (v[0] - 4.0))
x, strength = np.linspace(-1.0, 4.5, 111), np.linspace(0.0, 5.0, 101)
values = x**2 + 1.0 + strength[:, None] * (x - 2.0) * (x - 4.0)
dual = np.array([dual_value(program, [3.0], [s]).value for s in strength[1:]])
formula = -9.0 * strength[1:] ** 2 / (1.0 + strength[1:]) + 1.0 + 8.0 * strength[1:]
report = duality_gap(program, [2.0])
print(report)
print(f"dual function, numeric against closed form: largest difference {np.abs(dual - formula).max():.1e}")
change = sensitivity(program, [2.0])
print(
    f"loosened to g ≤ 0.1 the optimum moves at the rate {change.inequality[0]:.3f}, to {change.bound(0.1):.3f} or more"
)
keep(
    "lagrangian_saddle",
    side_by_side(
        saddle_plot(x, strength, values, title="L(x, λ) = x² + 1 + λ(x − 2)(x − 4)"),
        labelled_lines(
            {"optimum p*": ([0.0, 5.0], [5.0, 5.0]), "dual d(λ)": (strength[1:], formula)},
            reference="optimum p*", title="The dual function lies below", x_label="multiplier λ", y_label="value",
        ),
        title="A saddle and its dual function",
    ),
)  # fmt: skip

# 2. Two variables: the nearest point of a disc to (2, 1.2), with an ellipse's distance. At the optimum −∇f = λ∇g, and
# the minimisers of the Lagrangian reach it as λ grows to its multiplier.
t = np.linspace(-1.6, 2.6, 106)
target, bend = np.array([2.0, 1.2]), np.array([1.0, 2.5])
f = bend[0] * (t - target[0]) ** 2 + bend[1] * (t[:, None] - target[1]) ** 2
g = t**2 + t[:, None] ** 2 - 1.0
disc = ConvexProgram(lambda v: float((bend * (v - target) ** 2).sum()), inequality=lambda v: v @ v - 1.0)
path = np.array([bend * target / (bend + s) for s in np.r_[0.0, np.geomspace(1e-3, 40.0, 300)]])
low, high = 0.0, 40.0
for _ in range(60):  # the multiplier is where the path meets the disc
    s = 0.5 * (low + high)
    best = bend * target / (bend + s)
    low, high = (s, high) if best @ best > 1.0 else (low, s)
force = 2.0 * bend * (target - best)
print(f"in the disc: optimum ({best[0]:.4f}, {best[1]:.4f}), multiplier {s:.4f};", duality_gap(disc, best, [s]))
keep(
    "program_optimum",
    program_plot(
        t, t, f, g, {"argmin L(·, λ)": path}, optimum=tuple(best.tolist()),
        gradients=(tuple(0.25 * force), tuple(0.25 * 2.0 * s * best)), title="An optimum and the forces at it",
    ),
)  # fmt: skip

# 3. The lasso's dual function in closed form, along the line to the best dual point.
rng = np.random.default_rng(0)
X = rng.normal(size=(30, 4))
y = X @ [2.0, 0.0, -1.0, 0.0] + rng.normal(size=30)
lasso = lasso_duality(X, y, 8.0)
w = np.zeros(4)
for _ in range(300):  # proximal gradient steps
    step = 1.0 / np.linalg.norm(X, 2) ** 2
    moved = w + step * X.T @ (y - X @ w)
    w = moved - np.clip(moved, -8.0 * step, 8.0 * step)
print(f"lasso: primal {lasso.primal(w):.6f}, dual {lasso.dual(lasso.point(w)):.6f}, gap {lasso.gap(w):.1e}")

# 4. Without Slater's condition: min exp(−x) subject to x²/y ≤ 0 has p* = 1, and every dual value is zero.
t = np.linspace(0.0, 8.0, 161)
gap = labelled_lines(
    {"optimum p*": ([0.0, 8.0], [1.0, 1.0])}
    | {f"L along (t, t⁴), λ = {s:g}": (t[1:], np.exp(-t[1:]) + s * t[1:] ** -2.0) for s in (0.1, 1.0)},
    reference="optimum p*", y_range=(0.0, 1.6), title="A gap that no multiplier closes", x_label="t", y_label="value",
)  # fmt: skip
bare = ConvexProgram(lambda v: np.exp(-v[0]), inequality=lambda v: v[0] ** 2 / v[1] if v[1] > 0 else np.inf)
print(f"without Slater: a strictly feasible point exists: {slater_point(bare, [1.0, 1.0]).holds}")
keep("gap_without_slater", gap)
