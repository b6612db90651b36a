"""Sums over hidden states, row after row: forward, backward, and where the two meet.

A vector over states is padded with zeros to M numbers, a multiple of four; rows stand one after the other in flat
arrays, so that row t begins at tM, and a table of transitions has M² numbers. `b` holds the likelihood of each row's
observation, divided by the greatest of the row; with `codes` it is a table of which row t uses line codes[t].

Both directions are the same recursion. Forward, α_t = b_t ∘ (Aᵀα_{t−1}); backward, with u_t = b_t ∘ β_t,
u_t = b_t ∘ (A u_{t+1}): the same with the table transposed and the rows in reverse. One sequence is climbed from both
ends at once (`climb`): forward through its first half, backward through its second. Then each goes on through the other
half (`meet`) and finds what the other stored: P(z_t | x) ∝ α_t ∘ β_t, and the pairs' probabilities ∝ α_{t−1} u_tᵀ.

Sums are kept between 1e-30 and 1 by dividing them now and then: no length can make them underflow. A pass that meets
sums whose product vanishes returns False: some state was lost, and the recursions in logarithms have to be taken.
"""

from __future__ import annotations

import numpy as np

from ..core.jit import inline_kernel, lean_kernel
from ..core.simd import add, fma, load, mul, repeat, spread, store, total

LOW = 1e-30  # sums below it are rescaled
LOST = 1e-200  # a product of sums below it has lost digits
RING = 32  # rows whose pairs are added at once; even


@inline_kernel
def mix(v, i, A, out, o, M):  # type: ignore[no-untyped-def]
    """Set out = vᵀA. IN v from place i, A (M²,); OUT out from place o."""
    q = 0
    while q + 8 <= M:  # two groups of columns share what is repeated
        a0, a1, b0, b1 = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
        for p in range(0, M, 2):
            x, y, row = repeat(v, i + p), repeat(v, i + p + 1), p * M + q
            a0, b0 = fma(x, load(A, row), a0), fma(x, load(A, row + 4), b0)
            a1, b1 = fma(y, load(A, row + M), a1), fma(y, load(A, row + M + 4), b1)
        store(out, o + q, add(a0, a1))
        store(out, o + q + 4, add(b0, b1))
        q += 8
    if q < M:
        a0, a1 = spread(0.0), spread(0.0)
        for p in range(0, M, 2):
            a0 = fma(repeat(v, i + p), load(A, p * M + q), a0)
            a1 = fma(repeat(v, i + p + 1), load(A, p * M + M + q), a1)
        store(out, o + q, add(a0, a1))


@inline_kernel
def weigh(v, i, b, j, out, o, M):  # type: ignore[no-untyped-def]
    """Set out = v ∘ b and return its sum."""
    sums = spread(0.0)
    for q in range(0, M, 4):
        x = mul(load(v, i + q), load(b, j + q))
        store(out, o + q, x)
        sums = add(sums, x)
    return total(sums)


@inline_kernel
def scale_by(v, i, factor, M):  # type: ignore[no-untyped-def]
    """Multiply v by a factor."""
    x = spread(factor)
    for q in range(0, M, 4):
        store(v, i + q, mul(load(v, i + q), x))


@inline_kernel
def inner(v, i, w, j, M):  # type: ignore[no-untyped-def]
    """Return vᵀw."""
    sums = spread(0.0)
    for q in range(0, M, 4):
        sums = fma(load(v, i + q), load(w, j + q), sums)
    return total(sums)


@inline_kernel
def join(pred, sums, i, out, o, factor, M):  # type: ignore[no-untyped-def]
    """Set out = factor · sums and then sums = pred ∘ out."""
    x = spread(factor)
    for q in range(0, M, 4):
        y = mul(load(sums, i + q), x)
        store(out, o + q, y)
        store(sums, i + q, mul(load(pred, q), y))


@inline_kernel
def copy(v, i, out, o, M):  # type: ignore[no-untyped-def]
    """Set out = v."""
    for q in range(0, M, 4):
        store(out, o + q, load(v, i + q))


@lean_kernel
def add_products(v, w, rows, out, M):  # type: ignore[no-untyped-def]
    """Add Σ_r v_r w_rᵀ to out (M²,). IN v, w (rows · M,); an even number of rows."""
    for i in range(0, M, 4):
        for q in range(0, M, 4):
            a0, a1, a2, a3 = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
            b0, b1, b2, b3 = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
            for r in range(0, rows * M, 2 * M):
                x, y, s = load(w, r + q), load(w, r + M + q), r + i
                a0, a1 = fma(repeat(v, s), x, a0), fma(repeat(v, s + 1), x, a1)
                a2, a3 = fma(repeat(v, s + 2), x, a2), fma(repeat(v, s + 3), x, a3)
                b0, b1 = fma(repeat(v, s + M), y, b0), fma(repeat(v, s + M + 1), y, b1)
                b2, b3 = fma(repeat(v, s + M + 2), y, b2), fma(repeat(v, s + M + 3), y, b3)
            place = i * M + q
            store(out, place, add(load(out, place), add(a0, b0)))
            store(out, place + M, add(load(out, place + M), add(a1, b1)))
            store(out, place + 2 * M, add(load(out, place + 2 * M), add(a2, b2)))
            store(out, place + 3 * M, add(load(out, place + 3 * M), add(a3, b3)))


