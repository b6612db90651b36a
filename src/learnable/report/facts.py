"""What is worth knowing about a fitted model, read off its fitted attributes: one table from attribute to words.

A model is described by what it has, not by its name: coefficients, trees, components, states, support vectors. So a new
model is described without a line of code here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..plots.markup import clean

Array = NDArray[np.float64]

MOST_LINES: Final = 10
_MOST_COLUMNS: Final = 5
_LABEL: Final = 28  # characters of a name
_DIGITS: Final = re.compile(r"\d+\.\d{5,}(e[+-]?\d+)?")  # a number with more digits than anybody reads


class Grid(NamedTuple):
    """A small table of texts."""

    title: str
    head: list[str]
    rows: list[list[str]]
    note: str = ""


#: What a fit has optimised or reached, by the attribute that holds it (a list: its last value). The first one counts.
OBJECTIVES: Final = (
    ("log_marginal_likelihood_value_", "log marginal likelihood"),
    ("log_marginal_likelihood_", "log marginal likelihood"),
    ("log_likelihood_", "log-likelihood"),
    ("lower_bound_", "log-likelihood per row"),
    ("bound_", "lower bound of the log-likelihood"),
    ("loglike_", "log-likelihood"),
    ("bound_history_", "log-likelihood, with the log-prior if there is one"),
    ("inertia_", "sum of squared distances to the centres"),
    ("stress_", "stress"),
    ("normalized_cut_", "normalised cut"),
    ("reconstruction_err_", "error of the reconstruction"),
    ("reconstruction_error_", "error of the reconstruction"),
    ("residual_variance_", "residual variance"),
    ("objective_", "objective"),
    ("training_loss_", "mean training loss after the last round"),
    ("train_loss_", "mean training loss after the last round"),
    ("exponential_loss_", "mean exponential loss after the last round"),
    ("loss_", "training loss"),
    ("deviance_", "deviance"),
    ("risk_", "mean training loss"),
    ("deviance_path_", "deviance at this number of columns"),
    ("objective_path_", "objective at this number of columns"),
    ("residual_norm_", "norm of the residuals"),
)
#: The same attribute means something else in models that also have the second one.
_OTHER_WORDS: Final = {
    ("lower_bound_", "weight_concentration_"): "lower bound of the log evidence",
    ("inertia_", "medoid_indices_"): "sum of distances to the medoids",
}

#: Other single numbers and words, all that are there.
NUMBERS: Final = (
    ("alpha_", "α"),
    ("C_", "C"),
    ("l1_ratio_", "share of the L1 penalty"),
    ("dual_gap_", "duality gap"),
    ("null_deviance_", "deviance of the mean alone"),
    ("dispersion_", "dispersion"),
    ("effective_parameters_", "effective parameters"),
    ("oob_score_", "score on rows out of the bag"),
    ("best_score_", "best score over the folds"),
    ("best_validation_score_", "best score on held-out rows"),
    ("ccp_alpha_", "pruning λ"),
    ("gamma_", "kernel parameter γ"),
    ("epsilon_", "ε"),
    ("kernel_", "kernel"),
    ("noise_variance_", "noise variance"),
    ("intercept_", "intercept"),
    ("margin_", "margin"),
    ("error_", "training error"),
    ("n_components_", "components"),
    ("n_features_", "columns kept"),
    ("n_features_to_select_", "columns kept"),
    ("n_output_features_", "columns made"),
    ("n_samples_fit_", "rows kept"),
    ("effective_metric_", "distance"),
    ("guarantee_", "guarantee"),
    ("converged_", "converged"),
)


def objective(model: Any) -> tuple[str, str] | None:
    """Return the words and the value of what the fit has reached."""
    for name, words in OBJECTIVES:
        value = vars(model).get(name)
        if value is None or (np.size(value) == 0):
            continue
        values = np.asarray(value, dtype=np.float64).ravel()
        for (attribute, beside), other in _OTHER_WORDS.items():
            if attribute == name and beside in vars(model):
                words = other
        return words, number(values[_chosen(model, values) if name.endswith("_path_") else -1])
    return None


def _chosen(model: Any, path: Array) -> int:
    """Return the place of the chosen number of columns in a path over all numbers of columns."""
    support = vars(model).get("support_")
    if support is None:
        return -1
    size = int(np.sum(support))
    sizes = vars(model).get("sizes_")
    if sizes is not None and size in np.asarray(sizes):
        return int(np.flatnonzero(np.asarray(sizes) == size)[0])
    return min(size, len(path) - 1)


def single_numbers(model: Any) -> list[tuple[str, str]]:
    """Return the single numbers and words that a model has, with what they are."""
    found = []
    for name, words in NUMBERS:
        value = vars(model).get(name)
        if value is None or np.size(value) != 1:
            continue
        if isinstance(value, (str, bool)) or not np.issubdtype(np.asarray(value).dtype, np.number):
            found.append((words, clean(_DIGITS.sub(lambda digits: number(float(digits[0])), str(value)), 60)))
        else:
            found.append((words, number(float(np.asarray(value).ravel()[0]))))
    return found


def grids(model: Any, names: list[str]) -> list[Grid]:
    """Return the tables that say most about a model of this kind."""
    found = []
    for has, describe in _KINDS:
        if has(model):
            grid = describe(model, names)
            if grid is not None and grid.rows:
                found.append(grid)
    return found


def column_names(model: Any) -> list[str]:
    """Return the names of the columns, x0, x1 … where they have none."""
    given = getattr(model, "feature_names_in_", None)
    if given is not None:
        return [str(name) for name in given]
    return [f"x{j}" for j in range(int(getattr(model, "n_features_in_", 0) or 0))]


def number(value: float) -> str:
    """Return a number with four digits; a whole one as it is."""
    if not np.isfinite(value):
        return str(value)
    if float(value).is_integer() and abs(value) < 1e6:
        return f"{value + 0.0:,.0f}"  # no minus before a zero
    return f"{value:.4g}"


# --------------------------------------------------------------------------------------------------------------------
# The kinds.


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda model: all(vars(model).get(name) is not None for name in names)


def _coefficients(model: Any, names: list[str]) -> Grid | None:
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else np.asarray(model.coef_)
    if coef.dtype == object or coef.ndim > 2 or coef.shape[-1] != len(names):
        return None
    table = np.atleast_2d(coef).astype(np.float64)
    heads = _outputs(model, len(table))
    size = np.abs(table).max(axis=0)
    order = np.argsort(-size, kind="stable")[:MOST_LINES]
    rows = [[_label(names[j]), *(number(value) for value in table[:_MOST_COLUMNS, j])] for j in order]
    n_zero = int((size == 0).sum())
    note = f"{n_zero:,} of {len(size):,} columns have coefficient zero." if n_zero else ""
    return Grid("Coefficients, the largest first", ["column", *heads[:_MOST_COLUMNS]], rows, note)


def _outputs(model: Any, count: int) -> list[str]:
    """Return the names of what coefficients lead to: classes, targets, or one number."""
    if count == 1:
        return ["coefficient"]
    classes = getattr(model, "classes_", None)
    if classes is not None and len(classes) == count:
        return [_label(label) for label in classes]
    return [f"{k}" for k in range(count)]


def _importances(model: Any, names: list[str]) -> Grid | None:
    values = importances_of(model)
    if values.shape != (len(names),):
        return None
    order = np.argsort(-values, kind="stable")[:MOST_LINES]
    rows = [[_label(names[j]), f"{values[j]:.3f}"] for j in order if values[j] > 0]
    return Grid("Importance of the columns (share in what the splits gain)", ["column", "share"], rows)


def _trees(model: Any, names: list[str]) -> Grid:
    trees = model.trees_
    depth = [trees.tree(t).max_depth for t in range(min(trees.n_trees, 50))]
    leaves = np.add.reduceat((trees.feature < 0).astype(np.int64), trees.start[:-1])
    rows = [["leaves", f"{leaves.min():,}", f"{leaves.mean():,.1f}", f"{leaves.max():,}"]]
    rows.append(["depth", f"{min(depth):,}", f"{np.mean(depth):,.1f}", f"{max(depth):,}"])
    if trees.n_trees == 1:
        return Grid("The tree", ["leaves", "depth"], [[f"{leaves[0]:,}", f"{depth[0]:,}"]])
    return Grid(f"{trees.n_trees:,} trees", ["", "smallest", "mean", "largest"], rows)


def _centres(model: Any, names: list[str]) -> Grid | None:
    centres = np.asarray(getattr(model, "cluster_centers_", None))
    if centres.ndim != 2:
        return None
    labels = vars(model).get("labels_")
    counts = None if labels is None else np.bincount(labels[labels >= 0], minlength=len(centres))
    shown = names if len(names) == centres.shape[1] else [f"axis {j}" for j in range(centres.shape[1])]
    return _components("Clusters", "rows", counts, centres, shown)


def _mixture(model: Any, names: list[str]) -> Grid | None:
    weights = np.asarray(model.weights_)
    means = np.asarray(vars(model).get("means_", np.empty((len(weights), 0))))
    if weights.ndim != 1 or means.ndim != 2 or len(means) != len(weights):
        return None
    shown = [f"mean of {name}" for name in names] if means.shape[1] == len(names) else []
    return _components("Components", "weight", weights, means[:, : len(shown)], shown)


def _components(title: str, what: str, sizes: Any, values: Any, names: list[str]) -> Grid:
    order = range(len(values)) if sizes is None else np.argsort(-np.asarray(sizes), kind="stable")
    columns = names[:_MOST_COLUMNS]
    rows = [
        [f"{k}", *([] if sizes is None else [number(float(sizes[k]))]), *(number(v) for v in values[k][: len(columns)])]
        for k in list(order)[:MOST_LINES]
    ]
    more = f"The first {len(columns)} of {len(names)} columns." if len(names) > len(columns) else ""
    head = ["", *([] if sizes is None else [what]), *(_label(name) for name in columns)]
    return Grid(title, head, rows, more)


def _transitions(model: Any, names: list[str]) -> Grid:
    P = np.asarray(model.transmat_)
    K = min(len(P), MOST_LINES)
    rows = [[f"state {k}", *(f"{p:.3f}" for p in P[k, :K]), number(1.0 / max(1.0 - P[k, k], 1e-12))] for k in range(K)]
    return Grid("Transitions", ["from", *(f"to {k}" for k in range(K)), "mean stay"], rows)


def _states(model: Any, names: list[str]) -> Grid | None:
    for name, words in (("means_", "mean"), ("lambdas_", "rate"), ("emissionprob_", "P(symbol)")):
        values = vars(model).get(name)
        if values is not None and np.ndim(values) == 2:
            symbols = [f"{words} of {n}" for n in names]
            if name == "emissionprob_":
                symbols = [f"P({j})" for j in range(np.shape(values)[1])]
            return _components("States", "", None, np.asarray(values), symbols)
    return None


def _variances(model: Any, names: list[str]) -> Grid:
    shares = np.asarray(model.explained_variance_ratio_)
    total = np.cumsum(shares)
    rows = [
        [f"{k + 1}", f"{100 * shares[k]:.1f} %", f"{100 * total[k]:.1f} %"] for k in range(min(len(shares), MOST_LINES))
    ]
    return Grid("Variance explained", ["component", "share", "together"], rows)


def _loadings(model: Any, names: list[str]) -> Grid | None:
    parts = np.asarray(model.components_, dtype=np.float64)
    if parts.ndim != 2 or parts.shape[1] != len(names):
        return None
    rows = []
    for k in range(min(len(parts), MOST_LINES)):
        largest = np.argsort(-np.abs(parts[k]), kind="stable")[:_MOST_COLUMNS]
        rows.append([f"{k + 1}", ", ".join(f"{_label(names[j])} {number(parts[k, j])}" for j in largest)])
    return Grid("Components, by their largest columns", ["component", "columns"], rows)


def _support_vectors(model: Any, names: list[str]) -> Grid:
    counts = np.asarray(model.n_support_).ravel()
    classes = getattr(model, "classes_", None)
    labels = [_label(label) for label in classes] if classes is not None and len(classes) == len(counts) else ["all"]
    rows = [[label, f"{count:,}"] for label, count in zip(labels, counts, strict=False)]
    return Grid("Support vectors", ["class", "rows"], rows[:MOST_LINES])


def _classes(model: Any, names: list[str]) -> Grid | None:
    prior = next((vars(model)[name] for name in ("class_prior_", "priors_") if vars(model).get(name) is not None), None)
    if prior is None:
        prior = np.exp(model.class_log_prior_)
    means = next((vars(model)[name] for name in ("theta_", "means_") if vars(model).get(name) is not None), None)
    table = np.empty((len(prior), 0)) if means is None or np.ndim(means) != 2 else np.asarray(means)
    columns = names[:_MOST_COLUMNS] if table.shape[1] == len(names) else []
    rows = [
        [_label(label), f"{p:.3f}", *(number(v) for v in table[k, : len(columns)])]
        for k, (label, p) in enumerate(zip(model.classes_, prior, strict=True))
    ]
    return Grid("Classes", ["class", "share", *(f"mean of {_label(name)}" for name in columns)], rows[:MOST_LINES])


def _network(model: Any, names: list[str]) -> Grid:
    rows = [["layers", f"{model.n_layers_:,}"], ["weights", f"{np.size(model.theta_):,}"]]
    rows.append(["epochs", f"{model.n_epochs_:,}"])
    return Grid("Network", ["", "number"], rows)


def _kept_columns(model: Any, names: list[str]) -> Grid | None:
    support = np.asarray(model.support_)
    if support.dtype != bool or support.shape != (len(names),):
        return None
    kept = [_label(names[j]) for j in np.flatnonzero(support)]
    return Grid("Columns kept", ["number", "columns"], [[f"{len(kept):,}", clean(", ".join(kept), 200)]])


def _spectrum(model: Any, names: list[str]) -> Grid | None:
    values = np.asarray(model.eigenvalues_, dtype=np.float64)
    if values.ndim != 1 or "embedding_" not in vars(model):
        return None
    return Grid("Eigenvalues", [f"{k + 1}" for k in range(min(len(values), 8))], [[number(v) for v in values[:8]]])


def _members(model: Any, names: list[str]) -> Grid | None:
    members: Sequence[Any] = vars(model).get("estimators_") or vars(model).get("members_") or []
    weights = vars(model).get("weights_")
    rows = []
    for k, member in enumerate(list(members)[:MOST_LINES]):
        weight = [] if weights is None or len(weights) != len(members) else [number(float(weights[k]))]
        rows.append([_label(type(member).__name__), *weight])
    kinds = {row[0] for row in rows}
    if len(kinds) == 1 and weights is None:
        return Grid("Members", ["model", "number"], [[rows[0][0], f"{len(members):,}"]])
    return Grid("Members", ["model", *(["weight"] if rows and len(rows[0]) > 1 else [])], rows)


def _inner(model: Any, names: list[str]) -> Grid | None:
    inner = vars(model).get("model_", vars(model).get("estimator_"))
    certificate = getattr(inner, "certificate_", None)
    text = "" if certificate is None else certificate.sentence
    return Grid("The model inside", ["model", "fit"], [[type(inner).__name__, text]])


def _is_hidden_markov(model: Any) -> bool:
    return _has("transmat_")(model)


def has_importances(model: Any) -> bool:
    """Tell whether splits can be counted for columns."""
    own = hasattr(type(model), "feature_importances_") and getattr(model, "feature_importances_", None) is not None
    return own or hasattr(vars(model).get("trees_"), "feature_importances")


def importances_of(model: Any) -> Array:
    """Return each column's share in what the splits gain, (d,)."""
    if hasattr(type(model), "feature_importances_"):
        return np.asarray(model.feature_importances_, dtype=np.float64)
    gains = np.asarray(model.trees_.feature_importances(model.n_features_in_, normalize=False))
    return gains / gains.sum() if gains.sum() > 0 else gains


