"""Independent check of forests: bags are drawn again, and every tree is walked again from its root, in plain NumPy.

What is recomputed and compared is said in `learnable.trees.verify`; here it is done for every tree, with the rows of
its own bag. The targets that a regressor keeps of its leaves are compared as well. Cost: O(T · depth · m · n log n) for
m candidate columns a node, some ten times that of the fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, VerificationError
from ..core.verification import Recheck
from ..trees.settings import categorical_mask
from ..trees.split_scores import scores_for
from ..trees.verify import AGREE, Rules, TreeWalk, bin_numbers
from ._forest import tree_seed
from .draws import draw_rows

Array = NDArray[np.float64]
Ids = NDArray[np.int64]


def forest(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a random forest or of extremely randomised trees."""
    try:
        table = type(model)._door(model._draft(), X, y, sample_weight)
    except DataError as error:
        raise VerificationError(f"verify: the data are not the table of the fit: {error}") from error
    n, d = table.n_rows, table.n_columns
    if table.fingerprint != model.certificate_.fingerprint or (n, d) != (model.n_samples_, model.n_features_in_):
        return Recheck(np.inf, 0.0, table.fingerprint)
    labels = [] if table.classes is None else table.classes if isinstance(table.classes, list) else [table.classes]
    shown = [] if not labels else model.classes_ if isinstance(model.classes_, list) else [model.classes_]
    if [own.tolist() for own in labels] != [own.tolist() for own in shown]:
        return Recheck(np.inf, 0.0, f"{table.fingerprint}, but the labels are others")
    mask = categorical_mask(model, d)
    values = table.X if model.max_bins is None else bin_numbers(table.X, model.max_bins, mask)
    weight = model._row_weight(table)
    rules = Rules(model._rule(table, weight), np.zeros(d, dtype=bool) if mask is None else mask, model.ccp_alpha == 0)
    worst = 0.0
    for number in range(model.trees_.n_trees):
        w, rows = _weights(model, table, weight, number)
        scores = scores_for(model.criterion, table.y, [len(own) for own in labels], w)
        tree = model.trees_.tree(number)
        walked = TreeWalk(tree, table.X, values, w, scores, rules, tree_seed(model.seed_, number))
        worst = max(worst, walked.shortfall())
        if not labels and not _holds_targets(model, table, number, rows, walked.leaf):
            return Recheck(
                np.inf, 0.0, f"{table.fingerprint}, but the targets in the leaves of tree {number} are others"
            )
    return Recheck(worst, AGREE, table.fingerprint)


def _weights(model: Any, table: Any, weight: Array | None, number: int) -> tuple[Array, NDArray[Any]]:
    """Return the weights of the rows in one tree, and its bag."""
    n, draw = table.n_rows, model._draw()
    if draw is None:
        return np.ones(n) if weight is None else weight, np.arange(n)
    rows = draw_rows(draw._replace(weight=weight), number)
    counts = np.bincount(rows, minlength=n).astype(np.float64)
    if getattr(model, "class_weight", None) == "balanced_subsample":
        for codes in table.y.reshape(n, -1).T:  # every class that was drawn gets the same total
            totals = np.bincount(codes[rows])
            share = len(rows) / (np.count_nonzero(totals) * np.maximum(totals, 1))
            counts = counts * share[np.minimum(codes, len(share) - 1)]
    return counts, rows


def _holds_targets(model: Any, table: Any, number: int, rows: NDArray[Any], leaf: Ids) -> bool:
    held = model.leaves_
    first = int(held.sizes[:number].sum())
    mine = held.rows[first : first + int(held.sizes[number])]
    same = np.array_equal(held.y, table.y.reshape(table.n_rows, -1)) and np.array_equal(np.sort(mine), np.sort(rows))
    return bool(same and (np.diff(leaf[mine]) >= 0).all())
