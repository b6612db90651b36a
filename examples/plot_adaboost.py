"""Three rounds of AdaBoost on ten points, and error and bound by round.

The ten points are those of Freund and Schapire's figure: three stumps, with weighted errors 0.30, 0.21 and 0.14,
together make no mistake. The figures are SVG text; pass a folder to keep them:
`python examples/plot_adaboost.py figures/`.
"""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np

import learnable as ln
from learnable.plots import labelled_lines
from learnable.plots.axes import ACCENT, MUTED, Frame
from learnable.plots.markup import tag

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None
PLUS, MINUS = ACCENT, "var(--ln-warn, #b3541e)"


def keep(name, figure):
    """Write a figure, if there is a folder for it."""
    if FOLDER is not None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")


def draw(X, y, D, predict, wrong, title):
    """Draw points as large as their weight, over what is predicted everywhere; those in `wrong` are circled."""
    frame = Frame.around((0.0, 11.0), (0.0, 11.0), width=300.0, height=300.0)
    grid = np.arange(0.05, 11.0, 0.1)
    cells = predict(np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)).reshape(len(grid), len(grid))
    marks = []
    for row, at in zip(cells, grid, strict=True):
        ends = np.flatnonzero(np.r_[True, row[1:] != row[:-1], True])
        for start, stop in pairwise(ends):
            corner = float(frame.x(grid[start] - 0.05)), float(frame.y(at + 0.05))
            size = float(frame.x(0.1 * (stop - start)) - frame.x(0.0)), float(frame.y(0.0) - frame.y(0.1))
            shade = PLUS if row[start] else MINUS
            marks.append(
                tag(
                    "rect",
                    x=corner[0],
                    y=corner[1],
                    width=size[0],
                    height=size[1],
                    fill=shade,
                    opacity=0.12,
                    shape_rendering="crispEdges",
                )
            )
    for (a, b), label, weight, missed in zip(X, y, D, wrong, strict=True):
        size = 80.0 * float(np.sqrt(weight))
        place = {"x": float(frame.x(a)), "y": float(frame.y(b)) + 0.35 * size, "text_anchor": "middle"}
        marks.append(tag("text", "+" if label else "−", fill=PLUS if label else MINUS, font_size=size, **place))
        if missed:
            circle = {"cx": float(frame.x(a)), "cy": float(frame.y(b)), "r": 0.45 * size}
            marks.append(tag("circle", fill="none", stroke=MUTED, **circle))
    return frame.draw(title, *marks, x_label="x₁", y_label="x₂")


# 1. Three rounds.
X = np.array([[1, 5], [2, 2], [5, 8], [6, 10], [8, 7], [3, 1], [4, 6], [7, 4], [9, 9], [10, 3]], dtype=float)
y = np.repeat([1, 0], 5)
model = ln.AdaBoostClassifier(n_estimators=3, vote="half").fit(X, y)
print("AdaBoost", model.certificate_)
D = np.full(10, 0.1)
for t, stump in enumerate(model.estimators_):
    wrong = stump.predict(X) != y
    error, alpha = model.estimator_errors_[t], model.estimator_weights_[t]
    print(f"round {t + 1}: {stump}, weighted error {error:.2f}, vote {alpha:.2f}")
    keep(f"adaboost_round_{t + 1}", draw(X, y, D, stump.predict, wrong, f"Round {t + 1}: error {error:.2f}"))
    D = D * np.exp(np.where(wrong, alpha, -alpha))
    D /= D.sum()
    print(f"         after reweighting it errs on {D[wrong].sum():.2f} of the weight")
keep("adaboost_vote", draw(X, y, D, model.predict, model.predict(X) != y, "The vote of three stumps"))
print(f"the vote errs on {np.mean(model.predict(X) != y):.0%} of the points")

# 2. Error, bound and margin by round, on rows that a diagonal line tells apart.
rng = np.random.default_rng(0)
Z = rng.uniform(-1, 1, (1000, 2))
label = (Z[:, 0] + Z[:, 1] > 0.2 * rng.standard_normal(1000)).astype(int)
train, test = slice(None, 500), slice(500, None)
model = ln.AdaBoostClassifier(n_estimators=200).fit(Z[train], label[train])
rounds = np.arange(1, 201)
errors = {
    "bound": model.training_bound_,
    "training": [1 - s for s in model.staged_score(Z[train], label[train])],
    "test": [1 - s for s in model.staged_score(Z[test], label[test])],
}
for name, values in errors.items():
    print(f"{name:9s}", "  ".join(f"{values[T - 1]:.3f}" for T in (1, 10, 50, 200)), " after 1, 10, 50 and 200 rounds")
lines = {name: (rounds, values) for name, values in errors.items()}
keep(
    "adaboost_errors",
    labelled_lines(lines, title="AdaBoost by round", x_label="rounds", y_label="error: training, its bound, test"),
)

# 3. What each variant makes of the exponential loss with the same number of stumps.
for variant in ("discrete", "real", "float", "totally-corrective"):
    model = ln.AdaBoostClassifier(n_estimators=50, variant=variant).fit(Z[train], label[train])
    print(f"{variant:18s} loss {model.exponential_loss_[-1]:.4f}  {model.certificate_}")
