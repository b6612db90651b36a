"""Sums over hidden states, row after row: forward, backward, and where the two meet.

A vector over states is padded with zeros to M numbers, a multiple of four; rows stand one after the other in flat
arrays, so that row t begins at tM, and a table of transitions has M² numbers. `b` holds the likelihood of each row's
observation, divided by the greatest of the row; with `codes` it is a table of which row t uses line codes[t].

Both directions are the same recursion. Forward, α_t = b_t ∘ (Aᵀα_{t−1}); backward, with u_t = b_t ∘ β_t,
u_t = b_t ∘ (A u_{t+1}): the same with the table transposed and the rows in reverse. One sequence is climbed from both
ends at once (`climb`): forward through its first half, backward through its second. Then each goes on through the other
half (`meet`) and finds what the other stored: P(z_t | x) ∝ α_t ∘ β_t, and the pairs' probabilities ∝ α_{t−1} u_tᵀ.

The same in twenty lines of NumPy, "predict" and "condition on", is `tests/oracles/forward_backward.py`, which these
kernels are tested against.

Sums are kept between 1e-30 and 1 by dividing them now and then: no length can make them underflow. A pass that meets
sums whose product vanishes returns False: some state was lost, and the recursions in logarithms have to be taken.
"""

from __future__ import annotations

import numpy as np

from ..core.jit import inline_kernel, kernel, lean_kernel
from ..core.simd import add, exp, fma, larger, load, mul, repeat, spread, store, sub, top, total

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


# The recursions in logarithms: slow, and exact where a rescaled sum would lose a state.


@kernel
def log_mix(v, L, out):  # type: ignore[no-untyped-def]
    """Set out_j = log Σ_i exp(v_i + L_ij). IN v (K,), L (K, K); OUT out (K,)."""
    for j in range(out.size):
        top = -np.inf
        for i in range(v.size):
            top = max(top, v[i] + L[i, j])
        total = 0.0
        if top > -np.inf:
            for i in range(v.size):
                total += np.exp(v[i] + L[i, j] - top)
        out[j] = top + np.log(total) if total > 0.0 else -np.inf


@kernel
def log_total(v):  # type: ignore[no-untyped-def]
    """Return log Σ exp(v)."""
    top = v.max()
    return top + np.log(np.exp(v - top).sum()) if top > -np.inf else -np.inf


@kernel
def forward_logs(offsets, logb, codes, start, L, store, logs):  # type: ignore[no-untyped-def]
    """Store log P(z_t | x_1…x_t) and log P(x) of each sequence, all in logarithms. OUT store (n, K), logs (S,)."""
    pred = np.empty(L.shape[0])
    for s in range(offsets.size - 1):
        logs[s] = 0.0
        for t in range(offsets[s], offsets[s + 1]):
            if t == offsets[s]:
                pred[:] = start
            else:
                log_mix(store[t - 1], L, pred)
            row = logb[codes[t] if codes.size else t]
            for j in range(pred.size):
                store[t, j] = pred[j] + row[j]
            total = log_total(store[t])
            logs[s] += total
            if total == -np.inf:  # what was seen is impossible
                break
            for j in range(pred.size):
                store[t, j] -= total


@kernel
def backward_logs(offsets, logb, codes, L, store, pairs):  # type: ignore[no-untyped-def]
    """Replace what `forward_logs` stored by P(z_t | x), and add the pairs' probabilities. OUT store, pairs (K, K)."""
    K = L.shape[0]
    beta, u, joint = np.empty(K), np.empty(K), np.empty((K, K))
    for s in range(offsets.size - 1):
        lo, hi = offsets[s], offsets[s + 1]
        beta[:] = 0.0
        for t in range(hi - 1, lo - 1, -1):
            if t < hi - 1:
                row = logb[codes[t + 1] if codes.size else t + 1]
                for j in range(K):
                    u[j] = row[j] + beta[j]
                top = -np.inf
                for i in range(K):
                    for j in range(K):
                        joint[i, j] = store[t, i] + L[i, j] + u[j]
                        top = max(top, joint[i, j])
                total = top + np.log(np.exp(joint - top).sum())
                for i in range(K):
                    for j in range(K):
                        pairs[i, j] += np.exp(joint[i, j] - total)
                    beta[i] = log_total(L[i] + u)
                beta -= beta.max()
            for j in range(K):
                u[j] = store[t, j] + beta[j]
            total = log_total(u)
            for j in range(K):
                store[t, j] = np.exp(u[j] - total)


