"""Kernels of the decomposition: second-order steps inside a block, and sums of kernel rows.

`v` is the pull −∂/∂β of every variable of a block; `up` is 0 where β may rise and −∞ elsewhere, `down` is 0 where it
may fall and +∞ elsewhere. Variables of two equality constraints stand in two parts, the first of `split`. The size of a
part is a power of two, at least `LANES`: a maximum is found by folding the upper parts onto the lowest one, in loops
that vectorise, until `LANES` numbers are left; its place is then looked for among every LANES-th variable.

A step passes over the block three times: it updates the pulls, `rising` and `falling`; looks for the largest of
`rising`; and computes the gains of all partners, which only choose, so that float32 will do.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from ...core.jit import ieee_kernel, lean_kernel

LANES: Final = 16  # numbers that are compared side by side
_FLAT: Final = 1e-12  # curvature of a pair of equal rows
_SLIGHT: Final = 1e-3  # share of a block's goal below which no pair is worth a step
_OFTEN: Final = 4  # steps between two looks at the violation


class Block(NamedTuple):
    """The variables of one block, (q,) each, and scratch."""

    v: Any  #: pull, updated
    up: Any  #: 0 or −∞, float32
    down: Any  #: 0 or ∞, float32
    diagonal: Any  #: K_kk, float32
    rising: Any  #: v + up
    falling: Any  #: v + down less a number near the optimum's, float32
    gain: Any  #: float32
    x: Any  #: float64 scratch
    fold: Any  #: (2, q) float64 scratch
    fold32: Any  #: (2, q) float32 scratch

    @classmethod
    def of(cls, v: Any, up: Any, down: Any, diagonal: Any) -> Block:
        """Return a block of these variables."""
        q, single = len(v), np.float32
        up, down, diagonal = up.astype(single), down.astype(single), diagonal.astype(single)
        rising, falling, gain = np.empty(q), np.empty(q, single), np.empty(q, single)
        return cls(
            v, up, down, diagonal, rising, falling, gain, np.empty(q), np.empty((2, q)), np.empty((2, q), single)
        )


@lean_kernel
def score_variables(f: Any, q: Any, beta: Any, low: Any, high: Any, up: Any, down: Any) -> None:
    """Write the pull −(f + q) where β may rise, else −∞, into `up`; where it may fall, else ∞, into `down`."""
    for i in range(f.size):
        v = -(f[i] + q[i])
        up[i] = v if beta[i] < high[i] else -np.inf
        down[i] = v if beta[i] > low[i] else np.inf


@lean_kernel
def _fold_max(x: Any, y: Any, z: Any) -> Any:
    """Return the largest number of x and its place modulo LANES; y and z are overwritten."""
    n = x.size
    while n >= 4 * LANES:
        h = n // 4
        p, q, r, s, out = x[:h], x[h : 2 * h], x[2 * h : 3 * h], x[3 * h : n], y[:h]
        for k in range(h):
            a = p[k] if p[k] > q[k] else q[k]
            b = r[k] if r[k] > s[k] else s[k]
            out[k] = a if a > b else b
        x, y, z, n = y, z, y, h
    if n > LANES:
        p, q, out = x[:LANES], x[LANES:n], y[:LANES]
        for k in range(LANES):
            out[k] = p[k] if p[k] > q[k] else q[k]
        x = y
    top, lane = x[0], 0
    for k in range(LANES):
        if x[k] > top:
            top, lane = x[k], k
    return top, lane


@lean_kernel
def _largest(x: Any, fold: Any) -> Any:
    """Return the largest number and its place."""
    top, lane = _fold_max(x, fold[0], fold[1])
    for b in range(x.size // LANES):
        k = b * LANES + lane
        if x[k] == top:
            return top, k
    return top, lane


@lean_kernel
def _least_falling(v: Any, down: Any, x: Any, fold: Any) -> Any:
    """Return the least pull of a variable that may fall."""
    for k in range(v.size):
        x[k] = -v[k] - down[k]
    return -_fold_max(x, fold[0], fold[1])[0]


@ieee_kernel
def _partner(falling: Any, diagonal: Any, Ki: Any, own: Any, pull: Any, least: Any, gain: Any, fold: Any) -> int:
    """Return the variable that, falling while i rises, lowers the objective most: max (vᵢ − vⱼ)²/(Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ).

    A difference below `least` is rounding, which equal rows, of no curvature, would turn into the greatest gain; −1 if
    there is none above.
    """
    for k in range(gain.size):
        d = pull - falling[k]
        d = d if d > least else np.float32(0.0)
        curvature = (own + diagonal[k]) - np.float32(2.0) * np.float32(Ki[k])
        curvature = curvature if curvature > np.float32(_FLAT) else np.float32(_FLAT)
        gain[k] = d * (d / curvature)
    top, place = _largest(gain, fold)
    return place if top > np.float32(0.0) else -1


@lean_kernel
def _update(block: Any, first: Any, last: Any, t: Any, Ki: Any, Kj: Any, near: Any) -> None:
    """Take t(Ki − Kj) from the pulls of variables first … last − 1."""
    v, up, down = block.v[first:last], block.up[first:last], block.down[first:last]
    rising, falling = block.rising[first:last], block.falling[first:last]
    for k in range(v.size):
        pull = v[k] - t * (np.float64(Ki[k]) - np.float64(Kj[k]))
        v[k] = pull
        rising[k] = pull + up[k]
        falling[k] = np.float32(pull - near) + down[k]


@lean_kernel
def _mark(block: Any, k: Any, beta: Any, low: Any, high: Any) -> None:
    """Note where variable k may go."""
    block.up[k] = 0.0 if beta[k] < high[k] else -np.inf
    block.down[k] = 0.0 if beta[k] > low[k] else np.inf


@lean_kernel
def _gap(block: Any, first: Any, last: Any) -> Any:
    """Return the largest pull that may rise less the least that may fall, among variables first … last − 1."""
    top, _ = _largest(block.rising[first:last], block.fold)
    return top - _least_falling(block.v[first:last], block.down[first:last], block.x[first:last], block.fold)


@lean_kernel
def _start(block: Any, first: Any, last: Any, row: Any) -> Any:
    """Prepare variables first … last − 1 and return a number near the optimum's pulls."""
    _update(block, first, last, 0.0, row[first:last], row[first:last], 0.0)
    top, _ = _largest(block.rising[first:last], block.fold)
    near = top if np.isfinite(top) else 0.0
    _update(block, first, last, 0.0, row[first:last], row[first:last], near)
    return near


