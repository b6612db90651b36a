"""Loops of k-means: which rows keep their centre for certain, and which centre the others get.

Every row has a label a, an upper bound on its distance to centre a and a lower bound on its distance to every other
centre (G. Hamerly, Making k-means even faster, SDM 2010). Distances that decide anything are Σ(xᵢ − cᵢ)² in float64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel

Array = NDArray[Any]


class RowState(NamedTuple):
    """What is known of some rows, changed in place."""

    labels: Array  #: (m,) int32; -1: none yet
    upper: Array  #: (m,) at least the distance to the own centre
    lower: Array  #: (m,) at most the distance to any other centre
    counts: Array  #: (K,) weight of each cluster's rows here
    sums: Array  #: (K, d) their weighted sum, less the origin


class Motion(NamedTuple):
    """How the centres moved since the last pass."""

    move: Array  #: (K,) how far each went
    most: float  #: the longest of them
    mover: int  #: whose it is
    second: float  #: the longest of the others
    half_gap: Array  #: (K,) half the distance to the nearest other centre
    slack: float  #: by how much rounding may blur a bound


@kernel
def square_distance(X: Array, i: int, C: Array, k: int) -> float:
    """Return Σⱼ(xᵢⱼ − cₖⱼ)² in float64."""
    total = 0.0
    for j in range(X.shape[1]):
        gap = X[i, j] - C[k, j]
        total += gap * gap
    return total


@kernel
def screen_rows(X: Array, C: Array, state: RowState, motion: Motion, rows: Array) -> int:
    """Move the bounds along with the centres; write the rows whose centre is in doubt; return their number.

    IN  X (m, d), C (K, d) the new centres, motion.
    OUT state.upper, state.lower; rows (m,) int64.
    """
    labels, upper, lower = state.labels, state.upper, state.lower
    move, half_gap, slack = motion.move, motion.half_gap, motion.slack
    count = 0
    for i in range(labels.size):
        a = labels[i]
        if a < 0:
            rows[count] = i
            count += 1
            continue
        lower[i] -= motion.second if a == motion.mover else motion.most
        upper[i] += move[a]
        bound = max(lower[i], half_gap[a])
        if upper[i] + slack < bound:
            continue
        upper[i] = np.sqrt(square_distance(X, i, C, a))
        if upper[i] + slack < bound:
            continue
        rows[count] = i
        count += 1
    return count


@kernel
def assign_rows(
    scores: Array, rows: Array, X: Array, C: Array, margin: Array, unit: float, weight: Array, origin: Array, state: Any
) -> None:
    """Give rows their nearest centres, the lowest number among equals, and update bounds and sums.

    IN  scores (r, K) float32, not negative: at least ½‖x − c‖² in units of 1/unit, and too large by margin (r,) at
        most; rows (r,) where in X; weight (m,) or empty: one each; origin (d,).
    OUT state (RowState).

    Floats that are not negative are ordered as their bits, and integers are compared many at once.
    """
    level = np.empty(1, np.float32)
    level_bits = level.view(np.int32)
    n_centres = C.shape[0]
    for r in range(rows.size):
        bits, i = scores[r].view(np.int32), rows[r]
        lowest = bits[0]
        for k in range(n_centres):
            lowest = min(lowest, bits[k])
        level_bits[0] = lowest
        level[0] = (level[0] + margin[r]) * np.float32(1.000001)
        edge = level_bits[0]
        inside, beyond = 0, np.int32(0x7F800000)  # infinity
        for k in range(n_centres):
            inside += bits[k] <= edge
            beyond = min(beyond, bits[k] if bits[k] > edge else np.int32(0x7F800000))
        level_bits[0] = beyond
        second = max(0.0, 2.0 * (np.float64(level[0]) - margin[r])) / (unit * unit)
        best, nearest = np.inf, 0
        for k in range(n_centres):
            if bits[k] > edge:
                continue
            square = square_distance(X, i, C, k)
            if square < best:
                second, best, nearest = min(second, best), square, k
            else:
                second = min(second, square)
            inside -= 1
            if inside == 0:
                break
        relabel_row(X, i, nearest, np.sqrt(best), np.sqrt(second), weight, origin, state)


@kernel
def relabel_row(X: Array, i: int, k: int, upper: float, lower: float, weight: Array, origin: Array, state: Any) -> None:
    """Store a row's centre and bounds; if the centre is another one, move the row between the sums."""
    old = state.labels[i]
    state.upper[i], state.lower[i], state.labels[i] = upper, lower, k
    if old == k:
        return
    w = weight[i] if weight.size else 1.0
    state.counts[k] += w
    for j in range(X.shape[1]):
        state.sums[k, j] += w * (X[i, j] - origin[j])
    if old >= 0:
        state.counts[old] -= w
        for j in range(X.shape[1]):
            state.sums[old, j] -= w * (X[i, j] - origin[j])


@kernel
def sum_rows(X: Array, labels: Array, weight: Array, origin: Array, counts: Array, sums: Array) -> None:
    """Add up the rows of each cluster, less the origin. OUT counts (K,), sums (K, d)."""
    for i in range(labels.size):
        k = labels[i]
        w = weight[i] if weight.size else 1.0
        counts[k] += w
        for j in range(X.shape[1]):
            sums[k, j] += w * (X[i, j] - origin[j])


@kernel
def squares_to_own(X: Array, C: Array, labels: Array, squares: Array) -> None:
    """Write the squared distance of every row to its centre. OUT squares (m,)."""
    for i in range(labels.size):
        squares[i] = square_distance(X, i, C, labels[i])


@kernel
def lower_squares(X: Array, candidates: Array, closest: Array, weight: Array, trials: Array, potentials: Array) -> None:
    """Lower each row's squared distance to the nearest centre by a candidate, for each candidate on its own.

    IN  X (m, d), candidates (t, d), closest (m,) so far, weight (m,) or empty.
    OUT trials (t, m), potentials (t,): their weighted sums.
    """
    for t in range(candidates.shape[0]):
        total = 0.0
        for i in range(X.shape[0]):
            square = min(closest[i], square_distance(X, i, candidates, t))
            trials[t, i] = square
            total += square * (weight[i] if weight.size else 1.0)
        potentials[t] = total
