"""Sparse models from their definitions: exact paths by homotopy, optima by a general solver, gaps in long decimals."""

from __future__ import annotations

from decimal import Decimal, localcontext

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


def gap_of_squares(X, y, W, b, l1, l2, weight=None, intercept=True, positive=False):
    """Return (P − D)/max(D, 1e-8·P₀) of ½Σs‖y − b − Wᵀx‖² + Σⱼ(λ₁‖Wⱼ‖ + ½λ₂‖Wⱼ‖²), in decimals of 60 digits.

    D is the larger of the lasso's dual in the rows extended by √λ₂, at the best feasible multiple of the residual about
    its mean, and of the elastic net's own dual at that residual.
    """
    with localcontext() as digits:
        digits.prec = 60
        X, y, W, b = (_decimals(part) for part in (X, y, W, b))
        n, d, t = len(X), len(W), len(b)
        s = [Decimal(1)] * n if weight is None else _decimals(weight)
        l1, l2, total = Decimal(float(l1)), Decimal(float(l2)), sum(s)
        r = [[y[i][k] - b[k] - sum(X[i][j] * W[j][k] for j in range(d)) for k in range(t)] for i in range(n)]
        norm = [sum(w * w for w in W[j]).sqrt() for j in range(d)]
        ridge = l2 * sum(v * v for v in norm)
        P = sum(s[i] * r[i][k] ** 2 for i in range(n) for k in range(t)) / 2 + l1 * sum(norm) + ridge / 2
        mean = [sum(s[i] * y[i][k] for i in range(n)) / total if intercept else Decimal(0) for k in range(t)]
        P0 = sum(s[i] * (y[i][k] - mean[k]) ** 2 for i in range(n) for k in range(t)) / 2
        if intercept:
            off = [sum(s[i] * r[i][k] for i in range(n)) / total for k in range(t)]
            r = [[r[i][k] - off[k] for k in range(t)] for i in range(n)]
        slope = [[sum(s[i] * X[i][j] * r[i][k] for i in range(n)) for k in range(t)] for j in range(d)]
        square = sum(s[i] * r[i][k] ** 2 for i in range(n) for k in range(t))
        along = square + sum(W[j][k] * slope[j][k] for j in range(d) for k in range(t))  # b·r
        reduced = [[slope[j][k] - l2 * W[j][k] for k in range(t)] for j in range(d)]
        steep = max(v[0] if positive else sum(u * u for u in v).sqrt() for v in reduced)
        tau = max(Decimal(0), along / (square + ridge)) if square + ridge > 0 else Decimal(0)
        tau = min(tau, l1 / steep) if steep > 0 else tau
        D = tau * along - tau**2 * (square + ridge) / 2
        if l2 > 0:
            raw = [v[0] if positive else sum(u * u for u in v).sqrt() for v in slope]
            D = max(D, along - square / 2 - sum(max(v - l1, Decimal(0)) ** 2 for v in raw) / (2 * l2))
        return float((P - D) / max(D, Decimal("1e-8") * P0))


def gap_of_logistic(X, codes, n_classes, W, b, C, l1, l2, weight=None, intercept=True):
    """Return (P − D)/max(D, 1e-8·P₀) of CΣsℓ + λ₁‖W‖₁ + ½λ₂‖W‖², in decimals of 60 digits.

    The dual point is the model's own probabilities, mixed with one constant distribution until the weight of every
    class is what it is in the data, and then shrunk towards the labels.
    """
    with localcontext() as digits:
        digits.prec = 60
        X, W, b = _decimals(X), _decimals(W), _decimals(b)
        n, d, K = len(X), len(X[0]), n_classes
        s = [Decimal(1)] * n if weight is None else _decimals(weight)
        C, l1, l2 = (Decimal(float(v)) for v in (C, l1, l2))
        z = [[b[k] + sum(x * w for x, w in zip(row, W[k], strict=True)) for k in range(len(W))] for row in X]
        z = [[Decimal(0), *row] for row in z] if K == 2 else z
        p, loss = [], Decimal(0)
        for i, row in enumerate(z):
            e = [v.exp() for v in row]
            p.append([v / sum(e) for v in e])
            loss += s[i] * (sum(e).ln() - row[codes[i]])
        e = [[Decimal(int(codes[i] == k)) for k in range(K)] for i in range(n)]
        N = [sum(s[i] * e[i][k] for i in range(n)) for k in range(K)]
        entropy = [-sum(v * v.ln() for v in row if v > 0) for row in p]
        H = sum(s[i] * entropy[i] for i in range(n))
        if intercept:
            mass = [sum(s[i] * p[i][k] for i in range(n)) for k in range(K)]
            mix = min(Decimal(1), max((mass[k] - N[k]) / mass[k] for k in range(K)) * (1 + Decimal("1e-9")))
            if mix > 0:
                v = [max(N[k] - (1 - mix) * mass[k], Decimal(0)) for k in range(K)]
                v = [part / sum(v) for part in v]
                own = -sum(part * part.ln() for part in v if part > 0)
                p = [[(1 - mix) * row[k] + mix * v[k] for k in range(K)] for row in p]
                H = (1 - mix) * H + mix * sum(s) * own
        centre = [sum(s[i] * X[i][j] for i in range(n)) / sum(s) if intercept else Decimal(0) for j in range(d)]
        V = [
            abs(C * sum(s[i] * (p[i][k] - e[i][k]) * (X[i][j] - centre[j]) for i in range(n)))
            for k in range(1 if K == 2 else 0, K)
            for j in range(d)
        ]
        P = C * loss + l1 * sum(abs(w) for row in W for w in row) + l2 * sum(w * w for row in W for w in row) / 2
        D = min(Decimal(1), l1 / max(V)) * C * H if max(V) > 0 else C * H
        if l2 > 0:
            D = max(D, C * H - sum(max(v - l1, Decimal(0)) ** 2 for v in V) / (2 * l2))
        return float((P - D) / max(D, Decimal("1e-8") * C * sum(s) * Decimal(K).ln()))


def _decimals(values):
    """Return nested lists of the exact decimal values of floating-point numbers."""
    values = np.asarray(values, dtype=float)
    return [Decimal(v) for v in values.tolist()] if values.ndim == 1 else [_decimals(row) for row in values]
