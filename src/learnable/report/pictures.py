"""What people look at first, by kind of model: one table from what a model has to figures of it.

A kind is recognised by what the fit has left, not by a name: coefficients, trees, centres, states, a loss curve. So a
new model gets its figures without a line of code here. Regressors and classifiers of every kind also show how their
predictions compare with the targets.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor

from ..core.errors import DataError
from ..evaluation.comparison.judge import coefficients
from ..plots import (
    biplot,
    cluster_scatter,
    coefficient_paths,
    confusion_matrix,
    dot_intervals,
    histogram,
    labelled_lines,
    line_with_band,
    margin_plot,
    scatter,
    scree,
    share_bars,
)
from ..plots.markup import Markup, clean
from .facts import has_importances, importances_of
from .predictions import Shown, curve, like

Array = NDArray[np.float64]

_MOST_LINES: Final = 12  # coefficients or importances in a figure
_MOST_GROUPS: Final = 12  # classes that colours can tell apart
_MOST_STEPS: Final = 600  # steps of a sequence that a figure has room for
_DEPTH: Final = 3  # levels of a tree that fit on a screen
_TOPICS: Final = 4
_GRID: Final = 200  # points of a curve of many episodes
_SQUARE: Final = 50  # points of each side of a grid
_ON_MARGIN: Final = 0.01  # how far from one the score of a row on the margin may be: SVC stops at 1e-3


# --------------------------------------------------------------------------------------------------------------------
# Linear models, trees, ensembles, networks.


def linear(shown: Shown) -> list[Markup]:
    """Return the largest coefficients with intervals where they are known, and the path they were chosen on."""
    model = shown.model
    classes = getattr(model, "classes_", None)
    labels = None if classes is None else [clean(label, 16) for label in np.asarray(classes).tolist()]
    found = coefficients(model, shown.names, labels, 0.95) or []
    figures = []
    if found:
        top = found[:_MOST_LINES]
        columns = [[entry[key] for entry in top] for key in ("value", "low", "high")]
        known = np.isfinite(np.asarray(columns[1], dtype=np.float64)).any()
        title = "Coefficients, with 95 % intervals" if known else "Coefficients"
        unit = f"change of the {top[0]['of']} per unit"
        figures.append(dot_intervals([entry["name"] for entry in top], *columns, title=title, x_label=unit))
    return [*figures, *_path(shown), *_folds(shown)]


def _path(shown: Shown) -> list[Markup]:
    """Return the path of the coefficients over the penalty."""
    if not shown.has("coef_path_", "alphas_"):
        return []
    alphas = np.asarray(shown.model.alphas_, dtype=np.float64)
    path = np.asarray(shown.model.coef_path_, dtype=np.float64)
    use = alphas > 0
    if use.sum() < 2 or path.ndim != 2 or path.shape != (len(shown.names), len(alphas)):
        return []
    return [coefficient_paths(alphas[use], path[:, use], names=shown.names)]


def _folds(shown: Shown) -> list[Markup]:
    """Return the error over the folds along the penalties that a choice was made from."""
    errors = vars(shown.model).get("mse_path_")
    alphas = vars(shown.model).get("cv_alphas_", vars(shown.model).get("alphas_"))
    if errors is None or alphas is None or np.shape(errors)[0] != np.size(alphas) or (np.asarray(alphas) <= 0).any():
        return []
    table = np.asarray(errors, dtype=np.float64)
    mean = table.mean(axis=1)
    spread = table.std(axis=1, ddof=1) / np.sqrt(table.shape[1])
    x = np.log10(np.asarray(alphas, dtype=np.float64))
    title = "Error over the folds, ± one standard error"
    return [line_with_band(x, mean, mean - spread, mean + spread, title=title, x_label="log₁₀ α", y_label="error")]


def tree(shown: Shown) -> list[Markup]:
    """Return the upper levels of the tree."""
    from ..trees import plot_tree

    use = {} if shown.y is None or shown.rows is None else {"X": shown.X, "y": shown.y}
    names = shown.names or None
    try:
        return [
            plot_tree(
                shown.model, max_depth=_DEPTH, feature_names=names, title=f"{shown.owner}, its upper levels", **use
            )
        ]
    except DataError:  # several targets, or columns of words
        return _drawn_alone(shown, names)


def _drawn_alone(shown: Shown, names: list[str] | None) -> list[Markup]:
    from ..trees import plot_tree

    with contextlib.suppress(DataError):
        return [plot_tree(shown.model, max_depth=_DEPTH, feature_names=names, title=shown.owner)]
    return importances(shown)


def importances(shown: Shown) -> list[Markup]:
    """Return each column's share in what the splits gain."""
    if not has_importances(shown.model):
        return []
    values = importances_of(shown.model)
    if values.shape != (len(shown.names),):
        return []
    order = np.argsort(-values, kind="stable")[:_MOST_LINES]
    title = "Importance of the columns"
    return [dot_intervals([shown.names[j] for j in order], values[order], title=title, x_label="share in the gain")]


