"""Lasso, paths and L1 logistic regression against scikit-learn, celer, skglm and adelie.

The objectives are evaluated here from the coefficients alone, by code that no contender uses. Dense tables are in
Fortran order, which is what the peers want.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import KFold

from .harness import OURS, Row

SKLEARN, CELER, SKGLM, ADELIE = "scikit-learn", "celer", "skglm", "adelie"
MODULES = {OURS: "learnable.linear", SKLEARN: "sklearn.linear_model", CELER: "celer", SKGLM: "skglm", ADELIE: "adelie"}


class Data(NamedTuple):
    X: Any
    y: np.ndarray
    alpha: float  #: the penalty, where there is one: α of the lasso, C of the logistic problem


def correlated(rng: np.random.Generator, n: int, d: int, rho: float = 0.5) -> np.ndarray:
    """Return rows of an autoregressive process along the columns, in Fortran order."""
    X = np.empty((n, d), order="F")
    X[:, 0] = rng.standard_normal(n)
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * rng.standard_normal(n)
    return X


def lasso_data(n: int, d: int, quick_n: int, quick_d: int, share: float) -> Callable[[bool], Data]:
    """A twentieth of the columns (at most 100) matter; α is a share of the one that makes all coefficients zero."""

    def make(quick: bool) -> Data:
        rows, columns = (quick_n, quick_d) if quick else (n, d)
        rng = np.random.default_rng(3)
        X = correlated(rng, rows, columns)
        chosen = rng.choice(columns, max(1, min(100, columns // 20)), replace=False)
        y = X[:, chosen] @ rng.standard_normal(len(chosen))
        y += rng.standard_normal(rows) * y.std() / 3 + 1.0
        return Data(X, y, share * float(np.abs(X.T @ (y - y.mean())).max()) / rows)

    return make


def sparse_lasso_data(quick: bool) -> Data:
    n, d, density = (2_000, 8_000, 0.005) if quick else (50_000, 200_000, 0.001)
    rng = np.random.default_rng(4)
    X = sp.random_array((n, d), density=density, format="csc", rng=rng, data_sampler=rng.standard_normal)
    w = np.zeros(d)
    w[rng.choice(d, d // 200, replace=False)] = rng.standard_normal(d // 200)
    y = X @ w
    y += rng.standard_normal(n) * y.std() / 2 + 1.0
    centred = y - y.mean()
    return Data(
        X, y, 0.05 * float(np.abs(X.T @ centred - np.asarray(X.mean(axis=0)).ravel() * centred.sum()).max()) / n
    )


def logistic_data(n: int, d: int, density: float | None, factor: float) -> Callable[[bool], Data]:
    """C is a multiple of the one below which all coefficients are zero."""

    def make(quick: bool) -> Data:
        rows, columns = (n // 25, d // (1 if density is None else 25)) if quick else (n, d)
        rng = np.random.default_rng(5)
        if density is None:
            X: Any = correlated(rng, rows, columns)
        else:
            X = sp.random_array((rows, columns), density=density, format="csc", rng=rng, data_sampler=rng.random)
        w = np.zeros(columns)
        w[: max(5, columns // 50)] = rng.standard_normal(max(5, columns // 50))
        z = X @ w
        y = (2 * (z - z.mean()) / z.std() + rng.logistic(size=rows) > 0).astype(int)
        return Data(X, y, factor / float(np.abs(X.T @ (y - 0.5)).max()))

    return make


def lasso(library: str, **parameters: Any) -> Callable[[Data], Any]:
    def fit(data: Data) -> Any:
        model = import_module(MODULES[library]).Lasso(alpha=data.alpha, **parameters)
        return model.fit(data.X, data.y)

    return fit


def load_adelie() -> Any:
    """Import adelie, which binds the process to one CPU and tells OpenMP to do the same; the others get theirs back."""
    settings, cpus = dict(os.environ), os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    module = import_module("adelie")
    for name in set(os.environ) - set(settings):
        del os.environ[name]
    if cpus is not None:
        os.sched_setaffinity(0, cpus)
    return module


def adelie_path(alphas: Callable[[Data], Any], **parameters: Any) -> Callable[[Data], Any]:
    """Return the function that fits adelie's path; its λ is our α."""

    def fit(data: Data) -> Any:
        ad = load_adelie()
        state = ad.grpnet(
            X=data.X, glm=ad.glm.gaussian(y=data.y), lmda_path=alphas(data), early_exit=False, progress_bar=False,
            n_threads=2, **parameters,
        )  # fmt: skip
        coefs = np.asarray(state.betas.toarray())
        return SimpleNamespace(coef_=coefs[-1], coefs=coefs.T, intercept_=float(state.intercepts[-1]))

    return fit


