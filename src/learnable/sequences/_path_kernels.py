"""Paths of hidden states: the best one (Viterbi), and draws from P(z | x).

Rows and tables are laid out as in `_kernels.py`, in logarithms and padded with −inf. The best path is climbed from both
ends, as the sums are: `climb_best` finds the greatest log P of a path into each state of a row, or out of it, row
included; where the halves meet the best state is known, and `trace` reads the path from there to both ends.
"""

from __future__ import annotations

import numpy as np

from ..core.jit import inline_kernel, kernel, lean_kernel
from ..core.simd import add, larger, load, repeat, spread, store, sub, top
from ._kernels import copy

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
