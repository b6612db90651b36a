"""Trees whose thresholds are drawn: no order of the values is needed, so the numbers are read as they are.

What `grower` does level by level over ranks is done here depth first over the numbers themselves, for the targets that
a pair of sums or counts of classes describe. Both draw the same columns and thresholds from the seed and the path from
the root: they grow the same tree, up to ties. Memory: the table a second time, and about 250 bytes per row and tree
under way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...core import Array, NDArray
from ..criteria import ENTROPY, GINI, SQUARED, Target
from ..exact.workspace import run_parts
from ..growth import GrowthRule, Limits, limits_of
from ..layout import Trees
from ..table import Columns
from ._kernels import grow_tree

_INNER_VALUES = 1 << 15  # a quarter of a megabyte
_OUTER_SHARE = 16  # of the rows: eight values come into the cache together
_FEW_ROWS = 32  # a block of fewer rows is not worth its copy
_FEW_COLUMNS = 16  # columns of the table for each that is drawn
_LONG = 1 << 21  # rows times columns drawn at a node: a tenth of a second


class Rows(NamedTuple):
    """What moves with the rows of a node."""

    number: NDArray[np.int32]
    y: Array
    weight: Array


class Table(NamedTuple):
    """The numbers."""

    rows: Array  #: (n, d), row after row
    columns: Array  #: (d, n), column after column


class Block(NamedTuple):
    """A copy of the rows of a small node."""

    values: Array  #: (d, ·)
    number: NDArray[np.int32]  #: of each row in the table


class Scratch(NamedTuple):
    """Memory of the search."""

    values: Array  #: (2, n) of one column, and of the best one so far
    order: NDArray[np.int32]
    picks: NDArray[np.int64]
    totals: Array
    sides: Array


class Stack(NamedTuple):
    """Nodes that are still to come."""

    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    depth: NDArray[np.int64]
    seed: NDArray[np.uint64]
    parent: NDArray[np.int64]  #: of a right child; −1 of a left one, which follows its parent


class Nodes(NamedTuple):
    """The tree, in the order of the walk."""

    feature: NDArray[np.int32]
    threshold: Array
    right: NDArray[np.int32]
    missing_left: NDArray[np.uint8]
    impurity: Array
    n_rows: NDArray[np.int64]
    weight: Array
    value: Array


class Memory(NamedTuple):
    """All arrays of one tree under way; they serve one tree after the other."""

    rows: Rows
    spare: Rows
    outer: Block
    inner: Block
    scratch: Scratch
    stack: Stack
    nodes: Nodes


@dataclass(frozen=True)
class Values:
    """The table of the random splitter.

    Attributes
    ----------
    table : Table
        Without missing values.
    unused : dict of list of Memory
        Of trees that are finished, for the next ones of the same kind: fresh memory costs a tenth of a tree.
    """

    table: Table
    unused: dict[tuple[int, int], list[Memory]] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.table.rows)

    @staticmethod
    def build(X: Any) -> Values:
        """Return the table of X, (n, d), without missing values."""
        X = np.asarray(X, dtype=np.float64)
        return Values(Table(np.ascontiguousarray(X), np.ascontiguousarray(X.T)))


def read_table(
    X: Any,
    target: Target,
    rule: GrowthRule,
    *,
    max_bins: int | None,
    categorical: NDArray[np.bool_] | None,
    n_threads: int,
    owner: str,
) -> Columns | Values:
    """Return the table as the splitter of the rule wants it; the parameters are those of `Columns.build`."""
    numbers = max_bins is None and (categorical is None or not categorical.any())
    if numbers and takes_values(X, target, rule):
        return Values.build(X)
    return Columns.build(X, max_bins=max_bins, categorical=categorical, n_threads=n_threads, owner=owner)


def takes_values(X: Any, target: Target, rule: GrowthRule) -> bool:
    """Tell whether trees can grow from numbers alone: thresholds drawn, nothing missing, sums that are known here."""
    plain = rule.splitter == "random" and rule.max_leaf_nodes is None and not rule.is_monotone
    known = target.n_outputs == 1 and target.kind in (GINI, ENTROPY, SQUARED)
    return plain and known and not sp.issparse(X) and not bool(np.isnan(X).any())


def grow_random(
    values: Values, target: Target, rule: GrowthRule, used: NDArray[np.int32], seed: int, stop: NDArray[np.int64]
) -> tuple[Trees, NDArray[np.int32]] | None:
    """Grow one tree of the rows `used`; return it and the leaf of every row, None if the flag was raised.

    Examples
    --------
    >>> from learnable.trees import GrowthRule
    >>> X, y = np.arange(8.0)[:, None], Target.numbers([0, 0, 0, 1, 1, 1, 2, 2])
    >>> rows, flag = np.arange(8, dtype=np.int32), np.zeros(1, np.int64)
    >>> tree, leaf = grow_random(Values.build(X), y, GrowthRule(splitter="random"), rows, 0, flag)
    >>> bool((tree.apply(X)[:, 0] == leaf).all())
    True
    """
    shape = values.table.rows.shape
    limits = limits_of(target, rule, used, shape[1])
    unused = values.unused.setdefault((limits.max_features, target.width), [])
    try:
        memory = unused.pop()
    except IndexError:  # other threads have them all
        memory = _allocate(shape, limits, target.width)
    n = len(used)
    rows = Rows(memory.rows.number[:n], memory.rows.y[:n], memory.rows.weight[:n])
    rows.number[:] = used
    rows.y[:] = _targets(target, limits, used)
    rows.weight[:] = target.weight[used]
    own = memory._replace(rows=rows)
    own.stack.seed[0] = seed % 2**64
    leaf_of_row = np.full(values.n_rows, -1, np.int32)
    count = np.zeros(1, np.int64)

    def whole(part: int) -> None:
        count[0] = grow_tree(values.table, *own, limits, leaf_of_row, stop)

    run_parts(whole, 1, stop, n * limits.max_features >= _LONG)
    found = None if count[0] < 0 else (_as_tree(own.nodes, int(count[0]), target), leaf_of_row)
    unused.append(memory)
    return found


def _targets(target: Target, limits: Limits, used: NDArray[np.int32]) -> Array:
    """Return numbers, numbers of classes, or powers of two whose sums count several classes at once."""
    if not limits.n_classes:
        return np.asarray(target.y[used, 0])
    labels = target.labels[used, 0]
    return np.exp2(limits.bits * labels) if limits.bits else labels.astype(np.float64)


def _allocate(shape: tuple[int, ...], limits: Limits, width: int) -> Memory:
    """Allocate for all rows of the table; pages that no row needs cost nothing."""
    n, d = shape
    few = d <= _FEW_COLUMNS * limits.max_features
    inner = min(n, _INNER_VALUES // d) if few and _INNER_VALUES // d >= _FEW_ROWS else 0
    outer = n // _OUTER_SHARE if few and n // _OUTER_SHARE > 2 * inner else 0
    most = 2 * n - 1
    begin, end, depth, parent = (np.empty(n + 1, np.int64) for _ in range(4))
    return Memory(
        Rows(np.empty(n, np.int32), np.empty(n), np.empty(n)),
        Rows(np.empty(n, np.int32), np.empty(n), np.empty(n)),
        Block(np.empty((d, outer)), np.empty(outer, np.int32)),
        Block(np.empty((d, inner)), np.empty(inner, np.int32)),
        Scratch(
            np.empty((2, n)),
            np.arange(d, dtype=np.int32),
            np.empty(d, np.int64),
            np.empty(width + 1),
            np.empty(width),
        ),
        Stack(begin, end, depth, np.empty(n + 1, np.uint64), parent),
        Nodes(
            np.empty(most, np.int32),
            np.empty(most),
            np.empty(most, np.int32),
            np.empty(most, np.uint8),
            np.empty(most),
            np.empty(most, np.int64),
            np.empty(most),
            np.empty((most, width)),
        ),
    )


def _as_tree(nodes: Nodes, n: int, target: Target) -> Trees:
    copies: Any = (array[:n].copy() for array in nodes)
    own = Nodes(*copies)
    if not target.n_classes[0]:
        own.value[:] = own.value * target.scale + target.shift
        own.impurity[:] = own.impurity * target.gain_scale
    left = np.where(own.feature >= 0, np.arange(1, n + 1), -1).astype(np.int32)
    return Trees(
        start=np.array([0, n], np.int64),
        left=left,
        category=np.full(n, -1, np.int64),
        bits=np.zeros(0, np.uint32),
        **own._asdict(),
    )
