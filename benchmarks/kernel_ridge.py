"""Kernel ridge regression against scikit-learn, and beyond what a kernel matrix in memory allows.

The objective is evaluated here from the coefficients alone, by blocks of kernel values that no contender uses.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from .harness import OURS, Row
from .linear import SKLEARN, Data

MODULES = {OURS: "learnable.kernel", SKLEARN: "sklearn.kernel_ridge"}
COLUMNS = 20


def contender(library: str, **parameters: Any) -> Callable[[Data], Any]:
    """Return the function that imports the class, builds it and fits it."""

    def fit(data: Data) -> Any:
        return import_module(MODULES[library]).KernelRidge(kernel="rbf", **parameters).fit(data.X, data.y)

    return fit


def curved_data(n_rows: int, n_quick: int) -> Callable[[bool], Data]:
    """Return a maker of rows whose targets bend in three of their columns."""

    def make(quick: bool) -> Data:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n_quick if quick else n_rows, COLUMNS))
        return Data(X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(len(X)))

    return make


def objective(model: Any, data: Data) -> dict[str, float]:
    """Return Σ(y − f)² + α‖f‖² for α = 1, and the relative residual of (K + αI)c = y."""
    c, square = model.dual_coef_, (data.X**2).sum(axis=1)
    f = np.empty(len(c))
    for start in range(0, len(c), 1000):
        rows = slice(start, start + 1000)
        distances = square[rows, None] + square - 2.0 * data.X[rows] @ data.X.T
        f[rows] = np.exp(-np.maximum(distances, 0.0) / COLUMNS) @ c
    miss = data.y - f
    residual = float(np.linalg.norm(miss - c) / np.linalg.norm(data.y))
    return {"objective": float(miss @ miss + c @ f), "residual": residual}


ROWS = [
    Row(
        "kernel_ridge",
        "KernelRidge, Gaussian kernel",
        "8,000 × 20",
        curved_data(8_000, 1_000),
        {OURS: contender(OURS), SKLEARN: contender(SKLEARN)},
        objective,
        {SKLEARN: 2.0},
        limits={"residual": 1e-11},
    ),
    Row(
        "kernel_ridge_tiles",
        "KernelRidge, Gaussian kernel, matrix never whole (scikit-learn: 2 GB and its factor)",
        "16,000 × 20",
        curved_data(16_000, 2_000),
        {OURS: contender(OURS, solver="cg"), SKLEARN: contender(SKLEARN)},
        objective,
        {SKLEARN: 2.0},
        limits={"residual": 1e-7},
    ),
    Row(
        "kernel_ridge_large",
        "KernelRidge, Gaussian kernel, matrix never whole, at most 3 GB",
        "50,000 × 20",
        curved_data(50_000, 3_000),
        {OURS: contender(OURS, solver="cg")},
        objective,
        limits={"residual": 1e-7},
    ),
]
