"""Slow, independent solvers of the support vector machines: quadratic programs in SciPy, nothing from the library."""

import numpy as np
from scipy.optimize import LinearConstraint, minimize


def augmented(X, bias):
    """Return the rows with the constant in front; bias 0 is no intercept."""
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    return np.column_stack([np.full(len(X), bias), X])


def svc_objective(w, X, y, cost, bias, power):
    """Return ½‖w‖² + Σ c (1 − yz)₊^power for y = ±1."""
    short = np.maximum(1.0 - y * (augmented(X, bias) @ w), 0.0)
    return 0.5 * w @ w + cost @ short**power


def svr_objective(w, X, y, cost, bias, epsilon, power):
    """Return ½‖w‖² + Σ c (|y − z| − ε)₊^power."""
    short = np.maximum(np.abs(y - augmented(X, bias) @ w) - epsilon, 0.0)
    return 0.5 * w @ w + cost @ short**power


def hinge_program(A, p, cost):
    """Minimise ½‖w‖² + Σ cξ subject to ξ ≥ p − Aw, ξ ≥ 0, as a general quadratic program; return w."""
    n, d = A.shape
    hessian = np.diag(np.r_[np.ones(d), np.zeros(n)])
    constraint = LinearConstraint(np.hstack([A, np.eye(n)]), p, np.inf)
    start = np.r_[np.zeros(d), np.maximum(p, 0.0) + 1.0]
    found = minimize(
        lambda v: 0.5 * v[:d] @ v[:d] + cost @ v[d:],
        start,
        jac=lambda v: np.r_[v[:d], cost],
        hess=lambda v: hessian,
        method="trust-constr",
        constraints=[constraint],
        bounds=[(None, None)] * d + [(0.0, None)] * n,
        options={"gtol": 1e-10, "xtol": 1e-12, "barrier_tol": 1e-11, "maxiter": 3000},
    )
    return found.x[:d]


def crammer_singer_program(X, y, cost, bias, n_classes):
    """Minimise ½‖W‖² + Σ cξ, ξᵢ ≥ 1[k ≠ yᵢ] + (wₖ − w_yᵢ)ᵀxᵢ for all k; return W of shape (n_classes, 1 + d)."""
    Z = augmented(X, bias)
    n, d = Z.shape
    rows, p, owner = [], [], []
    for i in range(n):
        for k in range(n_classes):
            if k != y[i]:
                row = np.zeros((n_classes, d))
                row[y[i]] += Z[i]
                row[k] -= Z[i]
                rows.append(row.ravel())
                p.append(1.0)
                owner.append(i)
    A, member = np.array(rows), np.eye(n)[owner]
    size = n_classes * d
    hessian = np.diag(np.r_[np.ones(size), np.zeros(n)])
    found = minimize(
        lambda v: 0.5 * v[:size] @ v[:size] + cost @ v[size:],
        np.r_[np.zeros(size), np.full(n, 2.0)],
        jac=lambda v: np.r_[v[:size], cost],
        hess=lambda v: hessian,
        method="trust-constr",
        constraints=[LinearConstraint(np.hstack([A, member]), np.array(p), np.inf)],
        bounds=[(None, None)] * size + [(0.0, None)] * n,
        options={"gtol": 1e-10, "xtol": 1e-12, "barrier_tol": 1e-11, "maxiter": 3000},
    )
    return found.x[:size].reshape(n_classes, d)


def crammer_singer_objective(W, X, y, cost, bias):
    """Return ½‖W‖² + Σ c max_k(1[k ≠ y] + z_k − z_y)."""
    scores = augmented(X, bias) @ W.T
    own = scores[np.arange(len(y)), y]
    shifted = scores + 1.0
    shifted[np.arange(len(y)), y] -= 1.0
    return 0.5 * (W * W).sum() + cost @ (shifted.max(axis=1) - own)