@lean_kernel
def climb(offsets, b, codes, edge, A, forward, sums, middle, logs, pred):  # type: ignore[no-untyped-def]
    """Store the sums of every sequence's first half (backward: of its second half, from the end).

    IN edge (M,): the law before the first row; OUT sums (nM,), middle (SM,): the last of them, logs (S,); pred (M,).
    """
    M = edge.size
    for s in range(offsets.size - 1):
        lo, hi = offsets[s], offsets[s + 1]
        mid = (lo + hi) // 2
        n_rows, t, way = (mid - lo, lo, 1) if forward else (hi - mid, hi - 1, -1)
        logs[s] = 0.0
        for r in range(n_rows):
            if r == 0:
                copy(edge, 0, pred, 0, M)
            else:
                mix(sums, (t - way) * M, A, pred, 0, M)
            size = weigh(pred, 0, b, (codes[t] if codes.size else t) * M, sums, t * M, M)
            if size < LOW:
                if size < LOST:
                    return False
                scale_by(sums, t * M, 1.0 / size, M)
                logs[s] += np.log(size)
            t += way
        if n_rows > 0:
            copy(sums, (t - way) * M, middle, s * M, M)
    return True


@lean_kernel
def meet(offsets, b, codes, edge, A, forward, sums, middle, logs, pairs, ring, pred):  # type: ignore[no-untyped-def]
    """Go on through the other halves; replace the sums that are there by posteriors.

    IN middle, as `climb` left it in this direction; ring (2, (RING + 1)M); OUT sums, logs, pairs (M²,): the products
    of this direction's sums before each row with the other's at it (backward: the transposed pairs).
    """
    M = edge.size
    mine, others = ring[0], ring[1]
    filled = 0
    for s in range(offsets.size - 1):
        lo, hi = offsets[s], offsets[s + 1]
        mid = (lo + hi) // 2
        n_rows, t, way = (hi - mid, mid, 1) if forward else (mid - lo, mid - 1, -1)
        copy(middle, s * M, mine, filled * M, M)
        size = 1.0
        for r in range(n_rows):
            here, now = t * M, filled * M
            if t == lo and forward:  # the only row of its sequence: there is no pair
                copy(edge, 0, pred, 0, M)
                scale_by(mine, now, 0.0, M)
            else:
                mix(mine, now, A, pred, 0, M)
            norm = inner(pred, 0, sums, here, M)
            if not norm >= LOST:
                return False
            join(pred, sums, here, others, now, 1.0 / norm, M)
            if r == 0 and not forward:  # the pair across the middle is counted by the pass that goes forward
                scale_by(others, now, 0.0, M)
            size = weigh(pred, 0, b, (codes[t] if codes.size else t) * M, mine, now + M, M)
            if size < LOW:
                scale_by(mine, now + M, 1.0 / size, M)
                logs[s] += np.log(size)
                size = 1.0
            t += way
            filled += 1
            if filled == RING:
                add_products(mine, others, RING, pairs, M)
                copy(mine, RING * M, mine, 0, M)
                filled = 0
        if n_rows > 0:
            logs[s] += np.log(size)
    scale_by(others, filled * M, 0.0, M)
    add_products(mine, others, filled + filled % 2, pairs, M)
    return True


@lean_kernel
def filter_rows(offsets, b, codes, start, A, out, logs, watch, alpha, pred):  # type: ignore[no-untyped-def]
    """Find P(z_t | x_1…x_t), and log P(x) of each sequence. `watch`: return False where a state is lost.

    OUT out (nM,), or (0,) if they are not wanted, logs (S,); alpha, pred (M,).
    """
    M = start.size
    for s in range(offsets.size - 1):
        logs[s], product = 0.0, 1.0
        for t in range(offsets[s], offsets[s + 1]):
            row = (codes[t] if codes.size else t) * M
            if t == offsets[s]:
                copy(start, 0, pred, 0, M)
            else:
                mix(alpha, 0, A, pred, 0, M)
            size = weigh(pred, 0, b, row, alpha, 0, M)
            if not size >= LOST:
                return False
            scale_by(alpha, 0, 1.0 / size, M)
            product *= size
            if product < LOW:
                logs[s] += np.log(product)
                product = 1.0
            if watch:
                for k in range(M):
                    if alpha[k] < LOST and pred[k] > 0.0 and b[row + k] > 0.0:
                        return False
            if out.size:
                copy(alpha, 0, out, t * M, M)
        logs[s] += np.log(product)
    return True
