"""The lasso from its definition: the exact path by homotopy, and duality gaps by a general-purpose solver."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize


def centred(X, y, weight=None, intercept=True):
    """Return √s(X − x̄) and √s(y − ȳ)."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    if intercept:
        X, y = X - np.average(X, axis=0, weights=weight), y - np.average(y, axis=0, weights=weight)
    root = np.sqrt(weight)
    return X * root[:, None], (y.T * root).T


def lasso_homotopy(A, b, smallest):
    """Return the knots λ₀ > λ₁ > … ≥ `smallest` and the coefficients there: the lasso's path is linear between them.

    Minimises ½‖b − Aw‖² + λ‖w‖₁. At each knot one column enters or leaves; columns must be in general position.
    """
    correlation = A.T @ b
    knot = float(np.abs(correlation).max())
    active = [int(np.abs(correlation).argmax())]
    w = np.zeros(A.shape[1])
    knots, points = [knot], [w.copy()]
    left = -1
    while knot > smallest and active:
        S = np.array(active)
        sign = np.sign(A[:, S].T @ (b - A @ w))
        direction = np.linalg.solve(A[:, S].T @ A[:, S], sign)  # dw/d(−λ)
        correlation, slope = A.T @ (b - A @ w), A.T @ (A[:, S] @ direction)
        lengths = [knot - smallest]
        events = [None]
        for j in range(A.shape[1]):
            if j in active or j == left:
                continue
            for side in (1.0, -1.0):
                rate = 1.0 - side * slope[j]
                length = (knot - side * correlation[j]) / rate if rate != 0 else np.inf
                if length > 1e-12 * knots[0]:
                    lengths.append(length)
                    events.append(("enter", j))
        for position, j in enumerate(active):
            length = -w[j] / direction[position] if direction[position] != 0 else np.inf
            if length > 1e-12 * knots[0] and w[j] != 0:
                lengths.append(length)
                events.append(("leave", j))
        step = int(np.argmin(lengths))
        w[S] += lengths[step] * direction
        knot -= lengths[step]
        left = -1
        if events[step] is not None:
            kind, j = events[step]
            if kind == "enter":
                active.append(j)
            else:
                active.remove(j)
                w[j], left = 0.0, j
        knots.append(knot)
        points.append(w.copy())
        if events[step] is None:
            break
    return np.array(knots), np.array(points)


def best_dual(A, b, l1, l2=0.0, positive=False):
    """Return the largest dual value of ½‖b − Aw‖² + λ₁‖w‖₁ + ½λ₂‖w‖², by a bound-constrained quasi-Newton method.

    It is the least value of the primal, found by splitting w into its positive and its negative part.
    """
    d = A.shape[1]
    G, c = A.T @ A, A.T @ b

    def value(parts):
        w = parts[:d] - parts[d:]
        slope = G @ w - c + l2 * w
        total = 0.5 * w @ G @ w - c @ w + 0.5 * b @ b + l1 * parts.sum() + 0.5 * l2 * w @ w
        return total, np.concatenate([slope + l1, -slope + l1])

    bounds = [(0, None)] * d + [(0, 0 if positive else None)] * d
    found = minimize(
        value, np.zeros(2 * d), jac=True, bounds=bounds, method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 100000, "ftol": 1e-16, "gtol": 1e-11, "maxcor": 30},
    )  # fmt: skip
    return float(found.fun)


def logistic_optimum(X, codes, n_classes, C, l1, l2, weight=None, intercept=True):
    """Return the least C Σ s ℓ + λ₁‖W‖₁ + ½λ₂‖W‖² (two classes: one score), by the same splitting."""
    n, d = X.shape
    K = 1 if n_classes == 2 else n_classes
    weight = np.ones(n) if weight is None else weight

    def value(parts):
        W = (parts[: K * d] - parts[K * d : 2 * K * d]).reshape(K, d)
        b = parts[2 * K * d :] if intercept else np.zeros(K)
        z = X @ W.T + b
        full = np.column_stack([np.zeros(n), z]) if K == 1 else z
        top = full.max(axis=1, keepdims=True)
        e = np.exp(full - top)
        p = e / e.sum(axis=1, keepdims=True)
        loss = (weight * (np.log(e.sum(axis=1)) + top[:, 0] - full[np.arange(n), codes])).sum()
        r = weight[:, None] * (p - np.eye(n_classes)[codes])
        r = r[:, 1:] if K == 1 else r
        slope = C * (r.T @ X) + l2 * W
        total = C * loss + l1 * parts[: 2 * K * d].sum() + 0.5 * l2 * (W * W).sum()
        gradient = np.concatenate([slope.ravel() + l1, l1 - slope.ravel()])
        return total, np.concatenate([gradient, C * r.sum(axis=0)]) if intercept else gradient

    size = 2 * K * d + (K if intercept else 0)
    bounds = [(0, None)] * (2 * K * d) + [(None, None)] * (size - 2 * K * d)
    found = minimize(
        value, np.zeros(size), jac=True, bounds=bounds, method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 100000, "ftol": 1e-16, "gtol": 1e-10, "maxcor": 30},
    )  # fmt: skip
    return float(found.fun)
