"""Gradient boosting: where it stops, the error by round, and quantiles that do not cross.

The figures are SVG text; pass a folder to keep them: `python examples/plot_boosting.py figures/`.
"""

import sys
from pathlib import Path

import numpy as np

import learnable as ln
from learnable.plots import labelled_lines
from learnable.plots.axes import ACCENT, MUTED, Frame
from learnable.plots.markup import tag

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None


def keep(name, figure):
    """Write a figure, if there is a folder for it."""
    if FOLDER is not None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")


# 1. Losses by round; the rows held out decide when to stop.
rng = np.random.default_rng(0)
X = rng.uniform(size=(1600, 5))
signal = np.sin(6 * X[:, 0]) + 2 * (X[:, 1] - 0.5) ** 2 + X[:, 2]
y = signal + 0.5 * rng.normal(size=1600)
train, held = slice(None, 800), slice(800, None)
model = ln.HistGradientBoostingRegressor(max_iter=300, learning_rate=0.1, n_iter_no_change=40, random_state=0)
model.fit(X[train], y[train], X_val=X[held], y_val=y[held])
print("boosting", model.certificate_)
scores = model.validation_score_
print(f"stopped after {len(scores) - 1} rounds, kept the best {model.n_iter_}: loss {-scores[model.n_iter_]:.4f}")
rounds = np.arange(len(scores))
lines = {"training": (rounds, -model.train_score_), "held out": (rounds, -scores)}
keep(
    "boosting_stops",
    labelled_lines(lines, title=f"The best of {rounds[-1]} rounds is number {model.n_iter_}", x_label="rounds",
                   y_label="mean loss ½(y − F)²"),
)  # fmt: skip

# 2. Error of a classifier by round, for three steps.
Z = rng.uniform(size=(9000, 5))
label = np.sin(6 * Z[:, 0]) + 2 * (Z[:, 1] - 0.5) ** 2 + Z[:, 2] + 0.5 * rng.normal(size=9000) > 0.7
train, test = slice(None, 1000), slice(1000, None)
errors = {}
for name, settings in {
    "fixed 0.1": {},
    "0.3/√m": {"learning_rate": 0.3, "step": "sqrt-decay"},
    "line search": {"learning_rate": 0.5, "step": "line-search"},
}.items():
    boosted = ln.GradientBoostingClassifier(n_estimators=80, max_depth=2, **settings).fit(Z[train], label[train])
    wrong = [float(np.mean(stage != label[test])) for stage in boosted.staged_predict(Z[test])]
    errors[name] = (np.arange(1, len(wrong) + 1), wrong)
    rises = bool((np.diff(boosted.training_loss_) > 1e-12).any())
    print(f"{name:12s} test error {wrong[0]:.3f} after 1 round, {wrong[-1]:.3f} after 80; training loss rises: {rises}")
keep("boosting_errors", labelled_lines(errors, title="Boosted error by round", x_label="rounds", y_label="test error"))

# 3. Three quantiles, fitted together.
x = rng.uniform(0.0, 1.0, 3000)
target = np.sin(6 * x) + (0.1 + 0.6 * x) * rng.normal(size=3000)
levels = [0.1, 0.5, 0.9]
bands = ln.HistGradientBoostingRegressor(
    loss="quantile", quantile=levels, max_iter=60, max_leaf_nodes=6, min_samples_leaf=60
)
bands.fit(x[:2000, None], target[:2000])
q = bands.predict(x[2000:, None])
inside = np.mean((target[2000:] >= q[:, 0]) & (target[2000:] <= q[:, 2]))
print(f"between the quantiles 0.1 and 0.9: {inside:.0%} of new rows; crossings: {int((np.diff(q, axis=1) <= 0).sum())}")
grid = np.linspace(0.0, 1.0, 200)
low, middle, high = bands.predict(grid[:, None]).T
frame = Frame.around((0.0, 1.0), (-2.5, 2.5), width=560.0, height=320.0)
points = [
    tag("circle", cx=float(frame.x(a)), cy=float(frame.y(b)), r=1.5, fill=MUTED, opacity=0.5)
    for a, b in zip(x[2000:2400], np.clip(target[2000:2400], -2.5, 2.5), strict=True)
]
outline = [*zip(grid, high, strict=True), *zip(grid[::-1], low[::-1], strict=True)]
corners = " ".join(f"{float(frame.x(a)):.1f},{float(frame.y(b)):.1f}" for a, b in outline)
line = " ".join(f"{float(frame.x(a)):.1f},{float(frame.y(b)):.1f}" for a, b in zip(grid, middle, strict=True))
marks = [
    tag("polygon", points=corners, fill=ACCENT, opacity=0.2),
    tag("polyline", points=line, fill="none", stroke=ACCENT, stroke_width=2),
]
keep(
    "boosting_quantiles",
    frame.draw("Quantiles 0.1, 0.5 and 0.9, fitted jointly", *points, *marks, x_label="x", y_label="y"),
)
