"""Exact Shapley values of trees: how much each column moved the prediction of one row away from the mean.

For a tree and a set S of known columns let v(S) be its expectation where rows go both ways, in proportion to the
training weight, at questions about unknown columns (path-dependent). The value of column j is its average contribution
over all orders in which columns become known,

    φ_j = Σ_{S ∌ j} |S|! (d−|S|−1)!/d! · (v(S ∪ j) − v(S)),        Σ_j φ_j = f(x) − v(∅),

and it adds up over trees. A leaf with value c, whose path asks about m columns, with the share z_k of training weight
that satisfies what it asks of column k, and o_k = 1 if the row does, contributes

    φ_j = c (o_j − z_j) ∫₀¹ Π_{k≠j} (z_k(1−t) + o_k t) dt.

The integrand has degree m − 1: ⌈m/2⌉ nodes of Gauss and Legendre give the integral exactly. One tour through the tree
carries the products down and the sums of leaves up, so that a row costs O(leaves · m) instead of the O(leaves · m²) of
the first algorithm, without its divisions by small numbers; rows are taken 32 at a time, in vector registers.
Interactions have a second factor (o_i − z_i) and half the integral, and cost O(leaves · m · depth).

References: S. Lundberg et al., From local explanations to global understanding with explainable AI for trees, Nature
Machine Intelligence 2 (2020); P. Yu et al., Linear TreeShap, NeurIPS 2022; R. Wettenstein et al., Quadrature-TreeSHAP,
2026.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...core import Array, NDArray, resolve_n_jobs, run_tasks
from ...trees.layout import Trees
from ._shap import LANES, edge_constants, explain_tree, find_paths, pair_tree
from .additive import additive_trees, read_rows

#: Rows of one task. 20 trees on 2,000 × 12: 7.2, 7.1 and 7.0 ms of processor time with 128, 512 and 2,048; small tasks
#: share better.
_CHUNK_ROWS = 512


class ShapValues(NamedTuple):
    """Shapley values of rows: base + values.sum(axis=1) is the model's score."""

    values: Array  #: (n, d), or (n, d, K) for K scores
    base: Any  #: v(∅): a number, or (K,)


def shap_values(model: Any, X: Any, *, n_jobs: int | None = None) -> ShapValues:
    """Return the exact (path-dependent) Shapley values of a tree model's score.

    Takes O(leaves · columns on a path) for each row and tree; O(n·d·K) memory.

    Parameters
    ----------
    model : estimator
        A fitted decision tree, forest, bag of decision trees, gradient boosting model, or AdaBoostClassifier of
        decision trees.
    X : array, sparse array or dataframe of shape (n_samples, n_features)
        Rows to explain; NaN is a missing value where the model takes it.
    n_jobs : int or None, default=None
        Threads; the values do not depend on it.

    Returns
    -------
    ShapValues
        `values` and `base`, in the units of the score: shares of classes for trees and forests, the score before the
        link for boosting. With several scores the last axis counts them.

    Examples
    --------
    >>> from learnable import DecisionTreeRegressor
    >>> from learnable.ensembles import shap_values
    >>> model = DecisionTreeRegressor().fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0.0, 0.0, 0.0, 4.0])
    >>> found = shap_values(model, [[1, 1]])
    >>> found.values.tolist(), found.base
    ([[1.5, 1.5]], 1.0)
    """
    form = additive_trees(model)
    rows = read_rows(model, X)
    values = np.concatenate([tree_shap(trees, rows, n_jobs) for trees in form.parts], axis=2) * form.scale
    base = form.base + form.scale * np.concatenate([expected_value(trees) for trees in form.parts])
    return ShapValues(values[:, :, 0], float(base[0])) if values.shape[2] == 1 else ShapValues(values, base)


def shap_interactions(model: Any, X: Any, *, n_jobs: int | None = None) -> Array:
    """Return the exact Shapley interaction values, (n, d, d), or (n, d, d, K) for K scores.

    Off the diagonal, half of what two columns do together beyond what each does alone; each row sums to the column's
    Shapley value. Takes O(leaves · columns on a path · depth) for each row and tree; O(n·d²·K) memory.

    Parameters
    ----------
    model, X, n_jobs
        As in `shap_values`.

    Examples
    --------
    >>> from learnable import DecisionTreeRegressor
    >>> from learnable.ensembles import shap_interactions
    >>> model = DecisionTreeRegressor().fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0.0, 0.0, 0.0, 4.0])
    >>> shap_interactions(model, [[1, 1]]).round(6).tolist()
    [[[1.0, 0.5], [0.5, 1.0]]]
    """
    form = additive_trees(model)
    rows = read_rows(model, X)
    pairs = np.concatenate([tree_interactions(trees, rows, n_jobs) for trees in form.parts], axis=3) * form.scale
    return pairs[..., 0] if pairs.shape[3] == 1 else pairs


def tree_shap(trees: Trees, X: Any, n_jobs: int | None = None) -> Array:
    """Return φ of the sum of the trees, (n, d, K)."""
    tours = _Tours(trees)
    n, d = X.shape
    K = trees.value.shape[1]
    out = np.zeros((n, d, K))

    def chunk(lo: int, hi: int) -> None:
        blocks = _blocks(X, lo, hi, tours.used)
        phi = np.zeros((len(blocks), K, len(tours.used), LANES))
        tours.run(explain_tree, blocks, phi, tours.scratch())
        out[lo:hi, tours.used] = _rows_first(phi)[: hi - lo]

    if len(tours.used):
        _over_chunks(chunk, n, n_jobs)
    return out


