"""Kernels of ID3: the information gain of every column of categories in one node, in bits."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel

Array = NDArray[np.float64]
Codes = NDArray[np.int32]
#: Gains closer than this are equal; the first column, and its first level, then wins.
TIE = 1e-12


@kernel
def plogp(p: float) -> float:
    """Return p log₂ p, with 0 log 0 = 0."""
    return p * math.log2(p) if p > 0.0 else 0.0


@kernel
def score_columns(
    codes: Codes,
    y: NDArray[np.int64],
    weight: Array,
    rows: NDArray[np.int64],
    counts: Array,
    seen: NDArray[np.int64],
    total: Array,
    gains: Array,
    infos: Array,
) -> None:
    """Score the split of `rows` into one branch for each level of a column.

    IN codes (d, n), y, weight (n,), rows (m,), total (K,) weight of each class in the node;
    SCRATCH counts (L, K), all zero and left so, seen (L,); OUT gains, infos (d,): −1 where the column is constant.
    """
    n_classes, m = total.size, rows.size
    n, entropy = 0.0, 0.0
    for k in range(n_classes):
        n += total[k]
    for k in range(n_classes):
        entropy -= plogp(total[k] / n)
    for j in range(codes.shape[0]):
        n_seen = 0
        for i in range(m):
            row = rows[i]
            level = codes[j, row]
            fresh = True
            for k in range(n_classes):
                fresh = fresh and counts[level, k] == 0.0
            if fresh:
                seen[n_seen] = level
                n_seen += 1
            counts[level, y[row]] += weight[row]
        within, info = 0.0, 0.0
        for s in range(n_seen):
            level = seen[s]
            size = 0.0
            for k in range(n_classes):
                size += counts[level, k]
            for k in range(n_classes):
                within -= size / n * plogp(counts[level, k] / size)
                counts[level, k] = 0.0
            info -= plogp(size / n)
        gains[j] = max(entropy - within, 0.0) if n_seen > 1 else -1.0
        infos[j] = info if n_seen > 1 else -1.0


@kernel
def score_levels(
    codes: Codes,
    y: NDArray[np.int64],
    weight: Array,
    rows: NDArray[np.int64],
    counts: Array,
    total: Array,
    gains: Array,
    infos: Array,
    best: Codes,
    by_ratio: bool,
) -> None:
    """Score, for each column, the best split of `rows` into one level and the rest.

    The arguments are those of `score_columns`; OUT best (d,): the level, the lowest of those that tie.
    """
    n_classes, m = total.size, rows.size
    n, entropy = 0.0, 0.0
    for k in range(n_classes):
        n += total[k]
    for k in range(n_classes):
        entropy -= plogp(total[k] / n)
    for j in range(codes.shape[0]):
        for i in range(m):
            counts[codes[j, rows[i]], y[rows[i]]] += weight[rows[i]]
        gains[j], infos[j], best[j] = -1.0, -1.0, -1
        score = -1.0
        constant = True
        for i in range(1, m):
            constant = constant and codes[j, rows[i]] == codes[j, rows[0]]
        for i in range(m):
            level = codes[j, rows[i]]
            size = 0.0
            for k in range(n_classes):
                size += counts[level, k]
            if constant or size == 0.0:  # a level that an earlier row has scored
                for k in range(n_classes):
                    counts[level, k] = 0.0
                continue
            rest, within = max(n - size, 0.0), 0.0
            for k in range(n_classes):
                within -= size / n * plogp(counts[level, k] / size)
                if rest > 0.0:
                    within -= rest / n * plogp(max(total[k] - counts[level, k], 0.0) / rest)
                counts[level, k] = 0.0
            gain = max(entropy - within, 0.0)
            info = -plogp(size / n) - plogp(rest / n)
            now = gain / info if by_ratio and info > 0.0 else gain
            if now > score + TIE or (now > score - TIE and level < best[j]):
                score = max(score, now)
                gains[j], infos[j], best[j] = gain, info, level
