"""Mixins: what a boosted model says about itself. The work is done by functions that take any model of trees."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if

from ...core import Array, DataError, NDArray, ParameterError
from ...data.door import read_weight
from ...trees._random import seed_of
from ...trees.layout import Trees, concatenate
from ._shap import walk_both_ways
from .additive import Additive, additive_trees, read_rows
from .margin import label_codes
from .permutation import Importances
from .shap import ShapValues, shap_interactions, shap_values

# --------------------------------------------------------------------------------------------------------------------
# Importance of columns in a sum of trees: by gain, by number of splits, by permutation.
#
# - *gain*: the fall of the trees' own objective at all splits on the column: of weight × impurity, or of the boosted
#   loss's second-order model. It judges on training rows, and favours columns with many values.
# - *split*: the number of splits.
# - *permutation*: the rise of the loss on given rows when the column's values are shuffled among them; on unseen rows a
#   column that tells nothing is near zero, of either sign. Only trees that ask about the column are walked again. (For
#   forests, `permutation_importances` of the model judges each tree on its own out-of-bag rows instead.)
#
# Reference: L. Breiman, Random forests, Machine Learning 45 (2001), section 10.


def tree_importances(model: Any, kind: str = "gain", *, normalize: bool = True) -> Array:
    """Return the importance of each column, (d,).

    Parameters
    ----------
    model : estimator
        A fitted decision tree, forest, gradient boosting model, or AdaBoostClassifier of decision trees.
    kind : {"gain", "split"}, default="gain"
        Fall of the objective, or number of splits.
    normalize : bool, default=True
        Whether they sum to one.

    Examples
    --------
    >>> from learnable import DecisionTreeRegressor
    >>> from learnable.ensembles import tree_importances
    >>> model = DecisionTreeRegressor().fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0.0, 0.0, 4.0, 5.0])
    >>> tree_importances(model, "split", normalize=False).tolist()
    [1.0, 1.0]
    """
    if kind not in ("gain", "split"):
        raise ParameterError(f"tree_importances: kind must be 'gain' or 'split'; got {kind!r}.")
    total = np.zeros(model.n_features_in_)
    for trees in additive_trees(model).parts:
        inner, fall = trees.falls()
        amount = fall if kind == "gain" else np.ones(len(inner))
        total += np.bincount(trees.feature[inner], amount, len(total))
    return total / total.sum() if normalize and total.sum() > 0 else total


def loss_importances(
    model: Any, X: Any, y: Any, sample_weight: Any = None, *, n_repeats: int = 5, random_state: Any = None,
    n_jobs: int | None = None,
) -> Importances:  # fmt: skip
    """Return the rise of the mean loss when a column is shuffled, over `n_repeats` shuffles.

    The loss is that of the boosted model; for trees and forests the squared error, or the share of errors.

    Parameters
    ----------
    model : estimator
        A fitted decision tree, forest, gradient boosting model, or AdaBoostClassifier of decision trees.
    X, y, sample_weight : arrays
        Rows that judge; best those that were not fitted.
    n_repeats : int, default=5
        Shuffles of each column.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the shuffles.
    n_jobs : int or None, default=None
        Threads; the importances do not depend on it.

    Returns
    -------
    Importances
        `mean`, and `standard_error` over the shuffles (NaN for one).
    """
    form = additive_trees(model)
    rows = read_rows(model, X)
    Z = rows.toarray() if sp.issparse(rows) else np.array(rows, dtype=np.float64)
    loss = _loss_of(model, np.asarray(y), len(Z))
    weight = read_weight(type(model).__name__, sample_weight, len(Z))
    scores = _scores(form, Z, n_jobs)
    seed = seed_of(random_state)
    d = Z.shape[1]
    before = float(np.average(loss(scores), weights=weight))
    rises = np.zeros((n_repeats, d))
    for j in range(d):
        part = _asking(form, j)
        if part is None:
            continue
        own = _scores(part, Z, n_jobs)
        kept = Z[:, j].copy()
        for repeat in range(n_repeats):
            order = np.random.default_rng([seed, j, repeat]).permutation(len(Z))
            Z[:, j] = kept[order]
            after = scores - own + _scores(part, Z, n_jobs)
            rises[repeat, j] = float(np.average(loss(after), weights=weight)) - before
        Z[:, j] = kept
    spread = rises.std(axis=0, ddof=1) if n_repeats > 1 else np.full(d, np.nan)
    return Importances(rises.mean(axis=0), spread / np.sqrt(n_repeats))


def _asking(form: Additive, j: int) -> Additive | None:
    """Return the trees that ask about column j, without the base; outputs without one get a tree that says zero."""
    parts = []
    any_tree = False
    for trees in form.parts:
        owner = np.repeat(np.arange(trees.n_trees), np.diff(trees.start))
        asked = np.unique(owner[trees.feature == j])
        any_tree |= len(asked) > 0
        parts.append(concatenate([trees.tree(int(t)) for t in asked]) if len(asked) else None)
    if not any_tree:
        return None
    return Additive(parts, form.scale, np.zeros_like(form.base))  # type: ignore[arg-type]


def _scores(form: Additive, X: Array, n_jobs: int | None) -> Array:
    """Return the scores, (n, K)."""
    parts = [np.zeros((len(X), 1)) if trees is None else trees.sum(X, n_jobs) for trees in form.parts]
    return form.base + form.scale * np.concatenate(parts, axis=1)


def _loss_of(model: Any, y: NDArray[Any], n: int) -> Any:
    """Return the function from scores (n, K) to the loss of each row."""
    if y.shape[0] != n:
        raise DataError(f"{type(model).__name__}: X has {n} rows, but y has {y.shape[0]} targets.")
    classes = getattr(model, "classes_", None)
    truth = y if classes is None else label_codes(y, classes, type(model).__name__)
    if hasattr(model, "_fitted_loss"):
        loss = model._fitted_loss()
        target = loss.targets.truth(truth)
        return lambda scores: loss.value(target, np.ascontiguousarray(scores.T))
    if classes is None:
        return lambda scores: np.square(scores - truth.reshape(n, -1)).mean(axis=1)
    return lambda scores: (
        (scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(np.int64)) != truth
    ).astype(np.float64)


# --------------------------------------------------------------------------------------------------------------------
# Partial dependence: the mean score of a tree model as a function of one or two columns, over the others.
#
#     f_S(x_S) = E_C f(x_S, X_C).
#
# `method="brute"` takes the mean over given rows, each with x_S put in; `method="recursion"` takes the training
# weight in the trees: one walk down each tree, which goes both ways, in proportion, at questions about columns
# outside S. That is v(S) of the Shapley values; no rows are needed, and it takes O(nodes) for each point of the grid.
# The two differ where the columns depend on each other.
#
# Reference: J. Friedman, Greedy function approximation, Annals of Statistics 29 (2001), section 8.2.


class PartialDependence(NamedTuple):
    """The mean score on a grid."""

    grid: list[Array]  #: values of each column
    average: Array  #: (values of the first column[, of the second]), and the scores at the end if there are several


def partial_dependence(
    model: Any,
    X: Any,
    features: Any,
    *,
    grid_resolution: int = 100,
    percentiles: tuple[float, float] = (0.05, 0.95),
    method: str = "auto",
    n_jobs: int | None = None,
) -> PartialDependence:
    """Return the partial dependence of a tree model's score on one or two columns.

    Parameters
    ----------
    model : estimator
        A fitted decision tree, forest, gradient boosting model, or AdaBoostClassifier of decision trees.
    X : array, sparse array or dataframe of shape (n_samples, n_features)
        Rows that the grid is made from and, with `method="brute"`, the mean is taken over.
    features : int, str, or sequence of one or two of them
        Columns, by number or name.
    grid_resolution : int, default=100
        Values of a column: all of them if it has so few, otherwise so many at equal distances between the percentiles.
    percentiles : (float, float), default=(0.05, 0.95)
        Ends of the grid, as shares of the rows.
    method : {"auto", "recursion", "brute"}, default="auto"
        "auto" is "recursion".
    n_jobs : int or None, default=None
        Threads of "brute".

    Examples
    --------
    >>> from learnable import DecisionTreeRegressor
    >>> from learnable.ensembles import partial_dependence
    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 4.0])
    >>> found = partial_dependence(model, X, 0)
    >>> found.grid[0].tolist(), found.average.tolist()
    ([0.0, 1.0], [0.0, 2.0])
    """
    if method not in ("auto", "recursion", "brute"):
        raise ParameterError(f"partial_dependence: method must be 'auto', 'recursion' or 'brute'; got {method!r}.")
    form = additive_trees(model)
    rows = read_rows(model, X)
    columns = _columns(model, features, rows.shape[1])
    grid = [_grid_values(rows, j, grid_resolution, percentiles) for j in columns]
    points = np.array(list(product(*grid)))
    if method == "brute":
        parts = [_brute(trees, rows, columns, points, n_jobs) for trees in form.parts]
    else:
        parts = [tree_partial_dependence(trees, columns, points) for trees in form.parts]
    average = form.base + form.scale * np.concatenate(parts, axis=1)
    shape = [len(values) for values in grid]
    return PartialDependence(grid, average.reshape(*shape, -1) if average.shape[1] > 1 else average.reshape(shape))


def tree_partial_dependence(trees: Trees, columns: Sequence[int], points: Array) -> Array:
    """Return the sum of the trees at points (p, |S|) of the columns S, by walks that go both ways elsewhere, (p, K)."""
    out = np.zeros((len(points), trees.value.shape[1]))
    place = np.full(max(int(trees.feature.max(initial=0)), *columns) + 1, -1, np.int64)
    place[list(columns)] = np.arange(len(columns))
    nodes = (trees.threshold, trees.missing_left, trees.category, trees.bits)
    reach = np.empty(int(np.diff(trees.start).max()))
    links = (trees.start, trees.feature, trees.left, trees.right, trees.weight)
    walk_both_ways(np.ascontiguousarray(points, np.float64), place, links, nodes, trees.value, reach, out)
    return out


def _brute(trees: Trees, rows: Any, columns: Sequence[int], points: Array, n_jobs: int | None) -> Array:
    dense = rows.toarray() if sp.issparse(rows) else np.array(rows, dtype=np.float64)
    out = np.empty((len(points), trees.value.shape[1]))
    for i, point in enumerate(points):
        dense[:, list(columns)] = point
        out[i] = trees.sum(dense, n_jobs).mean(axis=0)
    return out


def _columns(model: Any, features: Any, d: int) -> list[int]:
    chosen = list(features) if isinstance(features, (list, tuple, np.ndarray)) else [features]
    names = list(getattr(model, "feature_names_in_", []))
    found = []
    for one in chosen:
        if isinstance(one, str):
            if one not in names:
                raise ParameterError(f"partial_dependence: there is no column {one!r}; features are {names[:10]!r}.")
            found.append(names.index(one))
        elif isinstance(one, (int, np.integer)) and -d <= one < d:
            found.append(int(one) % d)
        else:
            raise ParameterError(f"partial_dependence: features must be columns 0 … {d - 1} or names; got {one!r}.")
    if not 1 <= len(found) <= 2 or len(set(found)) != len(found):
        raise ParameterError(f"partial_dependence: features must be one or two columns; got {features!r}.")
    return found


def _grid_values(rows: Any, j: int, resolution: int, percentiles: tuple[float, float]) -> Array:
    column = rows[:, [j]].toarray().ravel() if sp.issparse(rows) else np.asarray(rows[:, j], dtype=np.float64)
    column = column[~np.isnan(column)]
    low, high = percentiles
    if not (0.0 <= low < high <= 1.0) or resolution < 2:
        raise ParameterError(
            "partial_dependence: percentiles must ascend between 0 and 1 and grid_resolution must be >= 2; got "
            f"{percentiles!r} and {resolution!r}."
        )
    if not len(column):
        raise ParameterError(f"partial_dependence: column {j} of X has no value.")
    values = np.unique(column)
    if len(values) <= resolution:
        return values
    first, last = np.quantile(column, [low, high])
    return np.linspace(first, last, resolution)


class ExplainedTrees:
    """Adds explanations to a model whose score is a sum of trees; see `additive`."""

    n_jobs: int | None

    def shap_values(self, X: Any) -> ShapValues:
        """Return the exact Shapley values of the score of each row, and their base; see `shap_values`."""
        return shap_values(self, X, n_jobs=self.n_jobs)

    def shap_interactions(self, X: Any) -> Array:
        """Return the exact Shapley interaction values of each row; see `shap_interactions`."""
        return shap_interactions(self, X, n_jobs=self.n_jobs)

    def partial_dependence(self, X: Any, features: Any, **options: Any) -> PartialDependence:
        """Return the mean score as a function of one or two columns; see `partial_dependence`."""
        return partial_dependence(self, X, features, n_jobs=self.n_jobs, **options)

    def importances(self, kind: str = "gain", *, normalize: bool = True) -> Array:
        """Return the importance of each column by "gain" or "split"; see `tree_importances`."""
        return tree_importances(self, kind, normalize=normalize)

    def permutation_importances(
        self, X: Any, y: Any, sample_weight: Any = None, *, n_repeats: int = 5, random_state: Any = None
    ) -> Importances:
        """Return the rise of the model's loss when a column is shuffled; see `loss_importances`."""
        return loss_importances(
            self, X, y, sample_weight, n_repeats=n_repeats, random_state=random_state, n_jobs=self.n_jobs
        )


def _has_distribution(model: Any) -> bool:
    several = model.loss == "quantile" and np.ndim(model.quantile if hasattr(model, "quantile") else model.alpha) > 0
    return bool(model.loss == "normal" or several)


class PredictiveDistribution:
    """Adds a distribution for each row, where the loss fits one; see `distribution`."""

    @available_if(_has_distribution)  # type: ignore[untyped-decorator]
    def predict_dist(self, X: Any) -> Any:
        """Return the predictive distribution of each row: from the quantiles, or Normal; see `distribution`.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            New rows.
        """
        from ..gradient.distribution import predict_dist

        return predict_dist(self, X)

    @available_if(_has_distribution)  # type: ignore[untyped-decorator]
    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Array, Array]:
        """Return the ends of the equal-tailed interval that has probability `level`, of each row."""
        from ..gradient.distribution import predict_interval

        return predict_interval(self, X, level)