# Paths of hidden states: the best one (Viterbi), and draws from P(z | x).
#
# Rows and tables are laid out as above, in logarithms and padded with −inf. The best path is climbed from
# both
# ends, as the sums are: `climb_best` finds the greatest log P of a path into each state of a row, or out of it, row
# included; where the halves meet the best state is known, and `trace` reads the path from there to both ends.

FAR = -1e3  # logarithms below it are shifted: absolute digits stay, however long the sequence


@inline_kernel
def max_mix(v, i, L, out, o, M):  # type: ignore[no-untyped-def]
    """Set out_j = max_i v_i + L_ij. IN v from place i, L (M²,); OUT out from place o."""
    for q in range(0, M, 4):
        a, b = spread(-np.inf), spread(-np.inf)
        for p in range(0, M, 2):
            a = larger(add(repeat(v, i + p), load(L, p * M + q)), a)
            b = larger(add(repeat(v, i + p + 1), load(L, p * M + M + q)), b)
        store(out, o + q, larger(a, b))


@inline_kernel
def plus(v, i, w, j, out, o, M):  # type: ignore[no-untyped-def]
    """Set out = v + w, shifted to a greatest entry of zero once it is far below; return the shift."""
    best = spread(-np.inf)
    for q in range(0, M, 4):
        x = add(load(v, i + q), load(w, j + q))
        store(out, o + q, x)
        best = larger(x, best)
    peak = top(best)
    if FAR > peak > -np.inf:
        for q in range(0, M, 4):
            store(out, o + q, sub(load(out, o + q), spread(peak)))
        return peak
    return 0.0


@lean_kernel
def climb_best(offsets, logb, codes, edge, L, forward, best, logs, pred):  # type: ignore[no-untyped-def]
    """Store, up to a shift, the greatest log P of a path into each state of the first halves' rows.

    Backward: out of each state of the second halves' rows. IN edge (M,); OUT best (nM,), which may be logb; logs (S,):
    what was shifted; pred (M,).
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
                max_mix(best, (t - way) * M, L, pred, 0, M)
            logs[s] += plus(pred, 0, logb, (codes[t] if codes.size else t) * M, best, t * M, M)
            t += way


@inline_kernel
def arg_max(v, i, w, j, M):  # type: ignore[no-untyped-def]
    """Return the first place where v + w is greatest."""
    place, peak = 0, v[i] + w[j]
    for k in range(1, M):
        x = v[i + k] + w[j + k]
        place = k if x > peak else place
        peak = x if x > peak else peak
    return place


@lean_kernel
def join_best(offsets, start, L, best, path, logs, pred):  # type: ignore[no-untyped-def]
    """Find the best state of each sequence's middle row. OUT path, there; logs (S,): its log P is added; pred (M,)."""
    M = start.size
    for s in range(offsets.size - 1):
        lo = offsets[s]
        mid = (lo + offsets[s + 1]) // 2
        if mid == lo:
            copy(start, 0, pred, 0, M)
        else:
            max_mix(best, (mid - 1) * M, L, pred, 0, M)
        path[mid] = arg_max(pred, 0, best, mid * M, M)
        logs[s] += pred[path[mid]] + best[mid * M + path[mid]]


@lean_kernel
def trace(offsets, L, forward, best, path):  # type: ignore[no-untyped-def]
    """Read the best paths from the middle to the end (backward, with L transposed: to the beginning). OUT path (n,)."""
    M = int(np.sqrt(L.size) + 0.5)
    for s in range(offsets.size - 1):
        lo, hi = offsets[s], offsets[s + 1]
        mid = (lo + hi) // 2
        n_rows, t, way = (hi - mid - 1, mid + 1, 1) if forward else (mid - lo, mid - 1, -1)
        state = path[mid]
        for _ in range(n_rows):
            state = arg_max(L, state * M, best, t * M, M)
            path[t] = state
            t += way


