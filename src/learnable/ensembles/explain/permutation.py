"""Importance of columns by permutation, on the rows that each tree has not seen.

For tree t with out-of-bag rows O_t and column j, let e_t be its error on O_t and e_tj its error after the values of
column j are shuffled among O_t. The importance of j is the mean of e_tj − e_t over the trees: the error that would be
added if the column told nothing, as judged by unseen rows. Unlike the fall of impurity it does not favour columns
with many values, and a column that is noise has importance near zero, of either sign. Columns that carry the same
information share it, and each can look unimportant.

Reference: L. Breiman, Random forests, Machine Learning 45 (2001), section 10.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...core import Array, NDArray, Run, resolve_n_jobs
from ...trees.layout import Trees
from .._crew import run_crew
from ..draws import Draw, draw_rows, out_of_bag


class Importances(NamedTuple):
    """Importance of each column."""

    mean: Array  #: (d,) rise of the error, averaged over the trees
    standard_error: Array  #: (d,) of that mean, over the trees


def permutation_importances(
    trees: Trees, X: Any, y: NDArray[Any], draw: Draw, *, classes: bool, n_jobs: int | None = None
) -> Importances:
    """Return the rise of the out-of-bag error (of classes: share of errors, of numbers: squared error) by shuffling.

    Takes, for each tree and each column it tests, one walk of the tree's out-of-bag rows.
    """
    d = X.shape[1]
    targets = y.reshape(len(y), -1)
    X = X.tocsr() if sp.issparse(X) else X

    def judge(number: int) -> Array:
        rise = np.zeros(d)
        tree = trees.tree(number)
        rows = out_of_bag(draw_rows(draw, number), draw.n_rows)
        used = np.unique(tree.feature[tree.feature >= 0])
        if not len(rows) or not len(used):
            return rise
        tree = replace(
            tree, feature=np.where(tree.feature < 0, -1, np.searchsorted(used, tree.feature)).astype(np.int32)
        )
        part = X[rows][:, used]
        Z = part.toarray() if sp.issparse(part) else np.ascontiguousarray(part)
        before = _error(tree.sum(Z), targets[rows], classes)
        order = np.random.default_rng([draw.seed, number, 2**34]).permutation(len(rows))
        for k, column in enumerate(used):
            kept = Z[:, k].copy()
            Z[:, k] = kept[order]
            rise[column] = _error(tree.sum(Z), targets[rows], classes) - before
            Z[:, k] = kept
        return rise

    rises = np.array(run_crew(judge, trees.n_trees, resolve_n_jobs(n_jobs), Run()))
    spread = rises.std(axis=0, ddof=1) if len(rises) > 1 else np.full(d, np.nan)
    return Importances(rises.mean(axis=0), spread / np.sqrt(len(rises)))


def _error(found: Array, y: NDArray[Any], classes: bool) -> float:
    if not classes:
        return float(np.mean((found - y) ** 2))
    shares = found.reshape(len(y), y.shape[1], -1)
    return float(np.mean(shares.argmax(axis=2) != y))
