"""Recursions over hidden states: forward, backward, Viterbi, and draws of paths.

A vector over states is padded with zeros (−inf in logarithms) to Q groups of four, shape (Q, 4), and a matrix has shape
(Q, 4, Q, 4): the four lanes have constant indices, so that sums over states run in vector registers. `b` holds the
likelihood of each row's observation, divided by the greatest of the row; with `codes` it is a table of which row t uses
line codes[t].

Forward and backward sums are kept between 1e-30 and 1 by dividing them now and then: no length can make them underflow.
One sequence is climbed from both ends at once. The first passes store forward sums of its first half and backward sums
of its second half; the second passes go on through the other half, meet the stored sums, and replace them by
P(z_t | x).
A pass that meets sums whose product vanishes returns False: then some state was lost, and the recursions in
logarithms have to be taken.
"""

from __future__ import annotations

import numpy as np

from ..core.jit import kernel, lean_kernel

LOW = 1e-30  # sums below it are rescaled
LOST = 1e-200  # a product of sums below it has lost digits
FAR = -1e3  # log sums below it are shifted: absolute digits stay, however long the sequence


@lean_kernel
def copy(v, out):  # type: ignore[no-untyped-def]
    """Set out = v; Numba's own assignment looks for overlaps and may allocate."""
    for q in range(out.shape[0]):
        out[q, 0], out[q, 1], out[q, 2], out[q, 3] = v[q, 0], v[q, 1], v[q, 2], v[q, 3]


@lean_kernel
def mix(v, A, out):  # type: ignore[no-untyped-def]
    """Set out = vᵀA. IN v (Q, 4), A (Q, 4, Q, 4); OUT out (Q, 4)."""
    for q in range(out.shape[0]):
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for p in range(v.shape[0]):
            a, b, c, d = v[p, 0], v[p, 1], v[p, 2], v[p, 3]
            s0 += (a * A[p, 0, q, 0] + b * A[p, 1, q, 0]) + (c * A[p, 2, q, 0] + d * A[p, 3, q, 0])
            s1 += (a * A[p, 0, q, 1] + b * A[p, 1, q, 1]) + (c * A[p, 2, q, 1] + d * A[p, 3, q, 1])
            s2 += (a * A[p, 0, q, 2] + b * A[p, 1, q, 2]) + (c * A[p, 2, q, 2] + d * A[p, 3, q, 2])
            s3 += (a * A[p, 0, q, 3] + b * A[p, 1, q, 3]) + (c * A[p, 2, q, 3] + d * A[p, 3, q, 3])
        out[q, 0], out[q, 1], out[q, 2], out[q, 3] = s0, s1, s2, s3


@lean_kernel
def weigh(v, b, out):  # type: ignore[no-untyped-def]
    """Set out = v ∘ b and return its sum."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for q in range(out.shape[0]):
        a0, a1, a2, a3 = v[q, 0] * b[q, 0], v[q, 1] * b[q, 1], v[q, 2] * b[q, 2], v[q, 3] * b[q, 3]
        out[q, 0], out[q, 1], out[q, 2], out[q, 3] = a0, a1, a2, a3
        s0 += a0
        s1 += a1
        s2 += a2
        s3 += a3
    return (s0 + s1) + (s2 + s3)


@lean_kernel
def scale_by(v, factor):  # type: ignore[no-untyped-def]
    """Multiply v by a factor."""
    for q in range(v.shape[0]):
        a0, a1, a2, a3 = v[q, 0] * factor, v[q, 1] * factor, v[q, 2] * factor, v[q, 3] * factor
        v[q, 0], v[q, 1], v[q, 2], v[q, 3] = a0, a1, a2, a3


@lean_kernel
def add_pairs(alpha, u, scale, pairs):  # type: ignore[no-untyped-def]
    """Add scale · α uᵀ to pairs (Q, 4, Q, 4)."""
    for p in range(alpha.shape[0]):
        for r in range(4):
            a = alpha[p, r] * scale
            row = pairs[p, r]
            for q in range(u.shape[0]):
                p0, p1, p2, p3 = row[q, 0], row[q, 1], row[q, 2], row[q, 3]
                u0, u1, u2, u3 = u[q, 0], u[q, 1], u[q, 2], u[q, 3]
                row[q, 0], row[q, 1], row[q, 2], row[q, 3] = p0 + a * u0, p1 + a * u1, p2 + a * u2, p3 + a * u3


@lean_kernel
def forward_halves(offsets, b, codes, start, A, store, middle, logs, work):  # type: ignore[no-untyped-def]
    """Store the forward sums of every sequence's first half. OUT store (n, Q, 4), middle (S, Q, 4), logs (S,)."""
    pred, alpha = work[0], work[1]
    for s in range(offsets.size - 1):
        lo, mid = offsets[s], (offsets[s] + offsets[s + 1]) // 2
        logs[s] = 0.0
        for t in range(lo, mid):
            if t == lo:
                copy(start, pred)
            else:
                mix(alpha, A, pred)
            total = weigh(pred, b[codes[t] if codes.size else t], alpha)
            if total < LOW:
                if total < LOST:
                    return False
                scale_by(alpha, 1.0 / total)
                logs[s] += np.log(total)
            copy(alpha, store[t])
        copy(alpha, middle[s])
    return True


