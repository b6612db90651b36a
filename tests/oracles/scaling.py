"""Slow twins of compiled steps: Guttman's transform, coordinate descent with non-negative numbers."""

import numpy as np


def guttman(targets, X):
    """Return n⁻¹ Σⱼ (t_ij/d_ij)(x_i − x_j) for every row, and Σⱼ (t_ij − d_ij)²."""
    n = len(X)
    moved = np.zeros_like(X)
    losses = np.zeros(n)
    for i in range(n):
        for j in range(n):
            distance = np.linalg.norm(X[i] - X[j])
            losses[i] += (targets[i, j] - distance) ** 2
            if distance > 0:
                moved[i] += targets[i, j] / distance * (X[i] - X[j]) / n
    return moved, losses


def coordinate_sweep(W, gram, cross):
    """Return W after one sweep over its coordinates, row by row, each put where ½wᵀGw − cᵀw is least over w ≥ 0."""
    W = W.copy()
    for w, c in zip(W, cross, strict=True):
        for t in range(len(gram)):
            if gram[t, t] > 0:
                w[t] = max(0.0, w[t] - (gram[t] @ w - c[t]) / gram[t, t])
    return W
