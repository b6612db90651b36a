"""A forest that says how sure it is: intervals from the targets in its leaves, and what they cover.

The noise grows with x, which a single ±width could not show. The figure is SVG text; pass a folder to keep it:
`python examples/plot_forest_intervals.py figures/`.
"""

import sys
from pathlib import Path

import numpy as np

import learnable as ln
from learnable.plots import line_with_band

rng = np.random.default_rng(0)


def draw(n):
    """Return n rows: one column that matters, two that do not, and noise that grows."""
    X = rng.uniform(0.0, 4.0, (n, 3))
    return X, np.sin(2.0 * X[:, 0]) + (0.1 + 0.2 * X[:, 0]) * rng.standard_normal(n)


X, y = draw(2000)
forest = ln.RandomForestRegressor(200, min_samples_leaf=10, max_features="third", oob_score=True, random_state=0).fit(
    X, y
)
print("forest", forest.certificate_)
X_new, y_new = draw(2000)
print(f"out-of-bag R² {forest.oob_score_:.3f}, on new rows {forest.score(X_new, y_new):.3f}")

for level in (0.5, 0.8, 0.9):
    lower, upper = forest.predict_interval(X_new, level)
    inside = ((lower <= y_new) & (y_new <= upper)).mean()
    print(f"{level:.0%} intervals hold {inside:.1%} of new targets, mean width {np.mean(upper - lower):.2f}")

rise = forest.oob_importances(X, y)
for name, mean, error in zip(("x0", "x1", "x2"), rise.mean, rise.standard_error, strict=True):
    print(f"shuffling {name} adds {mean:.3f} ± {error:.3f} to the squared error")

grid = np.linspace(0.0, 4.0, 120)
rows = np.column_stack([grid, np.full(120, 2.0), np.full(120, 2.0)])
lower, upper = forest.predict_interval(rows, 0.9)
figure = line_with_band(
    grid, forest.predict(rows), lower, upper, title="A forest and its 90 % intervals", x_label="x", y_label="y"
)
print(f"figure: {len(figure)} characters of SVG")
if len(sys.argv) > 1:
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    (Path(sys.argv[1]) / "forest_intervals.svg").write_text(figure, encoding="utf-8")
