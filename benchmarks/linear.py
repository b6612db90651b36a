"""Least squares, ridge and logistic regression against scikit-learn and scikit-learn-intelex.

The objectives are evaluated here from the coefficients alone, by code that no contender uses.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from .harness import OURS, Row, blas_threads

SKLEARN, INTELEX = "scikit-learn", "scikit-learn-intelex"
MODULES = {OURS: "learnable.linear", SKLEARN: "sklearn.linear_model", INTELEX: "sklearnex.linear_model"}
ALPHAS = np.logspace(-3, 5, 100)


class Data(NamedTuple):
    X: Any
    y: np.ndarray


def contender(library: str, class_name: str, **parameters: Any) -> Callable[[Data], Any]:
    """Return the function that imports a class, builds it and fits it."""

    def fit(data: Data) -> Any:
        estimator = getattr(import_library(library), class_name)
        return estimator(**parameters).fit(data.X, data.y)

    return fit


@cache
def import_library(library: str) -> Any:
    """Import a library's linear models; scikit-learn-intelex has threads of its own, which get BLAS's number."""
    if library == INTELEX:
        import_module("daal4py").daalinit(blas_threads())
    return import_module(MODULES[library])


def lbfgs_variants(library: str) -> dict[str, Callable[[Data], Any]]:
    """Return L-BFGS at its defaults and at the loosest tolerances that reach an excess of 1e-8."""
    variants = {f"{library} (defaults)": contender(library, "LogisticRegression")}
    for tol in (1e-5, 3e-6):
        variants[f"{library} (tol={tol:.0e})"] = contender(library, "LogisticRegression", tol=tol, max_iter=1000)
    return variants


def newton_cholesky(**parameters: Any) -> Callable[[Data], Any]:
    return contender(SKLEARN, "LogisticRegression", solver="newton-cholesky", **parameters)


def correlated_normals(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Return n rows of N(μ, MᵀM) with a well-conditioned M and means of the size of the deviations."""
    mixing = np.eye(d) + rng.standard_normal((d, d)) * (0.3 / np.sqrt(d))
    X = rng.standard_normal((n, d)) @ mixing
    X += rng.standard_normal(d)
    return X


def regression_data(n: int, d: int, quick_n: int, quick_d: int) -> Callable[[bool], Data]:
    def make(quick: bool) -> Data:
        rows, columns = (quick_n, quick_d) if quick else (n, d)
        rng = np.random.default_rng(0)
        X = correlated_normals(rng, rows, columns)
        return Data(X, X @ rng.standard_normal(columns) + 3.0 + rng.standard_normal(rows) * np.sqrt(columns))

    return make


def sparse_regression_data(quick: bool) -> Data:
    n, d, density = (4_000, 2_000, 0.01) if quick else (200_000, 20_000, 0.001)
    rng = np.random.default_rng(1)
    X = sp.random_array((n, d), density=density, format="csr", rng=rng, data_sampler=rng.standard_normal)
    return Data(X, X @ rng.standard_normal(d) + 1.0 + rng.standard_normal(n))


def class_data(n: int, d: int, n_classes: int) -> Callable[[bool], Data]:
    """Labels are drawn from a softmax (for two classes: logistic) model."""

    def make(quick: bool) -> Data:
        rows = n // 50 if quick else n
        rng = np.random.default_rng(2)
        X = correlated_normals(rng, rows, d)
        scores = X @ rng.standard_normal((d, n_classes)) * (2.0 / np.sqrt(d))
        scores -= scores.mean(axis=0)
        return Data(X, np.argmax(scores + rng.gumbel(size=scores.shape), axis=1))

    return make


def least_squares_quality(model: Any, data: Data) -> dict[str, float]:
    """Return RSS/TSS, and the norm of the weights, which tells solutions apart where the fit is exact."""
    residual = data.y - (data.X @ model.coef_ + model.intercept_)
    spread = data.y - data.y.mean()
    return {
        "objective": float(residual @ residual / (spread @ spread)),
        "norm": float(np.linalg.norm(model.coef_)),
    }


def ridge_quality(model: Any, data: Data) -> dict[str, float]:
    """Return ‖y − Xw − b‖² + α‖w‖² at α = 1."""
    w = np.ravel(model.coef_)
    residual = data.y - (data.X @ w + model.intercept_)
    return {"objective": float(residual @ residual + w @ w)}


def ridge_cv_quality(model: Any, data: Data) -> dict[str, float]:
    """Return the mean squared leave-one-out error at the chosen α and how far the weights are off, by an SVD.

    With centred X = U diag(s) Vᵀ the hat matrix is H = 11ᵀ/n + U diag(s²/(s² + α)) Uᵀ, and the error of row i
    when it is left out is (y − Hy)ᵢ/(1 − Hᵢᵢ).
    """
    n = len(data.y)
    spread = data.y - data.y.mean()
    U, s, Vt = np.linalg.svd(data.X - data.X.mean(axis=0), full_matrices=False)
    shrink = s**2 / (s**2 + model.alpha_)
    errors = (spread - U @ (shrink * (U.T @ spread))) / (1.0 - 1.0 / n - (U**2) @ shrink)
    w = Vt.T @ (s / (s**2 + model.alpha_) * (U.T @ spread))
    return {
        "loo_error": float(np.mean(errors**2)),
        "alpha": float(model.alpha_),
        "weights_off": float(np.linalg.norm(np.ravel(model.coef_) - w) / np.linalg.norm(w)),
    }


