"""Trees: one that grows and is pruned again, and stumps that vote."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from ...core import Array, NDArray
from ...plots.axes import Frame
from ...plots.markup import Markup, compact, tag
from ...plots.optimization import COLOURS, legend_marks
from ..drawing import classes, plane, progress, regions
from ..scene import Scene, Step
from ..tables import labelled_points

Labels = NDArray[Any]

_HEAD: Final = re.compile(r'(<svg[^>]*?)viewBox="0 0 ([\d.]+) ([\d.]+)"([^>]*>)')
_MOST_LEAVES: Final = 12


def read_tree(table: Any = None) -> tuple[Array, Labels, list[str]]:
    """Return points, their classes, and the names of the columns."""
    if table is None:
        from sklearn.datasets import load_iris

        data = load_iris()
        return data.data[:, 2:], data.target_names[data.target], ["petal length", "petal width"]
    return labelled_points("tree", table)


def build_tree(X: Array, y: Labels, names: list[str], *, most_leaves: int = 6) -> list[Step]:
    """Return a step for every leaf that is added, then one for every branch that pruning takes away."""
    from ...trees import DecisionTreeClassifier, plot_tree

    most_leaves = min(max(most_leaves, 3), _MOST_LEAVES)
    grown: list[tuple[str, Any, str]] = []
    for leaves in range(2, most_leaves + 1):
        model = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0).fit(X, y)
        code = f"model = DecisionTreeClassifier(\n    max_leaf_nodes={leaves}, random_state=0\n).fit(X, y)"
        if grown and model.get_n_leaves() == grown[-1][1].get_n_leaves():
            break  # every leaf is pure
        grown.append(("grow", model, code))
    largest = grown[-1][1].get_n_leaves()
    path = DecisionTreeClassifier(max_leaf_nodes=largest, random_state=0).cost_complexity_pruning_path(X, y)
    for alpha in np.unique(path.ccp_alphas[path.ccp_alphas > 0]):
        strength = float(f"{1.001 * alpha:.4g}")  # just beyond the branch's own α
        settings = f"max_leaf_nodes={largest}, random_state=0,\n    ccp_alpha={strength!r}"
        model = DecisionTreeClassifier(max_leaf_nodes=largest, random_state=0, ccp_alpha=strength).fit(X, y)
        if model.get_n_leaves() < grown[-1][1].get_n_leaves():
            grown.append(("prune", model, f"model = DecisionTreeClassifier(\n    {settings}\n).fit(X, y)"))
    trees = _alike([plot_tree(model, feature_names=names, precision=3) for _, model, _ in grown])
    return [_tree_step(*made, tree, X, y, names) for made, tree in zip(grown, trees, strict=True)]


def _tree_step(kind: str, model: Any, code: str, tree: Markup, X: Array, y: Labels, names: list[str]) -> Step:
    number = {label: k for k, label in enumerate(model.classes_)}
    of = np.array([number[label] for label in y])
    frame = plane(X, legend=True)
    marks = regions(frame, lambda rows: np.searchsorted(model.classes_, model.predict(rows)))
    marks += classes(frame, X, of)
    marks += legend_marks(frame, [str(c) for c in model.classes_], [COLOURS[k % len(COLOURS)] for k in number.values()])
    leaves = model.get_n_leaves()
    wrong = int((model.predict(X) != y).sum())
    main = frame.draw("Regions of the tree", *marks, x_label=names[0], y_label=names[1])
    if kind == "grow":
        title = f"Grow: {leaves} leaves"
        text = "The leaf that promises the largest fall of impurity is split next, at its best threshold."
        formula = r"\max_{j, t} \; n_m G_m − n_l G_l − n_r G_r, \; G = 1 − \sum_k p_k^2"
    else:
        title = f"Prune: {leaves} leaf" if leaves == 1 else f"Prune: {leaves} leaves"
        text = "The branch whose leaves gain least per leaf goes first: the weakest link. Each α has its one best tree."
        formula = r"R_α(T) = R(T) + α |T|, \; g(t) = \frac{R(t) − R(T_t)}{|T_t| − 1}"
    return Step(
        title=title,
        pictures=(main, tree),
        text=f"{text} {wrong} of {len(y)} rows are in a leaf of another class.",
        formula=formula,
        code=code,
        certificates={"model": model.certificate_},
        numbers={"leaves": int(leaves), "rows on the wrong side": wrong},
    )


def _alike(figures: list[Markup]) -> list[Markup]:
    """Return figures that show everything at one scale, each in the middle, as large as the largest of them.

    Their own style goes: the policy of the page forbids it, and its style sheet replaces it.
    """
    heads = [head for head in map(_HEAD.match, figures) if head is not None]
    sizes = np.array([[float(head[2]), float(head[3])] for head in heads])
    width, height = sizes.max(axis=0)
    found = []
    for figure, head, size in zip(figures, heads, sizes, strict=True):
        box = f'class="lab-tall" viewBox="{compact(-(width - size[0]) / 2)} 0 {compact(width)} {compact(height)}"'
        start = re.sub(r' style="[^"]*"', "", f"{head[1]}{box}{head[4]}")
        found.append(Markup(start + figure[head.end() :]))
    return found


TREE = Scene(
    name="tree",
    title="A tree grows, and is pruned again",
    text="The tree grows leaf by leaf, best split first, into the noise; then weakest-link pruning takes back what "
    "is not worth its leaves.",
    built_in="Iris flowers by the length and width of their petals.",
    setup="from learnable import DecisionTreeClassifier\nfrom learnable.lab import SCENES\n\n"
    'X, y, names = SCENES["tree"].read(None)  # or a table of your own',
    takes="two columns of numbers and one of two to eight classes.",
    read=read_tree,
    build=build_tree,
    cover=4,
)


# --------------------------------------------------------------------------------------------------------------------
# AdaBoost.


def read_adaboost(table: Any = None) -> tuple[Array, Labels, list[str]]:
    """Return points, their two classes, and the names of the columns; by default Freund and Schapire's ten points."""
    if table is None:
        places = [(1, 5), (2, 2), (5, 8), (6, 10), (8, 7), (3, 1), (4, 6), (7, 4), (9, 9), (10, 3)]
        return np.array(places, dtype=np.float64), np.repeat(["plus", "minus"], 5), ["x₁", "x₂"]
    return labelled_points("adaboost", table, two=True)