def rounds(shown: Shown) -> list[Markup]:
    """Return the loss after each round of boosting, or each epoch of a network."""
    known = vars(shown.model)
    lines: dict[str, tuple[Any, Any]] = {}
    for name, words in _LOSSES:
        values = known.get(name)
        if values is not None and np.size(values) > 1:
            first = 0 if name in ("training_loss_", "train_loss_") else 1
            lines[words] = (np.arange(first, first + len(values)), np.asarray(values, dtype=np.float64))
    held = known.get("validation_score_")
    if held is not None and np.size(held) > 1 and getattr(shown.model, "scoring", "loss") == "loss":
        lines["rows held out"] = (np.arange(len(held)), -np.asarray(held, dtype=np.float64))
    if not lines:
        return []
    unit = "epoch" if "loss_curve_" in known else "round"
    return [labelled_lines(lines, title="Loss", x_label=unit, y_label="loss")]


_LOSSES: Final = (
    ("training_loss_", "training rows"),
    ("train_loss_", "training rows"),
    ("exponential_loss_", "mean e^(−yf)"),
    ("training_bound_", "error bound"),
    ("loss_curve_", "training rows"),
)


def ensemble(shown: Shown) -> list[Markup]:
    """Return importances and the loss by rounds."""
    return [*importances(shown), *rounds(shown)]


def margin(shown: Shown) -> list[Markup]:
    """Return boundary, margins and rows of a support vector machine of two classes in the plane of its two columns."""
    rows = shown.need_rows("its margin")
    across = np.linspace(*_widened(rows[:, 0]), _SQUARE)
    upwards = np.linspace(*_widened(rows[:, 1]), _SQUARE)
    grid = np.stack(np.meshgrid(across, upwards), axis=-1).reshape(-1, 2)
    scores = np.asarray(shown.model.decision_function(like(shown.X, grid)), dtype=np.float64)
    classes = shown.model.classes_
    sign = np.where(np.asarray(shown.y) == classes[1], 1.0, -1.0)
    inside = sign * np.asarray(shown.model.decision_function(shown.X), dtype=np.float64)
    case = np.where(inside > 1.0 + _ON_MARGIN, "non-support", np.where(inside < 1.0 - _ON_MARGIN, "bound", "margin"))
    names = (clean(classes[0], 14), clean(classes[1], 14))
    drawn = margin_plot(
        across, upwards, scores.reshape(_SQUARE, _SQUARE), rows, sign, case, names=names, x_label=shown.names[0],
        y_label=shown.names[1],
    )  # fmt: skip
    return [drawn]


def _widened(column: Array) -> tuple[float, float]:
    low = float(column.min())
    high = float(column.max())
    room = 0.06 * (high - low or 1.0)
    return low - room, high + room


# --------------------------------------------------------------------------------------------------------------------
# Clusters, embeddings, states, topics.


