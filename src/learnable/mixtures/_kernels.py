"""Loops of k-means: which rows keep their centre for certain, and which centre the others get.

Every row has a label a, an upper bound on its distance to centre a and a lower bound on its distance to every other
centre (G. Hamerly, Making k-means even faster, SDM 2010). Distances that decide anything are Σ(xᵢ − cᵢ)² in float64.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from ..core import AnyArray
from ..core.jit import ieee_kernel, kernel, lean_kernel
from ..core.simd import add, exp, fma, larger, load, mul, spread, store, sub

_INFINITY: Final = np.int32(0x7F800000)  # its bits as a float32


class RowState(NamedTuple):
    """What is known of some rows, changed in place."""

    labels: AnyArray  #: (m,) int32; -1: none yet
    upper: AnyArray  #: (m,) at least the distance to the own centre
    lower: AnyArray  #: (m,) at most the distance to any other centre
    counts: AnyArray  #: (K,) weight of each cluster's rows here; empty if nobody asks for it and the sums
    sums: AnyArray  #: (K, d) their weighted sum, less the origin


class Motion(NamedTuple):
    """How the centres moved since the last pass."""

    move: AnyArray  #: (K,) how far each went
    most: float  #: the longest of them
    mover: int  #: whose it is
    second: float  #: the longest of the others
    rest: float  #: the longest but for those centres that are measured in any case
    half_gap: AnyArray  #: (K,) half the distance to the nearest other centre
    slack: float  #: by how much rounding may blur a bound


class Tile(NamedTuple):
    """Scores of some rows with some centres: at least ½‖x − c‖² in units of 1/unit, and not negative.

    Floats that are not negative are ordered as their bits, and integers are compared many at once.
    """

    bits: AnyArray  #: (r, p) int32, of float32 numbers
    names: AnyArray  #: (p,) int32, which centres
    margin: AnyArray  #: (r,) by how much a row's scores may be too large
    unit: float
    level: AnyArray  #: (1,) float32, scratch
    level_bits: AnyArray  #: (1,) int32, the same memory


@lean_kernel
def square_distance(X: AnyArray, i: int, C: AnyArray, k: int) -> float:
    """Return Σⱼ(xᵢⱼ − cₖⱼ)² in float64."""
    total = 0.0
    for j in range(X.shape[1]):
        gap = X[i, j] - C[k, j]
        total += gap * gap
    return total


@lean_kernel
def screen_rows(X: AnyArray, C: AnyArray, state: RowState, motion: Motion, rows: AnyArray, count: AnyArray) -> None:
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
    tile: Tile,
    rows: AnyArray,
    known: bool,
    X: AnyArray,
    C: AnyArray,
    weight: AnyArray,
    origin: AnyArray,
    state: RowState,
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
def _lowest(bits: AnyArray, r: int) -> Any:
    lowest = _INFINITY
    for k in range(bits.shape[1]):
        lowest = min(lowest, bits[r, k])
    return lowest


@lean_kernel
def relabel_row(
    X: AnyArray, i: int, k: Any, upper: float, lower: float, weight: AnyArray, origin: AnyArray, state: RowState
) -> None:
    """Store a row's centre and bounds; if the centre is another one, move the row between the sums, if any."""
    old = state.labels[i]
    state.upper[i], state.lower[i], state.labels[i] = upper, lower, k
    if old == k or not state.counts.size:
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
def squares_to_own(X: AnyArray, C: AnyArray, labels: AnyArray, squares: AnyArray) -> None:
    """Write the squared distance of every row to its centre. OUT squares (m,)."""
    for i in range(labels.size):
        squares[i] = square_distance(X, i, C, labels[i])


@kernel
def fill_panel(X: AnyArray, origin: AnyArray, unit: float, stretch: float, squares: AnyArray, panel: AnyArray) -> None:
    """Write extended rows (`lloyd.py`) without temporary arrays, which a worker of Dask has to fetch anew each time.

    IN  X (m, d), origin (d,), squares (m,) in units of 1/unit. OUT panel (m, d + 2) float32.
    """
    m, d = X.shape
    for i in range(m):
        row = X[i]
        extended = panel[i]
        for j in range(d):
            extended[j] = (row[j] - origin[j]) * unit
        extended[d] = stretch * squares[i]
        extended[d + 1] = 1.0