def build_adaboost(X: Array, y: Labels, names: list[str], *, n_rounds: int = 8) -> list[Step]:
    """Return a step for every stump that joins the vote."""
    from ...ensembles import AdaBoostClassifier

    n_rounds = min(max(n_rounds, 2), 40)
    models = []
    for rounds in range(1, n_rounds + 1):
        models.append(AdaBoostClassifier(n_estimators=rounds).fit(X, y))
        if len(models[-1].estimators_) < rounds:  # a stump made no mistake at all, or was no better than chance
            models.pop()
            break
    models = models or [AdaBoostClassifier(n_estimators=1).fit(X, y)]
    last = models[-1]
    sign = np.where(y == last.classes_[1], 1.0, -1.0)
    counts = np.arange(1, len(models) + 1)
    curves = {
        "bound": (counts, last.training_bound_[: len(models)]),
        "training": (counts, [float(np.mean(model.predict(X) != y)) for model in models]),
    }
    votes = np.zeros(len(y))
    made = []
    for rounds, model in enumerate(models, start=1):
        weights = np.exp(-sign * votes - np.max(-sign * votes))
        weights /= weights.sum()
        stump = model.estimators_[-1]
        said = np.asarray(stump.predict(X))
        missed = said != (y if said.dtype.kind == y.dtype.kind else (sign > 0).astype(said.dtype))
        votes = _votes(model, X)
        wrong = int((model.predict(X) != y).sum())
        error = float(model.estimator_errors_[rounds - 1])
        made.append(
            Step(
                title=f"Round {rounds}",
                pictures=(
                    _weighted(X, sign, weights, missed, stump.predict, names, model.classes_, f"Stump {rounds}"),
                    _weighted(
                        X,
                        sign,
                        np.full(len(y), 1 / len(y)),
                        model.predict(X) != y,
                        model.predict,
                        names,
                        model.classes_,
                        f"The vote of {rounds}",
                    ),
                    progress(
                        curves, rounds, title="Training error and its bound", x_label="rounds", y_label="share of rows"
                    ),
                ),
                text="First: the rows as large as their weights, and the stump that is best for these weights; what "
                "it misses is ringed and weighs more in the next round. Second: the weighted vote of all stumps so "
                "far, which "
                f"misses {wrong} of {len(y)} rows.",
                formula=r"D_{t+1}(i) ∝ D_t(i) e^{−α_t y_i h_t(x_i)}, \; α_t = \frac{1}{2} \log \frac{1 − ε_t}{ε_t}"
                "\n"
                r"\frac{1}{n} \sum_i [y_i ≠ H(x_i)] ≤ \prod_t 2\sqrt{ε_t(1 − ε_t)}",
                code=f"model = AdaBoostClassifier(\n    n_estimators={rounds}).fit(X, y)",
                certificates={"model": model.certificate_},
                numbers={
                    "weighted error ε": error,
                    "bound": float(model.training_bound_[rounds - 1]),
                    "training error": wrong / len(y),
                },
            )
        )
    return made


