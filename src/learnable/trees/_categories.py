"""Kernels of the grower: categories in an order in which they can be cut, and sets of them as bits.

Categories are put into the order of their mean target, in which the best set of them is one of the cuts (Fisher 1958;
Breiman et al. 1984, theorem 4.5); with several outputs or more than two classes, into the order of the first principal
component of their mean targets (Coppersmith, Hong and Hosking 1999), in which it nearly always is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import lean_kernel
from ._sorting import Int, order_of
from ._sweeps import add_row
from .criteria import GRADIENT

Array = NDArray[np.float64]

_STEPS = 200  # of the power iteration


@lean_kernel
def order_categories(
    categories: Any, lam: float, rows: NDArray[np.int32], code: NDArray[np.uint32], missing: Int
) -> Int:
    """Replace the codes of categories by their position in order of mean target; return how many are here."""
    goal, profile, position = categories.goal, categories.profile[:missing], categories.position
    for c in range(missing):
        for k in range(profile.shape[1]):
            profile[c, k] = 0.0
    for i in range(rows.size):
        if np.int64(code[i]) != missing:
            add_row(goal, rows[i], profile[code[i]])
    width = profile.shape[1] - 1
    present, score = categories.present, categories.score
    m = 0
    for c in range(missing):
        position[c] = -1
        if profile[c, width] > 0.0:
            present[m] = c
            m += 1
    single = goal.n_classes.size == 1 and goal.n_classes[0] <= 2
    for k in range(m):
        row = profile[present[k]]
        if goal.kind == GRADIENT and single:
            score[k] = row[0] / (row[1] + lam)
        else:
            score[k] = row[1 if goal.n_classes[0] == 2 else 0] / row[width]
    if not single and m > 1:
        principal_scores(profile, present[:m], score, categories.moments)
    rank = categories.rank
    order_of(score[:m], rank, categories.spare)
    for k in range(m):
        position[present[rank[k]]] = k
    for i in range(rows.size):
        if np.int64(code[i]) != missing:
            code[i] = np.uint32(position[code[i]])
    return m


@lean_kernel
def principal_scores(profile: Array, present: NDArray[np.int64], score: Array, moments: Array) -> None:
    """Project the mean targets of the categories on their first principal component (power iteration)."""
    width = profile.shape[1] - 1
    mean, v, new, spread = moments[0], moments[1], moments[2], moments[3:]
    for a in range(width):
        mean[a] = v[a] = 0.0
        for b in range(width):
            spread[a, b] = 0.0
    w_all = 0.0
    for i in range(present.size):
        c = present[i]
        w_all += profile[c, width]
        for k in range(width):
            mean[k] += profile[c, k]
    for i in range(present.size):
        c = present[i]
        w = profile[c, width]
        for a in range(width):
            da = profile[c, a] / w - mean[a] / w_all
            for b in range(width):
                spread[a, b] += w * da * (profile[c, b] / w - mean[b] / w_all)
    top = 0
    for a in range(width):
        top = a if spread[a, a] > spread[top, top] else top
    v[top] = 1.0
    for _ in range(_STEPS):
        size = 0.0
        for a in range(width):
            new[a] = 0.0
            for b in range(width):
                new[a] += spread[a, b] * v[b]
            size += new[a] * new[a]
        if not size > 0.0:
            break
        for a in range(width):
            v[a] = new[a] / np.sqrt(size)
    for k in range(present.size):
        score[k] = 0.0
        for a in range(width):
            score[k] += v[a] * profile[present[k], a] / profile[present[k], width]


@lean_kernel
def write_set(words: NDArray[np.uint32], position: NDArray[np.int64], cut: float, missing_left: float) -> None:
    """Set the bits of the categories up to the cut; those that are not in the node go where missing values go."""
    for k in range(words.size):
        words[k] = 0
    for c in range(position.size):
        known = position[c] >= 0
        if (known and position[c] <= cut) or (not known and missing_left > 0.0):
            words[c >> 5] |= np.uint32(1) << np.uint32(c & 31)
