"""Stein's paradox: in three dimensions or more the mean is never the best estimate of a mean.

Run with the name of a folder to get the figure as an SVG file: python examples/plot_stein.py figures
"""

import sys
from pathlib import Path

import numpy as np

from learnable.plots import labelled_lines
from learnable.probability import james_stein

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None
P, RUNS = 10, 2000
ESTIMATORS = {
    "plain": {"positive_part": False},
    "positive part": {},
    "to the mean": {"target": "mean"},
}

# Risks E‖θ̂ − θ‖² for X ~ N(θ, I) in ten dimensions, by simulation, with the same draws for all; θ lies on an axis.
rng = np.random.default_rng(0)
noise = rng.standard_normal((RUNS, P))
sizes = np.linspace(0.0, 10.0, 21)
risk = {name: [] for name in ("the mean X", *ESTIMATORS)}
margins = []
for size in sizes:
    theta = np.r_[size, np.zeros(P - 1)]
    X = theta + noise
    loss = {"the mean X": np.sum((X - theta) ** 2, axis=1)}
    for name, options in ESTIMATORS.items():
        estimates = np.array([james_stein(x, 1.0, **options).estimate for x in X])
        loss[name] = np.sum((estimates - theta) ** 2, axis=1)
        saved = loss["the mean X"] - loss[name]
        margins.append(saved.mean() / (saved.std(ddof=1) / np.sqrt(RUNS)))
    for name, values in loss.items():
        risk[name].append(values.mean())

print(f"Risk of estimates of a mean in {P} dimensions, {RUNS} simulations a point:")
for name, values in risk.items():
    print(f"  {name:13s} {values[0]:6.2f} at |θ| = 0, {values[-1]:6.2f} at |θ| = {sizes[-1]:.0f}")
print(f"James–Stein is better than the mean at every θ, by at least {min(margins):.1f} standard errors.")
figure = labelled_lines(
    {name: (sizes, values) for name, values in risk.items()},
    y_range=(0.0, 11.0), reference="the mean X",
    title="Stein's paradox in ten dimensions", x_label="length of θ", y_label="expected squared error",
)  # fmt: skip
if FOLDER is not None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "stein.svg").write_text(figure, encoding="utf-8")
