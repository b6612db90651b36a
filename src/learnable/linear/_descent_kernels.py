"""Kernels of stochastic gradient descent on linear models: one epoch of mini-batches in one call.

A row's scores are z = b + (x − centre)ᵀw, one per target or class. θ holds (b, w) of each, (k, 1 + d). Batch t moves

    θ ← θ − ηₜ s² ∘ ((n/B) c Σ sᵢ rᵢ ⊗ (1, xᵢ − centre) + ρ (0, w)),        r = ∂ℓ/∂z,

which is a plain gradient step of length ηₜ in the coordinates u = θ/s.
"""

from __future__ import annotations

from math import exp

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel

Array = NDArray[np.float64]
Index = NDArray[np.uint32] | NDArray[np.uint64]
Order = NDArray[np.int64]

SQUARES, LOGISTIC, SOFTMAX = 0, 1, 2


@kernel
def slopes_of(kind: int, target: Array, z: Array) -> None:
    """IN/OUT z (k,): scores become ∂ℓ/∂z. IN target: k numbers, 0 or 1, or the number of the class."""
    if kind == SQUARES:
        for c in range(z.size):
            z[c] -= target[c]
    elif kind == LOGISTIC:
        z[0] = 1.0 / (1.0 + exp(-z[0])) - target[0]
    else:
        largest = z.max()
        total = 0.0
        for c in range(z.size):
            z[c] = exp(z[c] - largest)
            total += z[c]
        for c in range(z.size):
            z[c] = z[c] / total - (1.0 if c == target[0] else 0.0)


@kernel
def descend_theta(rate: float, cost: float, penalty: float, square: Array, slope: Array, theta: Array) -> None:
    """IN/OUT theta (k, 1 + d): one step. IN/OUT slope: used up, zero again."""
    k, width = theta.shape
    for c in range(k):
        row, slopes, scale = theta[c], slope[c], square[c]
        row[0] -= rate * scale[0] * (cost * slopes[0])
        slopes[0] = 0.0
        for j in range(1, width):
            row[j] -= rate * scale[j] * (cost * slopes[j] + penalty * row[j])
            slopes[j] = 0.0


@kernel
def epoch_dense(
    X: Array, centre: Array, target: Array, weight: Array, batches: Order, rates: Array, form: tuple[int, float, float],
    square: Array, theta: Array, total: Array,
) -> None:  # fmt: skip
    """One step a batch, (m, B) row numbers. IN/OUT theta (k, 1 + d). OUT total += Σ θ before each step."""
    k, d = theta.shape[0], X.shape[1]
    kind, cost, penalty = form
    slope, z = np.zeros_like(theta), np.empty(k)
    for t in range(batches.shape[0]):
        total += theta
        for i in batches[t]:
            row = X[i]
            for c in range(k):
                w = theta[c, 1:]
                s = theta[c, 0]
                for j in range(d):
                    s += (row[j] - centre[j]) * w[j]
                z[c] = s
            slopes_of(kind, target[i], z)
            for c in range(k):
                r, out = weight[i] * z[c], slope[c, 1:]
                slope[c, 0] += r
                for j in range(d):
                    out[j] += r * (row[j] - centre[j])
        descend_theta(rates[t], cost, penalty, square, slope, theta)


@kernel
def epoch_sparse(
    data: Array, indices: Index, indptr: Index, centre: Array, target: Array, weight: Array, batches: Order,
    rates: Array, form: tuple[int, float, float], square: Array, theta: Array, total: Array,
) -> None:  # fmt: skip
    """Do the same over CSR rows, centred implicitly; a batch costs its entries and one pass over θ."""
    k, d = theta.shape[0], centre.size
    kind, cost, penalty = form
    slope, z, level = np.zeros_like(theta), np.empty(k), np.empty(k)
    for t in range(batches.shape[0]):
        for c in range(k):
            level[c] = theta[c, 0]
            for j in range(d):
                total[c, 1 + j] += theta[c, 1 + j]
                level[c] -= centre[j] * theta[c, 1 + j]
            total[c, 0] += theta[c, 0]
        for i in batches[t]:
            for c in range(k):
                w = theta[c, 1:]
                s = level[c]
                for e in range(indptr[i], indptr[i + 1]):
                    s += data[e] * w[indices[e]]
                z[c] = s
            slopes_of(kind, target[i], z)
            for c in range(k):
                r, out = weight[i] * z[c], slope[c, 1:]
                slope[c, 0] += r
                for e in range(indptr[i], indptr[i + 1]):
                    out[indices[e]] += r * data[e]
        for c in range(k):
            for j in range(d):
                slope[c, 1 + j] -= slope[c, 0] * centre[j]
        descend_theta(rates[t], cost, penalty, square, slope, theta)
