"""Loops of k-means: which rows keep their centre for certain, and which centre the others get.

Every row has a label a, an upper bound on its distance to centre a and a lower bound on its distance to every other
centre (G. Hamerly, Making k-means even faster, SDM 2010). Distances that decide anything are Σ(xᵢ − cᵢ)² in float64.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel, lean_kernel

Array = NDArray[Any]

_INFINITY: Final = np.int32(0x7F800000)  # its bits as a float32


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
    rest: float  #: the longest but for those centres that are measured in any case
    half_gap: Array  #: (K,) half the distance to the nearest other centre
    slack: float  #: by how much rounding may blur a bound


class Tile(NamedTuple):
    """Scores of some rows with some centres: at least ½‖x − c‖² in units of 1/unit, and not negative.

    Floats that are not negative are ordered as their bits, and integers are compared many at once.
    """

    bits: Array  #: (r, p) int32, of float32 numbers
    names: Array  #: (p,) int32, which centres
    margin: Array  #: (r,) by how much a row's scores may be too large
    unit: float
    level: Array  #: (1,) float32, scratch
    level_bits: Array  #: (1,) int32, the same memory


@lean_kernel
def square_distance(X: Array, i: int, C: Array, k: int) -> float:
    """Return Σⱼ(xᵢⱼ − cₖⱼ)² in float64."""
    total = 0.0
    for j in range(X.shape[1]):
        gap = X[i, j] - C[k, j]
        total += gap * gap
    return total


@lean_kernel
def screen_rows(X: Array, C: Array, state: RowState, motion: Motion, rows: Array, count: Array) -> None:
    """Move the bounds along with the centres; tell the rows whose centre is in doubt.

    IN  X (m, d), C (K, d) the new centres, motion.
    OUT state.upper, state.lower; rows (2, m) int64, count (2,): those that any centre may win, and those that only the
        centres that moved most may win (their lower bound is then about the others).
    """
    labels, upper, lower = state.labels, state.upper, state.lower
    move, half_gap, slack = motion.move, motion.half_gap, motion.slack
    count[:] = 0
    for i in range(labels.size):
        a = labels[i]
        if a < 0:
            rows[0, count[0]] = i
            count[0] += 1
            continue
        others = lower[i] - motion.rest
        lower[i] -= motion.second if a == motion.mover else motion.most
        upper[i] += move[a]
        bound = max(lower[i], half_gap[a])
        if upper[i] + slack < bound:
            continue
        upper[i] = np.sqrt(square_distance(X, i, C, a))
        if upper[i] + slack < bound:
            continue
        which = 0
        if upper[i] + slack < others:
            which, lower[i] = 1, others
        rows[which, count[which]] = i
        count[which] += 1


@lean_kernel
def assign_rows(
    tile: Tile, rows: Array, known: bool, X: Array, C: Array, weight: Array, origin: Array, state: RowState
) -> None:
    """Give rows their nearest centres, the lowest number among equals, and update bounds and sums.

    IN  tile; rows (r,) where in X; known: whether only the own centre and those of the tile come into question, and
        state.lower is about the others; weight (m,) or empty: one each; origin (d,).
    OUT state.
    """
    bits, level, level_bits, n_scores = tile.bits, tile.level, tile.level_bits, np.int32(tile.bits.shape[1])
    per_square = 2.0 / (tile.unit * tile.unit)
    for r in range(rows.size):
        i = rows[r]
        nearest, best, second = np.int32(-1), np.inf, np.inf
        if known:
            nearest, second = state.labels[i], state.lower[i] * state.lower[i]
            best = square_distance(X, i, C, nearest)
            level[0] = best / per_square
        else:
            level_bits[0] = _lowest(bits, r)
        own = nearest
        level[0] = (level[0] + tile.margin[r]) * np.float32(1.000001)
        edge, beyond, first, last = level_bits[0], _INFINITY, n_scores, np.int32(-1)
        for k in range(n_scores):
            inside = bits[r, k] <= edge
            first = min(first, np.int32(k) if inside else n_scores)
            last = max(last, np.int32(k) if inside else np.int32(-1))
            beyond = min(beyond, _INFINITY if inside else bits[r, k])
        level_bits[0] = beyond
        second = min(second, max(0.0, per_square * (np.float64(level[0]) - tile.margin[r])))
        for k in range(first, last + 1):
            name = tile.names[k]
            if bits[r, k] > edge or name == own:
                continue
            square = square_distance(X, i, C, name)
            if square < best or (square == best and name < nearest):
                second, best, nearest = min(second, best), square, name
            else:
                second = min(second, square)
        relabel_row(X, i, nearest, np.sqrt(best), np.sqrt(second), weight, origin, state)


@lean_kernel
def _lowest(bits: Array, r: int) -> Any:
    lowest = _INFINITY
    for k in range(bits.shape[1]):
        lowest = min(lowest, bits[r, k])
    return lowest


@lean_kernel
def relabel_row(
    X: Array, i: int, k: Any, upper: float, lower: float, weight: Array, origin: Array, state: RowState
) -> None:
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
