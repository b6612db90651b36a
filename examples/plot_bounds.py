"""What is proven about ten models on one table, and how conjunctions are learnt.

Run with the name of a folder to get the figures as SVG files: python examples/plot_bounds.py figures
"""

import itertools
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

import learnable as ln
from learnable.plots import dot_intervals, labelled_lines, side_by_side
from learnable.theory import pac

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None


def keep(name, figure):
    """Write a figure, if there is a folder for it."""
    if FOLDER is not None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")


# 1. Ten models of one table, each judged by the same held-out rows: δ is divided by ten.
X, y = load_breast_cancer(return_X_y=True)
X = np.log1p(X)  # a scale that was fixed without looking at any row
order = np.random.default_rng(0).permutation(len(y))
train, test = order[:369], order[369:]
models = {
    "logistic regression": ln.LogisticRegression(),
    "linear SVM": ln.LinearSVC(),
    "SVM, Gaussian kernel": ln.SVC(kernel="rbf", gamma=0.1),
    "perceptron": ln.Perceptron(),
    "linear discriminator": ln.LinearDiscriminantAnalysis(),
    "naive Bayes": ln.GaussianNB(),
    "5 nearest neighbours": ln.KNeighborsClassifier(5),
    "tree of depth 3": ln.DecisionTreeClassifier(max_depth=3),
    "random forest": ln.RandomForestClassifier(n_estimators=50, random_state=0),
    "AdaBoost": ln.AdaBoostClassifier(n_estimators=30),
}
names, errors, held, starts, training = [], [], [], [], []
for name, model in models.items():
    model.fit(X[train], y[train])
    found = ln.risk_bound(model, X[test], y[test], uses=len(models), X_train=X[train], y_train=y[train])
    out, inside = found.of("held-out"), found.of("training")
    names.append(name)
    errors.append(out.empirical)
    held.append(out.value)
    starts.append(min(inside.empirical, 1.0))
    training.append(min(inside.value, 1.0))
    print(f"{names[-1]:28s} held-out {out.value:.3f} {out.verdict:11s} training {inside.value:8.3f} {inside.verdict}")
    print(f"{'':28s} by {inside.name}; broken: {[check.assumption for check in inside.broken]}")
held_out = dot_intervals(names, errors, errors, held, x_label="error: found, and its bound", title="200 rows held out")
inside = dot_intervals(
    names, starts, starts, training, x_label="its start, and its bound; 1 is vacuous", title="369 rows of the fit"
)  # fmt: skip
keep("bounds", side_by_side(held_out, inside, title="Tightest bounds of ten models"))

# 2. Learning a conjunction of three of ten variables: the error of a consistent learner, and what 3¹⁰ + 1 hypotheses
# promise.
cube = np.array(list(itertools.product([0, 1], repeat=10)))
truth = cube[:, 0] & cube[:, 3] & (1 - cube[:, 7])
rng = np.random.default_rng(1)
sizes = [5, 10, 20, 40, 80, 140, 250]
worst = []
for m in sizes:
    found = []
    for _ in range(100):
        rows = rng.integers(0, len(cube), m)
        learner = pac.Monomials().fit(cube[rows], truth[rows])
        found.append((learner.predict(cube) != truth).mean())
    worst.append(np.quantile(found, 0.95))
log_size = pac.Monomials().log_size(10)
promise = [min(1.0, (log_size + np.log(20)) / m) for m in sizes]
figure = labelled_lines(
    {"95 % of runs": (sizes, worst), "promised": (sizes, promise)},
    x_log=True, y_range=(0.0, 1.0), title="PAC learning of a conjunction", x_label="examples", y_label="error",
)  # fmt: skip
keep("pac_conjunctions", figure)
print(f"learnt: {pac.Monomials().fit(cube, truth).formula()}")
print(f"examples for error 0.1 with probability 0.95: {pac.Monomials().sample_size(10, 0.1, 0.05)}")
