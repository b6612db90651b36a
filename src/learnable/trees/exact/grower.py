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

import heapq
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.threads import Stopped
from .._random import child_seeds
from ..criteria import GRADIENT, Target
from ..layout import Trees
from ..random.grower import Values, grow_random
from ..table import Columns
from ._nodes import Level, NodeArrays, Stops, divide, label_rows, preorder
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
    order, waiting, n_left = [0], [], max_leaves - 1
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


# --------------------------------------------------------------------------------------------------------------------
# The nodes of a tree while it grows: arrays that double when they are full, in order of creation.


Array = NDArray[np.float64]

_FIRST_CAPACITY = 64


class NodeStore:
    """Nodes by number; rows of node i are rows[begin[i]:end[i]] of the grower.

    Parameters
    ----------
    width : int
        Numbers in the value of a node.

    Examples
    --------
    >>> NodeStore(1).add_root(10, seed=0)
    array([0])
    """

    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    depth: NDArray[np.int32]
    seed: NDArray[np.uint64]
    bounds: Array  #: (·, 2) lowest and highest value that monotone constraints allow
    feature: NDArray[np.int32]  #: −1 where there is no split
    threshold: Array
    cut: NDArray[np.int64]  #: last code that goes left
    missing_left: NDArray[np.uint8]
    gain: Array
    left: NDArray[np.int32]  #: −1 while the rows are not divided
    right: NDArray[np.int32]
    impurity: Array
    weight: Array
    value: Array

    def __init__(self, width: int) -> None:
        self.n = 0
        self.sets: dict[int, NDArray[np.uint32]] = {}
        i32, i64, f64 = np.int32, np.int64, np.float64
        kinds: dict[str, Any] = {"begin": i64, "end": i64, "depth": i32, "seed": np.uint64, "feature": i32}
        kinds |= {"threshold": f64, "cut": i64, "missing_left": np.uint8, "gain": f64, "left": i32, "right": i32}
        kinds |= {"impurity": f64, "weight": f64}
        for name, kind in kinds.items():
            setattr(self, name, np.empty(_FIRST_CAPACITY, kind))
        self.bounds, self.value = np.empty((_FIRST_CAPACITY, 2)), np.empty((_FIRST_CAPACITY, width))
        self._names = [*kinds, "bounds", "value"]

    def add_root(self, n_rows: int, seed: int) -> NDArray[np.int64]:
        """Add the root and return its number, as an array."""
        start = np.array([seed % 2**64], dtype=np.uint64)
        free = np.array([[-np.inf, np.inf]])
        zero = np.zeros(1, np.int64)
        return self._add(zero, zero + n_rows, zero, start, free)

    def add_children(self, parents: NDArray[np.int64], middle: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add both children of nodes whose rows are divided at `middle`; return their numbers, pair by pair."""
        begin = np.stack([self.begin[parents], middle], axis=1).ravel()
        end = np.stack([middle, self.end[parents]], axis=1).ravel()
        depth = np.repeat(self.depth[parents] + 1, 2)
        seed = np.empty(2 * len(parents), np.uint64)
        child_seeds(self.seed[parents], seed)
        added = self._add(begin, end, depth, seed, np.repeat(self.bounds[parents], 2, axis=0))
        self.left[parents], self.right[parents] = added[::2], added[1::2]
        return added

    def _add(self, begin: Any, end: Any, depth: Any, seed: Any, bounds: Array) -> NDArray[np.int64]:
        first, self.n = self.n, self.n + len(begin)
        if self.n > len(self.begin):
            self.reserve(max(self.n, 2 * len(self.begin)))
        new = slice(first, self.n)
        self.begin[new], self.end[new], self.depth[new], self.seed[new] = begin, end, depth, seed
        self.bounds[new], self.feature[new], self.left[new], self.right[new] = bounds, -1, -1, -1
        self.threshold[new], self.cut[new], self.missing_left[new], self.gain[new] = 0.0, 0, 0, -np.inf
        return np.arange(first, self.n)

    def reserve(self, capacity: int) -> None:
        """Make room for so many nodes."""
        for name in self._names:
            array = getattr(self, name)
            grown = np.empty((max(capacity, len(array)), *array.shape[1:]), array.dtype)
            grown[: len(array)] = array
            setattr(self, name, grown)

    def arrays(self) -> NodeArrays:
        """Return the arrays, for kernels."""
        return NodeArrays(*(getattr(self, name) for name in NodeArrays._fields))

    def set_statistics(self, at: Any, value: Array, impurity: Array, weight: Array) -> None:
        """Write what is known of nodes before they are split."""
        self.value[at], self.impurity[at], self.weight[at] = value, impurity, weight

    def set_splits(self, at: Any, feature: Any, cut: Any, threshold: Any, missing_left: Any, gain: Any) -> None:
        """Write the best splits of nodes."""
        self.feature[at], self.cut[at], self.threshold[at] = feature, cut, threshold
        self.missing_left[at], self.gain[at] = missing_left, gain

    def set_categories(self, at: Any, categorical: Any, n_codes: Any, sets: NDArray[np.uint32]) -> None:
        """Write which categories go left, where the split is one of categories."""
        for i in np.flatnonzero(categorical):
            self.sets[int(at[i])] = sets[i, : (int(n_codes[i]) + 31) // 32].copy()

    def sets_of(self, at: Any, n_words: int) -> NDArray[np.uint32]:
        """Return the sets of nodes as lines of one matrix."""
        out = np.zeros((len(at), n_words), np.uint32)
        if self.sets:
            for line, node in enumerate(at):
                own = self.sets.get(int(node))
                if own is not None:
                    out[line, : len(own)] = own
        return out

    def as_tree(self, old: NDArray[np.int64]) -> Trees:
        """Return the tree of nodes `old`, in this order; a node whose children are not among them is a leaf."""
        number = np.full(self.n + 1, -1, np.int32)
        number[old] = np.arange(len(old))
        left, right = number[self.left[old]], number[self.right[old]]
        leaf = left < 0
        category = np.full(len(old), -1, np.int64)
        bits, at = [np.zeros(0, np.uint32)], 0
        if self.sets:
            for i in np.flatnonzero(~leaf):
                words = self.sets.get(int(old[i]))
                if words is not None:
                    bits += [np.array([len(words)], np.uint32), words]
                    category[i], at = at, at + len(words) + 1
        return Trees(
            start=np.array([0, len(old)], np.int64),
            feature=np.where(leaf, -1, self.feature[old]).astype(np.int32),
            threshold=np.where(leaf, 0.0, self.threshold[old]),
            left=left,
            right=right,
            missing_left=np.where(leaf, 0, self.missing_left[old]).astype(np.uint8),
            category=category,
            bits=np.concatenate(bits),
            impurity=self.impurity[old],
            n_rows=self.end[old] - self.begin[old],
            weight=self.weight[old],
            value=self.value[old],
        )


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
