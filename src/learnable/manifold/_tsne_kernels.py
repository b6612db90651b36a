"""Compiled loops of t-SNE: perplexities, attraction along edges, repulsion by all pairs or through a grid."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import ieee_kernel, kernel, lean_kernel

Array = NDArray[Any]

#: Steps of the search for a bandwidth: Newton's method takes five to seven, halving the rest.
_SEARCH_STEPS = 200
#: Entropies that differ by less are equal: their own rounding is 1e-15.
_ENTROPY_TOLERANCE = 1e-12


@kernel
def calibrate(squares: Array, log_perplexity: float, P: Array, betas: Array) -> None:
    """Find for each row the β at which the entropy of pⱼ ∝ exp(−β dⱼ²) is the logarithm of the perplexity.

    IN squares (m, k), the squared distances of m rows to their neighbours. OUT P (m, k), rows sum to one; betas (m,).
    Newton's method on log β, by dH/dlog β = −β² Var(d²), halves the bracket where it would leave it. Where so many
    distances are equal that no β will do, the entropy is the nearest that can be had.
    """
    m, k = squares.shape
    for i in range(m):
        d = squares[i]
        p = P[i]
        least = np.inf
        mean = 0.0
        for j in range(k):
            least = min(least, d[j])
            mean += d[j]
        mean = mean / k - least
        low = 0.0
        high = np.inf
        beta = 1.0 / mean if mean > 0.0 else 1.0
        for _ in range(_SEARCH_STEPS):
            total = 0.0
            first = 0.0
            second = 0.0
            for j in range(k):
                away = d[j] - least
                p[j] = np.exp(-beta * away)
                total += p[j]
                first += p[j] * away
                second += p[j] * away * away
            first /= total
            variance = max(second / total - first * first, 0.0)
            excess = np.log(total) + beta * first - log_perplexity
            if abs(excess) <= _ENTROPY_TOLERANCE or mean <= 0.0:
                break
            if excess > 0.0:
                low = beta
            else:
                high = beta
            slope = beta * beta * variance
            new = beta * np.exp(min(max(excess / slope, -3.0), 3.0)) if slope > 0.0 else np.inf
            if not (low < new < high):
                if high == np.inf:
                    new = beta * 4.0
                elif low == 0.0:
                    new = beta * 0.25
                else:
                    new = np.sqrt(low * high)
            if not (1e-300 < new < 1e300) or new == beta:
                break
            beta = new
        betas[i] = beta
        for j in range(k):
            p[j] /= total


@lean_kernel
def attract_plane(indptr: Array, indices: Array, P: Array, Y: Array, first: int, out: Array) -> None:
    """Find Σⱼ pᵢⱼ wᵢⱼ (yᵢ − yⱼ), w = 1/(1 + ‖yᵢ − yⱼ‖²), for the rows of `out`, from number `first` on, in a plane.

    IN P by rows (float32), Y (n, 2). OUT out (m, 2). The slow twin is `attraction` in `tests/oracles/tsne.py`.
    """
    for i in range(out.shape[0]):
        row = first + i
        a = Y[row, 0]
        b = Y[row, 1]
        start = indptr[row]
        ends = indices[start : indptr[row + 1]]
        weights = P[start : indptr[row + 1]]
        pull_a = 0.0
        pull_b = 0.0
        for edge in range(ends.size):
            at = ends[edge]
            away_a = a - Y[at, 0]
            away_b = b - Y[at, 1]
            pull = weights[edge] / (1.0 + away_a * away_a + away_b * away_b)
            pull_a += pull * away_a
            pull_b += pull * away_b
        out[i, 0] = pull_a
        out[i, 1] = pull_b


@lean_kernel
def attract(indptr: Array, indices: Array, P: Array, Y: Array, first: int, out: Array, logs: Array) -> None:
    """Find the same in any number of dimensions, and Σⱼ pᵢⱼ log(1 + ‖yᵢ − yⱼ‖²).

    IN P by rows (float64), Y (n, k). OUT out (m, k), logs (m,).
    """
    k = Y.shape[1]
    for i in range(out.shape[0]):
        row = first + i
        out[i] = 0.0
        total = 0.0
        for edge in range(indptr[row], indptr[row + 1]):
            at = indices[edge]
            square = 0.0
            for c in range(k):
                square += (Y[row, c] - Y[at, c]) ** 2
            pull = P[edge] / (1.0 + square)
            for c in range(k):
                out[i, c] += pull * (Y[row, c] - Y[at, c])
            total += P[edge] * np.log1p(square)
        logs[i] = total


@ieee_kernel
def repel_all(columns: Array, first: int, weights: Array, out: Array, sums: Array) -> None:
    """Find Σⱼ wᵢⱼ² (yᵢ − yⱼ) and Σⱼ≠ᵢ wᵢⱼ for the rows of `out`, from number `first` on, by all pairs.

    IN columns (k, n), the coordinates. OUT out (m, k), sums (m,). `weights` (n,) is scratch. The slow twin is
    `repulsion` in `tests/oracles/tsne.py`.
    """
    k, n = columns.shape
    for i in range(out.shape[0]):
        weights[:] = 1.0
        for c in range(k):
            column = columns[c]
            here = column[first + i]
            for j in range(n):
                away = here - column[j]
                weights[j] += away * away
        total = 0.0
        for j in range(n):
            w = 1.0 / weights[j]
            total += w
            weights[j] = w * w
        sums[i] = total - 1.0
        for c in range(k):
            column = columns[c]
            here = column[first + i]
            push = 0.0
            for j in range(n):
                push += weights[j] * (here - column[j])
            out[i, c] = push


@lean_kernel
def spline_weights(x: float) -> tuple[float, float, float, float]:
    """Return the cubic B-spline's values at the four nodes around a point that lies x in [0, 1) after the second."""
    before = (1.0 - x) ** 3 / 6.0
    left = (4.0 - 6.0 * x * x + 3.0 * x**3) / 6.0
    after = x**3 / 6.0
    return before, left, 1.0 - before - left - after, after


