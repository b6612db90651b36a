"""Convex sets and functions: chords, projections and supporting lines; tangents, subgradients and conjugates.

Run with the name of a folder to get the figures as SVG files: python examples/plot_convex.py figures
"""

import sys
from pathlib import Path

import numpy as np

from learnable.plots import labelled_lines, side_by_side
from learnable.risk import NormPenalty, SupNormPenalty, losses
from learnable.solvers import set_optimality

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None


def keep(name, figure):
    """Write a figure, if there is a folder for it."""
    if FOLDER is not None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")


# 1. Sets. A chord of a convex set stays inside it, and every point of its border has a line that supports it: the set
# lies on one side, and the point is the projection of everything along the line's normal.
angle = np.linspace(0.0, 2.0 * np.pi, 361)
ellipse = 1.6 * np.cos(angle), 0.9 * np.sin(angle)
radius = 1.0 + 0.45 * np.cos(3.0 * angle)
clover = radius * np.cos(angle), radius * np.sin(angle)
at = np.array([1.6 * np.cos(0.8), 0.9 * np.sin(0.8)])
normal = np.array([at[0] / 1.6**2, at[1] / 0.9**2])
normal /= np.linalg.norm(normal)
along = np.array([-normal[1], normal[0]])
line = at + np.linspace(-1.4, 1.4, 2)[:, None] * along
outside = at + 0.8 * normal
ends = np.array([[clover[0][20], clover[1][20]], [clover[0][100], clover[1][100]]])
middle = ends.mean(axis=0)
reach = 1.0 + 0.45 * np.cos(3.0 * np.arctan2(middle[1], middle[0]))
print(f"the chord of the clover leaves it: {np.hypot(*middle) > reach}")


def nearest(z):
    """Return the projection onto the ellipse, by bisection on the multiplier."""
    axes = np.array([1.6, 0.9]) ** 2
    if ((z**2) / axes).sum() <= 1.0:
        return z
    low, high = 0.0, 1e3
    for _ in range(80):
        s = 0.5 * (low + high)
        low, high = (s, high) if ((axes * z**2) / (axes + s) ** 2).sum() > 1.0 else (low, s)
    return axes * z / (axes + high)


print(f"the projection of the outer point is where the line touches: {np.abs(nearest(outside) - at).max() < 1e-9}")
residual = set_optimality(lambda v: v - outside, at, nearest)
print(f"the variational inequality at that point, violated by {residual:.1e}")
inner = np.array([[ellipse[0][200], ellipse[1][200]], [ellipse[0][320], ellipse[1][320]]])
frame = {"x_range": (-2.0, 2.4), "y_range": (-1.9, 2.5), "square": True}
figure = side_by_side(
    labelled_lines(
        {"convex set": ellipse, "a chord": inner.T, "support": line.T, "projection": np.array([outside, at]).T},
        title="Convex: chords stay inside", x_label="x₁", y_label="x₂", **frame,
    ),
    labelled_lines(
        {"not convex": clover, "a chord": ends.T},
        title="Not convex: a chord leaves the set", x_label="x₁", y_label="x₂", **frame,
    ),
    title="Convex sets",
)  # fmt: skip
keep("convex_sets", figure)

# 2. Functions: a convex one lies below its chords and above its tangents. At a kink there are many tangents; their
# slopes are the subgradients.
z = np.linspace(-2.0, 3.0, 201)
zero, one = np.zeros_like(z), np.ones_like(z)
logistic, hinge = losses.LogisticLoss(), losses.HingeLoss()


def tangent(loss, point, slope):
    """Return the line through the loss at a point."""
    value = loss.value(np.ones(1), np.array([point]))[0]
    return value + slope * (z - point)


slope = float(logistic.gradient(np.ones(1), np.array([-0.5]))[0])
chord = np.array([-1.8, 2.6])
smooth = {
    "log(1 + e⁻ᶻ)": (z, logistic.value(one, z)),
    "tangent": (z, tangent(logistic, -0.5, slope)),
    "chord": (chord, logistic.value(np.ones(2), chord)),
}
kinked = {"hinge": (z, hinge.value(one, z))}
kinked |= {f"slope {s:g}": (z, tangent(hinge, 1.0, s)) for s in (-1.0, -0.6, -0.2, 0.0)}
below = all((hinge.value(one, z) >= tangent(hinge, 1.0, s) - 1e-12).all() for s in np.linspace(-1.0, 0.0, 11))
outside_slopes = any((hinge.value(one, z) >= tangent(hinge, 1.0, s) - 1e-12).all() for s in (-1.1, 0.1))
print(f"slopes from -1 to 0 support the hinge at its kink: {below}; others do: {outside_slopes}")
keep(
    "convex_functions",
    side_by_side(
        labelled_lines(smooth, y_range=(-0.6, 2.4), title="Smooth: one tangent", x_label="z", y_label="loss"),
        labelled_lines(
            kinked,
            y_range=(-0.6, 3.0),
            reference="hinge",
            title="A kink: many subgradients",
            x_label="z",
            y_label="loss",
        ),
        title="Convex functions, tangents and subgradients",
    ),
)

# 3. Conjugates: f*(u) is how far below the line uz the function has to be lowered, f*(u) = max uz − f(z).
u = np.linspace(-2.2, 2.2, 353)
pairs = {
    "½z²": losses.SquaredLoss(),
    "|z|": losses.AbsoluteLoss(),
    "Huber": losses.HuberLoss(1.0),
    "tube ½": losses.EpsilonInsensitiveLoss(0.5),
}
grid = np.linspace(-3.0, 3.0, 241)
functions = {name: (grid, loss.value(np.zeros_like(grid), grid)) for name, loss in pairs.items()}
conjugates = {name: (u, loss.conjugate(np.zeros_like(u), u)) for name, loss in pairs.items()}
far = np.linspace(-60.0, 60.0, 240_001)
for name, loss in pairs.items():
    inside = np.isfinite(conjugates[name][1])
    point = float(u[inside][len(u[inside]) // 3])
    highest = float((point * far - loss.value(np.zeros_like(far), far)).max())
    stated = float(loss.conjugate(np.zeros(1), np.array([point]))[0])
    print(f"conjugate of {name:6s} at {point:5.2f}: {stated:.4f}, highest of uz − f(z): {highest:.4f}")
keep(
    "conjugates",
    side_by_side(
        labelled_lines(functions, y_range=(-0.1, 3.0), title="Functions", x_label="z", y_label="f(z)"),
        labelled_lines(conjugates, y_range=(-0.1, 2.4), title="Their conjugates", x_label="u", y_label="f*(u)"),
        title="Functions and their conjugates; a conjugate that ends is infinite beyond",
    ),
)
w = np.array([3.0, -4.0])
for norm in (NormPenalty(), SupNormPenalty()):
    print(f"{type(norm).__name__}: Ω(w) = {norm.value(w):g}, dual norm {norm.dual_norm(w):g}")
