r"""Importance of columns in a sum of trees: by gain, by number of splits, by permutation.

- *gain*: the fall of the trees' own objective at all splits on the column: of weight × impurity, or of the boosted
  loss's second-order model. It judges on training rows, and favours columns with many values.
- *split*: the number of splits.
- *permutation*: the rise of the loss on given rows when the column's values are shuffled among them; on unseen rows a
  column that tells nothing is near zero, of either sign. Only trees that ask about the column are walked again. (For
  forests, `permutation_importances` of the model judges each tree on its own out-of-bag rows instead.)

Reference: L. Breiman, Random forests, Machine Learning 45 (2001), section 10.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.errors import DataError, ParameterError
from ...data.targets import read_weight
from ...trees.layout import Trees, concatenate
from ..draws import new_seed
from ..margin import label_codes
from ..permutation import Importances
from .additive import Additive, additive_trees, read_rows

Array = NDArray[np.float64]


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
        inner = np.flatnonzero(trees.feature >= 0)
        amount = _falls(trees, inner) if kind == "gain" else np.ones(len(inner))
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
    form, rows = additive_trees(model), read_rows(model, X)
    Z = rows.toarray() if sp.issparse(rows) else np.array(rows, dtype=np.float64)
    loss = _loss_of(model, np.asarray(y), len(Z))
    weight = read_weight(type(model).__name__, sample_weight, len(Z))
    scores, seed, d = _scores(form, Z, n_jobs), new_seed(random_state), Z.shape[1]
    before = float(np.average(loss(scores), weights=weight))
    rises = np.zeros((n_repeats, d))
    for j in range(d):
        part = _asking(form, j)
        if part is None:
            continue
        own, kept = _scores(part, Z, n_jobs), Z[:, j].copy()
        for repeat in range(n_repeats):
            order = np.random.default_rng([seed, j, repeat]).permutation(len(Z))
            Z[:, j] = kept[order]
            after = scores - own + _scores(part, Z, n_jobs)
            rises[repeat, j] = float(np.average(loss(after), weights=weight)) - before
        Z[:, j] = kept
    spread = rises.std(axis=0, ddof=1) if n_repeats > 1 else np.full(d, np.nan)
    return Importances(rises.mean(axis=0), spread / np.sqrt(n_repeats))


def _falls(trees: Trees, inner: NDArray[np.int64]) -> Array:
    mass = trees.weight * trees.impurity
    first = trees.start[np.searchsorted(trees.start, inner, side="right") - 1]
    return mass[inner] - mass[first + trees.left[inner]] - mass[first + trees.right[inner]]


def _asking(form: Additive, j: int) -> Additive | None:
    """Return the trees that ask about column j, without the base; outputs without one get a tree that says zero."""
    parts, any_tree = [], False
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
        target = loss.truth(truth)
        return lambda scores: loss.value(target, np.ascontiguousarray(scores.T))
    if classes is None:
        return lambda scores: np.square(scores - truth.reshape(n, -1)).mean(axis=1)
    return lambda scores: (
        (scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(np.int64)) != truth
    ).astype(np.float64)