@kernel
def spread_of_rows(X: AnyArray, mean: AnyArray, weight: AnyArray, squares: AnyArray, tops: AnyArray) -> None:
    """Add up squared deviations from a mean. IN weight (m,) or empty: one each.

    OUT squares (d,) += Σ w(x − mean)², tops (d,): the largest |w(x − mean)| so far.
    """
    m, d = X.shape
    for i in range(m):
        row = X[i]
        w = weight[i] if weight.size else 1.0
        for j in range(d):
            gap = row[j] - mean[j]
            moved = w * gap
            squares[j] += moved * gap
            size = abs(moved)
            tops[j] = size if size > tops[j] else tops[j]


@kernel
def lower_squares(
    X: AnyArray, candidates: AnyArray, closest: AnyArray, weight: AnyArray, trials: AnyArray, potentials: AnyArray
) -> None:
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


# Loops of k-medoids: what every swap of a medoid for another row would bring, and the swap itself.
#
# Every row knows its nearest and its second nearest medoid. Then one look at the distances of a candidate tells what
# it
# would bring in place of each of the K medoids (E. Schubert and P. Rousseeuw, Information Systems 101 (2021),
# 101804).


class Seats(NamedTuple):
    """The medoids, and what they mean for every row; changed in place."""

    medoids: AnyArray  #: (K,) int64, rows
    to_medoids: AnyArray  #: (K, n) distances
    nearest: AnyArray  #: (n,) int32, which medoid
    second: AnyArray  #: (n,) int32
    near: AnyArray  #: (n,) distance to the nearest
    next: AnyArray  #: (n,) to the second nearest; infinite if there is one medoid
    removal: AnyArray  #: (K,) what J gains when a medoid is gone


@kernel
def seat_rows(seats: Seats, weight: AnyArray, changed: int) -> None:
    """Find the nearest and second nearest medoid of every row, after one was replaced; changed = -1: all are new.

    OUT seats.nearest, second, near, next, removal.
    """
    K, n = seats.to_medoids.shape
    seats.removal[:] = 0.0
    for i in range(n):
        a, b, near, following = seats.nearest[i], seats.second[i], seats.near[i], seats.next[i]
        low, high = changed, changed + 1  # the others did not move
        if changed < 0 or a == changed or b == changed:
            a, b, near, following = np.int32(0), np.int32(0), np.inf, np.inf
            low, high = 0, K
        for k in range(low, high):
            distance = seats.to_medoids[k, i]
            if distance < near:
                b, following = a, near
                a, near = np.int32(k), distance
            elif distance < following:
                b, following = np.int32(k), distance
        seats.nearest[i], seats.second[i], seats.near[i], seats.next[i] = a, b, near, following
        if K > 1:
            seats.removal[a] += weight[i] * (following - near)


@kernel
def weigh_candidate(distances: AnyArray, seats: Seats, weight: AnyArray, change: AnyArray) -> int:
    """Return the medoid that a candidate replaces best. OUT change (K,): of J, by replacing each.

    IN  distances (n,) of the candidate to all rows.
    """
    change[:] = seats.removal
    shared = 0.0
    single = change.size == 1
    for i in range(distances.size):
        distance = distances[i]
        if single:
            shared += weight[i] * (distance - seats.near[i])
        elif distance < seats.next[i]:
            a = seats.nearest[i]
            if distance < seats.near[i]:
                shared += weight[i] * (distance - seats.near[i])
                change[a] += weight[i] * (seats.near[i] - seats.next[i])
            else:
                change[a] += weight[i] * (distance - seats.next[i])
    best = 0
    for k in range(change.size):
        change[k] += shared
        if change[k] < change[best]:
            best = k
    return best