def clusters(shown: Shown) -> list[Markup]:
    """Return the rows coloured by cluster, with centres and the ellipses of their spread."""
    model = shown.model
    rows = shown.need_rows("its clusters")
    labels = np.asarray(model.predict(shown.X) if hasattr(model, "predict") else model.labels_)
    if len(labels) != len(rows):
        raise DataError(f"plot: {shown.owner} knows the clusters of its {len(labels)} rows; got {len(rows)} rows.")
    plane = _Plane(rows, shown.names)
    points = plane(rows)
    centres = next((vars(model)[name] for name in ("cluster_centers_", "means_") if shown.has(name)), None)
    middle = None
    spread = None
    if centres is not None and np.shape(centres)[1:] == rows.shape[1:]:
        middle = plane(np.asarray(centres, dtype=np.float64))
        spread = plane.covariances(_full_covariances(model, len(middle), rows.shape[1]))
    drawn = cluster_scatter(
        points[:, 0], points[:, 1], labels, centres=middle, covariances=spread, title=f"{shown.owner}: clusters",
        x_label=plane.labels[0], y_label=plane.labels[1],
    )  # fmt: skip
    return [drawn, *_descent(shown)]


def _descent(shown: Shown) -> list[Markup]:
    """Return the objective by step."""
    for name, words in (("inertia_history_", "sum of squares"), ("bound_history_", "log-likelihood (bound)")):
        values = vars(shown.model).get(name)
        if values is not None and np.size(values) > 1:
            x = np.arange(len(values))
            return [line_with_band(x, values, title="Objective by step", x_label="step", y_label=words)]
    return []


class _Plane:
    """The plane on which rows are drawn: their two columns, or their first two principal components."""

    def __init__(self, rows: Array, names: list[str]) -> None:
        self.centre = np.zeros(rows.shape[1])
        self.axes = np.eye(rows.shape[1])[:, :2]
        self.labels = (names[0], names[1] if len(names) > 1 else "")
        if rows.shape[1] == 1:
            self.axes = np.column_stack([np.ones(1), np.zeros(1)])
        elif rows.shape[1] > 2:
            finite = rows[np.isfinite(rows).all(axis=1)]
            self.centre = finite.mean(axis=0)
            _, size, axes = np.linalg.svd(finite - self.centre, full_matrices=False)
            share = 100.0 * size[:2] ** 2 / max(float((size**2).sum()), 1e-300)
            self.axes = axes[:2].T
            self.labels = (f"first principal component ({share[0]:.0f} %)", f"second ({share[1]:.0f} %)")

    def __call__(self, points: Array) -> Array:
        return np.asarray((points - self.centre) @ self.axes)

    def covariances(self, given: Array | None) -> Array | None:
        """Return covariances in the plane."""
        return None if given is None else np.asarray(np.einsum("ji,kjl,lm->kim", self.axes, given, self.axes))


def _full_covariances(model: Any, count: int, d: int) -> Array | None:
    """Return the covariances of components as (K, d, d); None where there are none."""
    given = vars(model).get("covariances_")
    if given is None:
        return None
    shape = np.shape(given)
    values = np.asarray(given, dtype=np.float64)
    if shape == (count, d, d):
        return values
    if shape == (d, d):
        return np.broadcast_to(values, (count, d, d))
    if shape == (count, d):
        return np.asarray([np.diag(own) for own in values])
    return values[:, None, None] * np.eye(d) if shape == (count,) else None


def embedding(shown: Shown) -> list[Markup]:
    """Return the rows in the first two dimensions that the model has found, coloured by y or by cluster."""
    model = shown.model
    points = vars(model).get("embedding_")
    if shown.X is not None and (points is None or len(points) != len(shown.X)):
        points = model.transform(shown.X) if hasattr(model, "transform") else None
    if points is None:
        raise DataError(f"plot: {shown.owner} needs rows to show where they lie; call plot(model, X).")
    points = np.asarray(points.toarray() if hasattr(points, "toarray") else points, dtype=np.float64)
    if points.shape[1] == 1:
        points = np.column_stack([points[:, 0], np.zeros(len(points))])
    return [
        _coloured(shown, points[:, :2], f"{shown.owner}: rows in two dimensions", ("first", "second")),
        *_descent(shown),
    ]


