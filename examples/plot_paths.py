"""Ridge and lasso paths on the prostate data: ridge shrinks every coefficient, the lasso sets them to zero one by one.

Run with the name of a folder to get the figure as an SVG file: python examples/plot_paths.py figures
"""

import os
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes

import learnable as ln
from learnable.plots import coefficient_paths, side_by_side

folder = Path(os.environ.get("LEARNABLE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
if (folder / "prostate.csv").is_file():
    data = "prostate"
    table = np.genfromtxt(folder / "prostate.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    names = [name for name in table.dtype.names if name not in ("train", "lpsa")]
    X, y = np.column_stack([table[name] for name in names]).astype(float), table["lpsa"].astype(float)
else:  # the reference data are not part of the package
    data, loaded = "diabetes", load_diabetes()
    names, X, y = list(loaded.feature_names), loaded.data, loaded.target
X = (X - X.mean(axis=0)) / X.std(axis=0)

model = ln.LassoCV(rule="1se", cv=10).fit(X, y)
print("LassoCV", model.certificate_)
print(
    f"chosen alpha {model.alpha_:.3g}:", {n: round(c, 3) for n, c in zip(names, model.coef_.tolist(), strict=True) if c}
)

alphas, coefs, gaps = ln.lasso_path(X, y, fit_intercept=True)
print(f"largest duality gap along the path: {gaps.max():.2g}")
entered = [names[j] for j in np.argsort([np.argmax(row != 0) for row in coefs])]
print("columns in the order in which they enter:", ", ".join(entered))

strengths = np.logspace(-1, 4, 100)
ridge, _ = ln.ridge_path(X, y, strengths)
chosen = ln.RidgeCV(alphas=strengths).fit(X, y).alpha_
print(f"ridge path: {len(strengths)} penalties from one factorisation; leave-one-out chooses {chosen:.3g}")
low, high = min(coefs.min(), ridge.min()), max(coefs.max(), ridge.max())
shown = (low - 0.05 * (high - low), high + 0.05 * (high - low))
figure = side_by_side(
    coefficient_paths(
        alphas, coefs, names=names, chosen=model.alpha_, y_range=shown, title="Lasso, rule of one standard error"
    ),
    coefficient_paths(strengths, ridge.T, names=names, chosen=chosen, y_range=shown, title="Ridge, leave-one-out"),
    title=f"Lasso and ridge paths of the {data} data, with the chosen λ",
)
if len(sys.argv) > 1:
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    (Path(sys.argv[1]) / "paths.svg").write_text(figure, encoding="utf-8")