def lasso_quality(model: Any, data: Data) -> dict[str, float]:
    """Return RSS/(2n) + α‖w‖₁."""
    w = np.ravel(model.coef_)
    residual = data.y - (data.X @ w + model.intercept_)
    objective = residual @ residual / (2 * len(data.y)) + data.alpha * np.abs(w).sum()
    return {"objective": float(objective), "nonzero": float(np.count_nonzero(w))}


def path(library: str, **parameters: Any) -> Callable[[Data], Any]:
    """Return the function that computes a path on centred columns, which is what all of them take."""

    def fit(data: Data) -> Any:
        module, options = import_module(MODULES[library]), dict(parameters)
        grid = grid_of(data)
        if library == CELER:
            found = module.celer_path(data.X, data.y, "lasso", alphas=grid, **options)
        else:
            found = module.lasso_path(data.X, data.y, alphas=grid, **options)
        return SimpleNamespace(coefs=found[1])

    return fit


def grid_of(data: Data) -> np.ndarray:
    return np.geomspace(data.alpha, data.alpha * 1e-2, 100)


def path_data(quick: bool) -> Data:
    X, y, _ = lasso_data(1_500, 3_000, 150, 300, 1.0)(quick)
    X -= X.mean(axis=0)
    y = y - y.mean()
    return Data(X, y, float(np.abs(X.T @ y).max()) / len(y))


def path_quality(model: Any, data: Data) -> dict[str, float]:
    """Return the sum of the objectives along the path."""
    residuals = data.y[:, None] - data.X @ model.coefs
    objectives = (residuals**2).sum(axis=0) / (2 * len(data.y)) + grid_of(data) * np.abs(model.coefs).sum(axis=0)
    return {"objective": float(np.sum(objectives))}


def lasso_cv(library: str, **parameters: Any) -> Callable[[Data], Any]:
    def fit(data: Data) -> Any:
        model = import_module(MODULES[library]).LassoCV(cv=5, eps=1e-2, **parameters)
        return model.fit(data.X, data.y)

    return fit


def folds_of_paths(library: str) -> Callable[[Data], Any]:
    """Return the function that cross-validates by a library's own paths, where its class for that does not run here.

    celer's LassoCV passes arguments that scikit-learn no longer takes; adelie draws folds of its own.
    """

    def fit(data: Data) -> Any:
        module = load_adelie() if library == ADELIE else import_module(MODULES[library])
        X, y = data.X, data.y
        grid = np.geomspace(data.alpha, data.alpha * 1e-2, 100)
        errors = []
        for train, test in KFold(5).split(X):
            x_mean, y_mean = X[train].mean(axis=0), y[train].mean()
            A, b = np.asfortranarray(X[train] - x_mean), y[train] - y_mean
            if library == ADELIE:
                state = module.grpnet(
                    X=A, glm=module.glm.gaussian(y=b), lmda_path=grid, early_exit=False, progress_bar=False,
                    n_threads=2, intercept=False, tol=1e-9,
                )  # fmt: skip
                coefs = np.asarray(state.betas.toarray()).T
            else:
                coefs = module.celer_path(A, b, "lasso", alphas=grid, tol=1e-6)[1]
            errors.append(((y[test, None] - y_mean - (X[test] - x_mean) @ coefs) ** 2).mean(axis=0))
        mse = np.column_stack(errors)
        alpha = float(grid[mse.mean(axis=1).argmin()])
        best = data._replace(alpha=alpha)
        last = (
            adelie_path(lambda data: grid[grid >= data.alpha], tol=1e-9)
            if library == ADELIE
            else lasso(CELER, tol=1e-6)
        )
        return SimpleNamespace(mse_path_=mse, alpha_=alpha, coef_=last(best).coef_)

    return fit


def cv_quality(model: Any, data: Data) -> dict[str, float]:
    """Return the smallest mean squared error over the folds."""
    return {"objective": float(np.min(model.mse_path_.mean(axis=-1))), "alpha": float(model.alpha_)}


def l1_logistic(library: str, **parameters: Any) -> Callable[[Data], Any]:
    def fit(data: Data) -> Any:
        if library in (OURS, SKLEARN):
            module = import_module(MODULES[library])
            model = module.LogisticRegression(C=data.alpha, l1_ratio=1.0, fit_intercept=False, **parameters)
        elif library == CELER:
            model = import_module("celer").LogisticRegression(C=data.alpha, fit_intercept=False, **parameters)
        else:
            module = import_module("skglm")
            model = module.SparseLogisticRegression(
                alpha=1 / (data.alpha * len(data.y)), fit_intercept=False, **parameters
            )
        return model.fit(data.X, data.y)

    return fit


