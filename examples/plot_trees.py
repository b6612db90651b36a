"""Decision trees on the Pima data: a tree that people can read, its pruning path, and its error on new rows.

The figures are SVG text; pass a folder to keep them: `python examples/plot_trees.py figures/`.
"""

import os
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

import learnable as ln
from learnable.plots import labelled_lines
from learnable.trees import export_text, plot_tree, prune

folder = Path(os.environ.get("LEARNABLE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
if (folder / "pima_diabetes.csv").is_file():
    table = np.genfromtxt(folder / "pima_diabetes.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    *names, target = table.dtype.names
    X, y = np.column_stack([table[name] for name in names]).astype(float), table[target]
    classes = ["healthy", "diabetic"]
else:  # the reference data are not part of the package
    data = load_breast_cancer()
    names, X, y, classes = list(data.feature_names), data.data, data.target, list(data.target_names)
order = np.random.default_rng(0).permutation(len(y))
train, test = order[: 2 * len(y) // 3], order[2 * len(y) // 3 :]

# 1. The full tree remembers the noise; the chosen one can be read.
full = ln.DecisionTreeClassifier(random_state=0).fit(X[train], y[train])
chosen = ln.DecisionTreeClassifier(ccp_alpha="cv-1se", random_state=0).fit(X[train], y[train])
print("full tree", full.certificate_)
for name, model in (("full", full), ("one standard error", chosen)):
    error = 1 - model.score(X[test], y[test])
    print(f"{name}: {model.get_n_leaves()} leaves, error on new rows {error:.3f}")
print(export_text(chosen, feature_names=names, class_names=classes))

# 2. The whole path: every tree that weakest-link pruning passes.
path = full.cost_complexity_pruning_path(X[train], y[train])
leaves, errors = [], {"training rows": [], "new rows": []}
for alpha in np.unique(path.ccp_alphas):
    model = ln.DecisionTreeClassifier(ccp_alpha=alpha, random_state=0).fit(X[train], y[train])
    leaves.append(model.get_n_leaves())
    for name, rows in (("training rows", train), ("new rows", test)):
        errors[name].append(1 - model.score(X[rows], y[rows]))
print(f"path: {len(leaves)} trees, from {leaves[0]} leaves to {leaves[-1]}")
best = int(np.argmin(errors["new rows"]))
print(f"smallest error on new rows: {errors['new rows'][best]:.3f}, at {leaves[best]} leaves")

figures = {
    "tree": plot_tree(
        chosen, X=X[train], y=y[train], sample=X[test[0]], feature_names=names, class_names=classes,
        title="The tree chosen by cross-validation, and the way of one row",
    ),
    "pruning_path": labelled_lines(
        {name: (np.log2(leaves), values) for name, values in errors.items()},
        title="Error along the pruning path", x_label="log₂ number of leaves", y_label="error",
    ),
}  # fmt: skip

# 3. Four ways to prune, each judged on the last third of ten random orders of the rows.
scores = {name: [] for name in ("full tree", "cv-1se", "reduced-error", "mdl")}
for seed in range(10):
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[: 2 * len(y) // 3], order[2 * len(y) // 3 :]
    grow, judge = train[: 3 * len(train) // 4], train[3 * len(train) // 4 :]
    full = ln.DecisionTreeClassifier(random_state=0).fit(X[train], y[train])
    part = ln.DecisionTreeClassifier(random_state=0).fit(X[grow], y[grow])
    models = {
        "full tree": full,
        "cv-1se": ln.DecisionTreeClassifier(ccp_alpha="cv-1se", random_state=0).fit(X[train], y[train]),
        "reduced-error": prune(part, X[judge], y[judge]),
        "mdl": prune(full, X[train], y[train], "mdl"),
    }
    for name, model in models.items():
        scores[name].append((1 - model.score(X[test], y[test]), model.get_n_leaves()))
for name, found in scores.items():
    error, size = np.mean(found, axis=0)
    print(f"mean over ten orders, {name}: error {error:.3f}, {size:.0f} leaves")

for name, figure in figures.items():
    print(f"{name}: {len(figure)} characters of SVG")
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        (Path(sys.argv[1]) / f"{name}.svg").write_text(figure, encoding="utf-8")