def logistic_quality(model: Any, data: Data) -> dict[str, float]:
    """Return C·Σ loss + ½‖w‖² at C = 1."""
    scores = data.X @ np.asarray(model.coef_).T + np.ravel(model.intercept_)
    if scores.shape[1] == 1:
        loss = np.logaddexp(0.0, np.where(data.y == 1, -scores[:, 0], scores[:, 0]))
    else:
        loss = logsumexp(scores, axis=1) - scores[np.arange(len(scores)), data.y]
    return {"objective": float(loss.sum() + 0.5 * np.sum(np.square(model.coef_)))}


def fresh_python(statement: str) -> Callable[[None], None]:
    """Return the function that starts Python, runs one statement and ends."""

    def run(_: None) -> None:
        subprocess.run([sys.executable, "-c", statement], check=True)

    return run


ROWS = (
    Row(
        "linear_regression_tall",
        "LinearRegression",
        "500k×100",
        regression_data(500_000, 100, 10_000, 100),
        {library: contender(library, "LinearRegression") for library in (OURS, SKLEARN, INTELEX)},
        least_squares_quality,
        targets={SKLEARN: 4.0, INTELEX: 1.0},
        tolerance=1e-10,
    ),
    Row(
        "linear_regression_square",
        "LinearRegression",
        "2k×2k",
        regression_data(2_000, 2_000, 280, 280),
        {library: contender(library, "LinearRegression") for library in (OURS, SKLEARN)},
        least_squares_quality,
        targets={SKLEARN: 2.0},
        tolerance=1e-10,
        floor=1e-6,
    ),
    Row(
        "ridge_tall",
        "Ridge",
        "500k×100",
        regression_data(500_000, 100, 10_000, 100),
        {library: contender(library, "Ridge") for library in (OURS, SKLEARN, INTELEX)},
        ridge_quality,
        targets={SKLEARN: 2.0, INTELEX: 1.0},
        tolerance=1e-10,
    ),
    Row(
        "ridge_sparse",
        "Ridge, sparse",
        "200k×20k, 0.1 % filled",
        sparse_regression_data,
        {
            OURS: contender(OURS, "Ridge"),
            SKLEARN: contender(SKLEARN, "Ridge"),
            f"{SKLEARN} (tol=1e-05)": contender(SKLEARN, "Ridge", tol=1e-5),
            f"{SKLEARN} (tol=1e-06)": contender(SKLEARN, "Ridge", tol=1e-6),
        },
        ridge_quality,
        targets={SKLEARN: 2.0},
    ),
    Row(
        "ridge_cv_tall",
        "RidgeCV, 100 λ",
        "5k×1k",
        regression_data(5_000, 1_000, 700, 140),
        {library: contender(library, "RidgeCV", alphas=ALPHAS) for library in (OURS, SKLEARN)},
        ridge_cv_quality,
        targets={SKLEARN: 5.0},
        compared="loo_error",
    ),
    Row(
        "ridge_cv_wide",
        "RidgeCV, 100 λ",
        "1k×5k",
        regression_data(1_000, 5_000, 140, 700),
        {library: contender(library, "RidgeCV", alphas=ALPHAS) for library in (OURS, SKLEARN)},
        ridge_cv_quality,
        targets={SKLEARN: 5.0},
        compared="loo_error",
    ),
    Row(
        "logistic_binary",
        "LogisticRegression, 2 classes",
        "500k×100",
        class_data(500_000, 100, 2),
        {
            OURS: contender(OURS, "LogisticRegression"),
            **lbfgs_variants(SKLEARN),
            f"{SKLEARN} (newton-cholesky)": newton_cholesky(),
            **lbfgs_variants(INTELEX),
        },
        logistic_quality,
        targets={SKLEARN: 3.0, INTELEX: 1.0},
    ),
    Row(
        "logistic_softmax",
        "LogisticRegression, 10 classes",
        "100k×50",
        class_data(100_000, 50, 10),
        {
            OURS: contender(OURS, "LogisticRegression"),
            **lbfgs_variants(SKLEARN),
            f"{SKLEARN} (newton-cholesky)": newton_cholesky(),
            f"{SKLEARN} (newton-cholesky, tol=1e-06)": newton_cholesky(tol=1e-6),
        },
        logistic_quality,
        targets={SKLEARN: 3.0},
    ),
    Row(
        "import",
        "`import learnable`, Python's start included",
        "–",
        lambda quick: None,
        {OURS: fresh_python("import learnable"), "python alone": fresh_python("pass")},
        lambda model, data: {},
        compared=None,
        limit_seconds=0.15,
    ),
)
