"""Poisson regression against scikit-learn, and standard errors against statsmodels.

The objectives are evaluated here, from the coefficients alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .harness import OURS, Row
from .linear import SKLEARN, Data, contender, correlated_normals

ALPHA = 1e-3


def count_data(n: int) -> Callable[[bool], Data]:
    """Counts are drawn from the model; their means run from about 0.05 to 60."""

    def make(quick: bool) -> Data:
        rows, d = (10_000, 50) if quick else (n, 50)
        rng = np.random.default_rng(3)
        X = correlated_normals(rng, rows, d)
        score = X @ rng.standard_normal(d) / np.sqrt(d)
        return Data(X, rng.poisson(np.exp(score - score.mean() + 0.5)).astype(float))

    return make


class Clustered(NamedTuple):
    """Rows of two classes, of which those of one cluster share their noise."""

    X: np.ndarray
    y: np.ndarray
    cluster: np.ndarray


def clustered_data(quick: bool) -> Clustered:
    """A hundred rows for each cluster."""
    n, d = (5_000, 40) if quick else (300_000, 40)
    rng = np.random.default_rng(7)
    X = correlated_normals(rng, n, d)
    cluster = rng.integers(n // 100, size=n)
    score = X @ rng.standard_normal(d) / np.sqrt(d)
    noise = rng.standard_normal(n // 100)[cluster] + rng.logistic(size=n)
    return Clustered(X, (score - score.mean() + noise > 0).astype(int), cluster)


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


def with_clusters(owner: str, kind: str = "") -> Any:
    """Return a contender: logistic regression with clustered errors, ours or statsmodels'."""

    def ours(data: Clustered) -> Any:
        from learnable.linear import LogisticRegression, infer

        model = LogisticRegression(C=np.inf).fit(data.X, data.y)
        found = infer(model, data.X, data.y, covariance="cluster", clusters=data.cluster)
        str(found)
        return found.estimate, found.std_error

    def theirs(data: Clustered) -> Any:
        import statsmodels.api as sm

        design = sm.add_constant(data.X)
        model = sm.Logit(data.y, design) if kind == "Logit" else sm.GLM(data.y, design, family=sm.families.Binomial())
        options = {"disp": 0} if kind == "Logit" else {}
        fitted = model.fit(cov_type="cluster", cov_kwds={"groups": data.cluster}, **options)
        fitted.summary()
        return fitted.params, fitted.bse

    return ours if owner == OURS else theirs


def clustered_quality(found: Any, data: Clustered) -> dict[str, float]:
    """Return the mean loss, and the sum of the standard errors, which is the same for all."""
    theta, errors = (np.asarray(part) for part in found)
    z = theta[0] + data.X @ theta[1:]
    loss = np.logaddexp(0.0, np.where(data.y == 1, -z, z)).mean()
    return {"objective": float(loss), "standard errors": float(np.sum(errors))}


ROWS = (
    Row(
        "glm_summary",
        "GLM with standard errors",
        "1M×50",
        count_data(1_000_000),
        {OURS: with_errors(OURS), "statsmodels": with_errors("statsmodels")},
        summary_quality,
        targets={"statsmodels": 3.0},
    ),
    Row(
        "logistic_clustered",
        "LogisticRegression with clustered errors",
        "300k×40, 3,000 clusters",
        clustered_data,
        {
            OURS: with_clusters(OURS),
            "statsmodels (Logit)": with_clusters("statsmodels", "Logit"),
            "statsmodels (GLM)": with_clusters("statsmodels", "GLM"),
        },
        clustered_quality,
        targets={"statsmodels": 3.0},
    ),
    Row(
        "poisson",
        "PoissonRegressor",
        "500k×50",
        count_data(500_000),
        {OURS: contender(OURS, "PoissonRegressor", alpha=ALPHA), **sklearn_variants()},
        poisson_quality,
        targets={SKLEARN: 2.0},
    ),
)