@kernel
def try_candidates(
    D: AnyArray,
    first: int,
    seats: Seats,
    weight: AnyArray,
    taken: AnyArray,
    threshold: float,
    change: AnyArray,
    out: AnyArray,
) -> None:
    """Go through candidates and make every swap that lowers J by more than the threshold, at once.

    IN  D (m, n) distances of the candidates first, first + 1, … to all rows; change (K,) scratch.
    OUT seats; taken (n,) bool: whether a row is a medoid; out (3,): candidates since the last swap, the lowest change
        among them, the number of swaps.
    """
    for c in range(D.shape[0]):
        if not taken[first + c]:
            k = weigh_candidate(D[c], seats, weight, change)
            if change[k] < -threshold:
                taken[seats.medoids[k]], taken[first + c] = False, True
                seats.medoids[k] = first + c
                seats.to_medoids[k] = D[c]
                seat_rows(seats, weight, k)
                out[0], out[1] = 0.0, 0.0
                out[2] += 1.0
                continue
            out[1] = min(out[1], change[k])
        out[0] += 1.0
        if out[0] >= taken.size:
            return


# Loops of Gaussian mixtures: log-densities and weighted second moments, many rows at once.
#
# Rows come by columns, (d, m), so that every inner loop runs over rows; a strip of them stays in the cache.

_STRIP: Final = 128  # rows whose whitened numbers stay in the first-level cache


@kernel
def log_normals(Xt: AnyArray, means: AnyArray, roots: AnyArray, constants: AnyArray, out: AnyArray) -> None:
    """Write constantₖ − ½‖Wₖ(x − μₖ)‖².

    IN  Xt (d, m), means (K, d), roots (K, d, d) lower triangular W with WᵀW = Σ⁻¹, constants (K,). OUT out (K, m).
    """
    d, m = Xt.shape
    z, square = np.zeros(d * _STRIP), np.empty(_STRIP)
    for start in range(0, m, _STRIP):
        size = min(_STRIP, m - start)
        for k in range(means.shape[0]):
            for a in range(d):
                za, xa, mu = z[a * _STRIP : (a + 1) * _STRIP], Xt[a, start : start + size], means[k, a]
                for t in range(size):
                    za[t] = xa[t] - mu
            _whitened_squares(z, roots[k], square)
            of_strip = out[k, start : start + size]
            for t in range(size):
                of_strip[t] = constants[k] - 0.5 * square[t]


@lean_kernel
def _whitened_squares(z: AnyArray, root: AnyArray, square: AnyArray) -> None:
    """Write ‖Wz‖² of a strip of rows, sixteen at a time; z (d · strip,) by columns, OUT square (strip,)."""
    d = root.shape[0]
    for t in range(0, _STRIP, 16):
        s0, s1, s2, s3 = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
        for a in range(d):
            row = root[a]
            y0, y1, y2, y3 = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
            for b in range(a + 1):
                w, at = spread(row[b]), b * _STRIP + t
                y0, y1 = fma(w, load(z, at), y0), fma(w, load(z, at + 4), y1)
                y2, y3 = fma(w, load(z, at + 8), y2), fma(w, load(z, at + 12), y3)
            s0, s1, s2, s3 = fma(y0, y0, s0), fma(y1, y1, s1), fma(y2, y2, s2), fma(y3, y3, s3)
        store(square, t, s0)
        store(square, t + 4, s1)
        store(square, t + 8, s2)
        store(square, t + 12, s3)


@ieee_kernel
def normalise_columns(log_joint: AnyArray, tops: AnyArray, inverse: AnyArray) -> None:
    """Replace each column by its exponentials divided by their sum, eight columns, a line of the cache, at a time.

    IN/OUT log_joint (K, m), m a multiple of eight. OUT tops (m,) the greatest logarithm, inverse (m,) of the sum of
    the exponentials less that: log Σₖ exp is tops − log(inverse).
    """
    K, m = log_joint.shape
    for t in range(0, m, 8):
        best0, best1 = spread(-np.inf), spread(-np.inf)
        for k in range(K):
            row = log_joint[k]
            best0, best1 = larger(load(row, t), best0), larger(load(row, t + 4), best1)
        store(tops, t, best0)
        store(tops, t + 4, best1)
        sum0, sum1 = spread(0.0), spread(0.0)
        for k in range(K):
            row = log_joint[k]
            share0, share1 = exp(sub(load(row, t), best0)), exp(sub(load(row, t + 4), best1))
            sum0, sum1 = add(sum0, share0), add(sum1, share1)
            store(row, t, share0)
            store(row, t + 4, share1)
        store(inverse, t, sum0)
        store(inverse, t + 4, sum1)
        for i in range(t, t + 8):
            inverse[i] = 1.0 / inverse[i]
        scale0, scale1 = load(inverse, t), load(inverse, t + 4)
        for k in range(K):
            row = log_joint[k]
            store(row, t, mul(load(row, t), scale0))
            store(row, t + 4, mul(load(row, t + 4), scale1))


