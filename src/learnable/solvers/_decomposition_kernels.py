"""Kernels of the decomposition: second-order steps inside a block, and sums of kernel rows.

`v` is the pull −∂/∂β of every variable of a block; `up` is 0 where β may rise and −∞ elsewhere, `down` is 0 where it
may fall and +∞ elsewhere. Variables of two equality constraints stand in two parts, the first of `split`. The size of a
part is a power of two, at least `LANES`: a maximum is found by folding the upper half onto the lower one, in loops that
vectorise, until `LANES` numbers are left; its place is then looked for among every LANES-th variable.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from ..core.jit import ieee_kernel, lean_kernel

LANES: Final = 16
_FLAT: Final = 1e-12  # curvature of a pair of equal rows
_OFTEN: Final = 4  # steps between two looks at the violation


class Block(NamedTuple):
    """The variables of one block, (q,) each, and scratch."""

    v: Any  #: pull, updated
    up: Any  #: 0 or −∞
    down: Any  #: 0 or ∞
    diagonal: Any  #: K_kk
    x: Any  #: float64
    y: Any  #: float64
    gain: Any  #: float32
    fold: Any  #: float32


@lean_kernel
def score_variables(f: Any, q: Any, beta: Any, low: Any, high: Any, up: Any, down: Any) -> None:
    """Write the pull −(f + q) where β may rise, else −∞, into `up`; where it may fall, else ∞, into `down`."""
    for i in range(f.size):
        v = -(f[i] + q[i])
        up[i] = v if beta[i] < high[i] else -np.inf
        down[i] = v if beta[i] > low[i] else np.inf


@lean_kernel
def _fold_max(x: Any, y: Any, n: Any) -> Any:
    """Return the largest of n numbers in x, and its place modulo LANES; x and y are overwritten."""
    while n > LANES:
        h = n // 2
        p, q, out = x[:h], x[h:n], y[:h]
        for k in range(h):
            out[k] = p[k] if p[k] > q[k] else q[k]
        x, y, n = y, x, h
    top, lane = x[0], 0
    for k in range(LANES):
        if x[k] > top:
            top, lane = x[k], k
    return top, lane


@lean_kernel
def _largest(v: Any, shift: Any, sign: Any, x: Any, y: Any) -> Any:
    """Return the largest of sign·v + shift and its place."""
    n = v.size
    for k in range(n):
        x[k] = sign * v[k] + shift[k]
    top, lane = _fold_max(x, y, n)
    for b in range(n // LANES):
        k = b * LANES + lane
        if sign * v[k] + shift[k] == top:
            return top, k
    return top, lane


@ieee_kernel
def _partner(v: Any, down: Any, diagonal: Any, Ki: Any, own: Any, pull: Any, gain: Any, fold: Any) -> int:
    """Return the variable that, falling while i rises, lowers the objective most: max (vᵢ − vⱼ)²/(Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ).

    Gains only choose, so that float32 will do; −1 if there is none.
    """
    n = v.size
    for k in range(n):
        d = np.float32(pull - (v[k] + down[k]))
        d = d if d > np.float32(0.0) else np.float32(0.0)
        curvature = np.float32(own + diagonal[k]) - np.float32(2.0) * np.float32(Ki[k])
        curvature = curvature if curvature > np.float32(_FLAT) else np.float32(_FLAT)
        gain[k] = d * (d / curvature)
    top, lane = _fold_max(gain, fold, n)
    if not top > np.float32(0.0):
        return -1
    best, place = -np.inf, -1
    for b in range(n // LANES):  # the fold has overwritten the gains
        k = b * LANES + lane
        d = pull - (v[k] + down[k])
        if d > 0.0:
            value = d * d / max(own + diagonal[k] - 2.0 * np.float64(Ki[k]), _FLAT)
            if value > best:
                best, place = value, k
    return place


@lean_kernel
def _subtract(v: Any, t: Any, Ki: Any, Kj: Any) -> None:
    """Take t(Ki − Kj) from v."""
    for k in range(v.size):
        v[k] -= t * (np.float64(Ki[k]) - np.float64(Kj[k]))


@lean_kernel
def _mark(block: Any, k: Any, beta: Any, low: Any, high: Any) -> None:
    """Note where variable k may go."""
    block.up[k] = 0.0 if beta[k] < high[k] else -np.inf
    block.down[k] = 0.0 if beta[k] > low[k] else np.inf


@lean_kernel
def _gap(v: Any, up: Any, down: Any, x: Any, y: Any) -> Any:
    """Return the largest pull that may rise less the least that may fall."""
    top, _ = _largest(v, up, 1.0, x, y)
    for k in range(v.size):
        x[k] = -v[k] - down[k]
    least, _ = _fold_max(x, y, v.size)
    return top + least


@lean_kernel
def solve_block(
    K: Any, block: Any, beta: Any, low: Any, high: Any, split: Any, shrink: Any, floor: Any, limit: Any, stop: Any
) -> int:
    """Move pairs of one group until the violation is `shrink` times that of the start, or `floor`; return the steps.

    K is (q, q); β (q,) is updated. `stop` may be raised by another thread.
    """
    v, up, down, diagonal = block.v, block.up, block.down, block.diagonal
    x, y, gain, fold = block.x, block.y, block.gain, block.fold
    goal, steps, first, last = 0.0, 0, 0, split
    while steps < limit:
        if steps % _OFTEN == 0:
            gap, first, last = _gap(v[:split], up[:split], down[:split], x, y), 0, split
            if split < v.size:
                other = _gap(v[split:], up[split:], down[split:], x, y)
                if other > gap:
                    gap, first, last = other, split, v.size
            if steps == 0:
                goal = max(shrink * gap, floor)
            if not gap > goal or (steps % 1024 == 0 and stop[0] != 0):
                break
        top, i = _largest(v[first:last], up[first:last], 1.0, x, y)
        i += first
        row, own = K[i], diagonal[i]
        j = _partner(v[first:last], down[first:last], diagonal[first:last], row[first:last], own, top, gain, fold)
        if j < 0:
            break
        j += first
        steps += 1
        t = (top - v[j]) / max(own + diagonal[j] - 2.0 * np.float64(row[j]), _FLAT)
        rise, fall = high[i] - beta[i], beta[j] - low[j]
        if t >= rise and rise <= fall:
            t = rise
            beta[i], beta[j] = high[i], beta[j] - t if t < fall else low[j]
        elif t >= fall:
            t = fall
            beta[i], beta[j] = beta[i] + t, low[j]
        else:
            beta[i], beta[j] = beta[i] + t, beta[j] - t
        _subtract(v, t, row, K[j])
        _mark(block, i, beta, low, high)
        _mark(block, j, beta, low, high)
    return steps


@ieee_kernel
def _best_alone(block: Any, x: Any, y: Any) -> Any:
    """Return the variable whose own step gains most, v²/K_kk, or −1; and the largest pull that counts."""
    v, up, down, diagonal, n = block.v, block.up, block.down, block.diagonal, block.v.size
    for k in range(n):
        rise, fall = v[k] + up[k], -v[k] - down[k]
        x[k] = rise if rise > fall else fall
    pull, _ = _fold_max(x, y, n)
    for k in range(n):
        rise, fall = v[k] + up[k], -v[k] - down[k]
        d = rise if rise > fall else fall
        d = d if d > 0.0 else 0.0
        x[k] = d * d / (diagonal[k] if diagonal[k] > _FLAT else _FLAT)
    _, lane = _fold_max(x, y, n)
    best, place = 0.0, -1
    for b in range(n // LANES):
        k = b * LANES + lane
        d = max(v[k] + up[k], -v[k] - down[k], 0.0)
        value = d * d / max(diagonal[k], _FLAT)
        if value > best:
            best, place = value, k
    return place, pull


@lean_kernel
def solve_block_alone(
    K: Any, block: Any, beta: Any, low: Any, high: Any, shrink: Any, floor: Any, limit: Any, stop: Any
) -> int:
    """Do what `solve_block` does without equality constraints: variables move one at a time."""
    v, goal, steps = block.v, 0.0, 0
    while steps < limit:
        i, pull = _best_alone(block, block.x, block.y)
        if steps == 0:
            goal = max(shrink * pull, floor)
        if i < 0 or not pull > goal or (steps % 1024 == 0 and stop[0] != 0):
            break
        steps += 1
        t = v[i] / max(block.diagonal[i], _FLAT)
        if t >= high[i] - beta[i]:
            t, beta[i] = high[i] - beta[i], high[i]
        elif t <= low[i] - beta[i]:
            t, beta[i] = low[i] - beta[i], low[i]
        else:
            beta[i] += t
        row = K[i]
        for k in range(v.size):
            v[k] -= t * np.float64(row[k])
        _mark(block, i, beta, low, high)
    return steps


@lean_kernel
def gather_block(store: Any, slots: Any, rows: Any, out: Any) -> None:
    """Write store[slots[a], rows[b]] into out[a, b], the lower triangle as a mirror of the upper one.

    A negative number is padding, whose entries are zero.
    """
    q = slots.size
    for a in range(q):
        line = out[a]
        if slots[a] < 0:
            for b in range(a, q):
                line[b] = 0
            continue
        source = store[slots[a]]
        for b in range(a, q):
            line[b] = source[rows[b]] if rows[b] >= 0 else 0
    for start in range(0, q, LANES):  # tile by tile, so that both sides stay in the cache
        for other in range(start, q, LANES):
            for a in range(start, min(start + LANES, q)):
                for b in range(max(other, a + 1), min(other + LANES, q)):
                    out[b, a] = out[a, b]


@lean_kernel
def narrow_rows(room: Any, wide: Any, slots: Any, columns: Any, narrow: Any) -> None:
    """Move some columns of some rows of a (·, wide) matrix to the front of its memory, as a (·, narrow) matrix.

    Slots and columns ascend, so that nothing is overwritten before it was read.
    """
    for k in range(slots.size):
        source, target = slots[k] * wide, k * narrow
        for c in range(narrow):
            room[target + c] = room[source + columns[c]]


@lean_kernel
def add_rows(store: Any, slots: Any, delta: Any, start: Any, f: Any) -> None:
    """Add Σ delta[a] store[slots[a], start + c] to f[c], four rows at a time."""
    width, a = f.size, 0
    while a + 4 <= slots.size:
        r0, r1 = store[slots[a], start : start + width], store[slots[a + 1], start : start + width]
        r2, r3 = store[slots[a + 2], start : start + width], store[slots[a + 3], start : start + width]
        d0, d1, d2, d3 = delta[a], delta[a + 1], delta[a + 2], delta[a + 3]
        for c in range(width):
            f[c] += (d0 * r0[c] + d1 * r1[c]) + (d2 * r2[c] + d3 * r3[c])
        a += 4
    while a < slots.size:
        row, d = store[slots[a], start : start + width], delta[a]
        for c in range(width):
            f[c] += d * row[c]
        a += 1