def _votes(model: Any, X: Array) -> Array:
    """Return F(x) on the scale on which the next round's weights are exp(−yF)."""
    return np.asarray(model.raw_score(X), dtype=np.float64).reshape(-1)


def _weighted(
    X: Array, sign: Array, weights: Array, missed: Any, predict: Any, names: list[str], labels: Any, title: str
) -> Markup:
    """Draw rows as large as their weights over what is predicted everywhere; missed ones are ringed."""
    frame = plane(X, pad=0.12)
    marks = regions(frame, lambda rows: _as_numbers(predict(rows), labels))
    usual = 6.5 * min(1.0, float(np.sqrt(30 / len(weights))))
    radius = np.clip(usual * np.sqrt(weights * len(weights)), 0.4 * usual, 2.6 * usual)
    for (a, b), s, r, ring in zip(X, sign, radius, missed, strict=True):
        marks.append(_row(frame, float(a), float(b), s > 0, float(r), bool(ring)))
    return frame.draw(title, *marks, x_label=names[0], y_label=names[1])


def _as_numbers(said: Any, labels: Any) -> Any:
    found = np.asarray(said)
    return found.astype(np.int64) if found.dtype.kind in "biuf" else np.searchsorted(labels, found)


def _row(frame: Frame, x: float, y: float, positive: bool, radius: float, ring: bool) -> Markup:
    place = {"cx": float(frame.x(x)), "cy": float(frame.y(y))}
    parts = [tag("circle", r=radius, fill=COLOURS[1] if positive else COLOURS[0], opacity=0.85, **place)]
    if ring:
        parts.append(
            tag("circle", r=1.15 * radius + 2.0, fill="none", stroke="currentColor", stroke_width=1.6, **place)
        )
    return tag("g", *parts)


ADABOOST = Scene(
    name="adaboost",
    title="AdaBoost, round by round",
    text="Each round asks for the stump that is best for the rows as they are weighted now, then raises the weight "
    "of its mistakes until they make up one half of all weight.",
    built_in="Freund and Schapire's ten points, which no single stump can tell apart.",
    setup="from learnable import AdaBoostClassifier\nfrom learnable.lab import SCENES\n\n"
    'X, y, names = SCENES["adaboost"].read(None)  # or a table of your own',
    takes="two columns of numbers and one of classes; of more than two, the most frequent two are kept.",
    read=read_adaboost,
    build=build_adaboost,
    cover=2,
)