@lean_kernel
def backward_halves(offsets, b, codes, end, AT, store, middle, work):  # type: ignore[no-untyped-def]
    """Store the backward sums of every sequence's second half. IN end (Q, 4): ones; OUT store, middle (S, Q, 4)."""
    beta, u = work[0], work[1]
    for s in range(offsets.size - 1):
        mid, hi = (offsets[s] + offsets[s + 1]) // 2, offsets[s + 1]
        copy(end, beta)
        copy(beta, store[hi - 1])
        for t in range(hi - 1, mid, -1):
            total = weigh(beta, b[codes[t] if codes.size else t], u)
            if total < LOW:
                if total < LOST:
                    return False
                scale_by(u, 1.0 / total)
            mix(u, AT, beta)
            copy(beta, store[t - 1])
        copy(beta, middle[s])
    return True


@lean_kernel
def forward_meets(offsets, b, codes, start, A, store, middle, logs, pairs, work):  # type: ignore[no-untyped-def]
    """Go on through the second halves; replace the backward sums there by posteriors. OUT store, logs, pairs."""
    pred, alpha, before, u = work[0], work[1], work[2], work[3]
    for s in range(offsets.size - 1):
        lo, hi = offsets[s], offsets[s + 1]
        mid = (lo + hi) // 2
        copy(middle[s], alpha)
        total = 1.0
        for t in range(mid, hi):
            row, posterior = b[codes[t] if codes.size else t], store[t]
            if t == lo:
                copy(start, pred)
            else:
                copy(alpha, before)
                mix(alpha, A, pred)
                weigh(posterior, row, u)
            total = weigh(pred, row, alpha)
            norm = weigh(alpha, posterior, posterior)
            if norm < LOST:
                return False
            scale_by(posterior, 1.0 / norm)
            if t > lo:
                add_pairs(before, u, 1.0 / norm, pairs)
            if total < LOW:
                scale_by(alpha, 1.0 / total)
                logs[s] += np.log(total)
                total = 1.0
        logs[s] += np.log(total)
    return True


@lean_kernel
def backward_meets(offsets, b, codes, AT, store, middle, pairs, work):  # type: ignore[no-untyped-def]
    """Go on through the first halves; replace the forward sums there by posteriors. OUT store, pairs."""
    beta, u = work[0], work[1]
    for s in range(offsets.size - 1):
        lo, mid = offsets[s], (offsets[s] + offsets[s + 1]) // 2
        copy(middle[s], beta)
        for t in range(mid, lo, -1):
            total = weigh(beta, b[codes[t] if codes.size else t], u)
            if total < LOW:
                if total < LOST:
                    return False
                scale_by(u, 1.0 / total)
            mix(u, AT, beta)
            posterior = store[t - 1]
            norm = weigh(posterior, beta, work[2])
            if norm < LOST:
                return False
            if t < mid:  # the pair across the middle is counted by the pass that goes forward
                add_pairs(posterior, u, 1.0 / norm, pairs)
            copy(work[2], posterior)
            scale_by(posterior, 1.0 / norm)
    return True


@lean_kernel
def filter_rows(offsets, b, codes, start, A, store, logs, watch, work):  # type: ignore[no-untyped-def]
    """Store P(z_t | x_1…x_t), and log P(x) of each sequence. OUT store, logs; `watch`: stop where a state is lost."""
    pred, alpha = work[0], work[1]
    for s in range(offsets.size - 1):
        logs[s] = 0.0
        for t in range(offsets[s], offsets[s + 1]):
            row = b[codes[t] if codes.size else t]
            if t == offsets[s]:
                copy(start, pred)
            else:
                mix(alpha, A, pred)
            total = weigh(pred, row, alpha)
            if total < LOST:
                return False
            scale_by(alpha, 1.0 / total)
            logs[s] += np.log(total)
            if watch:
                for q in range(alpha.shape[0]):
                    for r in range(4):
                        if alpha[q, r] < LOST and pred[q, r] > 0.0 and row[q, r] > 0.0:
                            return False
            if store.size:
                copy(alpha, store[t])
    return True


