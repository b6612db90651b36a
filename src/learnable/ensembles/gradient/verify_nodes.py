"""What every node of a boosted tree records, from its definition: weight, impurity, value, branch of missing values.

| direction         | weight      | impurity               | value of an inner node |
|-------------------|-------------|------------------------|------------------------|
| `"newton"`        | rows        | −G²/(H + λ) / weight   | ρ·(−G/(H + λ))         |
| `"gradient"`      | Σw (bins: rows) | variance of g (bins: −G²/W / weight) | ρ·(−G/W)  |
| `"inner-product"` | Σw|g|       | (1 − |G|/weight) / 2   | ±ρ                     |

Nothing here is used by a fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .verify_law import trusted

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_AGREE = 1e-7  # relative; impurities are differences of sums


def nodes_agree(
    model: Any, tree: Any, leaf: Ids, used: Ids, g: Array, h: Array, w: Array, reg: float, step: float, smooth: bool
) -> bool:
    """Tell whether the weights, impurities and inner values of a tree are those of its rows.

    g and h (n,) are the derivatives times the weights w of the round; leaf (n,) is the leaf of each row.
    """
    parts = [g, h, w, np.abs(g), np.where(w > 0, g * g / np.where(w > 0, w, 1.0), 0.0)]
    sums = np.stack([np.bincount(leaf[used], part[used], tree.n_nodes) for part in parts])
    for i in range(tree.n_nodes - 1, -1, -1):  # children come after their parents
        if tree.feature[i] >= 0:
            sums[:, i] = sums[:, tree.left[i]] + sums[:, tree.right[i]]
    G, H, W, A, Q = sums
    bins = hasattr(model, "min_hessian")
    mass = H if model.direction == "newton" else W
    optimum = -G / np.where(mass + reg > 0, mass + reg, 1.0)
    weight, impurity, size = tree.n_rows.astype(np.float64), G * optimum, Q.sum() / max(W[0], 1e-300) * len(used)
    if model.direction == "inner-product":
        weight, impurity, size = A, (A - np.abs(G)) / 2.0, A[0]
    elif model.direction == "gradient" and not bins:
        weight, impurity, size = W, Q - G * G / np.where(W > 0, W, 1.0), Q[0]
    if not np.allclose(tree.weight, weight, rtol=1e-9, atol=0.0):
        return False
    if not np.allclose(tree.impurity * tree.weight, impurity, rtol=_AGREE, atol=1e-12 * size):
        return False
    if model.direction == "inner-product":
        inner = np.sign(tree.value[:, 0])
    elif model.direction == "newton" and smooth and model.leaf == "best":
        inner = trusted(model, optimum)
    else:
        inner = optimum
    split = tree.feature >= 0
    noise = 1e-9 * np.abs(inner).max(initial=0.0)
    return bool((np.abs(tree.value[:, 0] - step * inner) <= abs(step) * (_AGREE * np.abs(inner) + noise))[split].all())
