"""Optimisers at work: an ill-conditioned valley, a saddle, a cliff, and gradient descent against the closed form.

Run with the name of a folder to get the figures as SVG files: python examples/plot_optimisers.py figures
"""

import sys
import time
from pathlib import Path

import numpy as np

from learnable.linear import Ridge
from learnable.plots import convergence_plot, labelled_lines, path_plot, side_by_side, trace_plot
from learnable.solvers import Nesterov, Rescale, Truncate, check_gradient, check_hessian, conditioning_report, minimize

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None


def keep(name, figure):
    """Write a figure, if there is a folder for it."""
    if FOLDER is not None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")


def on_grid(f, x, y):
    """Return f on a grid, a row for each y."""
    return np.array([[f(np.array([a, b])) for a in x] for b in y])


def race(f, start, gradient, hessian, methods, **common):
    """Run several methods from one start."""
    return {
        name: minimize(f, start, gradient, hessian, method=method, **(common | options))
        for name, (method, options) in methods.items()
    }


# 1. A valley: 60 times steeper across than along. The step that is right along the valley is far too long across it.
H = np.diag([1.0, 60.0])


def valley(w):
    """Return ½wᵀHw."""
    return 0.5 * w @ H @ w


start = np.array([-9.0, 1.0])
print("Valley:", conditioning_report(valley, start, lambda w: H @ w, lambda w: H, step=0.05))
print("       ", check_gradient(valley, lambda w: H @ w, start))
methods = {
    "gd": ("gd", {"step": 0.03}),
    "momentum": ("momentum", {"step": 0.005}),
    "nesterov": (Nesterov(0.8), {"step": 0.015}),
    "adagrad": ("adagrad", {"step": 1.0}),
    "rmsprop": ("rmsprop", {"step": 0.15}),
    "adam": ("adam", {"step": 0.3}),
    "cg": ("cg", {}),
    "newton": ("newton", {}),
}
runs = race(valley, start, lambda w: H @ w, lambda w: H, methods, max_iter=200, tol=1e-10)
x, y = np.linspace(-10, 4, 71), np.linspace(-1.6, 1.6, 61)
ways = {name: run.trace.path[:60] for name, run in runs.items()}
z = on_grid(valley, x, y)
plain, adapted = ("gd", "momentum", "nesterov", "newton"), ("adagrad", "rmsprop", "adam", "cg")
keep(
    "valley",
    side_by_side(
        path_plot(x, y, z, {name: ways[name] for name in plain}, title="Gradients, their memory, curvature"),
        path_plot(
            x, y, z, {name: ways[name] for name in adapted}, title="A step for each coordinate; conjugate directions"
        ),
        title="A valley 60 times steeper across than along",
    ),
)
values = {name: run.trace.value for name, run in runs.items()}
keep(
    "valley_convergence",
    side_by_side(
        convergence_plot(values, best=0.0, y_label="f − optimum", title="All methods"),
        trace_plot(values["momentum"], runs["momentum"].trace.gradient_norm, best=0.0, title="Momentum alone"),
        title="Convergence in the valley",
    ),
)
for name, run in runs.items():
    print(f"  {name:9s} {run.n_iter:3d} iterations to f = {run.value:.1e}")

# 2. A saddle: the gradient is almost zero at the pass, and the way down is sideways.


def saddle(w):
    """Return x² − y² + ¼y⁴: a pass at 0 between minima of −1 at y = ±√2."""
    return w[0] ** 2 - w[1] ** 2 + 0.25 * w[1] ** 4


def saddle_gradient(w):
    """Return its gradient."""
    return np.array([2 * w[0], -2 * w[1] + w[1] ** 3])


