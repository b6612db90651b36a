"""Why a boosted model says what it says: exact Shapley values of every prediction, their sum, and their interactions.

The model predicts the progression of diabetes from ten columns. The figures are SVG text; pass a folder to keep them:
`python examples/plot_shap.py figures/`.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes

from learnable.ensembles import (
    HistGradientBoostingRegressor,
    loss_importances,
    partial_dependence,
    shap_interactions,
    shap_values,
    tree_importances,
)
from learnable.plots import contribution_summary, labelled_lines

data = load_diabetes(as_frame=True, scaled=False)
X, y, names = data.data, data.target, list(data.feature_names)
model = HistGradientBoostingRegressor(max_iter=80, max_leaf_nodes=6, learning_rate=0.06, random_state=0).fit(X, y)
print("boosting", model.certificate_)

phi = shap_values(model, X)
error = np.abs(phi.values.sum(axis=1) + phi.base - model.predict(X)).max()
print(f"base {phi.base:.2f}; base + contributions differ from the prediction by at most {error:.0e}")
row = int(np.argmax(model.predict(X)))
largest = np.argsort(-np.abs(phi.values[row]))[:3]
print(f"row {row}: {model.predict(X.iloc[[row]])[0]:.0f} = {phi.base:.0f}", end="")
print("".join(f" {phi.values[row, j]:+.0f} ({names[j]} = {X.iloc[row, j]:g})" for j in largest), "and the rest")

pairs = shap_interactions(model, X)
strength = np.abs(pairs).mean(axis=0)
np.fill_diagonal(strength, 0.0)
i, j = np.unravel_index(strength.argmax(), strength.shape)
print(f"strongest interaction: {names[i]} with {names[j]}, {2 * strength[i, j]:.2f} on average")

shuffled = loss_importances(model, X, y, random_state=0)
for kind, importance in (
    ("|Shapley value|", np.abs(phi.values).mean(axis=0)),
    ("gain", tree_importances(model)),
    ("splits", tree_importances(model, "split")),
    ("shuffling", shuffled.mean),
):
    print(f"most important by {kind}: {', '.join(names[k] for k in np.argsort(-importance)[:3])}")

summary = contribution_summary(
    phi.values, X, names, title="Shapley values of a boosted model", x_label="contribution to the predicted progression"
)
by_weight, by_rows = (partial_dependence(model, X, "bmi", method=method) for method in ("recursion", "brute"))
lines = labelled_lines(
    {name: (found.grid[0], found.average) for name, found in (("trees' weights", by_weight), ("rows", by_rows))},
    title="Partial dependence on bmi",
    x_label="body mass index",
    y_label="mean prediction",
)
figures = {"shap_summary": summary, "partial_dependence": lines}
print(f"figures: {sum(len(figure) for figure in figures.values())} characters of SVG")
if len(sys.argv) > 1:
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        (Path(sys.argv[1]) / f"{name}.svg").write_text(figure, encoding="utf-8")