@lean_kernel
def solve_block(
    K: Any, block: Any, beta: Any, low: Any, high: Any, split: Any, shrink: Any, floor: Any, limit: Any, stop: Any
) -> int:
    """Move pairs of one group until the violation is `shrink` times that of the start, or `floor`; return the steps.

    K is (q, q); β (q,) is updated. `stop` may be raised by another thread. `tests/oracles/smo.py` has the same steps in
    NumPy, without lanes and scratch.
    """
    v, q = block.v, block.v.size
    goal, steps, first, last = 0.0, 0, 0, split
    near = _start(block, 0, split, K[0])
    other_near = _start(block, split, q, K[0]) if split < q else 0.0
    while steps < limit:
        if steps % _OFTEN == 0:
            gap, first, last = _gap(block, 0, split), 0, split
            if split < q:
                other = _gap(block, split, q)
                if other > gap:
                    gap, first, last = other, split, q
            if steps == 0:
                goal = max(shrink * gap, floor)
            if not gap > goal or (steps % 1024 == 0 and stop[0] != 0):
                break
        top, i = _largest(block.rising[first:last], block.fold)
        row = K[first + i]
        own, pull = np.float64(row[first + i]), np.float32(top - (near if first == 0 else other_near))
        j = _partner(
            block.falling[first:last],
            block.diagonal[first:last],
            row[first:last],
            np.float32(own),
            pull,
            np.float32(_SLIGHT * goal),
            block.gain[first:last],
            block.fold32,
        )
        if j < 0 or not top > v[first + j]:
            break
        i, j = first + i, first + j
        other_row = K[j]
        steps += 1
        t = (top - v[j]) / max(own + np.float64(other_row[j]) - 2.0 * np.float64(row[j]), _FLAT)
        rise, fall = high[i] - beta[i], beta[j] - low[j]
        if t >= rise and rise <= fall:
            t = rise
            beta[i], beta[j] = high[i], beta[j] - t if t < fall else low[j]
        elif t >= fall:
            t = fall
            beta[i], beta[j] = beta[i] + t, low[j]
        else:
            beta[i], beta[j] = beta[i] + t, beta[j] - t
        _mark(block, i, beta, low, high)
        _mark(block, j, beta, low, high)
        _update(block, 0, split, t, row[:split], other_row[:split], near)
        if split < q:
            _update(block, split, q, t, row[split:], other_row[split:], other_near)
    return steps


@ieee_kernel
def _best_alone(block: Any) -> Any:
    """Return the variable whose own step gains most, v²/K_kk, or −1; and the largest pull that counts."""
    v, up, down, diagonal, x = block.v, block.up, block.down, block.diagonal, block.x
    n = v.size
    for k in range(n):
        rise, fall = v[k] + up[k], -v[k] - down[k]
        x[k] = rise if rise > fall else fall
    pull, _ = _fold_max(x, block.fold[0], block.fold[1])
    for k in range(n):
        rise, fall = v[k] + up[k], -v[k] - down[k]
        d = rise if rise > fall else fall
        d = d if d > 0.0 else 0.0
        x[k] = d * d / max(np.float64(diagonal[k]), _FLAT)
    best, place = _largest(x, block.fold)
    return place if best > 0.0 else -1, pull


@lean_kernel
def solve_block_alone(
    K: Any, block: Any, beta: Any, low: Any, high: Any, shrink: Any, floor: Any, limit: Any, stop: Any
) -> int:
    """Do what `solve_block` does without equality constraints: variables move one at a time."""
    v, goal, steps = block.v, 0.0, 0
    while steps < limit:
        i, pull = _best_alone(block)
        if steps == 0:
            goal = max(shrink * pull, floor)
        if i < 0 or not pull > goal or (steps % 1024 == 0 and stop[0] != 0):
            break
        steps += 1
        row = K[i]
        t = v[i] / max(np.float64(row[i]), _FLAT)
        if t >= high[i] - beta[i]:
            t, beta[i] = high[i] - beta[i], high[i]
        elif t <= low[i] - beta[i]:
            t, beta[i] = low[i] - beta[i], low[i]
        else:
            beta[i] += t
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
