"""The one growth loop: codes of columns, statistics of rows and a rule in, a tree out.

    open a batch of nodes      their sums, their values, and the best split of each among the candidate columns
    choose what to divide      depth first has no order here: all that may be split; best first: the largest gains
    divide their rows          and the children are the next batch

CART, forests, AdaBoost and boosting are calls of it with other statistics (`criteria`) and other rules. A batch is a
whole level of the tree, so that the interpreter is rarely in the way, and one tree can use several threads: each
searches some of the columns. The tree is the same for any number of threads: of equal gains the first column wins, and
random numbers depend on the seed and the path from the root alone. Memory besides the table: about 60 bytes a row, 20
more for each thread. Random thresholds need no codes where numbers suffice: `random_grower` grows the same tree faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.threads import Stopped
from ._nodes import divide, label_rows, preorder
from ._subtrees import Level, Stops
from ._sweeps import COLUMN, CUT, MISSING_LEFT, SCORE
from .columns import Columns
from .criteria import GRADIENT, Target
from .frontier import best_first_order, wanted_next
from .layout import Trees
from .node_store import NodeStore
from .random_grower import Values, grow_random
from .workspace import Workspace

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GrowthRule:
    """When and where a tree may split.

    Parameters
    ----------
    max_depth, max_leaf_nodes : int or None
        None: no limit. With `max_leaf_nodes` the tree grows best first.
    min_samples_split, min_samples_leaf : int
        Rows that a node needs to be split, and to exist.
    min_weight_leaf : float
        Weight that a node needs (absolute); with gradients, the sum of hessians.
    max_features : int or None
        Columns drawn at each node; more are drawn while all of them are constant. None: all.
    min_impurity_decrease : float
        Fall of the impurity, times the node's share of the weight, that a split must reach.
    min_gain : float
        Gain in units of the criterion's score that a split must reach.
    splitter : {"best", "random"}
        All cuts of a column, or one threshold drawn uniformly between its ends.
    monotonic : (d,) int8 or None
        1: the prediction (of two classes: the probability of the second) may only rise with the column; −1: fall; 0:
        free.

    Examples
    --------
    >>> GrowthRule(max_depth=3).splitter
    'best'
    """

    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_leaf: float = 0.0
    max_features: int | None = None
    min_impurity_decrease: float = 0.0
    min_gain: float = -np.inf
    splitter: str = "best"
    monotonic: NDArray[np.int8] | None = None

    @property
    def is_monotone(self) -> bool:
        """Whether some column is constrained."""
        return self.monotonic is not None and bool(np.any(self.monotonic))


class Grown(NamedTuple):
    """A tree and where its rows ended."""

    tree: Trees
    leaf_of_row: NDArray[np.int32]  #: (n,), −1 for rows that were not used


class GrowthStopped(Stopped):
    """The stop flag was raised before the tree was complete."""


def grow(
    columns: Columns | Values,
    target: Target,
    rule: GrowthRule,
    *,
    rows: NDArray[np.integer[Any]] | None = None,
    seed: int = 0,
    n_threads: int = 1,
    stop: NDArray[np.int64] | None = None,
) -> Grown:
    """Grow one tree.

    Parameters
    ----------
    columns : Columns or Values
        The table; `random_grower.read_table` chooses.
    target : Target
        The rows' statistics, and the criterion.
    rule : GrowthRule
        When to stop.
    rows : (k,) ints or None
        Row numbers of a bootstrap sample; a row that is drawn twice counts twice in every weight, but as one row.
    seed : int
        Of the drawn columns and thresholds.
    n_threads : int
        Threads over columns. Calls may run concurrently; they share nothing that is written.
    stop : (1,) int64 or None
        A flag; once it is not zero, GrowthStopped is raised.

    Returns
    -------
    Grown
        The tree, and the leaf of every row.
    """
    if rows is not None:
        target = target.repeated(np.bincount(rows, minlength=columns.n_rows))
    used = np.flatnonzero(target.weight > 0).astype(np.int32)
    flag = np.zeros(1, np.int64) if stop is None else stop
    if isinstance(columns, Values):
        found = grow_random(columns, target, rule, used, seed, flag)
        if found is None:
            raise GrowthStopped
        return Grown(*found)
    space = Workspace(columns, target, rule, used, n_threads, flag)
    nodes = NodeStore(target.width)
    batch = nodes.add_root(len(used), seed)
    whole = float(target.weight[used].sum())
    while len(batch):
        space.bring_together(len(batch))
        if rule.max_leaf_nodes is None and space.takes_subtrees(len(batch)):
            space.grow_subtrees(nodes, batch, _stops(target, rule, whole))
            if flag[0] != 0:
                raise GrowthStopped
            break
        _open(nodes, batch, space, columns, target, rule, whole)
        if flag[0] != 0:
            raise GrowthStopped
        if rule.max_leaf_nodes is None:
            chosen = batch[nodes.feature[batch] >= 0]
        else:
            chosen = wanted_next(nodes, rule.max_leaf_nodes)
        batch = _divide(nodes, chosen, space, columns, target, rule) if len(chosen) else chosen
    return _finish(nodes, space, target, rule, columns.n_rows)


def _stops(target: Target, rule: GrowthRule, whole: float) -> Stops:
    return Stops(
        2**31 - 1 if rule.max_depth is None else rule.max_depth,
        max(rule.min_samples_split, 2 * rule.min_samples_leaf, 2),
        float(rule.min_gain),
        float(rule.min_impurity_decrease),
        float(target.gain_scale),
        whole * target.n_outputs,
    )


def _open(
    nodes: NodeStore, batch: Any, space: Workspace, columns: Columns, target: Target, rule: GrowthRule, whole: float
) -> None:
    """Compute sums, values and impurities of new nodes, and the best split of each; what has none stays a leaf."""
    begin, end = nodes.begin[batch], nodes.end[batch]
    totals, value, impurity, pure = space.summarise(begin, end, target.width)
    n_rows, weight = end - begin, totals[:, -1]
    if rule.is_monotone:
        _clip(value, nodes.bounds[batch], target)
    nodes.set_statistics(batch, value, impurity, weight)
    least = totals[:, target.n_outputs] if target.kind == GRADIENT else weight
    may = ~pure & (n_rows >= max(rule.min_samples_split, 2 * rule.min_samples_leaf, 2))
    may &= least >= 2 * rule.min_weight_leaf
    if rule.max_depth is not None:
        may &= nodes.depth[batch] < rule.max_depth
    at = np.flatnonzero(may)
    if not len(at):
        return
    some, begin, end = batch[at], begin[at], end[at]
    bounds = np.pad(nodes.bounds[some], ((0, 0), (0, 1)))
    level = Level(begin, end, nodes.seed[some], bounds, totals[at])
    found, sets = space.search(level)
    gain = space.gains(level, impurity[at], found[:, SCORE], _stops(target, rule, whole))
    taken = np.flatnonzero(gain > -np.inf)
    column, cut = found[taken, COLUMN].astype(np.int32), found[taken, CUT].astype(np.int64)
    threshold = space.thresholds(columns.categorical, found[taken])
    to_left = found[taken, MISSING_LEFT].astype(np.uint8)
    nodes.set_splits(some[taken], column, cut, threshold, to_left, gain[taken])
    if columns.categorical.any():
        nodes.set_categories(some[taken], columns.categorical[column], columns.n_codes[column], sets[taken])


def _divide(
    nodes: NodeStore, chosen: Any, space: Workspace, columns: Columns, target: Target, rule: GrowthRule
) -> NDArray[np.int64]:
    """Divide the rows of the chosen nodes and return their children, pair by pair."""
    middle = np.empty(len(chosen), np.int64)
    begin, end = nodes.begin[chosen], nodes.end[chosen]
    words = nodes.sets_of(chosen, space.n_words)
    divide(
        space.columns, space.sparse, space.categories[0], space.rows, space.spare, space.scratch[0].code, begin, end,
        nodes.feature[chosen], nodes.cut[chosen], nodes.missing_left[chosen], words, middle,
    )  # fmt: skip
    children = nodes.add_children(chosen, middle)
    if rule.is_monotone:
        _bound_children(nodes, chosen, space, target, rule)
    return children


def _clip(value: Array, bounds: Array, target: Target) -> None:
    """Keep the values inside what monotone constraints above allow."""
    at = 1 if target.n_classes[0] == 2 else 0
    value[:, at] = np.clip(value[:, at], bounds[:, 0], bounds[:, 1])
    if at == 1:
        value[:, 0] = 1.0 - value[:, 1]


def _bound_children(nodes: NodeStore, chosen: Any, space: Workspace, target: Target, rule: GrowthRule) -> None:
    """Let the middle of both values bound the children of a split by a constrained column."""
    left, right = nodes.left[chosen], nodes.right[chosen]
    values = np.empty((2, len(chosen)))
    at = 1 if target.n_classes[0] == 2 else 0
    for side, child in enumerate((left, right)):
        _, value, _, _ = space.summarise(nodes.begin[child], nodes.end[child], target.width)
        # What the nodes above allow still holds: the middle lies inside their bounds.
        values[side] = np.clip(value[:, at], *nodes.bounds[chosen].T)
    middle = values.mean(axis=0)
    sign = np.asarray(rule.monotonic)[nodes.feature[chosen]]
    rising, falling = sign > 0, sign < 0
    nodes.bounds[left[rising], 1] = nodes.bounds[right[rising], 0] = middle[rising]
    nodes.bounds[left[falling], 0] = nodes.bounds[right[falling], 1] = middle[falling]


def _finish(nodes: NodeStore, space: Workspace, target: Target, rule: GrowthRule, n_rows: int) -> Grown:
    """Return the tree with scikit-learn's numbers of nodes, without what was not reached, shift and scale undone."""
    if rule.max_leaf_nodes is not None:
        old = best_first_order(nodes, rule.max_leaf_nodes)
    else:
        number = np.empty(nodes.n, np.int32)
        stack = np.empty(nodes.n + 1, np.int32)
        preorder(nodes.left[: nodes.n], nodes.right[: nodes.n], nodes.feature[: nodes.n], stack, number)
        old = np.empty(nodes.n, np.int64)
        old[number] = np.arange(nodes.n)
    tree = nodes.as_tree(old)
    if target.n_classes[0] == 0 and target.kind != GRADIENT:
        tree.value[:] = tree.value * target.scale + target.shift
        tree.impurity[:] = tree.impurity * target.gain_scale
    leaf_of_row = np.full(n_rows, -1, np.int32)
    leaf = np.where(tree.feature < 0, np.arange(len(old), dtype=np.int32), -1).astype(np.int32)
    label_rows(leaf, nodes.begin[old], nodes.end[old], space.final_rows(), leaf_of_row)
    return Grown(tree, leaf_of_row)
