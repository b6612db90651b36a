"""Gaussian processes by their definitions: dense matrices, refits, numeric integrals."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from scipy.stats import multivariate_normal, norm


def log_evidence(K, y):
    """Return log N(y; 0, K) of every column, summed."""
    y = y.reshape(len(y), -1)
    return sum(float(multivariate_normal(np.zeros(len(K)), K).logpdf(column)) for column in y.T)


def condition(K, k, own, y):
    """Return mean and covariance at new points: kᵀK⁻¹y and own − kᵀK⁻¹k, where k is (n, m)."""
    solved = np.linalg.solve(K, np.column_stack([y, k]))
    return k.T @ solved[:, 0], own - k.T @ solved[:, 1:]


def titsias(P, Knm, own, noise, y):
    """Return log N(y; 0, Q + Λ) − ½ Σ (kᵢᵢ − Qᵢᵢ)/λᵢ with n × n matrices."""
    Q = Knm @ np.linalg.solve(P, Knm.T)
    return log_evidence(Q + np.diag(noise), y) - 0.5 * float(((own - np.diag(Q)) / noise).sum())


def averaged_sigmoid(mean, variance, n=200_001):
    """Return E σ(f), f ~ N(mean, variance), by a fine Riemann sum."""
    z = np.linspace(-12.0, 12.0, n)
    return float(np.sum(norm.pdf(z) / (1.0 + np.exp(-(mean + np.sqrt(variance) * z)))) * (z[1] - z[0]))


def joint_laplace(K, y):
    """Return the mode of C processes with a softmax, and Laplace's log evidence, from matrices of all Cn values."""
    (C, n), inverse = y.shape, np.linalg.inv(K)

    def minus_log_posterior(v):
        f = v.reshape(C, n)
        slope = f @ inverse - (y - softmax(f, axis=0))
        return 0.5 * np.sum((f @ inverse) * f) - np.sum(y * log_softmax(f, axis=0)), slope.ravel()

    found = minimize(minus_log_posterior, np.zeros(C * n), jac=True, method="BFGS", options={"gtol": 1e-9})
    x, whole = found.x, np.kron(np.eye(C), K)
    for _ in range(2):  # BFGS leaves half of the digits to Newton
        hessian = np.kron(np.eye(C), inverse) + _softmax_hessian(x.reshape(C, n))
        x = x - np.linalg.solve(hessian, minus_log_posterior(x)[1])
    f = x.reshape(C, n)
    return f, -minus_log_posterior(x)[0] - 0.5 * np.linalg.slogdet(np.eye(C * n) + whole @ _softmax_hessian(f))[1]


def joint_prediction(K, f, y, k, own):
    """Return mean (C,) and covariance (C, C) of the processes at a point with kernel values k (n,) and own."""
    C = len(y)
    whole, new = np.kron(np.eye(C), K), np.kron(np.eye(C), k[None])
    W = _softmax_hessian(f)
    middle = np.linalg.solve(np.eye(len(W)) + W @ whole, W)
    return new @ (y - softmax(f, axis=0)).ravel(), own * np.eye(C) - new @ middle @ new.T


def _softmax_hessian(f):
    pi = softmax(f, axis=0)
    stacked = np.vstack([np.diag(p) for p in pi])
    return np.diag(pi.ravel()) - stacked @ stacked.T
