"""Margins of boosting and of bagging on the letter data: boosting still pushes the small ones up when no row is wrong.

The cumulative distribution of the training rows' margins, after few and after many trees (Schapire, Freund, Bartlett
and Lee, Boosting the margin, 1998, figure 1). The figures are SVG text; pass a folder to keep them.
"""

import os
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

import learnable as ln
from learnable.ensembles import margin_optimum, margins
from learnable.plots import labelled_lines

folder = Path(os.environ.get("LEARNABLE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
if (folder / "letter_recognition.csv.gz").is_file():
    letters = np.genfromtxt(folder / "letter_recognition.csv.gz", delimiter=",", dtype=str)
    of_class = letters[0] == "letter"
    X, y = letters[1:, ~of_class].astype(float), letters[1:, of_class].ravel()
    print("the letter data")
else:  # the reference data are not part of the package
    X, y = load_digits(return_X_y=True)
    print("no letter data: digits instead")
train, test = slice(0, 4000, 2), slice(1, 4000, 2)

lines, few, many = {}, 5, 60
tree = DecisionTreeClassifier(max_depth=10, random_state=0)
for name, ensemble in (("boosting", ln.AdaBoostClassifier), ("bagging", ln.BaggingClassifier)):
    for count in (few, many):
        model = ensemble(tree, n_estimators=count, random_state=0).fit(X[train], y[train])
        found = np.sort(margins(model, X[train], y[train]))
        errors = 1 - model.score(X[train], y[train]), 1 - model.score(X[test], y[test])
        lines[f"{name} {count}"] = (found, np.arange(1, len(found) + 1) / len(found))
        print(
            f"{name:8s} {count:3d} trees: training error {errors[0]:.3f}, test error {errors[1]:.3f}, "
            f"smallest margin {found[0]:+.2f}, 5 % of the rows below {np.quantile(found, 0.05):+.2f}"
        )
figure = labelled_lines(lines, x_range=(-1.0, 1.0), title="Margins of the training rows, by trees", x_label="margin",
                        y_label="share of rows below")  # fmt: skip

# The margin that boosting approaches is the value of a linear program over all stumps.
A, b = np.arange(6.0)[:, None], np.array([0, 1, 1, 0, 0, 1])
cuts = np.arange(-0.5, 5.0)
stumps = np.column_stack([s * np.where(A[:, 0] <= cut, -1.0, 1.0) for cut in cuts for s in (1.0, -1.0)])
best = margin_optimum(np.where(b == 1, 1.0, -1.0)[:, None] * stumps)
print(f"six points, largest margin of any vote of stumps: {best.margin:.4f}")
for rate, count in ((1.0, 100), (0.1, 1000), (0.01, 10_000)):
    model = ln.AdaBoostClassifier(n_estimators=count, learning_rate=rate).fit(A, b)
    print(f"  AdaBoost with learning rate {rate:g}, {count} rounds: {model.margins(A, b).min():.4f}")

if len(sys.argv) > 1:
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    (Path(sys.argv[1]) / "margins.svg").write_text(figure, encoding="utf-8")