@kernel
def draw_paths(offsets, log_filtered, L, u, path):  # type: ignore[no-untyped-def]
    """Draw paths from P(z | x), backwards. IN log_filtered (n, K), u (n,) uniform; OUT path (n,)."""
    K = L.shape[0]
    w = np.empty(K)
    for s in range(offsets.size - 1):
        for t in range(offsets[s + 1] - 1, offsets[s] - 1, -1):
            for i in range(K):
                w[i] = log_filtered[t, i]
                if t < offsets[s + 1] - 1:
                    w[i] += L[i, path[t + 1]]
            top = w.max()
            total = 0.0
            for i in range(K):
                total += np.exp(w[i] - top)
                w[i] = total
            goal, state = u[t] * total, 0
            while state < K - 1 and w[state] <= goal:
                state += 1
            path[t] = state


# Loops over rows: densities, likelihoods, moments, sums by symbol, and simulated chains.

TILE = 256  # rows that stay in the nearest cache


@kernel
def walk(start, P, u, path):  # type: ignore[no-untyped-def]
    """Simulate chains. IN cumulated start (K,) and rows P (K, K), u (paths, steps) uniform; OUT path, as u."""
    for n in range(u.shape[0]):
        for t in range(u.shape[1]):
            row = start if t == 0 else P[path[n, t - 1]]
            path[n, t] = np.searchsorted(row, u[n, t], side="right")


@lean_kernel
def log_normal_rows(X, mean, half, constant, out):  # type: ignore[no-untyped-def]
    """Set out_tk = Σ_j constant_jk − half_jk (x_tj − mean_jk)²; a missing entry counts nothing.

    IN X (n, d), mean, half (half the precision) and constant (d · M,), M a multiple of four; OUT out (n · M,).
    """
    n, d = X.shape
    M = mean.size // d
    for t in range(n):
        row = X[t]
        for q in range(0, M, 4):
            logs = spread(0.0)
            for j in range(d):
                if not np.isnan(row[j]):
                    z = sub(spread(row[j]), load(mean, j * M + q))
                    logs = add(logs, load(constant, j * M + q))
                    logs = sub(logs, mul(mul(load(half, j * M + q), z), z))
            store(out, t * M + q, logs)


@lean_kernel
def scatter_rows(X, gamma, centre, weight, first, second):  # type: ignore[no-untyped-def]
    """Add Σ_t γ_tk, Σ_t γ_tk (x_tj − c_jk) and Σ_t γ_tk (x_tj − c_jk)² over entries that are there.

    IN X (n, d), gamma (n · M,), centre (d · M,), M a multiple of four; OUT weight, first, second (d · M,).
    """
    n, d = X.shape
    M = centre.size // d
    for lo in range(0, n, TILE):
        hi = min(lo + TILE, n)
        for j in range(d):
            for q in range(0, M, 4):
                c, w, a, b = load(centre, j * M + q), spread(0.0), spread(0.0), spread(0.0)
                for t in range(lo, hi):
                    x = X[t, j]
                    if not np.isnan(x):
                        g, z = load(gamma, t * M + q), sub(spread(x), c)
                        w, gz = add(w, g), mul(g, z)
                        a, b = add(a, gz), fma(gz, z, b)
                store(weight, j * M + q, add(load(weight, j * M + q), w))
                store(first, j * M + q, add(load(first, j * M + q), a))
                store(second, j * M + q, add(load(second, j * M + q), b))


@lean_kernel
def likelihood_rows(log, padding, b, offset):  # type: ignore[no-untyped-def]
    """Set b_tk = exp(log_tk − offset_t) with offset_t the greatest of the row; the padding of a row is zero.

    IN log (n · M,), padding (M,): zeros, and −inf beyond the states; OUT b (n · M,), offset (n,). A row of −inf, which
    is impossible, has offset −inf and b zero.
    """
    M = padding.size
    for t in range(offset.size):
        at = t * M
        best = spread(-np.inf)
        for q in range(0, M, 4):
            best = larger(add(load(log, at + q), load(padding, q)), best)
        peak = top(best)
        offset[t] = peak
        shift = spread(peak if peak > -np.inf else 0.0)
        for q in range(0, M, 4):
            store(b, at + q, exp(sub(add(load(log, at + q), load(padding, q)), shift)))


@lean_kernel
def sum_by_code(codes, gamma, out):  # type: ignore[no-untyped-def]
    """Add the rows of gamma (n · M,) that have the same code. OUT out (lines · M,)."""
    M = gamma.size // codes.size
    for t in range(codes.size):
        line = codes[t] * M
        for q in range(0, M, 4):
            store(out, line + q, add(load(out, line + q), load(gamma, t * M + q)))
