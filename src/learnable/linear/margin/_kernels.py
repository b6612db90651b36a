"""Kernels of the support vector machines: sweeps over the rows, and passes over dual variables or coordinates.

A row's score is z = bias·b + xᵀw. A dual variable belongs to a shortfall p − σz of one row; several may belong to the
same row (two sides of a regression target). Rows are dense, or CSR with unsigned indices.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from ...core import Array, NDArray
from ...core.jit import kernel

Index = NDArray[np.uint32] | NDArray[np.uint64]  # unsigned: no test for negative indices in the loop
Order = NDArray[np.int64]
Mask = NDArray[np.uint8]


@kernel
def row_squares(data: Array, indptr: Index, out: Array) -> None:
    """OUT out (n,) = ‖x‖² for CSR rows."""
    for i in range(indptr.size - 1):
        s = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            s += data[k] * data[k]
        out[i] = s


@kernel
def project_rows(data: Array, indices: Index, indptr: Index, v: Array, level: float, z: Array) -> None:
    """OUT z (n,) = level + xᵀv for CSR rows."""
    for i in range(indptr.size - 1):
        s = level
        for k in range(indptr[i], indptr[i + 1]):
            s += data[k] * v[indices[k]]
        z[i] = s


@kernel
def back_project_rows(data: Array, indices: Index, indptr: Index, r: Array, out: Array) -> None:
    """OUT out (d,) += Σ rx for CSR rows; rows with r = 0 are skipped."""
    for i in range(indptr.size - 1):
        s = r[i]
        if s != 0.0:
            for k in range(indptr[i], indptr[i + 1]):
                out[indices[k]] += s * data[k]


@kernel
def dual_step(alpha: float, slope: float, upper: float, bend: float, low: float, high: float) -> tuple[float, float]:
    """Return the best α in [0, upper] of one dual variable, and its projected slope; NaN if it should be shrunk.

    A variable at a bound, whose slope pushes outwards by more than anything did in the last pass, is expected to stay.
    """
    if (alpha == 0.0 and slope > high) or (alpha == upper and slope < low):
        return alpha, np.nan
    if (alpha == 0.0 and slope >= 0.0) or (alpha == upper and slope <= 0.0):
        return alpha, 0.0
    if bend <= 0.0:
        return (upper if slope < 0.0 else 0.0), slope
    return min(max(alpha - slope / bend, 0.0), upper), slope


@kernel
def dual_pass_dense(
    X: Array,
    order: Order,
    sign: Array,
    offset: Array,
    upper: Array,
    ridge: Array,
    norm: Array,
    bias: float,
    bounds: tuple[float, float],
    alpha: Array,
    w: Array,
    kept: Mask,
) -> tuple[float, float]:
    """One pass of dual coordinate descent; return the least and the largest projected slope.

    IN order: which variables, variable k being of row k mod n. IN/OUT alpha, w = (b, Σ ασx). OUT kept: not shrunk. The
    same pass in NumPy: `tests/oracles/coordinate_passes.py`.
    """
    n, d = X.shape
    least, most = 0.0, 0.0
    weights = w[1:]
    for t in range(order.size):
        k = order[t]
        i = k % n
        row = X[i]
        z = bias * w[0]
        for j in range(d):
            z += row[j] * weights[j]
        slope = sign[k] * z - offset[k] + ridge[k] * alpha[k]
        new, projected = dual_step(alpha[k], slope, upper[k], norm[i] + ridge[k], bounds[0], bounds[1])
        kept[t] = not np.isnan(projected)
        if kept[t]:
            least, most = min(least, projected), max(most, projected)
        if new != alpha[k]:
            change = (new - alpha[k]) * sign[k]
            alpha[k] = new
            for j in range(d):
                weights[j] += change * row[j]
            w[0] += change * bias
    return least, most


@kernel
def dual_pass_sparse(
    data: Array,
    indices: Index,
    indptr: Index,
    order: Order,
    sign: Array,
    offset: Array,
    upper: Array,
    ridge: Array,
    norm: Array,
    bias: float,
    bounds: tuple[float, float],
    alpha: Array,
    w: Array,
    kept: Mask,
) -> tuple[float, float]:
    """Do the same over CSR rows."""
    n = indptr.size - 1
    least, most = 0.0, 0.0
    weights = w[1:]
    for t in range(order.size):
        k = order[t]
        i = k % n
        z = bias * w[0]
        for e in range(indptr[i], indptr[i + 1]):
            z += data[e] * weights[indices[e]]
        slope = sign[k] * z - offset[k] + ridge[k] * alpha[k]
        new, projected = dual_step(alpha[k], slope, upper[k], norm[i] + ridge[k], bounds[0], bounds[1])
        kept[t] = not np.isnan(projected)
        if kept[t]:
            least, most = min(least, projected), max(most, projected)
        if new != alpha[k]:
            change = (new - alpha[k]) * sign[k]
            alpha[k] = new
            for e in range(indptr[i], indptr[i + 1]):
                weights[indices[e]] += change * data[e]
            w[0] += change * bias
    return least, most


@kernel
def subgradient_step(
    margin: float, square: float, t: float, step: float, norm: float, radius: float
) -> tuple[float, float, float]:
    """Return how w shrinks, how much of the row is added, and ‖w‖², for step 1/t and projection onto a ball.

    margin is yz at the old w, square its ‖w‖², norm the row's ‖x‖².
    """
    shrink = 1.0 - 1.0 / t
    added = step / t if margin < 1.0 else 0.0
    square = max(0.0, shrink * shrink * square + 2.0 * added * shrink * margin + added * added * norm)
    pull = min(1.0, radius / sqrt(square)) if square > 0.0 else 1.0
    return shrink * pull, added * pull, square * pull * pull


@kernel
def subgradient_pass(
    data: Array,
    indices: Index,
    indptr: Index,
    order: Order,
    sign: Array,
    cost: Array,
    norm: Array,
    bias: float,
    radius: float,
    state: Array,
    alpha: Array,
    w: Array,
) -> None:
    """One pass of Pegasos over CSR rows: w ← (1 − 1/t)w + (n·c/t)·yx where yz < 1.

    IN/OUT state = (t, scale, ‖w‖²); the true w and α are scale times the arrays, so that shrinking costs nothing.
    """
    n = norm.size
    weights = w[1:]
    for i in order:
        z = bias * w[0]
        for e in range(indptr[i], indptr[i + 1]):
            z += data[e] * weights[indices[e]]
        state[0] += 1.0
        margin = sign[i] * state[1] * z
        shrink, added, state[2] = subgradient_step(margin, state[2], state[0], n * cost[i], norm[i], radius)
        if shrink == 0.0:  # the very first step forgets the start
            w[:] = 0.0
            alpha[:] = 0.0
            state[1] = 1.0
        else:
            state[1] *= shrink
        if state[1] < 1e-100:
            w *= state[1]
            alpha *= state[1]
            state[1] = 1.0
        if added > 0.0:
            change = added / state[1]
            alpha[i] += change
            for e in range(indptr[i], indptr[i + 1]):
                weights[indices[e]] += change * sign[i] * data[e]
            w[0] += change * sign[i] * bias


@kernel
def lasso_hinge_pass(
    data: Array, indices: Index, indptr: Index, order: Order, sign: Array, cost: Array, w: Array, short: Array
) -> None:
    """One pass over the columns (CSC) of min Σ|wⱼ| + Σ c max(0, shortᵢ)². IN/OUT w, short = 1 − yz.

    A Newton step of one coordinate, shortened until the function falls: Yuan, Chang, Hsieh and Lin, JMLR 11, 2010.
    """
    for j in order:
        slope = 0.0
        bend = 0.0
        for e in range(indptr[j], indptr[j + 1]):
            i = indices[e]
            if short[i] > 0.0:
                x = sign[i] * data[e]
                slope -= 2.0 * cost[i] * x * short[i]
                bend += 2.0 * cost[i] * x * x
        step = -w[j]
        if bend > 0.0:
            lowest, highest = (slope - 1.0) / bend, (slope + 1.0) / bend
            step = -highest if w[j] > highest else (-lowest if w[j] < lowest else -w[j])
        gain = slope * step + abs(w[j] + step) - abs(w[j])
        length = 1.0
        while gain < 0.0 and length > 1e-9:
            change = abs(w[j] + length * step) - abs(w[j])
            for e in range(indptr[j], indptr[j + 1]):
                i = indices[e]
                old, new = max(short[i], 0.0), max(short[i] - length * step * sign[i] * data[e], 0.0)
                change += cost[i] * (new - old) * (new + old)
            if change <= 0.01 * length * gain:
                w[j] += length * step
                for e in range(indptr[j], indptr[j + 1]):
                    short[indices[e]] -= length * step * sign[indices[e]] * data[e]
                break
            length *= 0.5