def _coloured(shown: Shown, points: Array, title: str, axes: tuple[str, str]) -> Markup:
    groups = shown.y
    if groups is None or len(groups) != len(points):
        groups = vars(shown.model).get("labels_")
    names: NDArray[Any] = np.empty(0)
    if groups is not None and len(groups) == len(points) and np.ndim(groups) == 1:
        names, codes = np.unique(np.asarray(groups), return_inverse=True)
    if not 1 < len(names) <= _MOST_GROUPS:
        return scatter(points[:, 0], points[:, 1], title=title, x_label=axes[0], y_label=axes[1])
    words = [clean(name, 14) for name in names.tolist()]
    return cluster_scatter(
        points[:, 0], points[:, 1], codes, names=words, title=title, x_label=axes[0], y_label=axes[1]
    )


def components(shown: Shown) -> list[Markup]:
    """Return the variances of the components, and rows and columns in the first two."""
    model = shown.model
    figures = []
    if shown.has("explained_variance_"):
        figures.append(scree(np.asarray(model.explained_variance_)[:20]))
    parts = np.asarray(model.components_, dtype=np.float64)
    if shown.X is None or len(parts) < 2:
        return figures or embedding(shown)
    scores = np.asarray(model.transform(shown.X), dtype=np.float64)[:, :2]
    share = vars(model).get("explained_variance_ratio_")
    words = ("first component", "second component")
    if share is not None:
        words = tuple(f"{word} ({100 * part:.0f} %)" for word, part in zip(words, share[:2], strict=True))  # type: ignore[assignment]
    if shown.y is None and parts.shape[1] == len(shown.names) and len(shown.names) <= _MOST_LINES:
        return [*figures, biplot(scores, parts[:2].T, names=[clean(name, 12) for name in shown.names], labels=words)]
    return [*figures, _coloured(shown, scores, "Rows in the first two components", words)]