print("\nSaddle:", check_hessian(saddle_gradient, lambda w: np.diag([2.0, -2 + 3 * w[1] ** 2]), [0.3, 0.2]))
methods = {name: (name, {"step": 0.02}) for name in ("gd", "momentum", "nesterov", "adagrad", "rmsprop", "adam")}
runs = race(saddle, [1.5, 1e-3], saddle_gradient, None, methods, max_iter=400)
x, y = np.linspace(-1, 2, 61), np.linspace(-0.5, 2, 61)
keep(
    "saddle",
    side_by_side(
        path_plot(x, y, on_grid(saddle, x, y), {n: r.trace.path for n, r in runs.items()}, title="Paths past a saddle"),
        convergence_plot({n: r.trace.value for n, r in runs.items()}, best=-1.0, y_label="f − optimum"),
        title="A saddle at (0, 0), a minimum at (0, √2)",
    ),
)
for name, run in runs.items():
    past = np.flatnonzero(run.trace.value < -0.5)
    print(f"  {name:9s} " + (f"leaves the pass after {past[0]} iterations" if past.size else "is still at the pass"))
stuck = minimize(saddle, [1.5, 0.0], saddle_gradient, method="gd")
print(
    "  exactly on the ridge every method ends at the pass, and the certificate says no more than it knows:\n"
    f"  {stuck.certificate}"
)

# 3. A cliff: a gentle slope ends in a wall. One gradient of the wall undoes all that was gained.


def cliff(w):
    """Return a slope of 0.3 along x, a bowl along y, and a wall where x < 0."""
    return 0.3 * w[0] + 0.2 * w[1] ** 2 + 400.0 * min(w[0], 0.0) ** 2


def cliff_gradient(w):
    """Return its gradient."""
    return np.array([0.3 + 800.0 * min(w[0], 0.0), 0.4 * w[1]])


methods = {
    "no clipping": ("gd", {}),
    "rescaled": ("gd", {"clip": Rescale(0.5)}),
    "truncated": ("gd", {"clip": Truncate(0.5)}),
}
runs = race(cliff, [2.0, 2.0], cliff_gradient, None, methods, step=0.35, max_iter=60)
x, y = np.linspace(-0.25, 2.4, 81), np.linspace(-0.5, 2.3, 61)
best = -(0.3**2) / (4 * 400.0)
keep(
    "cliff",
    side_by_side(
        path_plot(x, y, on_grid(cliff, x, y), {n: r.trace.path for n, r in runs.items()}, title="At the wall"),
        convergence_plot({n: r.trace.value for n, r in runs.items()}, best=best, y_label="f − optimum"),
        title="Clipping the gradient at a cliff",
    ),
)
print("\nCliff:")
for name, run in runs.items():
    print(f"  {name:11s} best f = {run.value:7.4f}, farthest x = {run.trace.path[:, 0].max():8.2f}")

# 4. The closed form costs nd² + d³/3 multiplications, gradient descent 2nd a step. Which is dearer is a matter of the
# condition number, which the number of steps grows with, and of the number of columns, which it does not.
n, widths = 3000, (10, 20, 50, 100, 200)
rng = np.random.default_rng(0)
for solver in ("cholesky", "gd"):
    Ridge(solver=solver).fit(rng.standard_normal((60, 3)), np.arange(60.0))  # compiles what has to be compiled
work = {"closed form": [n * d**2 + d**3 / 3 for d in widths]}
print("\nClosed form against gradient descent, 3000 rows:")
for spread in (1.0, 10.0, 100.0):
    name = f"gd, κ ≈ {spread:.0f}"
    work[name] = []
    for d in widths:
        turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
        X = rng.standard_normal((n, d)) @ np.diag(np.linspace(1.0, np.sqrt(spread), d)) @ turn
        target = X @ rng.standard_normal(d) + rng.standard_normal(n)
        seconds = []
        for solver in ("cholesky", "gd"):
            began = time.perf_counter()
            model = Ridge(solver=solver).fit(X, target)
            seconds.append(time.perf_counter() - began)
        steps = model.certificate_.n_iter
        work[name].append(2.0 * n * d * steps)
    ratio, slower = work[name][-1] / work["closed form"][-1], seconds[1] / seconds[0]
    print(f"  condition number about {spread:.0f}, {d} columns: {steps} steps, {ratio:.2g} times the work and")
    print(f"    {slower:.1f} times the time of the closed form; {model.certificate_}")
keep(
    "closed_form",
    labelled_lines(
        {name: (widths, cost) for name, cost in work.items()}, x_log=True, y_log=True, reference="closed form",
        title="Work of the closed form and of gradient descent", x_label="columns d", y_label="multiplications",
    ),
)  # fmt: skip
