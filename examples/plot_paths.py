"""Ridge and lasso paths on the prostate data: ridge shrinks every coefficient, the lasso sets them to zero one by one.

The figures are SVG text; pass a folder to keep them: `python examples/plot_paths.py figures/`.
"""

import os
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes

import learnable as ln
from learnable.plots import coefficient_paths

folder = Path(os.environ.get("LEARNABLE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
if (folder / "prostate.csv").is_file():
    table = np.genfromtxt(folder / "prostate.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    names = [name for name in table.dtype.names if name not in ("train", "lpsa")]
    X, y = np.column_stack([table[name] for name in names]).astype(float), table["lpsa"].astype(float)
else:  # the reference data are not part of the package
    data = load_diabetes()
    names, X, y = list(data.feature_names), data.data, data.target
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
figures = {
    "lasso": coefficient_paths(alphas, coefs, names=names, chosen=model.alpha_, title="Lasso path"),
    "ridge": coefficient_paths(strengths, ridge.T, names=names, chosen=chosen, title="Ridge path"),
}
for name, figure in figures.items():
    print(f"{name} path: {len(figure)} characters of SVG")
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        (Path(sys.argv[1]) / f"{name}_path.svg").write_text(figure, encoding="utf-8")
