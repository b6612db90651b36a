"""What workers do for a forest whose rows stay where they are: codes, sums by code, small nodes grown whole.

All of it are functions of the rows of some partitions and of what the client sends; whatever a dead worker had done is
done again by another.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...core import Array, NDArray
from ...data.any_order import LIMBS, add_by_group
from ...data.blocks import Block
from ...data.dask_blocks import Reader
from ...trees import GrowthRule, Trees, grow
from ...trees.criteria import Target
from ...trees.table import Columns, bin_column
from ..draws import Draw, Rows, draw_counts
from ._kernels import count_codes, place_rows

N_CODES = 256  #: codes of a column, that of the missing values included


class BinTable(NamedTuple):
    """The bins of all columns; see `trees.table.Columns`."""

    n_codes: NDArray[np.int64]
    offset: NDArray[np.int64]
    low: Array
    high: Array

    def columns(self, codes: NDArray[np.uint8]) -> Columns:
        """Return coded rows, (d, n), as a table that trees grow on."""
        d, n = codes.shape
        none = np.zeros(0, np.uint32)
        start = np.zeros(d + 1, np.int64)
        zero = np.zeros(d, np.int64)
        return Columns(
            codes, none, none.astype(np.int32), start, zero, self.n_codes, np.zeros(d, bool), self.offset, self.low,
            self.high, n,
        )  # fmt: skip

    def edges(self, j: int) -> Array:
        """Return the inner edges of a column."""
        return self.low[self.offset[j] + 1 : self.offset[j + 1]]


class Shard(NamedTuple):
    """The rows of some partitions that follow each other."""

    first: int  #: number of the first row in the whole table
    codes: NDArray[np.uint8]  #: (d, n)
    y: NDArray[Any]  #: class codes, or numbers as they were given


class PartialTree(NamedTuple):
    """The nodes of a tree so far, as far as rows need them."""

    feature: NDArray[np.int32]
    cut: NDArray[np.int64]
    missing_left: NDArray[np.uint8]
    left: NDArray[np.int32]  #: −1 where a node is not divided
    right: NDArray[np.int32]


class Ask(NamedTuple):
    """What the client wants to know of one tree."""

    tree: PartialTree
    nodes: NDArray[np.int32]  #: (a,) whose sums are wanted
    columns: NDArray[np.int32]  #: (a,) by which column; −1: only the node's own sums
    parents: tuple[int, ...] = ()  #: nodes of which is asked which of their rows went left


class Answer(NamedTuple):
    """Sums over the rows of a shard; they add up."""

    rows: NDArray[np.int64]  #: (a, 256)
    sums: NDArray[np.int64]  #: (a, 256, K) weights of classes; of numbers (a, 256, 4): W and the limbs of S
    went_left: tuple[NDArray[np.uint8], ...]  #: of each parent, a bit per row


class Moved(NamedTuple):
    """Rows of nodes that are small enough to be brought together."""

    node: NDArray[np.int32]
    row: NDArray[np.int64]  #: number in the whole table
    codes: NDArray[np.uint8]
    y: NDArray[Any]
    times: NDArray[np.int64]  #: how often the row was drawn


class Root(NamedTuple):
    """A node from which a worker grows the rest of a tree."""

    node: int
    seed: int
    depth: int


class Task(NamedTuple):
    """All that trees depend on besides their rows."""

    target: Target  #: without rows
    rule: GrowthRule
    bins: BinTable
    whole: float  #: weight of a bag


# Bins


class Ends(NamedTuple):
    """Of the rows of a block: where it begins, and values present, least and largest of each column."""

    start: int
    present: NDArray[np.int64]
    low: Array
    high: Array


def ends_of(block: Block) -> list[Ends]:
    """Return what decides which values are in the sample."""
    X = np.asarray(block.X)
    there = ~np.isnan(X)
    low = np.where(there, X, np.inf).min(axis=0, initial=np.inf)
    high = np.where(there, X, -np.inf).max(axis=0, initial=-np.inf)
    return [Ends(block.start, there.sum(axis=0), low, high)]


def sample_of(block: Block, before: dict[int, NDArray[np.int64]], steps: NDArray[np.int64]) -> list[list[Array]]:
    """Return, of each column, every step-th of the values that are present, counted over the whole table."""
    X = np.asarray(block.X)
    seen = before[block.start]
    found = []
    for j, step in enumerate(steps.tolist()):
        x = X[:, j]
        present = x[~np.isnan(x)]
        found.append(np.array(present[-int(seen[j]) % step :: step], dtype=np.float64))
    return [found]


def targets_of(block: Block) -> list[tuple[NDArray[Any], Array | None]]:
    """Return targets and weights of a block."""
    return [(np.asarray(block.y), block.weight)]


def encode_rows(read: Reader, bins: BinTable, raw: Any, number: int) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """Return the codes of a partition, (d, n), and its targets."""
    part = read(raw, number)
    X = np.asarray(part.X)
    codes = np.empty((X.shape[1], X.shape[0]), np.uint8)
    for j in range(len(codes)):
        bin_column(np.ascontiguousarray(X[:, j]), bins.edges(j), int(bins.n_codes[j]), codes[j])
    return codes, np.asarray(part.y)


def join_rows(first: int, pieces: list[tuple[NDArray[np.uint8], NDArray[Any]]]) -> Shard:
    """Return the rows of several partitions as one shard."""
    codes = np.concatenate([codes for codes, _ in pieces], axis=1)
    return Shard(first, codes, np.concatenate([y for _, y in pieces]))


# Bags


def bag_of(draw: Draw | None, number: int) -> NDArray[np.uint32] | None:
    """Return how often each row of the table is in the bag of a tree; None: every tree has all rows."""
    return None if draw is None else draw_counts(draw, number).astype(np.uint32)


def own_counts(bag: NDArray[np.uint32] | None, shard: Shard) -> NDArray[np.int64]:
    """Return how often each row of a shard was drawn."""
    n = shard.codes.shape[1]
    return np.ones(n, np.int64) if bag is None else bag[shard.first : shard.first + n].astype(np.int64)


# Sums


def answer(task: Task, shard: Shard, bags: list[Any], asks: list[Ask]) -> list[Answer]:
    """Return the sums that the client asks for, of some trees."""
    return [_answer(task, shard, own_counts(bag, shard), ask) for bag, ask in zip(bags, asks, strict=True)]


def _answer(task: Task, shard: Shard, counts: NDArray[np.int64], ask: Ask) -> Answer:
    node = np.empty(len(counts), np.int32)
    place_rows(shard.codes, task.bins.n_codes, counts, *ask.tree, node)
    labels, x = _statistics(task.target, shard.y, counts)
    width = 4 if labels is None else int(task.target.n_classes[0])
    rows = np.zeros((len(ask.nodes), N_CODES), np.int64)
    sums = np.zeros((len(ask.nodes), N_CODES, width), np.int64)
    slot = np.empty(len(ask.tree.left), np.int32)
    own = np.zeros(len(counts), np.uint8)
    for column in np.unique(ask.columns):
        asked = np.flatnonzero(ask.columns == column)
        slot[:] = -1
        slot[ask.nodes[asked]] = asked
        codes = own if column < 0 else shard.codes[column]
        if labels is not None:
            count_codes(codes, node, slot, counts, labels, rows, sums)
            continue
        at = np.where(node >= 0, slot[node], -1)
        used = np.flatnonzero(at >= 0)
        group = at[used].astype(np.int64) * N_CODES + codes[used]
        size = len(ask.nodes) * N_CODES
        limbs = np.zeros((size, LIMBS), np.int64)
        add_by_group(group, x[used], 1.0, limbs)
        rows += np.bincount(group, minlength=size).reshape(rows.shape)
        weights = np.bincount(group, counts[used], size)  # whole numbers: the sums are exact
        sums[:, :, 0] += weights.astype(np.int64).reshape(rows.shape)
        sums[:, :, 1:] += limbs.reshape(*rows.shape, LIMBS)
    went_left = tuple(_went_left(node, ask.tree, parent) for parent in ask.parents)
    return Answer(rows, sums, went_left)


def _statistics(target: Target, y: NDArray[Any], counts: NDArray[np.int64]) -> tuple[Any, Any]:
    """Return class codes, or the numbers times their counts."""
    if target.n_classes[0]:
        return np.ascontiguousarray(y, np.int64), None
    return None, counts * scaled(target, y)


def scaled(target: Target, y: NDArray[Any]) -> Array:
    """Return the numbers as the growers see them, at most one in magnitude."""
    return np.asarray((np.asarray(y, np.float64) - target.shift[0]) / target.scale)


def _went_left(node: NDArray[np.int32], tree: PartialTree, parent: int) -> NDArray[np.uint8]:
    """Return a bit for each row of a node that was divided last."""
    left = node == tree.left[parent]
    return np.packbits(left[left | (node == tree.right[parent])])


# Small nodes


def move_rows(task: Task, shard: Shard, bag: Any, tree: PartialTree, nodes: list[int]) -> Moved:
    """Return the rows of some nodes."""
    counts = own_counts(bag, shard)
    node = np.empty(len(counts), np.int32)
    place_rows(shard.codes, task.bins.n_codes, counts, *tree, node)
    rows = np.flatnonzero(np.isin(node, np.array(nodes, np.int32)))
    return Moved(node[rows], rows + shard.first, shard.codes[:, rows], shard.y[rows], counts[rows])


def grow_nodes(
    task: Task, roots: list[Root], with_rows: bool, moved: list[Moved]
) -> list[tuple[Trees, NDArray[np.int32], Rows]]:
    """Return the subtrees of some nodes; `with_rows`, also the rows of each and the leaf of each row."""
    node = np.concatenate([piece.node for piece in moved])
    row = np.concatenate([piece.row for piece in moved])
    codes = np.concatenate([piece.codes for piece in moved], axis=1)
    y = np.concatenate([piece.y for piece in moved])
    count = np.concatenate([piece.times for piece in moved])
    found = []
    for root in roots:
        own = np.flatnonzero(node == root.node)
        rule = task.rule
        if rule.max_depth is not None:
            rule = replace(rule, max_depth=rule.max_depth - root.depth)
        target = with_targets(task.target, y[own], count[own])
        columns = task.bins.columns(np.ascontiguousarray(codes[:, own]))
        grown = grow(columns, target, rule, seed=root.seed, whole=task.whole)
        leaf = grown.leaf_of_row if with_rows else grown.leaf_of_row[:0]
        found.append((grown.tree, leaf, row[own] if with_rows else row[:0]))
    return found


def with_targets(target: Target, y: NDArray[Any], counts: NDArray[np.int64]) -> Target:
    """Return a target of these rows."""
    weight = counts.astype(np.float64)
    unit = bool((counts == 1).all())
    if target.n_classes[0]:
        return replace(target, labels=np.ascontiguousarray(y, np.int32)[:, None], weight=weight, unit=unit)
    return replace(target, y=scaled(target, y)[:, None], weight=weight, unit=unit)
