"""Loops of boosted stumps: sums of weights by code, the best cut of every column, and votes summed over stumps.

A column is a row of small integers (see `trees.columns`), so one round is a pass of additions and a scan: nothing is
ever sorted again. Columns are independent, and each is summed in the order of the rows: threads change no bit.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel

Array = NDArray[np.float64]

#: A cut replaces the best one so far if it is better by more than this share of the weight: ties go to the first.
TIE = 1e-12


class Codes(NamedTuple):
    """The codes of all columns, dense or sparse, as kernels read them."""

    codes: NDArray[Any]  #: (d, n), or (0, 0) if sparse
    entries: NDArray[np.uint32]  #: codes of the stored entries
    rows: NDArray[np.int32]  #: their rows
    start: NDArray[np.int64]  #: (d+1,) where a column begins
    zero: NDArray[np.int64]  #: (d,) code of what is not stored
    n_codes: NDArray[np.int64]  #: (d,)


@kernel
def cut_two_classes(
    table: Codes, signed: Array, first: int, last: int, sums: Array, gain: Array, cut: NDArray[np.int64]
) -> None:
    """Find each column's cut with the largest |Σ_left yD| + |Σ_right yD| = 1 − 2ε. OUT gain, cut (−1: none is better).

    `signed` is yD, `sums` scratch for the codes of one column.
    """
    n = len(signed)
    total = 0.0
    for i in range(n):
        total += signed[i]
    for j in range(first, last):
        m = table.n_codes[j]
        h = sums[:m]
        h[:] = 0.0
        if table.codes.shape[0] > 0:
            codes = table.codes[j]
            for i in range(n):
                h[codes[i]] += signed[i]
        else:
            rest = total
            for e in range(table.start[j], table.start[j + 1]):
                h[table.entries[e]] += signed[table.rows[e]]
                rest -= signed[table.rows[e]]
            if table.start[j + 1] - table.start[j] < n:
                h[table.zero[j]] += rest
        best, at, left = abs(total), -1, 0.0
        for c in range(m - 1):
            left += h[c]
            found = abs(left) + abs(total - left)
            if found > best + TIE:
                best, at = found, c
        gain[j], cut[j] = best, at


@kernel
def sum_classes(table: Codes, j: int, D: Array, y: NDArray[np.int64], total: Array, sums: Array, rest: Array) -> None:
    """Sum the weights of one column by code and class. IN total (K,); OUT sums (codes, K); `rest` is scratch (K,)."""
    n = len(D)
    sums[:] = 0.0
    if table.codes.shape[0] > 0:
        codes = table.codes[j]
        for i in range(n):
            sums[codes[i], y[i]] += D[i]
        return
    rest[:] = total
    for e in range(table.start[j], table.start[j + 1]):
        i = table.rows[e]
        sums[table.entries[e], y[i]] += D[i]
        rest[y[i]] -= D[i]
    if table.start[j + 1] - table.start[j] < n:
        for k in range(len(total)):
            sums[table.zero[j], k] += max(rest[k], 0.0)


@kernel
def cut_by_error(sums: Array, total: Array, right: Array, scratch: Array) -> tuple[float, int]:
    """Return the largest max_k L_k + max_k R_k = 1 − ε over the cuts of one column, and the cut (−1: no cut is better).

    `right` (codes,) and `scratch` (K,) are overwritten.
    """
    m, K = sums.shape
    scratch[:] = 0.0
    most = 0.0
    for c in range(m - 1, 0, -1):  # the classes' weights only grow, so that each maximum is a comparison
        for k in range(K):
            scratch[k] += sums[c, k]
            most = max(most, scratch[k])
        right[c - 1] = most
    best, at, most = total.max(), -1, 0.0
    scratch[:] = 0.0
    for c in range(m - 1):
        for k in range(K):
            scratch[k] += sums[c, k]
            most = max(most, scratch[k])
        if most + right[c] > best + TIE:
            best, at = most + right[c], c
    return best, at


@kernel
def cut_by_confidence(sums: Array, total: Array, smoothing: float) -> tuple[float, int]:
    """Return the smallest Z = Σ_sides 2√((W₀ + δ)(W₁ + δ)) over the cuts of one column, as −Z, and the cut."""
    m = len(sums)
    a, b = 0.0, 0.0
    best, at = -2.0 * math.sqrt((total[0] + smoothing) * (total[1] + smoothing)), -1
    for c in range(m - 1):
        a += sums[c, 0]
        b += sums[c, 1]
        left = math.sqrt((a + smoothing) * (b + smoothing))
        right = math.sqrt((max(total[0] - a, 0.0) + smoothing) * (max(total[1] - b, 0.0) + smoothing))
        if -2.0 * (left + right) > best + TIE:
            best, at = -2.0 * (left + right), c
    return best, at


@kernel
def cut_many_classes(
    table: Codes,
    D: Array,
    y: NDArray[np.int64],
    total: Array,
    smoothing: float,
    first: int,
    last: int,
    gain: Array,
    cut: NDArray[np.int64],
) -> None:
    """Find each column's best cut: of K classes by error, or, with `smoothing`, of two by confidence. OUT gain, cut."""
    K = len(total)
    most = table.n_codes[first:last].max()
    all_sums, right, scratch = np.empty((most, K)), np.empty(most), np.empty(K)
    for j in range(first, last):
        sums = all_sums[: table.n_codes[j]]
        sum_classes(table, j, D, y, total, sums, scratch)
        if smoothing == 0.0:
            gain[j], cut[j] = cut_by_error(sums, total, right, scratch)
        else:
            gain[j], cut[j] = cut_by_confidence(sums, total, smoothing)


@kernel
def add_votes(X: NDArray[Any], column: NDArray[np.int64], threshold: Array, value: Array, scores: Array) -> None:
    """Add value[t, side] for every stump t to the scores of dense rows. IN/OUT scores (n, C)."""
    for i in range(len(X)):
        row, score = X[i], scores[i]
        for t in range(len(column)):
            side = 0 if row[column[t]] <= threshold[t] else 1
            for c in range(score.shape[0]):
                score[c] += value[t, side, c]
