"""Sequences of observations: one table of rows, and the lengths of the sequences that it holds one after the other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from ..data.blocks import Blocks, Part
from ..data.door import read_features
from ..data.fingerprint import scan
from ._row_kernels import sum_by_code

Array = NDArray[Any]

_BLOCK_ROWS = 2**14  # short sequences share a block of about this many rows


class SequenceTable(NamedTuple):
    """Observations and where their sequences begin."""

    X: Array  #: (n, d) float64, NaN where missing
    offsets: Array  #: (S + 1,) int64
    fingerprint: str  #: checksum of the rows, their order and the lengths


class Block(NamedTuple):
    """Some sequences."""

    lines: Array  #: (m, d) observations
    codes: Array  #: (n,) int64, the line of each row; empty if row t is line t
    offsets: Array  #: (S + 1,) int64, from zero

    def by_line(self, gamma: Array) -> Array:
        """Return the sum of gamma (n, M), M a multiple of four, over the rows of each line."""
        if not self.codes.size:
            return gamma
        total = np.zeros((len(self.lines), gamma.shape[1]))
        sum_by_code(self.codes, gamma.ravel(), total.reshape(-1))
        return total


def read_sequences(model: Any, X: Any, lengths: Any, n_jobs: int | None, *, reset: bool = True) -> SequenceTable:
    """Read and check sequences; the fingerprint is computed for a fit (`reset`)."""
    rows = read_features(model, X, sparse=False, reset=reset, missing=True)
    rows = np.ascontiguousarray(rows, dtype=np.float64)
    offsets = read_offsets(type(model).__name__, lengths, len(rows))
    if not reset:
        return SequenceTable(rows, offsets, "")
    stamps = row_stamps(offsets)
    return SequenceTable(rows, offsets, f"{scan(Blocks([Part(rows, stamps)]), n_jobs).checksum:016x}")


def row_stamps(offsets: Array) -> Array:
    """Return what makes the checksum know the order of the rows and where sequences begin: t, and ½ more at a start."""
    stamps = np.arange(offsets[-1], dtype=np.float64)
    stamps[offsets[:-1]] += 0.5
    return stamps


def read_offsets(owner: str, lengths: Any, n: int) -> Array:
    """Return where the sequences begin, and n."""
    if lengths is None:
        return np.array([0, n], dtype=np.int64)
    try:
        sizes = np.asarray(lengths)
        whole = sizes.ndim == 1 and sizes.dtype.kind in "iu"
    except (TypeError, ValueError):
        whole = False
    if not whole or (sizes < 1).any() or sizes.sum() != n:
        raise DataError(
            f"{owner}: lengths must be integers >= 1 with the sum {n}, the number of rows; got {lengths!r:.80}."
        )
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def cut_sequences(lines: Array, codes: Array, offsets: Array) -> list[Block]:
    """Return blocks of whole sequences, on a grid that depends on the lengths alone."""
    blocks, first = [], 0
    for s in range(1, len(offsets)):
        if offsets[s] - offsets[first] >= _BLOCK_ROWS or s == len(offsets) - 1:
            lo, hi = offsets[first], offsets[s]
            part = (lines, codes[lo:hi]) if codes.size else (lines[lo:hi], codes)
            blocks.append(Block(*part, offsets[first : s + 1] - lo))
            first = s
    return blocks
