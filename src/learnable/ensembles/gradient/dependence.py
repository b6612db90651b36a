r"""Partial dependence: the mean score of a tree model as a function of one or two columns, over the others.

    f_S(x_S) = E_C f(x_S, X_C).

`method="brute"` takes the mean over given rows, each with x_S put in; `method="recursion"` takes the training weight in
the trees: one walk down each tree, which goes both ways, in proportion, at questions about columns outside S. That is
v(S) of the Shapley values; no rows are needed, and it takes O(nodes) for each point of the grid. The two differ where
the columns depend on each other.

Reference: J. Friedman, Greedy function approximation, Annals of Statistics 29 (2001), section 8.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.errors import ParameterError
from ...trees.layout import Trees
from ._shap_kernels import walk_both_ways
from .additive import additive_trees, read_rows

Array = NDArray[np.float64]


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
    form, rows = additive_trees(model), read_rows(model, X)
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
