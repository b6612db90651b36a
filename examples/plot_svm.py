"""Support vector machines: the margin with its KKT cases, the hulls behind a hard margin, and the path along C.

The figures are SVG text; pass a folder to keep them: python examples/plot_svm.py figures
"""

import sys
from pathlib import Path

import numpy as np

import learnable as ln
from learnable.kernel import nearest_points, svm_path
from learnable.plots import coefficient_paths, labelled_lines, margin_plot, side_by_side

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None
rng = np.random.default_rng(3)

# 1. A soft margin: rows beyond it, on it and inside it.
X = rng.normal(size=(160, 2))
y = np.where(X[:, 0] ** 2 + X[:, 1] ** 2 + 0.5 * rng.normal(size=160) > 1.4, "outside", "inside")
x0, x1 = np.linspace(-2.8, 2.8, 81), np.linspace(-2.8, 2.8, 81)
grid = np.stack(np.meshgrid(x0, x1), axis=-1).reshape(-1, 2)
panels = []
for C in (0.3, 30.0):
    model = ln.SVC(C=C, gamma=0.7, tol=1e-6).fit(X, y)
    report = model.kkt_report(X, y)
    print(f"C = {C:g}: {model.certificate_}")
    print(report)
    scores = model.decision_function(grid).reshape(81, 81)
    panels.append(margin_plot(x0, x1, scores, X, report.y, report.case, title=f"C = {C:g}", names=model.classes_))
margins = side_by_side(*panels, title="Margin and support vectors of two costs")

# 2. A hard margin is half the distance of two hulls.
keep = np.abs(X[:, 0] + 0.5 * X[:, 1]) > 0.25
A, side = X[keep], np.where(X[keep, 0] + 0.5 * X[keep, 1] > 0, "right", "left")
hard = ln.SVC(C=np.inf, kernel="linear", tol=1e-8).fit(A, side)
hulls = nearest_points(A, side)
hard_report = hard.kkt_report(A, side)
print(f"hard margin {hard_report.margin_width / 2:.8f}, half the distance of the hulls {hulls.margin:.8f}")
ends = np.array(hulls.points)
print(f"nearest points {ends[0].round(3)} and {ends[1].round(3)}: {hulls.certificate}")
scores = hard.decision_function(grid).reshape(81, 81)
hull_figure = margin_plot(
    x0, x1, scores, A, hard_report.y, hard_report.case, title="A hard margin", names=hard.classes_
)

# 3. The path along C: α/C of each row, and what narrows with it.
path = svm_path(X[:40], y[:40], np.logspace(-2, 3, 60), gamma=0.7, tol=1e-6)
share = np.abs(path.coefs) / path.Cs[:, None]
alphas = coefficient_paths(
    path.Cs, share.T, title="α/C of every row", x_label="log₁₀ C", y_label="α/C", y_range=(-0.04, 1.04)
)
lines = {
    "margin 1/‖f‖": (path.Cs, 1 / path.norms),
    "mean slack": (path.Cs, path.slacks / 40),
    "share of SV": (path.Cs, path.n_support / 40),
}
widths = labelled_lines(
    lines, x_log=True, y_log=True, title="Margin, slack and support vectors", x_label="C", y_label=""
)
print(f"path: {path.n_steps.sum()} steps for {len(path.Cs)} costs, largest violation {path.violations.max():.1e}")
print(f"cases at the largest C (none, margin, bound): {path.cases[-1].tolist()}")

if FOLDER is not None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    along = side_by_side(alphas, widths, title="A support vector machine along its cost C")
    for name, figure in (("svm_margins", margins), ("svm_hard_margin", hull_figure), ("svm_path", along)):
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")
