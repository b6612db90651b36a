"""Penalised deviance from its definition, in extended precision, and its optimum by a general-purpose solver.

    P(w, b) = 1/(2S) Σᵢ sᵢ d(yᵢ, μᵢ) + ½α‖w‖²,     d(y, μ) = 2 ∫_μ^y (y − t) t⁻ᵖ dt,     S = Σ sᵢ

θ = (b, w).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

Long = np.longdouble


class Deviance:
    """P and its derivatives for dense rows X (n, d), targets, power, link, α, weights and an optional intercept."""

    def __init__(self, X, y, power, alpha, *, log_link=True, weight=None, intercept=True):
        X = np.asarray(X, dtype=Long)
        self.y, self.power, self.alpha, self.log_link = np.asarray(y, dtype=Long), power, Long(alpha), log_link
        self.weight = np.ones(len(X), dtype=Long) if weight is None else np.asarray(weight, dtype=Long)
        self.weight = self.weight / self.weight.sum()
        self.intercept = intercept
        self.rows = np.column_stack([np.full(len(X), Long(bool(intercept))), X])

    def means(self, theta):
        z = self.rows @ np.asarray(theta, dtype=Long)
        return np.exp(z) if self.log_link else z

    def half_deviance(self, mu):
        y, p = self.y, self.power
        positive = np.where(y > 0, y, 1)
        if p == 1:
            return np.where(y > 0, y * np.log(positive / mu), 0) - y + mu
        if p == 2:
            return np.log(mu / y) + y / mu - 1
        own = np.where(y > 0, positive ** Long(2 - p), 0) if p else y**2
        return own / ((1 - p) * (2 - p)) - y * mu ** Long(1 - p) / (1 - p) + mu ** Long(2 - p) / (2 - p)

    def value(self, theta):
        w = np.asarray(theta, dtype=Long)[1:]
        return self.weight @ self.half_deviance(self.means(theta)) + self.alpha / 2 * (w @ w)

    def slopes(self, theta):
        mu = self.means(theta)
        return (mu - self.y) * mu ** Long(-self.power) * (mu if self.log_link else 1)

    def gradient(self, theta):
        theta = np.asarray(theta, dtype=Long)
        g = (self.weight * self.slopes(theta)) @ self.rows
        g[1:] += self.alpha * theta[1:]
        return g

    def optimum(self, start):
        """Return the best of several runs of a quasi-Newton method, polished."""
        theta = np.asarray(start, dtype=float)
        for _ in range(3):
            theta = minimize(
                lambda t: float(self.value(t)),
                theta,
                jac=lambda t: self.gradient(t).astype(float),
                method="BFGS",
                options={"gtol": 1e-13, "maxiter": 2000},
            ).x
        return theta
