"""Forests on a Dask cluster whose rows fit no worker: large nodes by merged sums, small ones where their rows meet.

    bins       every step-th value of each column comes to the client, as `max_bins` has it in memory
    codes      every partition is encoded by a worker: one byte per cell, kept there
    levels     workers sum their rows by code, for all open nodes of some trees at once; the client adds the sums and
               finds the splits (`trees.exact.by_code`)
    small nodes   of at most 2¹⁶ rows are brought together on one worker, which grows the rest of the tree from there

A tree depends on its number and the seed alone, and the sums are whole numbers, or exact: the forest is the same for
any number of workers and partitions, and that of the table in memory with the same `max_bins`, to the bit. (Where two
splits of a node of more than 2¹⁶ rows agree in all but the last digits, entropy and sums of numbers may choose the
other one.) Tasks are functions of partitions: what a dead worker had done is done again.

Memory: on the workers d + 20 bytes per row, and a share of 2¹⁶ rows; on the client 16 bytes per row for targets and
weights, 48 for the trees of a regression that grow side by side, and 4 per row and tree for `predict_quantiles`.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ...core import Array, DataError, NDArray, Run
from ...data.blocks import joined_lists, map_reduce
from ...data.dask_blocks import Reader, current_client, run_on_partitions
from ...data.dask_tasks import RETRIES, result_of
from ...trees import Trees, prune_to
from ...trees.criteria import CLASSES, PAIRS, TWO, Target
from ...trees.table import bin_edges, sample_step
from ..draws import Draw, draw_counts
from ..gradient.cluster import share_out
from . import growing
from .grow import add_out_of_bag
from .growing import Ground, GrowingTree
from .shards import (
    BinTable,
    Ends,
    Task,
    answer,
    bag_of,
    encode_rows,
    ends_of,
    grow_nodes,
    join_rows,
    move_rows,
    sample_of,
    targets_of,
)

_TOGETHER = 4  # trees that grow side by side: each round is one task per thread, whose own cost is some milliseconds
_LEAF_BYTES = 2**30  # of rows in leaves that the client keeps for quantiles


class Gathered(NamedTuple):
    """Targets and weights of all rows, as a plan reads them; the columns stay where they are."""

    y: NDArray[Any]
    weight: Array | None
    classes: Any
    n_columns: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def y_shape(self) -> tuple[int, ...]:
        """Shape of one row's target."""
        return tuple(self.y.shape[1:])


