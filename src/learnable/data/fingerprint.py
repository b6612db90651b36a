"""A checksum of the training data, computed in the same pass that looks for NaN and infinity.

Equal tables have equal checksums whatever the order of their rows and the container they come in; rows
without weights count as rows of weight one. It guards against mistakes, not against forgery: it is no
cryptographic hash.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._kernels import Bits, scan_columns, scan_rows, scan_sparse
from .blocks import Block, Blocks, Part, map_reduce, unsigned

_COLUMN_ROWS = 4096  # rows of a table by columns whose sums stay in the cache
_KEPT_COLUMNS = 1024  # of a table whose multipliers are worth keeping: computing them takes longer than a small scan
_GOLDEN = 0x9E3779B97F4A7C15  # SplitMix64's increment
# numbers that no feature has
_WEIGHT_COLUMN = 2**32
_TARGET_COLUMN = 2**33
_SHAPE_COLUMN = 2**34


class Scan(NamedTuple):
    """What one pass over the rows found."""

    checksum: int
    bad_rows: int  #: rows of X that are not finite


def scan(blocks: Blocks, n_jobs: int | None = None, classes: Any = None) -> Scan:
    """Return the checksum of a table and how many of its rows are not finite.

    Parameters
    ----------
    blocks : Blocks
        The rows.
    n_jobs : int or None
        Threads.
    classes : array or list of arrays, optional
        The labels that the targets number, so that renamed classes are other data.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.data import Blocks, Part, scan
    >>> X = np.array([[1.0, 0.0], [2.0, np.nan], [3.0, 4.0]])
    >>> scan(Blocks([Part(X)])).bad_rows
    1
    >>> scan(Blocks([Part(X[::2])])) == scan(Blocks([Part(X[2:]), Part(X[:1])]))
    True
    """
    if _lies_by_columns(blocks):  # blocks of rows would be copies
        starts = list(range(0, blocks.n_rows, _COLUMN_ROWS))
        rows = map_reduce(starts, partial(_scan_columns, blocks.parts[0]), merge_scans, n_jobs=n_jobs)
    else:
        rows = map_reduce(blocks, scan_block, merge_scans, n_jobs=n_jobs)
    y = blocks.parts[0].y
    n_targets = 0 if y is None else len(np.atleast_2d(y.T))
    return Scan(whole_checksum(rows, (blocks.n_rows, blocks.n_columns, n_targets), classes), rows.bad_rows)


def scan_block(block: Block) -> Scan:
    """Return the checksum of some rows."""
    multipliers = _multipliers(0, block.X.shape[1])
    tail = _sum_targets_and_weight(block)
    if hasattr(block.X, "indptr"):
        X = block.X
        checksum, bad = scan_sparse(_bits(X.data), unsigned(X.indices), unsigned(X.indptr), multipliers, tail)
    else:
        checksum, bad = scan_rows(_bits(block.X), multipliers, tail)
    return Scan(int(checksum), int(bad))


def _lies_by_columns(blocks: Blocks) -> bool:
    """Tell whether the rows are one array of float64 columns in memory."""
    X = blocks.parts[0].X if blocks.in_memory and len(blocks.parts) == 1 else None
    return isinstance(X, np.ndarray) and X.dtype == np.float64 and X.flags.f_contiguous and not X.flags.c_contiguous


def _scan_columns(part: Part, start: int) -> Scan:
    """Return the checksum of some rows of such an array."""
    rows = slice(start, min(start + _COLUMN_ROWS, part.X.shape[0]))
    y, weight = (None if column is None else column[rows] for column in (part.y, part.weight))
    block = Block(part.X[rows], y, weight, start)
    multipliers = _multipliers(0, part.X.shape[1])
    checksum, bad = scan_columns(_bits(part.X.T), start, multipliers, _sum_targets_and_weight(block))
    return Scan(int(checksum), int(bad))


def merge_scans(a: Scan, b: Scan) -> Scan:
    """Return the scan of two runs of rows together."""
    return Scan((a.checksum + b.checksum) % 2**64, a.bad_rows + b.bad_rows)


def whole_checksum(rows: Scan, shape: tuple[int, int, int], classes: Any) -> int:
    """Return the checksum of a table from that of its rows, its (n, d, k) and its labels.

    The shape tells a table from the same table with a row, a column or a target of zeros more.
    """
    numbers = _multipliers(_SHAPE_COLUMN, 3).tolist()
    of_shape = sum(int(number) * size for number, size in zip(numbers, shape, strict=True))
    return (rows.checksum + of_shape + _checksum_of_labels(classes)) % 2**64


def _multipliers(first: int, count: int) -> Bits:
    """Return the multipliers of some columns in a row; not to be changed: few are kept from one call to the next."""
    return _kept(first, count) if count <= _KEPT_COLUMNS else odd_numbers(np.arange(first, first + count))


@lru_cache(maxsize=64)
def _kept(first: int, count: int) -> Bits:
    return odd_numbers(np.arange(first, first + count))


def odd_numbers(columns: NDArray[np.int64]) -> Bits:
    """Return one odd multiplier a column, a function of the column's number alone (SplitMix64's sequence)."""
    x = (columns.astype(np.uint64) + np.uint64(1)) * np.uint64(_GOLDEN)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))) | np.uint64(1)


def _sum_targets_and_weight(block: Block) -> Bits:
    """Return each row's Σ fold(bits)·m over its targets and its weight."""
    m = block.X.shape[0]
    weight = np.ones(1) if block.weight is None else block.weight
    of_weight = _folded(weight) * _multipliers(_WEIGHT_COLUMN, 1)
    if block.y is None:
        return of_weight if len(of_weight) == m else np.repeat(of_weight, m)
    if block.y.ndim == 1:
        return _folded(block.y) * _multipliers(_TARGET_COLUMN, 1) + of_weight
    numbers = _multipliers(_TARGET_COLUMN, block.y.shape[1])
    return np.asarray((_folded(block.y) * numbers).sum(axis=1, dtype=np.uint64) + of_weight)


def _checksum_of_labels(classes: Any) -> int:
    """Return a checksum of the labels; 1, 1.0 and True are one label, "1" is another."""
    if classes is None:
        return 0
    columns = classes if isinstance(classes, list) else [classes]
    labels: list[Any] = [
        [str(label) if isinstance(label, str) else int(label) for label in column.tolist()] for column in columns
    ]
    labels = labels if isinstance(classes, list) else labels[0]
    return int.from_bytes(hashlib.blake2b(json.dumps(labels).encode(), digest_size=8).digest(), "little")


def _folded(values: NDArray[Any]) -> Bits:
    bits = _bits(np.ascontiguousarray(values, dtype=np.float64) + 0.0)  # −0.0 + 0.0 is 0.0
    bits = bits ^ (bits >> np.uint64(32))
    return bits ^ (bits >> np.uint64(16))


def _bits(values: NDArray[Any]) -> Bits:
    return values.view(np.uint64)