def _has_classes(model: Any) -> bool:
    known = vars(model)
    return "classes_" in known and any(name in known for name in ("class_prior_", "priors_", "class_log_prior_"))


_KINDS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any, list[str]], Grid | None]], ...]] = (
    (_has("coef_", "n_features_in_"), _coefficients),
    (lambda model: hasattr(vars(model).get("trees_"), "n_trees"), _trees),
    (has_importances, _importances),
    (_has("cluster_centers_"), _centres),
    (
        lambda model: _has("weights_")(model) and not _is_hidden_markov(model) and "members_" not in vars(model),
        _mixture,
    ),
    (_is_hidden_markov, _transitions),
    (_is_hidden_markov, _states),
    (_has("explained_variance_ratio_"), _variances),
    (_has("components_"), _loadings),
    (_has("n_support_", "support_vectors_"), _support_vectors),
    (_has_classes, _classes),
    (_has("theta_", "n_layers_", "n_epochs_"), _network),
    (_has("support_", "n_features_in_"), _kept_columns),
    (_has("eigenvalues_"), _spectrum),
    (lambda model: bool(vars(model).get("estimators_") or vars(model).get("members_")), _members),
    (lambda model: hasattr(vars(model).get("model_", vars(model).get("estimator_")), "fit"), _inner),
)


def declared(model: Any) -> Grid | None:
    """Return what the class says about its fitted attributes: for models that no kind above describes."""
    rows = []
    for name, attribute in getattr(model, "_declared_attributes", {}).items():
        value = vars(model).get(name)
        if value is None or name in ("certificate_", "n_features_in_"):
            continue
        shape = "×".join(str(size) for size in np.shape(value)) if isinstance(value, np.ndarray) else ""
        shown = shape or clean(str(value), 24)
        rows.append([name, shown, clean(str(attribute.meaning).split(". ")[0], 48)])
    return Grid("Fitted attributes", ["name", "value or shape", "meaning"], rows[:MOST_LINES]) if rows else None


def _label(text: Any) -> str:
    return clean(text, _LABEL)
