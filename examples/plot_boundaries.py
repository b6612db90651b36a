"""Boundaries of linear and quadratic discriminants and of naive Bayes, with the Bayes rule beside them.

Two normal classes, of which the densities are known, so that the best rule and its risk are known too. Run with the
name of a folder to get the figure as an SVG file: python examples/plot_boundaries.py figures
"""

import sys
from pathlib import Path

import numpy as np

import learnable as ln
from learnable.evaluation import bayes_classifier, excess_risk
from learnable.evaluation import bayes_risk
from learnable.plots import side_by_side
from learnable.plots.axes import ACCENT, MUTED, Frame
from learnable.plots.markup import tag
from learnable.plots.optimization import contour_lines
from learnable.probability import MultivariateNormal

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None
FIRST, SECOND = ACCENT, "var(--ln-warn, #b3541e)"
X_RANGE, Y_RANGE = (-4.2, 5.2), (-4.2, 4.8)

# 1. The truth: a class that slants one way, and one that slants the other.
densities = [
    MultivariateNormal([-0.6, 0.0], [[1.4, 1.0], [1.0, 1.2]]),
    MultivariateNormal([1.4, 0.4], [[0.9, -0.6], [-0.6, 1.3]]),
]
best = bayes_classifier(densities, [0.5, 0.5], labels=["a", "b"])
risk = bayes_risk(best)
print(f"Bayes risk {risk.value:.6f} ± {risk.error:.0e}, by {risk.method}")

# 2. Three models of 300 rows.
rng = np.random.default_rng(4)
y = rng.integers(0, 2, 300)
X = np.stack([density.sample(300, rng) for density in densities])[y, np.arange(300)]
label = best.labels[y]
MODELS = {
    "LDA": ln.LinearDiscriminantAnalysis(),
    "QDA": ln.QuadraticDiscriminantAnalysis(),
    "Naive Bayes": ln.GaussianNB(),
}
xs, ys = np.linspace(*X_RANGE, 161), np.linspace(*Y_RANGE, 161)
grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)


def log_ratio(rule):
    """Return log P(b | x) − log P(a | x) on the grid."""
    joint = rule.predict_log_proba(grid) if hasattr(rule, "predict_log_proba") else rule.predict_joint_log_proba(grid)
    return (joint[:, 1] - joint[:, 0]).reshape(len(ys), len(xs))


def panel(name, model, excess):
    """Draw the rows, the model's boundary and, dashed, that of the Bayes rule."""
    frame = Frame.around(X_RANGE, Y_RANGE, width=300.0, height=300.0)
    marks = [
        tag("circle", cx=float(frame.x(a)), cy=float(frame.y(b)), r=2.2, fill=SECOND if c else FIRST, opacity=0.55)
        for (a, b), c in zip(X, y, strict=True)
        if X_RANGE[0] < a < X_RANGE[1] and Y_RANGE[0] < b < Y_RANGE[1]
    ]
    for rule, style in ((best, {"stroke": MUTED, "stroke_dasharray": "5 4"}), (model, {"stroke": "currentColor"})):
        for line in contour_lines(xs, ys, log_ratio(rule), 0.0):
            marks.append(frame.line(line[:, 0], line[:, 1], stroke_width=1.8, **style))
    desc = f"{name}: solid; Bayes rule: dashed; excess risk {excess:.4f}."
    return frame.draw(f"{name}, excess risk {excess:.4f}", *marks, x_label="x₀", y_label="x₁", desc=desc)


panels = []
for name, model in MODELS.items():
    model.fit(X, label)
    excess = excess_risk(model, best, n_samples=100_000)
    print(f"{name}: {model.certificate_}")
    print(f"  excess risk {excess.value:.4f} ± {excess.error:.4f} over the Bayes rule")
    if hasattr(model, "boundary"):
        print(f"  boundary: {model.boundary('a', 'b')}")
    panels.append(panel(name, model, excess.value))

if FOLDER is not None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    figure = side_by_side(*panels, title="Boundaries of three generative classifiers; the Bayes rule is dashed")
    (FOLDER / "boundaries.svg").write_text(figure, encoding="utf-8")