@lean_kernel
def spread(Y: Array, low_a: float, low_b: float, rate: float, grid: Array) -> None:
    """Add every row to the sixteen nodes around it, by cubic B-splines.

    IN Y (n, 2); low_a, low_b the place of the node (1, 1), rate the nodes per unit. OUT grid.
    """
    grid[:] = 0.0
    for i in range(Y.shape[0]):
        u = (Y[i, 0] - low_a) * rate
        v = (Y[i, 1] - low_b) * rate
        s = int(u)
        t = int(v)
        u -= s
        v -= t
        b0, b1, b2, b3 = spline_weights(v)
        a0, a1, a2, a3 = spline_weights(u)
        for step in range(4):
            a = a0
            if step == 1:
                a = a1
            elif step == 2:
                a = a2
            elif step == 3:
                a = a3
            grid[s + step, t] += a * b0
            grid[s + step, t + 1] += a * b1
            grid[s + step, t + 2] += a * b2
            grid[s + step, t + 3] += a * b3


@lean_kernel
def gather(Y: Array, low_a: float, low_b: float, rate: float, grid: Array, first: int, out: Array, sums: Array) -> None:
    """Read the potential at some rows from the sixteen nodes around each, and minus half its gradient.

    IN as in `spread`; grid holds the coefficients of the potential φ(y) = Σⱼ 1/(1 + ‖y − yⱼ‖²). OUT sums (m,), φ;
    out (m, 2), −½∇φ = Σⱼ wᵢⱼ² (yᵢ − yⱼ).
    """
    for i in range(out.shape[0]):
        u = (Y[first + i, 0] - low_a) * rate
        v = (Y[first + i, 1] - low_b) * rate
        s = int(u)
        t = int(v)
        u -= s
        v -= t
        b0, b1, b2, b3 = spline_weights(v)
        c0 = -0.5 * (1.0 - v) ** 2
        c1 = 1.5 * v * v - 2.0 * v
        c3 = 0.5 * v * v
        c2 = -c0 - c1 - c3
        a0, a1, a2, a3 = spline_weights(u)
        value = 0.0
        slope_b = 0.0
        slope_a = 0.0
        for step in range(4):
            a = a0
            slope = -0.5 * (1.0 - u) ** 2
            if step == 1:
                a = a1
                slope = 1.5 * u * u - 2.0 * u
            elif step == 2:
                a = a2
                slope = -1.5 * u * u + u + 0.5
            elif step == 3:
                a = a3
                slope = 0.5 * u * u
            nodes = grid[s + step]
            along = b0 * nodes[t] + b1 * nodes[t + 1] + b2 * nodes[t + 2] + b3 * nodes[t + 3]
            across = c0 * nodes[t] + c1 * nodes[t + 1] + c2 * nodes[t + 2] + c3 * nodes[t + 3]
            value += a * along
            slope_a += slope * along
            slope_b += a * across
        sums[i] = value
        out[i, 0] = -0.5 * rate * slope_a
        out[i, 1] = -0.5 * rate * slope_b


