"""Bayesian linear regression against scikit-learn's BayesianRidge.

The evidence is computed here from the two precisions that a contender found, by a Cholesky factor of A = αS + λI.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .harness import OURS, Row
from .linear import SKLEARN, Data, regression_data


def ours(data: Data) -> Any:
    from learnable.linear import BayesianLinearRegression

    return BayesianLinearRegression().fit(data.X, data.y)


def scikit_learns(data: Data) -> Any:
    from sklearn.linear_model import BayesianRidge

    return BayesianRidge().fit(data.X, data.y)


def minus_log_evidence(model: Any, data: Data) -> dict[str, float]:
    """Return -log p(y | α, λ) with a flat prior of the intercept."""
    X, y, alpha, lam = data.X - data.X.mean(axis=0), data.y - data.y.mean(), model.alpha_, model.lambda_
    n, d = X.shape
    A = alpha * (X.T @ X) + lam * np.eye(d)
    factor = np.linalg.cholesky(A)
    half = np.linalg.solve(factor, alpha * (X.T @ y))
    fit = alpha * (y @ y) - half @ half  # α RSS + λ‖β‖² at the posterior's mean
    log_det = 2.0 * np.log(np.diagonal(factor)).sum()
    twice = (n - 1) * np.log(alpha / (2.0 * np.pi)) + d * np.log(lam) - log_det - fit - np.log(n)
    return {"objective": -0.5 * float(twice)}


ROWS = (
    Row(
        "bayesian_regression",
        "BayesianLinearRegression",
        "200k×200",
        regression_data(200_000, 200, 4_000, 200),
        {OURS: ours, SKLEARN: scikit_learns},
        minus_log_evidence,
        targets={SKLEARN: 2.0},
    ),
)