@kernel
def log_normals_diagonal(
    Xt: AnyArray, means: AnyArray, precisions: AnyArray, constants: AnyArray, out: AnyArray
) -> None:
    """Write constantₖ − ½Σⱼ pₖⱼ(xⱼ − μₖⱼ)²; precisions (K, d), the rest as in `log_normals`."""
    d, m = Xt.shape
    for start in range(0, m, _STRIP):
        size = min(_STRIP, m - start)
        for k in range(means.shape[0]):
            square = out[k, start : start + size]
            square[:] = 0.0
            for a in range(d):
                xa, mu, p = Xt[a, start : start + size], means[k, a], precisions[k, a]
                for t in range(size):
                    gap = xa[t] - mu
                    square[t] += p * gap * gap
            for t in range(size):
                square[t] = constants[k] - 0.5 * square[t]


@kernel
def add_moments(Xt: AnyArray, means: AnyArray, r: AnyArray, first: AnyArray, second: AnyArray) -> None:
    """Add Σ r(x − μ) and Σ r(x − μ)(x − μ)ᵀ, its lower triangle, of every component.

    IN  Xt (d, m), means (K, d), r (K, m) weights of the rows. OUT first (K, d), second (K, d, d).
    """
    d, m = Xt.shape
    z, rz = np.empty((d, _STRIP)), np.empty(_STRIP)
    for start in range(0, m, _STRIP):
        size = min(_STRIP, m - start)
        for k in range(means.shape[0]):
            rk = r[k, start : start + size]
            for a in range(d):
                za, xa, mu = z[a], Xt[a, start : start + size], means[k, a]
                total = 0.0
                for t in range(size):
                    za[t] = xa[t] - mu
                    rz[t] = rk[t] * za[t]
                    total += rz[t]
                first[k, a] += total
                for b in range(a + 1):
                    zb, product = z[b], 0.0
                    for t in range(size):
                        product += rz[t] * zb[t]
                    second[k, a, b] += product


@kernel
def add_moments_diagonal(Xt: AnyArray, means: AnyArray, r: AnyArray, first: AnyArray, second: AnyArray) -> None:
    """Add Σ r(x − μ) and Σ r(x − μ)², column by column; second (K, d), the rest as in `add_moments`."""
    d, m = Xt.shape
    for start in range(0, m, _STRIP):
        size = min(_STRIP, m - start)
        for k in range(means.shape[0]):
            rk = r[k, start : start + size]
            for a in range(d):
                xa, mu, total, square = Xt[a, start : start + size], means[k, a], 0.0, 0.0
                for t in range(size):
                    gap = xa[t] - mu
                    rz = rk[t] * gap
                    total += rz
                    square += rz * gap
                first[k, a] += total
                second[k, a] += square


@ieee_kernel
def invert_lower(factors: AnyArray, inverses: AnyArray) -> None:
    """Write the inverses of lower triangular matrices, column by column. IN factors, OUT inverses (K, d, d)."""
    for k in range(factors.shape[0]):
        L, W = factors[k], inverses[k]
        for j in range(L.shape[0]):
            W[j, j] = 1.0 / L[j, j]
            for i in range(j + 1, L.shape[0]):
                total = 0.0
                for b in range(j, i):
                    total += L[i, b] * W[b, j]
                W[i, j] = -total / L[i, i]
