"""Ridge regression from its definition: normal equations to fifty digits, refits for leave-one-out, a hat matrix."""

from __future__ import annotations

import mpmath
import numpy as np

DIGITS = 50


def exact_ridge(X, y, alpha, weight=None, intercept=True):
    """Return coefficients (d,) and intercept, from the bordered normal equations in fifty digits.

    The columns may differ by hundreds of orders of magnitude: the system is equilibrated first.
    """
    with mpmath.workdps(DIGITS):
        rows = [[mpmath.mpf(1)] * bool(intercept) + [mpmath.mpf(float(v)) for v in row] for row in np.asarray(X)]
        targets = [mpmath.mpf(float(v)) for v in y]
        weights = [mpmath.mpf(1)] * len(rows) if weight is None else [mpmath.mpf(float(w)) for w in weight]
        p = len(rows[0])
        A, right = mpmath.zeros(p, p), mpmath.zeros(p, 1)
        for row, target, w in zip(rows, targets, weights, strict=True):
            for j in range(p):
                right[j] += w * row[j] * target
                for k in range(p):
                    A[j, k] += w * row[j] * row[k]
        for j in range(int(intercept), p):
            A[j, j] += mpmath.mpf(float(alpha))
        scale = [1 / mpmath.sqrt(A[j, j]) if A[j, j] else mpmath.mpf(1) for j in range(p)]
        for j in range(p):
            right[j] *= scale[j]
            for k in range(p):
                A[j, k] *= scale[j] * scale[k]
        solution = mpmath.lu_solve(A, right)
        values = [solution[j] * scale[j] for j in range(p)]
        coef = np.array([float(v) for v in values[int(intercept) :]])
        return coef, float(values[0]) if intercept else 0.0


def objective(X, y, coef, intercept, alpha, weight=None):
    """Return Σ w (y − b − xᵀβ)² + α‖β‖² of one target, in extended precision."""
    X, y, coef = (np.asarray(a, dtype=np.longdouble) for a in (X, y, coef))
    weight = np.ones(len(y), dtype=np.longdouble) if weight is None else np.asarray(weight, dtype=np.longdouble)
    residual = y - np.longdouble(intercept) - X @ coef
    return (weight * residual**2).sum() + np.longdouble(alpha) * (coef**2).sum()


def augmented_ridge(X, y, alpha, weight=None, intercept=True):
    """Return coefficients (d, k) and intercepts (k,) by least squares on [√w(X − x̄); √α I]."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float).reshape(len(X), -1)
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    x_mean = np.average(X, axis=0, weights=weight) if intercept else np.zeros(X.shape[1])
    y_mean = np.average(y, axis=0, weights=weight) if intercept else np.zeros(y.shape[1])
    root = np.sqrt(weight)[:, None]
    rows = np.vstack([root * (X - x_mean), np.sqrt(alpha) * np.eye(X.shape[1])])
    right = np.vstack([root * (y - y_mean), np.zeros((X.shape[1], y.shape[1]))])
    coef = np.linalg.lstsq(rows, right, rcond=None)[0]
    return coef, y_mean - x_mean @ coef


def leave_one_out_predictions(X, y, alpha, weight=None, intercept=True):
    """Return the prediction for every row by the fit to all other rows, (n, k), by n refits."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float).reshape(len(X), -1)
    predictions = np.empty_like(y)
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        kept = None if weight is None else np.asarray(weight, dtype=float)[others]
        coef, level = augmented_ridge(X[others], y[others], alpha, kept, intercept)
        predictions[i] = X[i] @ coef + level
    return predictions


def hat_matrix(X, alpha, weight=None, intercept=True):
    """Return H with ŷ = Hy, column by column: the fit to each unit vector."""
    n = len(X)
    coef, level = augmented_ridge(X, np.eye(n), alpha, weight, intercept)
    return np.asarray(X, dtype=float) @ coef + level


def generalised_cross_validation(X, y, alpha, weight=None, intercept=True):
    """Return (Σ w r²/W) / (1 − tr H/n)² of every target, (k,)."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float).reshape(len(X), -1)
    H = hat_matrix(X, alpha, weight, intercept)
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    residual = y - H @ y
    return (weight @ residual**2) / weight.sum() / (1 - np.trace(H) / len(X)) ** 2