def states(shown: Shown) -> list[Markup]:
    """Return the observations by time, coloured by the state they most likely came from, and its probability."""
    model = shown.model
    if shown.rows is None:
        P = np.asarray(model.transmat_)
        names = [f"state {k}" for k in range(len(P))]
        return [
            confusion_matrix(names, np.round(1000 * P), title="Transitions (per thousand)", side=240.0, numbers=True)
        ]
    rows = shown.rows[:_MOST_STEPS]
    path = np.asarray(model.predict(rows))
    K = len(model.transmat_)
    time = np.arange(len(rows))
    names = [f"state {k}" for k in range(K)]
    seen = cluster_scatter(
        time, rows[:, 0], path, names=names, title="Most likely states", x_label="time", y_label=shown.names[0]
    )
    chance = np.asarray(model.predict_proba(rows))
    lines = {names[k]: (time, chance[:, k]) for k in range(min(K, _MOST_GROUPS // 2))}
    chances = labelled_lines(lines, title="Probabilities of the states", x_label="time", y_label="probability")
    return [seen, chances]


def topics(shown: Shown) -> list[Markup]:
    """Return the most probable words of the first topics."""
    parts = np.asarray(shown.model.components_, dtype=np.float64)
    shares = parts / np.maximum(parts.sum(axis=1, keepdims=True), 1e-300)
    figures = []
    for k in range(min(len(shares), _TOPICS)):
        order = np.argsort(-shares[k], kind="stable")[:8]
        words = [shown.names[j] for j in order]
        figures.append(dot_intervals(words, shares[k][order], title=f"Topic {k}", x_label="probability"))
    return figures


def shares(shown: Shown) -> list[Markup]:
    """Return each individual's shares of the populations."""
    Q = np.asarray(shown.model.Q_)
    order = np.lexsort((-Q.max(axis=1), Q.argmax(axis=1)))
    return [share_bars([Q[order]], names=[f"K = {Q.shape[1]}"], title="Shares of the populations")]


def outliers(shown: Shown) -> list[Markup]:
    """Return the rows, those that do not belong in another colour."""
    rows = shown.need_rows("what it takes for outliers")
    plane = _Plane(rows, shown.names)
    points = plane(rows)
    inside = (np.asarray(shown.model.predict(shown.X)) > 0).astype(int)
    drawn = cluster_scatter(
        points[:, 0], points[:, 1], 1 - inside, names=["inside", "outside"], title=shown.owner,
        x_label=plane.labels[0], y_label=plane.labels[1],
    )  # fmt: skip
    return [drawn]


def neighbours(shown: Shown) -> list[Markup]:
    """Return how far the nearest other row is."""
    rows = shown.need_rows("distances to neighbours")
    distance = np.asarray(shown.model.kneighbors(rows, n_neighbors=2)[0], dtype=np.float64)[:, 1]
    counts, edges = np.histogram(distance, bins=min(30, max(5, int(len(rows) ** 0.5))))
    return [histogram(edges, counts, title="Distance to the nearest other row", x_label="distance")]


def selection(shown: Shown) -> list[Markup]:
    """Return which columns were kept, in which order, at which score."""
    known = vars(shown.model)
    figures = []
    if "ranking_" in known:
        order = np.argsort(known["ranking_"], kind="stable")[:_MOST_LINES]
        names = [shown.names[j] for j in order]
        title = "Rank of the columns (1 is kept)"
        figures.append(dot_intervals(names, np.asarray(known["ranking_"], float)[order], title=title, x_label="rank"))
    scores = known.get("scores_")
    if scores is not None and np.ndim(scores) == 1 and np.size(scores) > 1:
        x = np.arange(1, len(scores) + 1)
        figures.append(line_with_band(x, scores, title="Score by columns", x_label="columns", y_label="score"))
    folds = known.get("cv_results_") or {}
    if "mean_test_score" in folds and len(folds["mean_test_score"]) > 1:
        x = np.asarray(folds.get("n_features", np.arange(1, len(folds["mean_test_score"]) + 1)))
        y = np.asarray(folds["mean_test_score"])
        figures.append(line_with_band(x, y, title="Score over the folds", x_label="columns", y_label="score"))
    return figures


# --------------------------------------------------------------------------------------------------------------------
# Results that are no estimators.


def chains(result: Any) -> list[Markup]:
    """Return traces and ranks of the first number."""
    return [result.plot("trace"), result.plot("rank")]


def values(result: Any) -> list[Markup]:
    """Return the value of each state, between its proven bounds."""
    table = np.atleast_2d(np.asarray(result.values, dtype=np.float64))
    states = np.arange(table.shape[1])
    if len(table) > 1:
        shown = np.unique(np.linspace(0, len(table) - 1, 6).astype(int))
        lines = {f"after {t} steps": (states, table[t]) for t in shown}
        return [labelled_lines(lines, title="Values", x_label="state", y_label="value")]
    ends = [np.asarray(end, dtype=np.float64) for end in (result.lower, result.upper)]
    known = all(np.isfinite(end).all() for end in ends)
    drawn = line_with_band(
        states, table[0], *(ends if known else ()), title="Values, within proven bounds" if known else "Values",
        x_label="state", y_label="value",
    )  # fmt: skip
    policy = line_with_band(
        states, np.asarray(result.policy).reshape(-1), title="Policy", x_label="state", y_label="action"
    )
    return [drawn, policy]


def arms(policy: Any) -> list[Markup]:
    """Return how often each arm was played, and its mean reward."""
    names = [f"arm {k}" for k in range(policy.n_arms)]
    played = dot_intervals(names, policy.counts, title="How often each arm was played", x_label="rounds")
    return [played, dot_intervals(names, policy.means, title="Mean reward", x_label="reward")]


def returns(result: Any) -> list[Markup]:
    """Return the returns of the episodes, in blocks: the mean over seeds, between the quartiles."""
    table = np.atleast_2d(np.asarray(result.returns, dtype=np.float64))
    block = max(1, table.shape[1] // _GRID)
    whole = table[:, : table.shape[1] // block * block].reshape(len(table), -1, block).mean(axis=2)
    x = (np.arange(whole.shape[1]) + 0.5) * block
    ends = np.quantile(whole, [0.25, 0.75], axis=0) if len(table) > 1 else ()
    title = "Return by episode" if len(table) == 1 else "Return by episode, mean and quartiles over seeds"
    return [line_with_band(x, whole.mean(axis=0), *ends, title=title, x_label="episode", y_label="return")]


def training(result: Any) -> list[Markup]:
    """Return the returns of episodes, with exploration, and of evaluations, without."""
    lines = {}
    for words, table in (("episodes", result.episodes), ("evaluations", result.evaluations)):
        if len(table) > 1:
            lines[words] = (table[:, 0], table[:, 1])
    if not lines:
        raise DataError(f"plot: {result.agent} has finished too few episodes to draw; let it learn for longer.")
    return [labelled_lines(lines, title=f"{result.agent}: return while it learns", x_label="step", y_label="return")]


def own_figure(result: Any) -> list[Markup]:
    """Return what a result draws of itself, as simulations of bandits do."""
    return [result.plot()]


def learned_values(learner: Any) -> list[Markup]:
    """Return the value of the best action in each state, as a learner sees it."""
    table = np.asarray(learner.action_values, dtype=np.float64)
    best = table.reshape(-1, table.shape[-1]).max(axis=1)
    return [line_with_band(np.arange(len(best)), best, title="Values", x_label="state", y_label="value")]


# --------------------------------------------------------------------------------------------------------------------
# The tables.

Draw = Callable[[Shown], list[Markup]]


def _has_trees(shown: Shown) -> bool:
    return hasattr(vars(shown.model).get("trees_"), "n_trees")


def _is_one_tree(shown: Shown) -> bool:
    return hasattr(type(shown.model), "tree_") or shown.has("tree_")


def _is_one_column(shown: Shown) -> bool:
    one = shown.rows is not None and shown.rows.shape[1] == 1
    return bool(one and is_regressor(shown.model) and shown.y is not None and shown.y.ndim == 1)


def _is_machine_in_a_plane(shown: Shown) -> bool:
    two = shown.rows is not None and shown.rows.shape[1] == 2 and shown.y is not None
    return bool(two and shown.has("support_vectors_", "classes_") and len(shown.model.classes_) == 2)


def _is_boosted(shown: Shown) -> bool:
    return any(shown.has(name) for name, _ in _LOSSES if name != "loss_curve_")


#: What a model has → what is drawn, and whether predictions are shown beside it. The first that fits counts.
KINDS: Final[tuple[tuple[str, Callable[[Shown], bool], Draw, bool], ...]] = (
    ("hidden Markov model", lambda s: s.has("transmat_"), states, False),
    ("one tree", _is_one_tree, tree, False),
    ("regression on one column", _is_one_column, curve, False),
    ("support vector machine", _is_machine_in_a_plane, margin, True),
    ("forest or boosting", lambda s: _has_trees(s) or _is_boosted(s), ensemble, True),
    ("network", lambda s: s.has("loss_curve_"), rounds, True),
    ("choice of columns", lambda s: s.has("support_", "ranking_") or s.has("order_", "scores_"), selection, False),
    ("linear model", lambda s: s.has("coef_"), linear, True),
    ("population structure", lambda s: s.has("Q_", "P_"), shares, False),
    ("topics", lambda s: s.has("doc_topic_", "components_"), topics, False),
    ("embedding", lambda s: s.has("embedding_"), embedding, False),
    ("clusters", lambda s: s.has("cluster_centers_") or s.has("weights_", "means_"), clusters, False),
    ("mixture", lambda s: s.has("weights_", "bound_history_"), clusters, False),
    ("components", lambda s: s.has("components_") and hasattr(s.model, "transform"), components, False),
    ("outliers", lambda s: s.has("offset_", "support_vectors_"), outliers, False),
    ("prediction", lambda s: is_classifier(s.model) or is_regressor(s.model), lambda s: [], True),
    ("neighbours", lambda s: hasattr(s.model, "kneighbors"), neighbours, False),
    ("features", lambda s: hasattr(s.model, "transform"), embedding, False),
)

#: Results that are no estimators: by the attributes that they have.
RESULTS: Final[tuple[tuple[tuple[str, ...], Callable[[Any], list[Markup]]], ...]] = (
    (("rhat", "n_chains"), chains),
    (("values", "policy", "lower", "upper"), values),
    (("counts", "means", "n_arms"), arms),
    (("returns", "lengths", "policies"), returns),
    (("episodes", "evaluations", "best_score"), training),
    (("memory", "action_values"), learned_values),
    (("plot",), own_figure),
)