def logistic_quality(model: Any, data: Data) -> dict[str, float]:
    """Return C·Σ loss + ‖w‖₁; no contender fits an intercept, because liblinear would penalise it."""
    w = np.ravel(model.coef_)
    z = data.X @ w
    loss = np.logaddexp(0.0, np.where(data.y == 1, -z, z)).sum()
    return {"objective": float(data.alpha * loss + np.abs(w).sum()), "nonzero": float(np.count_nonzero(w))}


def lasso_contenders(*peers: str) -> dict[str, Callable[[Data], Any]]:
    """Ours at its default; the peers at tolerances of which the loosest that reaches the objective counts."""
    found = {OURS: lasso(OURS)}
    for tol in (1e-4, 1e-6):
        found[f"{SKLEARN} (tol={tol:.0e})"] = lasso(SKLEARN, tol=tol, max_iter=20_000)
        if CELER in peers:
            found[f"{CELER} (tol={tol:.0e})"] = lasso(CELER, tol=tol)
        if SKGLM in peers:
            found[f"{SKGLM} (tol={tol:.0e})"] = lasso(SKGLM, tol=tol)
    if ADELIE in peers:
        found[ADELIE] = adelie_path(lambda data: np.array([data.alpha]), tol=1e-9)
    return found


def logistic_contenders() -> dict[str, Callable[[Data], Any]]:
    found = {OURS: l1_logistic(OURS)}
    for tol in (1e-4, 1e-6):
        found[f"{SKLEARN} (liblinear, tol={tol:.0e})"] = l1_logistic(
            SKLEARN, solver="liblinear", tol=tol, max_iter=1000
        )
        found[f"{CELER} (tol={tol:.0e})"] = l1_logistic(CELER, tol=tol)
        found[f"{SKGLM} (tol={tol:.0e})"] = l1_logistic(SKGLM, tol=tol)
    return found


DENSE_PEERS = (CELER, SKGLM, ADELIE)
ONCE = {SKLEARN: 1.0, CELER: 1.0, SKGLM: 1.0}

ROWS = (
    Row(
        "lasso_wide", "Lasso, λ_max/50", "1k×20k", lasso_data(1_000, 20_000, 150, 2_000, 1 / 50),
        lasso_contenders(*DENSE_PEERS), lasso_quality, targets=ONCE | {ADELIE: 1.0}, tolerance=1e-6,
    ),
    Row(
        "lasso_tall", "Lasso, λ_max/50", "200k×500", lasso_data(200_000, 500, 8_000, 100, 1 / 50),
        lasso_contenders(*DENSE_PEERS), lasso_quality, targets=ONCE | {SKLEARN: 2.0, ADELIE: 1.0}, tolerance=1e-6,
    ),
    Row(
        "lasso_path", "lasso_path, 100 λ", "1.5k×3k", path_data,
        {
            OURS: path(OURS),
            f"{SKLEARN} (tol=1e-04)": path(SKLEARN, tol=1e-4, max_iter=10_000),
            f"{SKLEARN} (tol=1e-06)": path(SKLEARN, tol=1e-6, max_iter=10_000),
            f"{CELER} (tol=1e-04)": path(CELER, tol=1e-4),
            f"{CELER} (tol=1e-06)": path(CELER, tol=1e-6),
            ADELIE: adelie_path(grid_of, tol=1e-9, intercept=False),
        },
        path_quality, targets={SKLEARN: 4.0, CELER: 1.0, ADELIE: 1.0}, tolerance=1e-6,
    ),
    Row(
        "lasso_cv", "LassoCV, 5 folds, 100 λ", "1.5k×3k", lasso_data(1_500, 3_000, 150, 300, 1.0),
        {
            OURS: lasso_cv(OURS),
            SKLEARN: lasso_cv(SKLEARN, n_jobs=2, max_iter=10_000),
            CELER: folds_of_paths(CELER),
            ADELIE: folds_of_paths(ADELIE),
        },
        cv_quality, targets={SKLEARN: 4.0, CELER: 1.0, ADELIE: 1.0}, tolerance=1e-3,
    ),
    Row(
        "lasso_sparse", "Lasso, sparse, λ_max/20", "50k×200k, 0.1 % filled", sparse_lasso_data,
        lasso_contenders(CELER, SKGLM), lasso_quality, targets=ONCE, tolerance=1e-6,
    ),
    Row(
        "logistic_l1_dense", "L1 logistic", "100k×200", logistic_data(100_000, 200, None, 100.0),
        logistic_contenders() | {f"{SKLEARN} (saga)": l1_logistic(SKLEARN, solver="saga", tol=1e-5, max_iter=500)},
        logistic_quality, targets=ONCE, tolerance=1e-6,
    ),
    Row(
        "logistic_l1_sparse", "L1 logistic, sparse", "50k×100k, 0.1 % filled",
        logistic_data(50_000, 100_000, 0.001, 20.0),
        logistic_contenders(), logistic_quality, targets=ONCE, tolerance=1e-6,
    ),
)  # fmt: skip
