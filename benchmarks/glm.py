"""Poisson regression against scikit-learn; the objective is evaluated here, from the coefficients alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from .harness import OURS, Row
from .linear import SKLEARN, Data, contender, correlated_normals

ALPHA = 1e-3


def count_data(quick: bool) -> Data:
    """Counts are drawn from the model; their means run from about 0.05 to 60."""
    n, d = (10_000, 50) if quick else (500_000, 50)
    rng = np.random.default_rng(3)
    X = correlated_normals(rng, n, d)
    score = X @ rng.standard_normal(d) / np.sqrt(d)
    return Data(X, rng.poisson(np.exp(score - score.mean() + 0.5)).astype(float))


def poisson_quality(model: Any, data: Data) -> dict[str, float]:
    """Return half the mean deviance plus ½α‖w‖²."""
    w = np.asarray(model.coef_)
    z = data.X @ w + model.intercept_
    y = data.y
    log_y = np.log(np.maximum(y, 1.0))
    deviance = np.mean(np.exp(z) - y - y * (z - log_y))
    return {"objective": float(deviance + 0.5 * ALPHA * (w @ w))}


def sklearn_variants() -> dict[str, Any]:
    variants = {f"{SKLEARN} (defaults)": contender(SKLEARN, "PoissonRegressor", alpha=ALPHA)}
    for tol in (1e-5, 1e-6):
        variants[f"{SKLEARN} (tol={tol:.0e})"] = contender(
            SKLEARN, "PoissonRegressor", alpha=ALPHA, tol=tol, max_iter=1000
        )
    for tol in (1e-4, 1e-6):
        variants[f"{SKLEARN} (newton-cholesky, tol={tol:.0e})"] = contender(
            SKLEARN, "PoissonRegressor", alpha=ALPHA, solver="newton-cholesky", tol=tol
        )
    return variants


def with_errors(owner: str) -> Any:
    """Return a contender: fit and standard errors, ours or statsmodels'."""

    def ours(data: Data) -> Any:
        from learnable.linear import GLM

        model = GLM("poisson").fit(data.X, data.y)
        return model, model.summary()

    def theirs(data: Data) -> Any:
        import statsmodels.api as sm

        fitted = sm.GLM(data.y, sm.add_constant(data.X), family=sm.families.Poisson()).fit()
        fitted.summary()
        return fitted, fitted

    return ours if owner == OURS else theirs


def summary_quality(found: Any, data: Data) -> dict[str, float]:
    """Return half the mean deviance; the standard errors are those of its curvature."""
    model = found[0]
    theta = np.r_[model.intercept_, model.coef_] if hasattr(model, "coef_") else np.asarray(model.params)
    z = theta[0] + data.X @ theta[1:]
    log_y = np.log(np.maximum(data.y, 1.0))
    return {"objective": float(np.mean(np.exp(z) - data.y - data.y * (z - log_y)))}


ROWS = (
    Row(
        "glm_summary",
        "GLM with standard errors",
        "500k×50",
        count_data,
        {OURS: with_errors(OURS), "statsmodels": with_errors("statsmodels")},
        summary_quality,
        targets={"statsmodels": 3.0},
    ),
    Row(
        "poisson",
        "PoissonRegressor",
        "500k×50",
        count_data,
        {OURS: contender(OURS, "PoissonRegressor", alpha=ALPHA), **sklearn_variants()},
        poisson_quality,
        targets={SKLEARN: 2.0},
    ),
)
