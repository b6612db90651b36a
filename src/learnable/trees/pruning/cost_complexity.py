"""Weakest-link (cost-complexity) pruning of a grown tree.

The cost of a subtree T with leaves T̃ is R_λ(T) = Σ_{t ∈ T̃} R(t) + λ|T̃|, where R(t) is the node's share of the weight
times its impurity, or times its error. For each λ there is one smallest subtree T_λ that minimises it, and these are
nested: raising λ from zero, the next node to become a leaf is the one with the smallest

    g(t) = (R(t) − R(T_t)) / (|T_t| − 1).

λ is chosen by cross-validation: between two steps λ_k < λ_{k+1} the tree of all rows is the same, so each fold's tree
is cut at their geometric mean √(λ_k λ_{k+1}) and judged on the rows left out.

Reference: L. Breiman, J. Friedman, R. Olshen, C. Stone, Classification and Regression Trees, 1984, chapter 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from ...core import Array, DataError, NDArray, ParameterError
from ...meta.selection import standard_errors, within_one_error
from ...meta.splits import make_splits
from ..layout import Trees, renumbered
from ._kernels import prune_weakest, sum_branches

#: Steps whose λ differ by less than this share of the root's cost are one step; only rounding tells them apart.
_TIE: Final = 1e-13


class PruningPath(NamedTuple):
    """All trees that pruning passes, from the whole tree to the root; one entry for each node that becomes a leaf."""

    alphas: Array  #: (P,) λ from which on the tree is the smallest minimiser, never falling; the first is 0
    costs: Array  #: (P,) R(T_λ) of the tree
    n_leaves: NDArray[np.int64]  #: (P,) leaves of the tree
    collapse: Array  #: (N,) λ at which each node becomes a leaf; −∞ for a leaf, ∞ if a node above it is first


def node_costs(tree: Trees, cost: Any = "impurity", n_outputs: int = 1) -> Array:
    """Return R(t): the node's share of the weight times its impurity, its error, or a given number per node.

    Parameters
    ----------
    tree : Trees
        One tree.
    cost : {"impurity", "misclassification"}, array of shape (n_nodes,), or function of the tree
        What a leaf costs; misclassification is for values that are shares of classes.
    n_outputs : int
        Number of targets, whose errors are averaged.
    """
    cost = cost(tree) if callable(cost) else cost
    share = tree.weight / tree.weight[0]
    if isinstance(cost, str):
        if cost == "misclassification":
            return share * (1.0 - tree.value.reshape(tree.n_nodes, n_outputs, -1).max(axis=2).mean(axis=1))
        if cost != "impurity":
            raise ParameterError(f"node_costs: cost must be 'impurity', 'misclassification' or numbers; got {cost!r}.")
        return share * tree.impurity
    costs = np.ascontiguousarray(cost, dtype=np.float64)
    if costs.shape != (tree.n_nodes,) or not np.isfinite(costs).all():
        raise ParameterError(f"node_costs: cost must be {tree.n_nodes} finite numbers, one per node.")
    return costs


def pruning_path(tree: Trees, cost: Any = "impurity") -> PruningPath:
    """Return the nested sequence of trees that minimise R(T) + λ|T̃|, for all λ ≥ 0.

    Takes O(N · depth · log N) time for N nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.trees import Columns, GrowthRule, grow, pruning_path
    >>> from learnable.trees.criteria import Target
    >>> X, y = np.arange(4.0)[:, None], [0.0, 1.0, 5.0, 5.0]
    >>> tree = grow(Columns.build(X), Target.numbers(y), GrowthRule()).tree
    >>> path = pruning_path(tree)
    >>> path.alphas.round(3), path.n_leaves
    (array([0.   , 0.125, 5.062]), array([3, 2, 1]))
    """
    costs = node_costs(tree, cost)
    n = tree.n_nodes
    if tree.n_trees != 1:
        raise ParameterError(f"pruning_path: needs one tree; got {tree.n_trees}. Pass trees.tree(t).")
    branch = np.empty(n)
    leaves = np.empty(n, dtype=np.int64)
    sum_branches(tree.left, tree.right, costs, branch, leaves)
    whole = branch[0]
    n_leaves = leaves[0]
    size = 1 << max(0, n - 1).bit_length()
    order = np.empty(n, dtype=np.int64)
    counts = np.empty(n, dtype=np.int64)
    alphas = np.empty(n)
    after = np.empty(n)
    steps = prune_weakest(
        tree.left, tree.right, tree.parents(), costs, branch, leaves, np.full(2 * size, np.inf),
        np.empty(n + 1, dtype=np.int64), order, alphas, after, counts,
    )  # fmt: skip
    alphas = _without_ties(np.r_[0.0, alphas[:steps]], _TIE * abs(costs[0]))
    collapse = np.where(tree.left < 0, -np.inf, np.inf)
    collapse[order[:steps]] = alphas[1:]
    return PruningPath(alphas, np.r_[whole, after[:steps]], np.r_[n_leaves, counts[:steps]], collapse)


def prune_to(tree: Trees, cost: Any = "impurity", alpha: float = 0.0) -> Trees:
    """Return T_λ, the smallest subtree that minimises R(T) + λ|T̃| at λ = `alpha`."""
    return cut(tree, pruning_path(tree, cost).collapse <= alpha)


def cut(tree: Trees, leaf: NDArray[np.bool_]) -> Trees:
    """Return the tree whose marked nodes are leaves; what was below them is gone."""
    parent = tree.parents()
    alive = np.ones(tree.n_nodes, dtype=bool)
    for depth_nodes in _by_depth(tree):
        above = parent[depth_nodes]
        alive[depth_nodes] = alive[above] & ~leaf[above]
    left = np.where(leaf, -1, tree.left)
    right = np.where(leaf, -1, tree.right)
    return renumbered(tree, np.flatnonzero(alive), left, right, tree.value[alive])


@dataclass(frozen=True)
class AlphaChoice:
    """The λ that cross-validation chose, and why.

    Attributes
    ----------
    alpha : float
        The λ from which on the tree of all rows is the chosen one.
    alphas : array of shape (n_alphas,)
        The distinct λ of the path of all rows.
    errors : array of shape (n_alphas, n_folds)
        Mean loss on the rows that each fold left out.
    rule : str
        "min" or "1se".
    """

    alpha: float
    alphas: Array
    errors: Array
    rule: str


def choose_alpha(path: PruningPath, folds: Iterable[tuple[Trees, PruningPath, Array, float]], rule: str) -> AlphaChoice:
    """Choose λ by cross-validation.

    Parameters
    ----------
    path : PruningPath
        Of the tree of all rows.
    folds : iterable of (tree, its path, loss of each node on the rows left out, their weight)
        As `fold_losses` returns them.
    rule : {"min", "1se"}
        The smallest mean loss, or the smallest tree within one standard error of it. A tie goes to the smaller tree.
    """
    alphas = np.unique(path.alphas)
    # The last one keeps the root alone.
    between = np.r_[np.sqrt(alphas[:-1]) * np.sqrt(alphas[1:]), np.finfo(np.float64).max]
    errors = np.array([_losses_along(fold, between) for fold in folds]).T
    mean = errors.mean(axis=1)
    good = mean <= mean.min() + 1e-12 * mean.max()  # equal but for rounding
    if rule == "1se":
        good |= within_one_error(-mean, standard_errors(errors))
    return AlphaChoice(float(alphas[np.flatnonzero(good)[-1]]), alphas, errors, rule)


def cross_validated_alpha(
    path: PruningPath,
    cost: Any,
    splits: Iterable[tuple[Any, Any]],
    grow_rows: Callable[[Any], Trees],
    X: Any,
    weight: Array,
    loss: Callable[[Any, Array], Array],
    rule: str,
) -> AlphaChoice:
    """Choose λ for the tree of all rows, growing one tree per fold.

    Parameters
    ----------
    path : PruningPath
        Of the tree of all rows.
    cost
        As in `node_costs`.
    splits : iterable of (train, test)
        Row numbers.
    grow_rows : callable
        Grows the tree of some rows.
    X : (n, d) array or CSR array
        What the trees read.
    weight : (n,) float64
        Weights of the rows.
    loss : callable
        loss(rows, values): of each row, predicted by the node value beside it.
    rule : {"min", "1se"}
        As in `choose_alpha`.
    """
    folds = []
    for train, test in splits:
        tree = grow_rows(train)
        rows_loss = partial(_loss_of_pairs, loss, tree, test)
        losses, total = fold_losses(tree, X[test], rows_loss, weight[test])
        folds.append((tree, pruning_path(tree, cost), losses, total))
    return choose_alpha(path, folds, rule)


def fold_losses(
    tree: Trees, X: Any, loss: Callable[[NDArray[np.int64], NDArray[np.int64]], Array], weight: Array
) -> tuple[Array, float]:
    """Return, for each node, the summed loss of the rows that pass it if it were a leaf, and the rows' weight.

    `loss(rows, nodes)` is the loss of each pair of a row and a node's value.
    """
    passed = tree.decision_path(X)[0]
    rows = np.repeat(np.arange(passed.shape[0]), np.diff(passed.indptr))
    nodes = passed.indices.astype(np.int64)
    losses = np.bincount(nodes, weight[rows] * loss(rows, nodes), tree.n_nodes)
    return losses.astype(np.float64), float(weight.sum())


def alpha_splits(owner: str, cv: Any, table: Any, codes: Any = None) -> list[tuple[Any, Any]]:
    """Return folds as positions in the table: `cv` folds (None: 5), by class if there are codes, or a splitter's."""
    from sklearn.model_selection import check_cv

    given = table.n_rows if table.kept is None else len(table.kept)
    try:
        if cv is None or isinstance(cv, int | np.integer):
            scheme = "kfold" if codes is None else "stratified"
            rows = table.n_rows if codes is None else codes
            splits = make_splits(rows, scheme=scheme, n_splits=5 if cv is None else int(cv), random_state=0)
        else:
            position = np.arange(given) if table.kept is None else np.where(table.kept, np.cumsum(table.kept) - 1, -1)
            labels = np.zeros(given, dtype=np.int64)
            if codes is not None:
                labels[position >= 0] = codes
            pairs = check_cv(cv, labels, classifier=codes is not None).split(np.zeros((given, 1)), labels)
            splits = [tuple(p[p >= 0] for p in (position[train], position[test])) for train, test in pairs]
    except (TypeError, ValueError) as error:
        reason = str(error).removeprefix("make_splits: ")
        raise ParameterError(f"{owner}: cv={cv!r} does not work here: {reason}") from error
    if not splits or any(len(train) < 1 or len(test) < 1 for train, test in splits):
        raise DataError(f"{owner}: cv={cv!r} leaves a fold without rows; use fewer folds.")
    return splits


