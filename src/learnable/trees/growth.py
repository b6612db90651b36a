"""What all growers share: the rule, its limits for kernels, the nodes of a tree while it grows, and the result."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core import Array, NDArray, Stopped
from ._random import child_seeds
from .criteria import GINI, SQUARED, Target
from .layout import Trees

_DIGITS = 52  # binary digits of a whole number that a float holds exactly
_FEW_CLASSES = 10  # counts of so many fit into one float


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


class Limits(NamedTuple):
    """`GrowthRule` and `Target`, as kernels see them."""

    max_depth: int
    min_split: int
    min_leaf: int
    min_weight: float
    max_features: int
    min_gain: float
    min_decrease: float
    scale: float  #: of gains
    whole: float  #: weight of all rows, times the number of outputs
    reg_lambda: float
    monotone: bool
    sign: NDArray[np.int8]  #: (d,)
    n_classes: int  #: of the first output; 0 for numbers
    gini: bool
    two: bool  #: two classes and Gini
    pairs: bool  #: one weight and one sum describe a node: two classes and Gini, or numbers and the squared error
    unit: bool  #: all weights are one
    bits: int  #: of each class in a sum of targets, for drawn thresholds; 0: targets are the numbers of the classes


def limits_of(target: Target, rule: GrowthRule, used: NDArray[np.int32], n_columns: int) -> Limits:
    """Return what a tree of the rows `used` has to obey."""
    weight = target.weight[used]
    m = int(target.n_classes[0])
    two = target.kind == GINI and target.n_outputs == 1 and m == 2
    pairs = two or target.kind == SQUARED
    unit = bool((weight == 1.0).all())
    return Limits(
        2**31 - 1 if rule.max_depth is None else int(rule.max_depth),
        int(max(rule.min_samples_split, 2 * rule.min_samples_leaf, 2)),
        int(rule.min_samples_leaf),
        float(rule.min_weight_leaf),
        min(rule.max_features or n_columns, n_columns),
        float(rule.min_gain),
        float(rule.min_impurity_decrease),
        float(target.gain_scale),
        float(weight.sum()) * target.n_outputs,
        float(target.reg_lambda),
        rule.is_monotone,
        np.asarray(rule.monotonic, np.int8) if rule.is_monotone else np.zeros(n_columns, np.int8),
        m,
        target.kind == GINI,
        two,
        pairs,
        unit,
        _DIGITS // m if unit and not pairs and 0 < m <= _FEW_CLASSES else 0,
    )


class Nodes(NamedTuple):
    """The arrays of a `NodeStore`."""

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


class NodeStore:
    """Nodes by number, in arrays that double when they are full; node i has rows[begin[i]:end[i]] of the grower.

    Parameters
    ----------
    width : int
        Numbers in the value of a node.

    Attributes
    ----------
    arrays : Nodes
        Also read as `store.begin` and so on.

    Examples
    --------
    >>> NodeStore(1).add_root(10, seed=0)
    array([0])
    """

    def __init__(self, width: int) -> None:
        self.n = 0
        self.sets: dict[int, NDArray[np.uint32]] = {}
        i32 = np.int32
        i64 = np.int64
        new: Any = partial(np.empty, 64)
        self._bind(
            Nodes(
                new(i64),
                new(i64),
                new(i32),
                new(np.uint64),
                np.empty((64, 2)),
                new(i32),
                new(),
                new(i64),
                new(np.uint8),
                new(),
                new(i32),
                new(i32),
                new(),
                new(),
                np.empty((64, width)),
            )
        )

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def _bind(self, arrays: Nodes) -> None:
        self.arrays = arrays
        vars(self).update(arrays._asdict())

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
        self.left[parents] = added[::2]
        self.right[parents] = added[1::2]
        return added

    def _add(self, begin: Any, end: Any, depth: Any, seed: Any, bounds: Array) -> NDArray[np.int64]:
        first = self.n
        self.n = self.n + len(begin)
        if self.n > len(self.begin):
            self.reserve(max(self.n, 2 * len(self.begin)))
        new = {"begin": begin, "end": end, "depth": depth, "seed": seed, "bounds": bounds, "gain": -np.inf}
        new |= {"feature": -1, "left": -1, "right": -1, "threshold": 0.0, "cut": 0, "missing_left": 0}
        self.write(slice(first, self.n), **new)
        return np.arange(first, self.n)

    def write(self, at: Any, **values: Any) -> None:
        """Write what is known of nodes."""
        for name, own in values.items():
            getattr(self, name)[at] = own

    def reserve(self, capacity: int) -> None:
        """Make room for so many nodes."""
        self._bind(Nodes(*(_lengthened(array, max(capacity, len(array))) for array in self.arrays)))

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
        left = number[self.left[old]]
        right = number[self.right[old]]
        leaf = left < 0
        category = np.full(len(old), -1, np.int64)
        bits = [np.zeros(0, np.uint32)]
        at = 0
        if self.sets:
            for i in np.flatnonzero(~leaf):
                words = self.sets.get(int(old[i]))
                if words is not None:
                    bits += [np.array([len(words)], np.uint32), words]
                    category[i] = at
                    at = at + len(words) + 1
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


def _lengthened(array: NDArray[Any], length: int) -> NDArray[Any]:
    out = np.empty((length, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


class Grown(NamedTuple):
    """A tree and where its rows ended."""

    tree: Trees
    leaf_of_row: NDArray[np.int32]  #: (n,), −1 for rows that were not used


class GrowthStopped(Stopped):
    """The stop flag was raised before the tree was complete."""