def tree_interactions(trees: Trees, X: Any, n_jobs: int | None = None) -> Array:
    """Return the interactions of the sum of the trees, (n, d, d, K)."""
    tours = _Tours(trees)
    n, d = X.shape
    K = trees.value.shape[1]
    out = np.zeros((n, d, d, K))
    used = tours.used
    more, less = np.tril_indices(len(used), -1)

    def chunk(lo: int, hi: int) -> None:
        blocks = _blocks(X, lo, hi, used)
        phi = np.zeros((len(blocks), K, len(more), LANES))
        tours.run(pair_tree, blocks, phi, tours.scratch(pairs=True))
        half = 0.5 * _rows_first(phi)[: hi - lo]
        out[lo:hi, used[more], used[less]] = half
        out[lo:hi, used[less], used[more]] = half

    if len(used) > 1:
        _over_chunks(chunk, n, n_jobs, _CHUNK_ROWS // 4)
    own = np.arange(d)
    out[:, own, own] = tree_shap(trees, X, n_jobs) - out.sum(axis=2)
    return out


def expected_value(trees: Trees) -> Array:
    """Return v(∅) of the sum of the trees, (K,): the mean of the leaves by training weight."""
    leaf = np.flatnonzero(trees.feature < 0)
    root = trees.start[np.searchsorted(trees.start, leaf, side="right") - 1]
    return (trees.weight[leaf] / trees.weight[root]) @ trees.value[leaf]


class _Tours:
    """The trees, ready for tours: columns renumbered, paths found, quadratures chosen."""

    def __init__(self, trees: Trees) -> None:
        self.trees = trees
        self.used = np.unique(trees.feature[trees.feature >= 0]).astype(np.int64)
        self.feature = np.where(trees.feature < 0, -1, np.searchsorted(self.used, trees.feature)).astype(np.int32)
        N = trees.n_nodes
        whole = [np.empty(N, np.int32) for _ in range(4)]
        self.parent, self.level, self.above, n_columns = whole
        self.share = np.empty(N)
        self.share_above = np.empty(N)
        self.tour = np.empty(2 * N, np.int32)
        out = (*whole, self.share, self.share_above, self.tour)
        find_paths(trees.start, trees.feature, trees.left, trees.right, trees.weight, out)
        most = np.maximum.reduceat(n_columns, trees.start[:-1])
        self.n_nodes = np.maximum(1, (most + 1) // 2)  # of the quadrature: exact up to the degree m − 1
        self.rules = {int(q): _quadrature(int(q)) for q in np.unique(self.n_nodes)}

    def scratch(self, pairs: bool = False) -> tuple[Any, ...]:
        """Return what one thread needs: products, sums and indicators for each level."""
        Q = int(self.n_nodes.max())
        L = int(self.level.max()) + 1
        K = self.trees.value.shape[1]
        own = (np.empty((L, Q, LANES)), np.zeros((L, K, Q, LANES)), np.empty((L, LANES)), np.empty(LANES))
        return (*own, np.empty((L, Q, LANES)), np.empty(L, np.int32)) if pairs else own

    def run(self, kernel: Any, blocks: Array, phi: Array, scratch: tuple[Any, ...]) -> None:
        """Let the kernel make a tour of every tree for all blocks."""
        trees = self.trees
        nodes = (trees.threshold, trees.missing_left, trees.category, trees.bits)
        paths = (self.parent, self.level, self.above, self.tour)
        constants = np.empty((int(np.diff(trees.start).max()), 7, scratch[0].shape[1]))
        for t in range(trees.n_trees):
            first = int(trees.start[t])
            stop = int(trees.start[t + 1])
            q = int(self.n_nodes[t])
            edge_constants(self.share, self.share_above, self.above, first, stop, *self.rules[q], q, constants)
            tree = (first, 2 * first, self.feature, trees.left)
            kernel(blocks, tree, nodes, paths, trees.value, constants, q, scratch, phi)


def _quadrature(n: int) -> tuple[Array, Array]:
    """Return the nodes and weights of Gauss and Legendre on [0, 1]."""
    t, w = np.polynomial.legendre.leggauss(n)
    return (t + 1.0) / 2.0, w / 2.0


def _blocks(X: Any, lo: int, hi: int, used: NDArray[np.int64]) -> Array:
    """Return rows lo … hi − 1, columns `used`, as (blocks, columns, LANES); the last block repeats the last row."""
    part = X[lo:hi]
    part = part[:, used].toarray() if sp.issparse(part) else np.asarray(part)[:, used]
    count = -(-(hi - lo) // LANES)
    rows = np.minimum(np.arange(count * LANES), hi - lo - 1)
    return np.ascontiguousarray(part[rows].astype(np.float64).reshape(count, LANES, -1).transpose(0, 2, 1))


def _rows_first(phi: Array) -> Array:
    """Return (rows, columns or pairs, outputs) from (blocks, outputs, columns or pairs, LANES)."""
    return phi.transpose(0, 3, 2, 1).reshape(-1, phi.shape[2], phi.shape[1])


def _over_chunks(chunk: Any, n: int, n_jobs: int | None, size: int = _CHUNK_ROWS) -> None:
    starts = range(0, n, size)
    run_tasks(lambda k: chunk(starts[k], min(n, starts[k] + size)), len(starts), resolve_n_jobs(n_jobs))