class MergedForest:
    """One fit.

    Parameters
    ----------
    forest : estimator
        Parameters and seed; fitted attributes are written to it.
    blocks : DaskBlocks
        The partitions.
    classes : array or None
        The labels.
    """

    def __init__(self, forest: Any, blocks: Any, classes: Any) -> None:
        self.owner = type(forest).__name__
        self.forest = forest
        self.blocks = blocks
        self.client = current_client()
        pieces = map_reduce(blocks, targets_of, joined_lists)
        y = np.concatenate([own for own, _ in pieces])
        weight = None if pieces[0][1] is None else np.concatenate([own for _, own in pieces])
        self.table: Any = Gathered(y, weight, classes, blocks.n_columns)
        forest.n_outputs_ = int(np.prod(self.table.y_shape, initial=1))
        forest.n_samples_ = self.table.n_rows
        target, self.rule, self.draw = forest._plan_rows(self.table)
        _refuse(self.owner, forest, target)
        self.bins = _find_bins(blocks, forest.max_bins)
        self.y = target.y if not target.n_classes[0] else None
        whole = float(forest.n_samples_ if self.draw is None else self.draw.n_drawn)
        self.task = Task(_without_rows(target, whole), self.rule, self.bins, whole)
        self._encode(blocks)

    def _encode(self, blocks: Any) -> None:
        """Let workers encode the partitions, and join those that follow each other."""
        import dask

        starts = [*blocks.first_rows, self.table.n_rows]
        heights = np.diff(starts).tolist()
        call = dask.delayed(_call, pure=False)
        work = partial(encode_rows, blocks.read, self.bins)
        parts = [call(work, part, number) for number, part in enumerate(blocks.parts)]
        groups = share_out(heights, max(1, sum(self.client.nthreads().values())))
        join = dask.delayed(join_rows, pure=False)
        joined = [join(starts[group[0]], [parts[k] for k in group if heights[k]]) for group in groups]
        self.firsts = [starts[group[0]] for group in groups]
        self.shards = self.client.compute(joined, retries=RETRIES)

    def close(self) -> None:
        """Let the workers forget what they hold; a cluster frees what is no longer referenced."""
        self.shards = []

    # Trees

    def grow_all(self, run: Run) -> list[tuple[Trees, Any]]:
        """Return the trees, and of a regression the rows of their leaves; fewer if the time is up."""
        forest = self.forest
        keeps = self.y is not None and 4 * forest.n_estimators * self.task.whole <= _LEAF_BYTES
        grown: list[tuple[Trees, Any]] = []
        for first in range(0, forest.n_estimators, _TOGETHER):
            numbers = range(first, min(first + _TOGETHER, forest.n_estimators))
            grown += self._grow_some(list(numbers), keeps)
            if run.progress(len(grown), 0.0):
                break
        self._keep_leaves(grown, keeps)
        return grown

    def _keep_leaves(self, grown: list[tuple[Trees, Any]], keeps: bool) -> None:
        if self.y is None or keeps:
            self.forest._keep_leaves(self.table, None, grown, None)
            return
        warnings.warn(
            f"{self.owner}: the rows of all leaves would take more than {_LEAF_BYTES / 2**30:g} GB and are not kept; "
            "predict_quantiles and predict_interval need them.",
            UserWarning,
            stacklevel=5,
        )

    def _grow_some(self, numbers: list[int], keeps: bool) -> list[tuple[Trees, Any]]:
        n_rows = self.table.n_rows
        ground = Ground(self.task, self.y, self.draw, n_rows, self.forest.seed_, self.firsts)
        bags = [self._submit(bag_of, self.draw, number) for number in numbers]
        trees = [GrowingTree(ground, number) for number in numbers]
        while any(tree.asks() for tree in trees):
            asked = [k for k, tree in enumerate(trees) if tree.asks()]
            asks = [trees[k].ask() for k in asked]
            own = [bags[k] for k in asked]
            futures = [self._submit(answer, self.task, shard, own, asks) for shard in self.shards]
            answers = [result_of(self.owner, future) for future in futures]
            for i, k in enumerate(asked):
                trees[k].take([found[i] for found in answers])
        waiting = [self._move(tree, bag, keeps) for tree, bag in zip(trees, bags, strict=True)]
        for tree, futures in zip(trees, waiting, strict=True):
            for future in futures:
                tree.graft(result_of(self.owner, future))
        found = [self._finished(tree, keeps) for tree in trees]
        return found

    def _finished(self, tree: GrowingTree, keeps: bool) -> tuple[Trees, Any]:
        grown = tree.assembled(keeps)
        if self.y is None or keeps:
            rows = None if self.draw is None else np.repeat(np.arange(self.table.n_rows), tree.counts())
            return self.forest._finish_tree(grown, rows if keeps else None)  # type: ignore[no-any-return]
        alpha = self.forest.ccp_alpha
        return (prune_to(grown.tree, alpha=alpha) if alpha > 0 else grown.tree), None

    def _move(self, tree: GrowingTree, bag: Any, keeps: bool) -> list[Any]:
        """Bring the rows of small nodes together, about as many at a time as a worker has; return their subtrees."""
        found = []
        partial_tree = tree.partial()
        run = max(growing.MOVED_ROWS, -(-self.table.n_rows // max(1, len(self.shards))))
        for roots in tree.small_nodes(run):
            nodes = [root.node for root in roots]
            moved = [self._submit(move_rows, self.task, shard, bag, partial_tree, nodes) for shard in self.shards]
            found.append(self._submit(grow_nodes, self.task, roots, keeps, moved))
        return found

    def _submit(self, work: Any, *args: Any) -> Any:
        return self.client.submit(work, *args, pure=False, retries=RETRIES)

    # Out of bag

    def sums_out_of_bag(self, trees: Trees) -> tuple[Array, NDArray[np.int64]]:
        """Return what `grow.sums_out_of_bag` gives for all rows; it reads them once more, as they are."""
        work = partial(_out_of_bag, self.blocks.read, self.draw, trees)
        found = list(run_on_partitions(self.owner, work, self.blocks.parts, self.blocks.first_rows))
        return np.concatenate([total for total, _ in found]), np.concatenate([voters for _, voters in found])


# --------------------------------------------------------------------------------------------------------------------
# What comes before the first tree.


def _refuse(owner: str, forest: Any, target: Target) -> None:
    """Raise DataError for what needs rows in one place."""
    why = None
    if target.n_outputs > 1:
        why = "several targets"
    elif target.family not in (TWO, CLASSES, PAIRS) or (target.n_classes[0] and target.family == PAIRS):
        why = f"criterion={forest.criterion!r}, or sample_weight with bootstrap=False"
    elif forest.max_leaf_nodes is not None:
        why = "max_leaf_nodes"
    elif forest.monotonic_cst is not None:
        why = "monotonic_cst"
    elif forest.categorical_features is not None:
        why = "categorical_features"
    elif getattr(forest, "class_weight", None) == "balanced_subsample" and forest.bootstrap:
        why = "class_weight='balanced_subsample'"
    elif not target.has_small_weights:
        why = "sample_weight with bootstrap=False"
    if why is not None:
        raise DataError(
            f"{owner}: {why} needs all rows in one place, and they fit no worker. Use larger workers or fewer rows, or "
            "leave it at its default."
        )


def _without_rows(target: Target, whole: float) -> Target:
    """Return the criterion; one row stands for the weight of a bag."""
    labels = np.zeros((1, 1), np.int32) if target.n_classes[0] else target.labels
    y = np.zeros((0, 1)) if target.n_classes[0] else np.zeros((1, 1))
    return replace(target, labels=labels, y=y, weight=np.array([whole]), unit=False)


def _find_bins(blocks: Any, max_bins: int) -> BinTable:
    """Return the bins that `Columns.build` finds for the table in memory."""
    blocks.scanned()  # from then on blocks know where they begin
    ends: list[Ends] = map_reduce(blocks, ends_of, joined_lists)
    present = [own.present for own in ends]
    counted = accumulate(present, initial=np.zeros_like(present[0]))
    before = {own.start: seen for own, seen in zip(ends, counted, strict=False)}
    steps = np.array([sample_step(int(count)) for count in np.sum(present, axis=0)], np.int64)
    pieces: list[list[Array]] = map_reduce(blocks, partial(sample_of, before=before, steps=steps), joined_lists)
    least = np.min([own.low for own in ends], axis=0)
    most = np.max([own.high for own in ends], axis=0)
    low, high = [], []
    for j in range(len(steps)):
        sample = np.sort(np.concatenate([piece[j] for piece in pieces]))
        if not len(sample):
            low.append(np.zeros(0))
            high.append(np.zeros(0))
            continue
        edges = bin_edges(sample, max_bins)
        low.append(np.r_[least[j], edges])
        high.append(np.r_[edges, most[j]])
    n_codes = np.array([len(own) for own in low], np.int64)
    offset = np.r_[0, np.cumsum(n_codes)].astype(np.int64)
    return BinTable(n_codes, offset, np.concatenate(low), np.concatenate(high))


def _out_of_bag(
    read: Reader, draw: Draw, trees: Trees, raw: Any, number: int, start: int
) -> tuple[Array, NDArray[np.int64]]:
    """Return, for the rows of a partition, what the trees say that have not seen them. Runs on a worker.

    Codes do not suffice: a threshold may lie inside a bin that the node has no row of.
    """
    X = read(raw, number).X
    own = slice(start, start + len(X))
    return add_out_of_bag(trees, X, lambda member: draw_counts(draw, member)[own] == 0)


def _call(work: Any, part: Any, number: int) -> Any:
    return work(part, number)
