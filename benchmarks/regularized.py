"""Regularised risks against CVXPY, which takes any pair too, and scikit-learn, where it has the pair.

The objective is computed here from the coefficients that each contender found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .harness import OURS, Row

CVXPY, SKLEARN = "CVXPY", "scikit-learn"


class Data(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    strength: float


def outliers(n: int, p: int, quick: tuple[int, int]) -> Callable[[bool], Data]:
    """A tenth of the columns matter, and the noise has heavy tails."""

    def make(is_quick: bool) -> Data:
        rows, columns = quick if is_quick else (n, p)
        rng = np.random.default_rng(columns)
        X = rng.standard_normal((rows, columns))
        w = np.where(np.arange(columns) % 10 == 0, 1.0, 0.0)
        return Data(X, X @ w + rng.standard_t(2, rows), 0.05)

    return make


def ours(loss: str, penalty: str) -> Callable[[Data], Any]:
    def fit(data: Data) -> Any:
        from learnable import RegularizedRisk

        model = RegularizedRisk(loss, penalty, value=data.strength).fit(data.X, data.y)
        return model.coef_, model.intercept_

    return fit


def modelled(loss: str, penalty: str) -> Callable[[Data], Any]:
    def fit(data: Data) -> Any:
        import cvxpy as cp

        w, b = cp.Variable(data.X.shape[1]), cp.Variable()
        r = data.X @ w + b - data.y
        risk = {"absolute": cp.norm1(r), "huber": cp.sum(cp.huber(r)) / 2, "squared": cp.sum_squares(r) / 2}[loss]
        norm = {"l1": cp.norm1(w), "tv": cp.norm1(cp.diff(w))}[penalty]
        cp.Problem(cp.Minimize(risk / len(data.y) + data.strength * norm)).solve(solver=cp.CLARABEL)
        return w.value, float(b.value)

    return fit


def lasso(data: Data) -> Any:
    from sklearn.linear_model import Lasso

    model = Lasso(alpha=data.strength, tol=1e-6).fit(data.X, data.y)
    return model.coef_, model.intercept_


def objective(loss: str, penalty: str) -> Callable[[Any, Data], dict[str, float]]:
    def value(found: Any, data: Data) -> dict[str, float]:
        w, b = found
        r = np.abs(data.X @ w + b - data.y)
        huber = np.where(r <= 1.0, 0.5 * r**2, r - 0.5)
        risk = {"absolute": r, "huber": huber, "squared": 0.5 * r**2}[loss].mean()
        norm = np.abs(w if penalty == "l1" else np.diff(w)).sum()
        return {"objective": float(risk + data.strength * norm)}

    return value


ROWS = (
    Row(
        "regularized_risk",
        "absolute loss, L1 penalty",
        "1,000×100",
        outliers(1000, 100, (200, 20)),
        {OURS: ours("absolute", "l1"), CVXPY: modelled("absolute", "l1")},
        objective("absolute", "l1"),
        tolerance=1e-5,
    ),
    Row(
        "regularized_risk_smooth",
        "Huber loss, total variation",
        "1,000×100",
        outliers(1000, 100, (200, 20)),
        {OURS: ours("huber", "tv"), CVXPY: modelled("huber", "tv")},
        objective("huber", "tv"),
        tolerance=1e-5,
    ),
    Row(
        "regularized_risk_lasso",
        "squared loss, L1 penalty",
        "1,000×100",
        outliers(1000, 100, (200, 20)),
        {OURS: ours("squared", "l1"), CVXPY: modelled("squared", "l1"), SKLEARN: lasso},
        objective("squared", "l1"),
        tolerance=1e-5,
    ),
)
