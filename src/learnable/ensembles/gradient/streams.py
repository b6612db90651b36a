"""Boosting on rows that lie in files or on Dask: three sweeps, then everything happens on codes of one byte.

    sweep 1    targets and weights
    sweep 2    the rows that bin edges are computed from, chosen by their number in the whole table; rows held out
    sweep 3    every block is encoded where it is read; only its codes are kept

The codes (two bytes per cell, where the rows of a file have eight) are those of the table in memory, so the trees are
the same to the bit, whatever the number of blocks or partitions. On Dask the partitions are encoded where they lie.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...data.arrays import bound_infinity
from ...data.blocks import Block, map_reduce
from ...trees.histogram.bins import BinnedTable, Bins, sample_rows

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


class Targets(NamedTuple):
    """What sweep 1 finds."""

    y: NDArray[Any]
    w: Array | None


def read_targets(blocks: Any, classes: Any, n_jobs: int | None) -> Targets:
    """Return the targets (class codes, if there are classes) and weights of all rows."""
    pieces = map_reduce(blocks, _targets_of, _chain, n_jobs=n_jobs)
    y = np.concatenate([piece[0] for piece in pieces])
    w = None if pieces[0][1] is None else np.concatenate([piece[1] for piece in pieces])
    return Targets(y.astype(np.int64) if classes is not None else y.astype(np.float64), w)


def read_rows(blocks: Any, rows: Rows, n_jobs: int | None) -> Array:
    """Return some rows of X, whose numbers ascend."""
    pieces = map_reduce(blocks, partial(_rows_of, rows=rows), _chain, n_jobs=n_jobs)
    return np.concatenate(pieces)


def read_codes(
    blocks: Any,
    fit: Rows | None,
    n_rows: int,
    max_bins: int,
    w: Array | None,
    seed: int,
    n_jobs: int | None,
    owner: str,
) -> BinnedTable:
    """Return the codes of the rows `fit` (None: all), as `BinnedTable.build` would from the table in memory."""
    every = np.arange(n_rows) if fit is None else fit
    chosen = sample_rows(len(every), seed)
    rows = every if chosen is None else every[chosen]
    weight = w if w is None or chosen is None else w[chosen]
    bins = Bins.fit(read_rows(blocks, rows, n_jobs), max_bins=max_bins, weight=weight, owner=owner)
    pieces = map_reduce(blocks, partial(_codes_of, bins=bins, rows=fit), _chain, n_jobs=n_jobs)
    return BinnedTable(
        bins, np.concatenate([piece[0] for piece in pieces]), np.concatenate([piece[1] for piece in pieces], axis=1)
    )


class Encoded(NamedTuple):
    """A table of which only the codes are here."""

    binned: BinnedTable
    shape: tuple[int, int]


def _targets_of(block: Block) -> list[Any]:
    return [(np.array(block.y), None if block.weight is None else block.weight.copy())]


def _rows_of(block: Block, rows: Rows) -> list[Any]:
    return [bound_infinity(block.X[_own(rows, block)])]


def _codes_of(block: Block, bins: Bins, rows: Rows | None) -> list[Any]:
    X = block.X if rows is None else np.ascontiguousarray(block.X[_own(rows, block)])
    table = bins.encode(bound_infinity(X))
    return [(table.rows, table.columns)]


def _own(rows: Rows, block: Block) -> Rows:
    """Return which of the rows lie in a block, counted within it."""
    first, last = np.searchsorted(rows, [block.start, block.start + block.X.shape[0]])
    return rows[first:last] - block.start


def _chain(a: list[Any], b: list[Any]) -> list[Any]:
    a.extend(b)
    return a
