"""Penalised logistic regression from its definition, row by row, and its optimum by a general-purpose solver.

    P(W, b) = ½‖W‖² + C Σᵢ sᵢ ℓ(yᵢ, b + Wxᵢ)          (C = inf: Σᵢ sᵢ ℓ alone)

Two classes have one row of W, more have one each. θ stacks (b, w) of each score. Sums run in extended precision.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

Long = np.longdouble


class Likelihood:
    """P and its derivatives for dense rows X (n, d), class codes (n,), weights, C and an optional intercept."""

    def __init__(self, X, codes, C, *, weight=None, intercept=True, n_classes=None):
        self.X, self.codes = np.asarray(X, dtype=Long), np.asarray(codes, dtype=int)
        self.weight = np.ones(len(self.X), dtype=Long) if weight is None else np.asarray(weight, dtype=Long)
        self.n_classes = int(self.codes.max()) + 1 if n_classes is None else n_classes
        self.cost, self.penalty = (1.0, 0.0) if np.isinf(C) else (C, 1.0)
        self.intercept = intercept
        self.n_scores = 1 if self.n_classes == 2 else self.n_classes
        self.shape = (self.n_scores, self.X.shape[1] + 1)
        self.rows = np.column_stack([np.full(len(self.X), Long(bool(intercept))), self.X])

    def class_scores(self, theta):
        """Return the scores of all K classes; with two classes the first is zero."""
        z = self.rows @ np.asarray(theta, dtype=Long).reshape(self.shape).T
        return np.column_stack([np.zeros(len(z), dtype=Long), z]) if self.n_classes == 2 else z

    def log_probabilities(self, theta):
        z = self.class_scores(theta)
        z = z - z.max(axis=1, keepdims=True)
        return z - np.log(np.exp(z).sum(axis=1, keepdims=True))

    def value(self, theta):
        w = np.asarray(theta, dtype=Long).reshape(self.shape)[:, 1:]
        own = self.log_probabilities(theta)[np.arange(len(self.codes)), self.codes]
        return Long(self.penalty) / 2 * (w * w).sum() - Long(self.cost) * (self.weight * own).sum()

    def gradient(self, theta):
        theta = np.asarray(theta, dtype=Long).reshape(self.shape)
        slopes = self.weight[:, None] * (np.exp(self.log_probabilities(theta)) - np.eye(self.n_classes)[self.codes])
        g = self.cost * (self._free(slopes).T @ self.rows)
        g[:, 1:] += self.penalty * theta[:, 1:]
        return g.ravel()

    def hessian(self, theta):
        """Return Σᵢ sᵢ (diag pᵢ − pᵢpᵢᵀ) ⊗ xᵢxᵢᵀ, one row after the other, plus the penalty."""
        p = self._free(np.exp(self.log_probabilities(theta)))
        size = self.shape[0] * self.shape[1]
        H = np.zeros((size, size), dtype=Long)
        for row, probability, s in zip(self.rows, p, self.weight, strict=True):
            bend = np.diag(probability) - np.outer(probability, probability)
            H += self.cost * s * np.kron(bend, np.outer(row, row))
        H += self.penalty * np.diag(np.tile(np.r_[0.0, np.ones(self.shape[1] - 1)], self.shape[0]))
        return H

    def optimum(self):
        """Return θ* and P(θ*) by SciPy's trust-region Newton method, which knows nothing of our solvers.

        Directions without curvature (a fixed intercept, a common shift of all scores) stay at zero.
        """
        still = np.tile(np.r_[float(not self.intercept), np.zeros(self.shape[1] - 1)], self.shape[0])

        def value(x):
            return float(self.value(x)) + 0.5 * float(x @ (still * x))

        def gradient(x):
            return np.asarray(self.gradient(x), dtype=float) + still * x

        def hessian(x):
            return np.asarray(self.hessian(x), dtype=float) + np.diag(still)

        scale = float(self.cost * self.weight.sum())
        result = minimize(
            value, np.zeros(self.shape[0] * self.shape[1]), jac=gradient, hess=hessian, method="trust-exact",
            options={"gtol": 1e-9 * max(1.0, scale), "maxiter": 500},
        )  # fmt: skip
        theta = result.x
        for _ in range(3):  # the value is flat to rounding by now; Newton's equation still has digits
            step = np.linalg.lstsq(hessian(theta), gradient(theta), rcond=1e-14)[0]
            if not np.abs(gradient(theta - step)).max() < np.abs(gradient(theta)).max():
                break
            theta = theta - step
        return theta.reshape(self.shape), self.value(theta)

    def dual_value(self, u):
        """Return D(u) = C Σᵢ sᵢ H(uᵢ) − ½‖w_u‖²; u must be feasible."""
        u = np.asarray(u, dtype=Long)
        assert (u >= 0).all()
        np.testing.assert_allclose(np.asarray(u.sum(axis=1), dtype=float), 1.0, rtol=1e-14)
        if self.intercept:
            own = np.eye(self.n_classes)[self.codes]
            excess = (self.weight[:, None] * (u - own)).sum(axis=0)
            assert np.abs(excess).max() <= 1e-14 * self.weight.sum()
        return Long(self.cost) * (self.weight * entropy(u)).sum() - self.dual_norm(u)

    def dual_norm(self, u):
        """Return ½‖w_u‖² of w_u = −C Σ s (u − e) ⊗ x."""
        slopes = self.weight[:, None] * (u - np.eye(self.n_classes)[self.codes])
        w = -Long(self.cost) * (self._free(slopes).T @ self.X)
        return (w * w).sum() / 2

    def feasible_point(self, theta):
        """Return the model's own probabilities p, the least share m of one constant distribution v, and v.

        (1 − m)p + mv has the class totals of the data, so that it is feasible for the free intercept.
        """
        p = np.exp(self.log_probabilities(theta))
        if not self.intercept:
            return p, Long(0), np.full(self.n_classes, 1 / Long(self.n_classes))
        own = (self.weight[:, None] * np.eye(self.n_classes)[self.codes]).sum(axis=0)
        predicted = (self.weight[:, None] * p).sum(axis=0)
        share = max(Long(0), ((predicted - own) / np.where(predicted > 0, predicted, 1)).max())
        v = np.maximum(own - (1 - share) * predicted, 0)
        return p, share, v / v.sum() if v.sum() > 0 else np.full(self.n_classes, 1 / Long(self.n_classes))

    def _free(self, slopes):
        return slopes[:, 1:] if self.n_classes == 2 else slopes


def entropy(u):
    """Return −Σ u log u of every row."""
    u = np.asarray(u, dtype=Long)
    return -(u * np.log(np.where(u > 0, u, 1))).sum(axis=-1)
