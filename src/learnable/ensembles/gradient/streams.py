"""Boosting on rows that lie in files: two sweeps, then everything happens on codes of one byte.

    first      targets and weights; of Parquet files nothing else is read
    sweep 1    the rows that bin edges are computed from, chosen by their number in the whole table
    sweep 2    every block is encoded where it is read; its codes go to a file that is mapped into memory

The codes (two bytes per cell, where the rows of a file have eight) are those of the table in memory, so the trees are
the same to the bit, whatever the number of blocks. What there is per row besides (targets, scores, derivatives, the
order of the rows: about 60 bytes) lies in mapped files too, and at most 256 MB of them are resident. Dask collections
without a cluster are read the same way; with one, `cluster` leaves the rows where they are.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...core import Array, NDArray
from ...data.arrays import bound_infinity
from ...data.blocks import Block, joined_lists, map_reduce
from ...data.mapped import MappedArrays
from ...trees.histogram.bins import GROUP, BinnedTable, Bins, sample_rows
from .external_levels import bins_of_categories

Rows = NDArray[np.int64]


class Targets(NamedTuple):
    """What is read first."""

    y: NDArray[Any]
    w: Array | None


class Split(NamedTuple):
    """Which rows are fitted, and which decide when to stop."""

    n_rows: int
    fit: Rows | None  #: ascending; None: all
    out: Rows  #: ascending


class BinSettings(NamedTuple):
    """How bins are found."""

    owner: str
    max_bins: int
    seed: int
    n_jobs: int | None
    categorical: NDArray[np.bool_] | None
    levels: list[NDArray[Any]] | None  #: of the categories
    n_classes: int  #: 0: targets are numbers


class Encoded(NamedTuple):
    """A table of which only the codes are here."""

    binned: BinnedTable
    shape: tuple[int, int]


def read_targets(blocks: Any, classes: Any, n_jobs: int | None) -> Targets:
    """Return the targets (class codes, if there are classes) and weights of all rows."""
    light = blocks.targets_only() if hasattr(blocks, "targets_only") else blocks
    pieces = map_reduce(light, _targets_of, joined_lists, n_jobs=n_jobs)
    y = np.concatenate([piece[0] for piece in pieces])
    w = None if pieces[0][1] is None else np.concatenate([piece[1] for piece in pieces])
    return Targets(y.astype(np.int64) if classes is not None else y.astype(np.float64), w)


def read_rows(blocks: Any, rows: Rows, n_jobs: int | None) -> Array:
    """Return some rows of X, whose numbers ascend."""
    if getattr(blocks, "has_weights", False):
        blocks.scanned()  # from then on blocks are numbered by the rows that are kept
    pieces = map_reduce(blocks, partial(_rows_of, rows=rows), joined_lists, n_jobs=n_jobs)
    return np.concatenate(pieces)


def find_bins(blocks: Any, split: Split, w: Array | None, settings: BinSettings) -> Bins:
    """Return the bins that `Bins.fit` would find in the table in memory."""
    every = np.arange(split.n_rows) if split.fit is None else split.fit
    chosen = sample_rows(len(every), settings.seed)
    rows = every if chosen is None else every[chosen]
    sample = read_rows(blocks, rows, settings.n_jobs)
    return bins_of_sample(blocks, split.fit, sample, None if w is None else w[rows], settings)


def bins_of_sample(blocks: Any, fit: Rows | None, sample: Array, w: Array | None, settings: BinSettings) -> Bins:
    """Return the bins: of numbers from a sample of the rows, of categories from all."""
    mask, levels, level_bins = settings.categorical, settings.levels, None
    if mask is not None and levels is not None:
        level_bins = bins_of_categories(
            blocks, fit, mask, levels, settings.max_bins, settings.n_classes, settings.owner
        )
    return Bins.fit(
        sample,
        max_bins=settings.max_bins,
        weight=w,
        categorical=mask,
        owner=settings.owner,
        level_bins_of=level_bins,
    )


def read_codes(
    blocks: Any, split: Split, w: Array | None, settings: BinSettings, arrays: MappedArrays
) -> tuple[Encoded, Encoded]:
    """Return the codes of the rows to fit and of those held out, as `BinnedTable.build` would find them."""
    bins = find_bins(blocks, split, w, settings)
    width = GROUP * (len(bins.group_start) - 1)

    def reserve(n: int) -> BinnedTable:
        return BinnedTable(bins, arrays.empty((n, width), np.uint8), arrays.empty((bins.n_stored, n), np.uint8))

    n_out = len(split.out)
    tables = [reserve(split.n_rows - n_out), reserve(n_out)]
    numbers = [split.fit, split.out]

    def write(start: int, codes: BinnedTable) -> None:
        for rows, table in zip(numbers, tables, strict=True):
            own = slice(0, codes.n_rows) if rows is None else _own(rows, start, codes.n_rows)
            first = start if rows is None else int(np.searchsorted(rows, start))
            part = codes.rows[own]
            table.rows[first : first + len(part)] = part
            table.columns[:, first : first + len(part)] = codes.columns[:, own]

    if hasattr(blocks, "each"):
        for start, codes in blocks.each(partial(_codes_of, bins=bins)):
            write(start, codes)
    else:
        map_reduce(blocks, lambda block: write(*_codes_of(block, bins)), _nothing, n_jobs=settings.n_jobs)
    d = bins.n_columns
    return Encoded(tables[0], (split.n_rows - n_out, d)), Encoded(tables[1], (n_out, d))


def _codes_of(block: Block, bins: Bins) -> tuple[int, BinnedTable]:
    """Return the number of the first row of a block, and the codes of its rows."""
    return block.start, bins.encode(bound_infinity(block.X))


def _nothing(a: None, b: None) -> None:
    return None


def _targets_of(block: Block) -> list[Any]:
    return [(np.array(block.y), None if block.weight is None else block.weight.copy())]


def _rows_of(block: Block, rows: Rows) -> list[Any]:
    return [bound_infinity(block.X[_own(rows, block.start, block.X.shape[0])])]


def _own(rows: Rows, start: int, n: int) -> Rows:
    """Return which of the rows are among n from `start` on, counted from there."""
    first, last = np.searchsorted(rows, [start, start + n])
    return rows[first:last] - start
