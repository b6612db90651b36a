"""Slow twins of t-SNE's compiled loops, and its divergence by the definition."""

import numpy as np


def weights(Y):
    """Return 1/(1 + ‖yᵢ − yⱼ‖²), zero on the diagonal."""
    W = 1.0 / (1.0 + ((Y[:, None] - Y) ** 2).sum(axis=2))
    np.fill_diagonal(W, 0.0)
    return W


def attraction(P, Y):
    """Return Σⱼ pᵢⱼ wᵢⱼ (yᵢ − yⱼ)."""
    return ((P * weights(Y))[:, :, None] * (Y[:, None] - Y)).sum(axis=1)


def repulsion(Y):
    """Return Σⱼ wᵢⱼ² (yᵢ − yⱼ), and Σᵢ≠ⱼ wᵢⱼ."""
    W = weights(Y)
    return ((W**2)[:, :, None] * (Y[:, None] - Y)).sum(axis=1), W.sum()


def divergence(P, Y):
    """Return Σ pᵢⱼ log(pᵢⱼ/qᵢⱼ)."""
    W = weights(Y)
    Q = W / W.sum()
    known = P > 0
    return (P[known] * np.log(P[known] / Q[known])).sum()