@ieee_kernel
def place_rows(P: Array, near: Array, columns: Array, most: int, weights: Array, points: Array, out: Array) -> None:
    """Move new rows to where Σⱼ pⱼ log(1 + ‖y − yⱼ‖²) + log Σⱼ 1/(1 + ‖y − yⱼ‖²) is least, each by itself.

    IN P (m, k) and near (m, k), the affinities to k rows; columns (c, n), the coordinates of all; the most steps.
    OUT out (m, c); weights (n,) and points (4, c) are scratch. The start is the one of the k rows with the least first
    sum; then steps against the gradient, longer after each that lowers the objective and shorter after one that does
    not, which is undone: the objective never ends above its start.
    """
    c = columns.shape[0]
    here = points[0]
    new = points[1]
    slope = points[2]
    new_slope = points[3]
    for i in range(P.shape[0]):
        best = np.inf
        for a in range(near.shape[1]):
            total = 0.0
            for b in range(near.shape[1]):
                square = 1.0
                for d in range(c):
                    square += (columns[d, near[i, a]] - columns[d, near[i, b]]) ** 2
                total += P[i, b] * np.log(square)
            if total < best:
                best = total
                for d in range(c):
                    here[d] = columns[d, near[i, a]]
        best = _one_row(P[i], near[i], columns, here, weights, slope)
        step = 0.5
        for _ in range(most):
            moved = 0.0
            for d in range(c):
                new[d] = here[d] - step * slope[d]
                moved += (new[d] - here[d]) ** 2
            if moved <= 1e-18:
                break
            value = _one_row(P[i], near[i], columns, new, weights, new_slope)
            if value < best:
                best = value
                for d in range(c):
                    here[d] = new[d]
                    slope[d] = new_slope[d]
                step *= 1.5
            else:
                step *= 0.25
        for d in range(c):
            out[i, d] = here[d]


@ieee_kernel
def _one_row(p: Array, near: Array, columns: Array, y: Array, weights: Array, slope: Array) -> float:
    """Return the objective of one new row at y, and its gradient in `slope`."""
    c, n = columns.shape
    weights[:] = 1.0
    for d in range(c):
        column = columns[d]
        for j in range(n):
            away = y[d] - column[j]
            weights[j] += away * away
    total = 0.0
    for j in range(n):
        w = 1.0 / weights[j]
        total += w
        weights[j] = w
    value = np.log(total)
    for d in range(c):
        column = columns[d]
        push = 0.0
        for j in range(n):
            push += weights[j] * weights[j] * (y[d] - column[j])
        slope[d] = -2.0 * push / total
    for j in range(near.size):
        w = weights[near[j]]
        value -= p[j] * np.log(w)
        for d in range(c):
            slope[d] += 2.0 * p[j] * w * (y[d] - columns[d, near[j]])
    return value
