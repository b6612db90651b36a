"""The recursions in logarithms: slow, and exact where a rescaled sum would lose a state."""

from __future__ import annotations

import numpy as np

from ..core.jit import kernel


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
