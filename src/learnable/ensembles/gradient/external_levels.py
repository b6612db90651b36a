"""Categories of tables that are not in memory: their levels, and the bins of the levels, by sweeps.

    sweep 1    the levels of each column of categories; they become codes 0, 1, … wherever rows are read from then on
    sweep 2    how many rows each level has and, where there are more levels than bins, the sums of their targets

Rows of weight zero count in the first sweep, as they do in memory; rows held out do not in the second.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...core import Array, DataError, NDArray
from ...data.any_order import LIMBS, join_limbs, level_limbs
from ...data.blocks import Block, map_reduce
from ...data.dask_blocks import DaskBlocks, Reader, run_on_partitions
from ...data.stream import FileBlocks, batches_for
from ...trees.histogram.sharing import MOST_CATEGORIES, bins_of_levels
from .settings import column_levels, encode, marked_columns

Mask = NDArray[np.bool_]


def find_categories(owner: str, given: Any, blocks: Any, dtypes: dict[str, Any] | None) -> Mask | None:
    """Return which columns hold categories: as they are named, or by their types; None if there are none."""
    names = blocks.names
    if given is None or (isinstance(given, str) and names is None):
        return None
    if isinstance(given, str):
        kinds = {} if dtypes is None else dtypes
        mask = np.array([_is_category(kinds.get(name)) for name in names or []], dtype=bool)
        return mask if mask.any() else None
    return marked_columns(owner, given, blocks.n_columns, names)


def _is_category(dtype: Any) -> bool:
    """Tell whether pandas or Arrow calls a type one of categories."""
    return type(dtype).__name__ in ("CategoricalDtype", "DictionaryType")


def use_levels(owner: str, blocks: Any, mask: Mask) -> list[NDArray[Any]]:
    """Find the levels of the categories, and let the rows be read as numbers from now on."""
    columns = np.flatnonzero(mask).tolist()
    if isinstance(blocks, DaskBlocks):
        found = list(run_on_partitions(owner, partial(_levels_of_partition, blocks.read, columns), blocks.parts))
    else:
        found = list(_levels_of_files(owner, blocks, columns))
    levels = [column_levels(np.concatenate([own[k] for own in found])) for k in range(len(columns))]
    prepare = partial(_prepared, owner=owner, mask=mask, levels=levels)
    if isinstance(blocks, DaskBlocks):
        blocks.read.prepare = prepare
    else:
        blocks.convert.encode = partial(_encoded, prepare=prepare)
    return levels


def _prepared(frame: Any, owner: str, mask: Mask, levels: list[NDArray[Any]]) -> Any:
    return encode(owner, frame, mask, levels)


def _encoded(table: Any, start: int, prepare: Any) -> Array:
    frame = prepare(table)
    columns = [np.asarray(frame.column(name).to_numpy(), dtype=np.float64) for name in frame.column_names]
    return np.column_stack(columns)


def _levels_of_partition(read: Reader, columns: list[int], raw: Any, number: int) -> list[NDArray[Any]]:
    from ...data.frames import read_series

    if read.names is None:
        return [column_levels(np.asarray(raw[0])[:, j]) for j in columns]
    frame = read.select(raw[0], number)
    return [column_levels(read_series(frame.get_column(frame.columns[j]))) for j in columns]


def _levels_of_files(owner: str, blocks: FileBlocks, columns: list[int]) -> Any:
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    from ...data.frames import read_series

    names = [(blocks.names or [])[j] for j in columns]
    for batch in batches_for(owner, blocks.files, names):
        frame = nw.from_native(pa.Table.from_batches([batch.rows]), eager_only=True)
        yield [column_levels(read_series(frame.get_column(name))) for name in names]


# --------------------------------------------------------------------------------------------------------------------
# Bins of the levels.


class LevelSums(NamedTuple):
    """Rows of each level of each category, and the sums of their targets."""

    counts: list[NDArray[np.int64]]
    sums: list[NDArray[np.int64]]  #: (levels, K) rows of each class, or (levels, 3) limbs of the sum


def bins_of_categories(
    blocks: Any, fit: Any, mask: Mask, levels: list[NDArray[Any]], max_bins: int, n_classes: int, owner: str
) -> list[NDArray[np.int16]]:
    """Return the bins of the levels of each category, as `Bins.fit` finds them in the table in memory."""
    columns, sizes = np.flatnonzero(mask).tolist(), [len(own) for own in levels]
    for j, size in zip(columns, sizes, strict=True):
        if size > MOST_CATEGORIES:
            raise DataError(f"{owner}: column {j} has {size} levels; a category may have {MOST_CATEGORIES}.")
    top = 0.0
    if not n_classes and max(sizes) > max_bins:
        top = map_reduce(blocks, partial(_largest_target, fit=fit), max)
    work = partial(_sums_of, fit=fit, columns=columns, sizes=sizes, n_classes=n_classes, top=top)
    found = map_reduce(blocks, work, _add_sums)
    out = []
    for counts, sums in zip(found.counts, found.sums, strict=True):
        trimmed = counts[: int(np.flatnonzero(counts).max(initial=-1)) + 1]  # as far as a level was seen
        totals = sums[: len(trimmed)].astype(np.float64)
        if not n_classes:
            unit = level_limbs(top)[1]
            totals = np.array([[join_limbs(a, b, c, unit)] for a, b, c in sums[: len(trimmed)].tolist()])
        else:
            totals = totals[:, totals.sum(axis=0) > 0]
        out.append(bins_of_levels(trimmed, totals if (trimmed > 0).sum() > max_bins else None, max_bins))
    return out


def _rows_of(block: Block, fit: Any) -> Any:
    if fit is None:
        return slice(None)
    first, last = np.searchsorted(fit, [block.start, block.start + block.X.shape[0]])
    return fit[first:last] - block.start


def _largest_target(block: Block, fit: Any) -> float:
    return float(np.abs(np.asarray(block.y, np.float64)[_rows_of(block, fit)]).max(initial=0.0))


def _sums_of(block: Block, fit: Any, columns: list[int], sizes: list[int], n_classes: int, top: float) -> LevelSums:
    from ...data.any_order import add_by_group

    own = _rows_of(block, fit)
    X, y = block.X[own], np.asarray(block.y)[own]
    counts, sums = [], []
    for j, size in zip(columns, sizes, strict=True):
        known = ~np.isnan(X[:, j])
        code = X[known, j].astype(np.int64)
        counts.append(np.bincount(code, minlength=size).astype(np.int64))
        if n_classes:
            cells = np.bincount(code * n_classes + y[known].astype(np.int64), minlength=size * n_classes)
            sums.append(cells.reshape(size, n_classes).astype(np.int64))
        else:
            limbs = np.zeros((size, LIMBS), np.int64)
            if top > 0.0:
                add_by_group(code, np.ascontiguousarray(y[known], np.float64), level_limbs(top)[0], limbs)
            sums.append(limbs)
    return LevelSums(counts, sums)


def _add_sums(a: LevelSums, b: LevelSums) -> LevelSums:
    return LevelSums(
        [x + y for x, y in zip(a.counts, b.counts, strict=True)],
        [x + y for x, y in zip(a.sums, b.sums, strict=True)],
    )
