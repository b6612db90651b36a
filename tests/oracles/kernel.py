"""Kernel machines from their definitions: dense matrices, general-purpose solvers, refits."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax


def gaussian_matrix(X, Z, gamma):
    """Return exp(−γ‖x − z‖²), point by point."""
    return np.array([[np.exp(-gamma * ((x - z) ** 2).sum()) for z in Z] for x in X])


def ridge_objective(K, y, c, alpha, weight):
    """Return Σ w (y − Kc)² + α cᵀKc."""
    return float((weight * (y - K @ c) ** 2).sum() + alpha * c @ K @ c)


def ridge_coefficients(K, y, alpha, weight):
    """Return c from the stationarity of the objective, KW(Kc − y) + αKc = 0, by least squares."""
    return np.linalg.lstsq(K @ (weight[:, None] * K) + alpha * K, K @ (weight * y), rcond=1e-15)[0]


def logistic_optimum(K, codes, C, weight, intercept):
    """Return the least value of C Σ s ℓ + ½ tr AᵀKA over function values in the space of K, by L-BFGS in features."""
    values, U = np.linalg.eigh(K)
    features = U[:, values > 1e-12 * values[-1]] * np.sqrt(values[values > 1e-12 * values[-1]])
    n, m = len(K), int(codes.max()) + 1
    own = np.eye(m)[codes]

    def objective(flat):
        theta, b = flat[: features.shape[1] * m].reshape(-1, m), flat[features.shape[1] * m :] * intercept
        Z = features @ theta + b
        log_p = log_softmax(Z, axis=1)
        slope = C * weight[:, None] * (np.exp(log_p) - own)
        value = -C * (weight * log_p[np.arange(n), codes]).sum() + 0.5 * (theta**2).sum()
        return value, np.concatenate([(features.T @ slope + theta).ravel(), slope.sum(axis=0) * intercept])

    start = np.zeros(features.shape[1] * m + m)
    found = minimize(
        objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-9}
    )
    return float(found.fun)
