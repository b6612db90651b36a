"""The one growth loop: codes of columns, statistics of rows and a rule in, a tree out.

    open a batch of nodes      their sums, their values, and the best split of each among the candidate columns
    choose what to divide      depth first has no order here: all that may be split; best first: the largest gains
    divide their rows          and the children are the next batch

CART, forests, AdaBoost and boosting are calls of it with other statistics (`criteria`) and other rules. A batch is a
whole level of the tree, so that the interpreter is rarely in the way, and one tree can use several threads: each
searches some of the columns. The tree is the same for any number of threads: of equal gains the first column wins, and
random numbers depend on the seed and the path from the root alone. Memory besides the table: about 60 bytes per row, 20
more for each thread. Random thresholds need no codes where numbers suffice: `random.grower` grows the same tree faster.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from ...core import Array, NDArray
from ..criteria import GRADIENT, Target
from ..growth import Grown, GrowthRule, GrowthStopped, NodeStore
from ..random.grower import Values, grow_random
from ..table import Columns
from ._nodes import Level, divide, label_rows, preorder
from ._sweeps import COLUMN, CUT, MISSING_LEFT, SCORE
from .workspace import Workspace

# --------------------------------------------------------------------------------------------------------------------
# Best-first growth: the splits with the largest gains first, up to a number of leaves.
#
# The tree of L leaves that best-first growth gives is a part of the whole tree: walk from the root, always to the
# open node with the largest gain, L − 1 times. So nodes may be divided in any order and in batches, as long as the
# walk finds the nodes it comes to divided. `wanted_next` says which are still missing; `best_first_order` is the
# walk.


def wanted_next(nodes: NodeStore, max_leaves: int) -> NDArray[np.int64]:
    """Return the nodes to divide next: where the walk is stuck, and the open nodes it is most likely to need."""
    _, waiting, n_left = _walk(nodes, max_leaves)
    undivided = [node for _, node in waiting if nodes.left[node] < 0][: 1 + n_left // 4]
    return np.array(sorted(undivided) if n_left > 0 else [], dtype=np.int64)


def best_first_order(nodes: NodeStore, max_leaves: int) -> NDArray[np.int64]:
    """Return the nodes of the tree in order of creation: root, then both children of each node that is divided."""
    order, _, _ = _walk(nodes, max_leaves)
    return np.array(order, dtype=np.int64)


def _walk(nodes: NodeStore, max_leaves: int) -> tuple[list[int], list[tuple[float, int]], int]:
    """Divide by largest gain (of equals, the oldest) until the leaves are used up or a node is not divided yet.

    Returns the nodes in order of creation, those that wait in order of gain, and how many leaves are left.
    """
    order = [0]
    waiting = []
    n_left = max_leaves - 1
    if nodes.feature[0] >= 0:
        waiting.append((-float(nodes.gain[0]), 0))
    while waiting and n_left > 0:
        node = waiting[0][1]
        if nodes.left[node] < 0:
            break
        heapq.heappop(waiting)
        n_left -= 1
        for child in (int(nodes.left[node]), int(nodes.right[node])):
            order.append(child)
            if nodes.feature[child] >= 0:
                heapq.heappush(waiting, (-float(nodes.gain[child]), child))
    return order, sorted(waiting), n_left


def grow(
    columns: Columns | Values,
    target: Target,
    rule: GrowthRule,
    *,
    rows: NDArray[np.integer[Any]] | None = None,
    seed: int = 0,
    n_threads: int = 1,
    stop: NDArray[np.int64] | None = None,
    whole: float | None = None,
) -> Grown:
    """Grow one tree.

    Parameters
    ----------
    columns : Columns or Values
        The table; `random.grower.read_table` chooses.
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
    whole : float or None
        Weight of which a split's fall of impurity is a share; None: of all rows. For a node of a larger tree, on codes.

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
    if whole is not None:
        space.limits = space.limits._replace(whole=whole)
    nodes = NodeStore(target.width)
    batch = nodes.add_root(len(used), seed)
    while len(batch):
        space.bring_together(len(batch))
        if rule.max_leaf_nodes is None and space.takes_subtrees(len(batch)):
            space.grow_subtrees(nodes, batch)
            if flag[0] != 0:
                raise GrowthStopped
            break
        _open(nodes, batch, space, columns, target)
        if flag[0] != 0:
            raise GrowthStopped
        if rule.max_leaf_nodes is None:
            chosen = batch[nodes.feature[batch] >= 0]
        else:
            chosen = wanted_next(nodes, rule.max_leaf_nodes)
        batch = _divide(nodes, chosen, space, columns, target, rule) if len(chosen) else chosen
    return _finish(nodes, space, target, rule, columns.n_rows)


def _open(nodes: NodeStore, batch: Any, space: Workspace, columns: Columns, target: Target) -> None:
    """Compute sums, values and impurities of new nodes, and the best split of each; what has none stays a leaf."""
    begin = nodes.begin[batch]
    end = nodes.end[batch]
    limits = space.limits
    totals, value, impurity, pure = space.summarise(begin, end, target.width)
    weight = totals[:, -1]
    if limits.monotone:
        _clip(value, nodes.bounds[batch], target)
    nodes.write(batch, value=value, impurity=impurity, weight=weight)
    least = totals[:, target.n_outputs] if target.kind == GRADIENT else weight
    may = ~pure & (end - begin >= limits.min_split) & (nodes.depth[batch] < limits.max_depth)
    at = np.flatnonzero(may & (least >= 2 * limits.min_weight))
    if not len(at):
        return
    some = batch[at]
    bounds = np.pad(nodes.bounds[some], ((0, 0), (0, 1)))
    level = Level(begin[at], end[at], nodes.seed[some], bounds, totals[at])
    found, sets = space.search(level)
    gain = space.gains(level, impurity[at], found[:, SCORE])
    taken = np.flatnonzero(gain > -np.inf)
    column = found[taken, COLUMN].astype(np.int32)
    threshold = space.thresholds(columns.categorical, found[taken])
    cut = found[taken, CUT]
    to_left = found[taken, MISSING_LEFT]
    nodes.write(some[taken], feature=column, cut=cut, threshold=threshold, missing_left=to_left, gain=gain[taken])
    if columns.categorical.any():
        nodes.set_categories(some[taken], columns.categorical[column], columns.n_codes[column], sets[taken])


def _divide(
    nodes: NodeStore, chosen: Any, space: Workspace, columns: Columns, target: Target, rule: GrowthRule
) -> NDArray[np.int64]:
    """Divide the rows of the chosen nodes and return their children, pair by pair."""
    middle = np.empty(len(chosen), np.int64)
    begin = nodes.begin[chosen]
    end = nodes.end[chosen]
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
    left = nodes.left[chosen]
    right = nodes.right[chosen]
    values = np.empty((2, len(chosen)))
    at = 1 if target.n_classes[0] == 2 else 0
    for side, child in enumerate((left, right)):
        _, value, _, _ = space.summarise(nodes.begin[child], nodes.end[child], target.width)
        # What the nodes above allow still holds: the middle lies inside their bounds.
        values[side] = np.clip(value[:, at], *nodes.bounds[chosen].T)
    middle = values.mean(axis=0)
    sign = np.asarray(rule.monotonic)[nodes.feature[chosen]]
    rising = sign > 0
    falling = sign < 0
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