@lean_kernel
def max_step(v, L, out):  # type: ignore[no-untyped-def]
    """Set out_j = max_i v_i + L_ij. IN v (Q, 4), L (Q, 4, Q, 4); OUT out (Q, 4)."""
    low = -np.inf
    for q in range(out.shape[0]):
        m0, m1, m2, m3 = low, low, low, low
        for p in range(v.shape[0]):
            for r in range(4):
                vi = v[p, r]
                c0, c1, c2, c3 = vi + L[p, r, q, 0], vi + L[p, r, q, 1], vi + L[p, r, q, 2], vi + L[p, r, q, 3]
                m0 = c0 if c0 > m0 else m0
                m1 = c1 if c1 > m1 else m1
                m2 = c2 if c2 > m2 else m2
                m3 = c3 if c3 > m3 else m3
        out[q, 0], out[q, 1], out[q, 2], out[q, 3] = m0, m1, m2, m3


@lean_kernel
def plus(v, w, out):  # type: ignore[no-untyped-def]
    """Set out = v + w, shifted to a greatest entry of zero once it is far below; a constant changes no best path."""
    m0, m1, m2, m3 = -np.inf, -np.inf, -np.inf, -np.inf
    for q in range(out.shape[0]):
        a0, a1, a2, a3 = v[q, 0] + w[q, 0], v[q, 1] + w[q, 1], v[q, 2] + w[q, 2], v[q, 3] + w[q, 3]
        out[q, 0], out[q, 1], out[q, 2], out[q, 3] = a0, a1, a2, a3
        m0 = a0 if a0 > m0 else m0
        m1 = a1 if a1 > m1 else m1
        m2 = a2 if a2 > m2 else m2
        m3 = a3 if a3 > m3 else m3
    top = max(max(m0, m1), max(m2, m3))
    if FAR > top > -np.inf:
        for q in range(out.shape[0]):
            for r in range(4):
                out[q, r] -= top


@lean_kernel
def best_into(offsets, logb, codes, start, L, store, work):  # type: ignore[no-untyped-def]
    """Store, up to a constant, the greatest log P of a path into each state, in the first halves. OUT store."""
    best = work[0]
    for s in range(offsets.size - 1):
        lo, mid = offsets[s], (offsets[s] + offsets[s + 1]) // 2
        for t in range(lo, mid):
            if t == lo:
                copy(start, best)
            else:
                max_step(store[t - 1], L, best)
            plus(best, logb[codes[t] if codes.size else t], store[t])


@lean_kernel
def best_from(offsets, logb, codes, end, LT, store, work):  # type: ignore[no-untyped-def]
    """Store log b plus the greatest log P of a path out of each state, for the second halves. OUT store (n, Q, 4)."""
    best = work[0]
    for s in range(offsets.size - 1):
        mid, hi = (offsets[s] + offsets[s + 1]) // 2, offsets[s + 1]
        for t in range(hi - 1, mid - 1, -1):
            if t == hi - 1:
                copy(end, best)
            else:
                max_step(store[t + 1], LT, best)
            plus(best, logb[codes[t] if codes.size else t], store[t])


@lean_kernel
def arg_max(v, w):  # type: ignore[no-untyped-def]
    """Return the first place where v + w is greatest."""
    place, top = 0, v[0, 0] + w[0, 0]
    for q in range(v.shape[0]):
        for r in range(4):
            if v[q, r] + w[q, r] > top:
                place, top = 4 * q + r, v[q, r] + w[q, r]
    return place


@lean_kernel
def trace_best(offsets, start, L, LT, store, path, work):  # type: ignore[no-untyped-def]
    """Read the best paths out of what was stored, from the middle to both ends. OUT path (n,)."""
    now = work[0]
    for s in range(offsets.size - 1):
        lo, hi = offsets[s], offsets[s + 1]
        mid = (lo + hi) // 2
        if mid == lo:
            copy(start, now)
        else:
            max_step(store[mid - 1], L, now)
        path[mid] = arg_max(now, store[mid])
        for t in range(mid + 1, hi):
            path[t] = arg_max(L[path[t - 1] // 4, path[t - 1] % 4], store[t])
        for t in range(mid - 1, lo - 1, -1):
            path[t] = arg_max(LT[path[t + 1] // 4, path[t + 1] % 4], store[t])


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