def _loss_of_pairs(loss: Any, tree: Trees, test: Any, rows: NDArray[np.int64], nodes: NDArray[np.int64]) -> Array:
    return np.asarray(loss(test[rows], tree.value[nodes]), dtype=np.float64)


def _losses_along(fold: tuple[Trees, PruningPath, Array, float], alphas: Array) -> Array:
    """Return the mean loss of T_λ on the rows left out, for each λ: node t is a leaf from its own λ to that above."""
    tree, path, losses, weight = fold
    gone = np.full(tree.n_nodes, np.inf)
    parent = tree.parents()
    for nodes in _by_depth(tree):
        gone[nodes] = np.minimum(gone[parent[nodes]], path.collapse[parent[nodes]])
    first = np.searchsorted(alphas, path.collapse)
    last = np.searchsorted(alphas, gone)
    change = np.zeros(len(alphas) + 1)
    once = first < last
    np.add.at(change, first[once], losses[once])
    np.add.at(change, last[once], -losses[once])
    return np.cumsum(change)[:-1] / weight


def _by_depth(tree: Trees) -> list[NDArray[np.int64]]:
    """Return the nodes of each depth, without the root."""
    found = []
    here = np.array([0])
    while (inner := here[tree.left[here] >= 0]).size:
        here = np.sort(np.r_[tree.left[inner], tree.right[inner]].astype(np.int64))
        found.append(here)
    return found


def _without_ties(alphas: Array, width: float) -> Array:
    """Return the λ of the steps, never falling, those that only rounding separates made equal."""
    alphas = np.maximum.accumulate(np.maximum(alphas, 0.0))
    fresh = np.zeros(len(alphas), dtype=bool)
    last = -np.inf
    for step, alpha in enumerate(alphas.tolist()):
        fresh[step] = alpha - last > width
        last = alpha if fresh[step] else last
    return alphas[np.maximum.accumulate(np.where(fresh, np.arange(len(alphas)), 0))]
