"""Inequalities against the truth, growth functions, and Rademacher averages as the number of rows grows.

Run with the name of a folder to get the figures as SVG files: python examples/plot_inequalities.py figures
"""

import math
import sys
from pathlib import Path

import numpy as np
from scipy.stats import binom

from learnable.plots import labelled_lines
from learnable.theory import covering, rademacher, vc
from learnable.theory import demonstrate as show
from learnable.theory.concentration import Bennett, Bernstein, Chebyshev, Chernoff, Hoeffding, compare_inequalities

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None


def keep(name, figure):
    """Write a figure, if there is a folder for it."""
    if FOLDER is not None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")


# 1. The mean of 100 coins that fall on one side with probability 0.1: how likely it is to be t too large.
n, p = 100, 0.1
t = np.arange(1, 26) / n
truth = binom.sf(np.round(n * (p + t)) - 1, n, p)
tails = {
    "truth": truth,
    "Chernoff": [Chernoff(n, mean=p).tail(value) for value in t],
    "Bennett": [Bennett(n, variance=p * (1 - p), bound=1 - p).tail(value) for value in t],
    "Bernstein": [Bernstein(n, variance=p * (1 - p), bound=1 - p).tail(value) for value in t],
    "Hoeffding": [Hoeffding(n).tail(value) for value in t],
    "Chebyshev": [Chebyshev(n, variance=p * (1 - p)).tail(value) for value in t],
}
figure = labelled_lines(
    {name: (t, values) for name, values in tails.items()},
    y_log=True, y_range=(1e-8, 1.0), reference="truth",
    title="Tails of a mean", x_label="deviation t", y_label="probability",
)  # fmt: skip
keep("inequalities", figure)
for name, values in tails.items():
    print(f"P(mean ≥ p + 0.1), {name:10s} {values[9]:.2e}")
best = compare_inequalities([1.0] * 10 + [0.0] * 90)[0]
print(f"tightest for 10 errors in 100: {best.name}, below {best.upper:.4f}")

# 2. How many ways a class labels n points: polynomially many if and only if its VC dimension is finite.
sizes = np.unique(np.geomspace(1, 200, 40).astype(int))
classes = {
    "1: thresholds": vc.Thresholds(),
    "2: intervals": vc.Intervals(),
    "3: halfplanes": vc.Halfspaces(2),
    "4: boxes": vc.Rectangles(2),
    "∞: sines": vc.SineWaves(),
}
figure = labelled_lines(
    {name: (sizes, [kind.log_growth(int(m)) / math.log(2.0) for m in sizes]) for name, kind in classes.items()},
    x_log=True, y_range=(0.0, 40.0), title="Growth functions, VC dimension first",
    x_label="points n", y_label="log₂ of labelings",
)  # fmt: skip
keep("growth_functions", figure)
points = np.random.default_rng(0).normal(size=(7, 2))
print(f"halfspaces label 7 points of the plane in {vc.Halfspaces(2).growth_on(points)} of {2**7} ways")
print(f"largest shattered subset of them: {vc.find_dimension(vc.Halfspaces(2), points).dimension} points")

# 3. Rademacher averages of a ball of linear functions: simulated, between their bounds, and Dudley's integral.
rng = np.random.default_rng(1)
rows = rng.normal(size=(1000, 5)) * [1.0, 0.5, 0.25, 0.12, 0.06]
sizes = [10, 30, 100, 300, 1000]
simulated, lower, upper, dudley = [], [], [], []
for m in sizes:
    part = rows[:m]
    K = part @ part.T
    simulated.append(rademacher.simulate(rademacher.kernel_ball_maximiser(K), m, draws=400).value)
    low, high = rademacher.kernel_ball(float(np.trace(K)), m)
    lower.append(low)
    upper.append(high)
    spectrum = np.linalg.eigvalsh(part.T @ part / m)
    top = math.sqrt(spectrum.max())
    cover = covering.dudley_integral(lambda e, s=spectrum: covering.kernel_ball_covering(e, 1.0, s).high, top, m)
    dudley.append(cover.bound)
figure = labelled_lines(
    {
        "simulated": (sizes, simulated),
        "√(tr K)/n": (sizes, upper),
        "√(tr K/2)/n": (sizes, lower),
        "Dudley": (sizes, dudley),
    },
    x_log=True, y_log=True, title="Rademacher averages", x_label="rows n", y_label="average",
)  # fmt: skip
keep("rademacher_averages", figure)
inside = all(low <= value <= high for low, value, high in zip(lower, simulated, upper, strict=True))
print(f"every simulated average lies between its bounds: {inside}")

# 4. The laws that all of this rests on, in motion.
law = show.law_of_large_numbers("exponential", n=500, runs=3)
limit = show.central_limit("exponential", sizes=(1, 2, 4, 8, 16), draws=20_000)
keep("law_of_large_numbers", law.figure)
keep("central_limit", limit.figure)
for size, distance, bound in zip(limit.sizes, limit.values, limit.bound, strict=True):
    print(f"n = {size:2.0f}: distance from the normal law {distance:.3f}, Berry and Esseen allow {bound:.3f}")
