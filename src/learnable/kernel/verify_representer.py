r"""Independent checks of kernel ridge and logistic regression and of kernel principal components.

Kernel values are computed again from the points of the data (not from those that the model stores), by differences.

- Ridge regression: the residual of (K + αW⁻¹)c = y.
- Logistic regression: the duality gap. The dual point is made of the model's own probabilities, mixed with a constant
  distribution until every class has its total weight, which is what a free offset asks.
- Principal components: K̃u = λu and uᵢᵀuⱼ = [i = j].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import AnyArray, Recheck, VerificationError
from ..data.checking import Rows, class_weights_of, fingerprint_of, plain_rows
from ..data.door import is_external
from ..linear.verify_glm import probabilities
from ..risk.kernels import Kernel, Precomputed
from .verify_kernels import Data, blocks_of_values, data_of, radius, stated_kernel

_ROUNDING = 2e-13  # what rounding may add to a relative residual


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def kernel_ridge(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a KernelRidge or KernelRidgeCV."""
    data = data_of(model, X, y, sample_weight)
    alpha = model.alpha_ if hasattr(model, "alpha_") else model.alpha
    return _check_equations(model, data, data.y, data.weight, alpha)


@np.errstate(all="ignore")
def kernel_ridge_classifier(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a KernelRidgeClassifier."""
    data = data_of(model, X, y, sample_weight, classes=True)
    n_classes = len(model.classes_)
    own = data.y[:, None] == (np.array([1]) if n_classes == 2 else np.arange(n_classes))
    rows = Rows(lambda: iter([data.X]), data.X.shape[1], data.y, data.weight)
    weight = data.weight * class_weights_of(model.class_weight, model.classes_, rows)[data.y]
    return _check_equations(model, data, np.where(own, 1.0, -1.0), weight, model.alpha)


def _check_equations(model: Any, data: Data, Y: AnyArray, weight: AnyArray, alpha: Any) -> Recheck:
    """Evaluate the residual and its relative size, target by target."""
    n = len(weight)
    C = np.asarray(model.dual_coef_, dtype=np.float64)
    C = C.reshape(len(C), -1)
    kernel = stated_kernel(model, data.X.shape[1])
    found = _fitted_points(model, data, kernel, C)
    if found is None:
        return Recheck(np.inf, 0.0, data.fingerprint)
    C, points = found
    if C.shape != (n, Y.shape[1]):
        raise VerificationError(
            f"verify: the model has coefficients {C.shape}, the data {n} rows and {Y.shape[1]} targets."
        )
    scale = np.abs(Y).max(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    Y = Y / scale
    C = C / scale
    d = np.broadcast_to(np.asarray(alpha, dtype=np.float64), (Y.shape[1],)) / weight[:, None]
    tol = model.certificate_.tolerance
    KC, diagonal, terms = _products(kernel, points, C)
    R = Y - KC - d * C
    value = _sizes(R, Y, C, diagonal, d, tol)
    # Squared distances by a matrix product, as in the fit, have the rounding of the largest of them.
    blurred = 2e-16 * radius(kernel, points) * float(_sizes(terms, Y, C, diagonal, d, tol).max(initial=0.0))
    for t in np.flatnonzero(~d.any(axis=0)):  # without a penalty: the normal equations, if they are what holds
        w = (weight / weight.max())[:, None]
        trace = np.abs(diagonal * w[:, 0]).sum()
        root = np.sqrt(w)
        again = root * _products(kernel, points, w * R[:, [t]])[0] / (trace if trace > 0 else 1.0)
        normal = _sizes(again, root * Y[:, [t]], C[:, [t]] / root, diagonal * w[:, 0], d[:, [t]], tol)
        value[t] = min(value[t], normal[0])
    bound = _suboptimality(R, Y, C, d, weight)
    return Recheck(float(np.max(value, initial=0.0)), _ROUNDING + blurred, data.fingerprint, bound=bound)


def _fitted_points(model: Any, data: Data, kernel: Kernel, C: AnyArray) -> tuple[AnyArray, Any] | None:
    """Return the coefficients of the rows with weight, and their points; None where the model holds other points."""
    points = data.X
    stated = points
    if isinstance(kernel, Precomputed):
        if len(C) == len(data.kept):
            if C[~data.kept].any():
                return None
            C = C[data.kept]
            points = points[:, np.flatnonzero(data.kept)]
        stated = _symmetric(points)
    return (C, points) if _same_points(model.X_fit_, stated) else None


def _suboptimality(R: AnyArray, Y: AnyArray, C: AnyArray, d: AnyArray, weight: AnyArray) -> float:
    """Return Σwr²/max(P − Σwr², 10⁻⁸P₀) of the worst target: P = Σw(y − f)² + α cᵀKc, P₀ that of f = 0."""
    w = (weight / weight.max())[:, None]
    miss = R + d * C
    primal = (w * (miss**2 + d * C * (Y - miss))).sum(axis=0)
    gap = (w * R**2).sum(axis=0)
    start = (w * Y**2).sum(axis=0)
    size = np.maximum(primal - gap, 1e-8 * start)
    return float(np.max(np.where(size > 0, gap / np.where(size > 0, size, 1.0), 0.0), initial=0.0))


def _sizes(R: AnyArray, Y: AnyArray, C: AnyArray, diagonal: AnyArray, d: AnyArray, tol: float) -> AnyArray:
    """Return ‖r‖/(‖y‖ + (10⁻¹⁴/tol) S) of each target."""
    root = np.sqrt(np.abs(diagonal))
    terms = np.outer(root, root @ np.abs(C)) + d * np.abs(C)
    size = np.linalg.norm(Y, axis=0) + 1e-14 / tol * np.linalg.norm(terms, axis=0)
    norm = np.linalg.norm(R, axis=0)
    return np.where(norm == 0, 0.0, norm / size)


def _products(kernel: Kernel, X: Any, C: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return KC, the diagonal of K, and |K||C|."""
    if isinstance(kernel, Precomputed):
        K = _symmetric(X)
        return K @ C, K.diagonal(), np.abs(K) @ np.abs(C)
    out = np.empty(C.shape)
    diagonal = np.empty(len(C))
    terms = np.empty(C.shape)
    for rows, K in blocks_of_values(kernel, X, X):
        out[rows] = K @ C
        diagonal[rows] = K[np.arange(len(K)), np.arange(rows.start, rows.stop)]
        terms[rows] = np.abs(K) @ np.abs(C)
    return out, diagonal, terms


def _symmetric(X: Any) -> AnyArray:
    """Return a given kernel matrix without what rounding makes of its symmetry."""
    K = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    return np.asarray((K + K.T) / 2.0)


def _same_points(stored: Any, given: Any) -> bool:
    if stored.shape != given.shape:
        return False
    if hasattr(stored, "toarray") or hasattr(given, "toarray"):
        return bool(abs(stored - given).max() == 0)
    return bool((np.asarray(stored, dtype=np.float64) == given).all())


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def kernel_logistic(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a KernelLogisticRegression."""
    data = data_of(model, X, y, sample_weight, classes=True)
    n = len(data.weight)
    K = len(model.classes_)
    rows = Rows(lambda: iter([data.X]), data.X.shape[1], data.y, data.weight)
    kappa = model.C * data.weight * class_weights_of(model.class_weight, model.classes_, rows)[data.y]
    coef = np.asarray(model.dual_coef_, dtype=np.float64)
    kernel = stated_kernel(model, data.X.shape[1])
    found = _fitted_points(model, data, kernel, coef.reshape(len(coef), -1))
    if found is None:
        return Recheck(np.inf, 0.0, data.fingerprint)
    coef, points = found
    if coef.shape != (n, 1 if K == 2 else K):
        raise VerificationError(f"verify: the model has coefficients {coef.shape}, the data {n} rows and {K} classes.")
    if np.shape(model.intercept_) != (coef.shape[1],):
        return Recheck(np.inf, 0.0, data.fingerprint)
    if not model.fit_intercept and np.any(model.intercept_):
        return Recheck(np.inf, 0.0, data.fingerprint)
    F, _, _ = _products(kernel, points, coef)
    Z = F + model.intercept_
    if K == 2:
        Z = np.column_stack([np.zeros(n), Z])
    own = data.y[:, None] == np.arange(K)
    top = Z.max(axis=1, keepdims=True)
    losses = top[:, 0] + np.log(np.exp(Z - top).sum(axis=1)) - Z[own]
    primal = kappa @ losses + 0.5 * (coef * F).sum()
    U = probabilities(Z)
    if model.fit_intercept:
        U = _with_class_totals(U, own, kappa)
    dual_coef = kappa[:, None] * (own - U)
    dual_coef = dual_coef[:, 1:] if K == 2 else dual_coef
    entropy = -np.where(U > 0, U * np.log(np.where(U > 0, U, 1.0)), 0.0).sum(axis=1)
    G, _, terms = _products(kernel, points, dual_coef)
    dual = kappa @ entropy - 0.5 * (dual_coef * G).sum()
    start = kappa.sum() * np.log(K)
    size = max(dual, 1e-8 * start)
    # Kernel values have the rounding of the largest squared distance; a large C multiplies it.
    blurred = 4e-16 * (10.0 + radius(kernel, points)) * (np.abs(dual_coef) * terms).sum()
    rounding = 1e-13 + float((3e-13 * max(start, primal) + blurred) / size)
    return Recheck(float((primal - dual) / size), rounding, data.fingerprint)


def _with_class_totals(U: AnyArray, own: AnyArray, kappa: AnyArray) -> AnyArray:
    """Mix probabilities with a constant distribution so that Σκu = Σκe for every class."""
    totals = kappa @ own
    sums = kappa @ U
    share = np.clip(np.max((sums - totals) / sums), 0.0, 1.0)
    if share == 0:
        return U
    share = min(1.0, share * (1 + 1e-9))
    rest = np.maximum(totals - (1 - share) * sums, 0)
    return (1 - share) * U + share * rest / rest.sum()


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def kernel_pca(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Recompute the certificate of a KernelPCA."""
    if is_external(X):
        raise VerificationError("verify: KernelPCA was fitted to rows in memory; pass them as an array.")
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    rows = plain_rows(model, X, np.zeros((np.shape(X)[0], 0)), sample_weight)
    points = next(rows.pieces())
    kernel = stated_kernel(model, rows.n_columns)
    fingerprint = fingerprint_of(Rows(rows.pieces, rows.n_columns, rows.y, rows.weight))
    U = np.asarray(model.eigenvectors_)
    values = np.asarray(model.eigenvalues_)
    n = points.shape[0]
    if U.shape != (n, len(values)):
        raise VerificationError(f"verify: the model has eigenvectors {U.shape}, the data {n} rows.")
    if not _stored_state_agrees(model, rows.n_columns, n):
        return Recheck(np.inf, 0.0, fingerprint)
    if isinstance(kernel, Precomputed):
        K = np.asarray(points.toarray() if hasattr(points, "toarray") else points, dtype=np.float64)
        if not _same_points(model.X_fit_, K):
            return Recheck(np.inf, 0.0, fingerprint)
    else:
        if not _same_points(model.X_fit_, points):
            return Recheck(np.inf, 0.0, fingerprint)
        K = np.concatenate([block for _, block in blocks_of_values(kernel, points, points)])
    means = K.mean(axis=0)
    if not np.abs(means - model.kernel_means_).max() <= 1e-10 * np.abs(K).max():
        return Recheck(np.inf, 0.0, fingerprint)
    centred = _symmetric(K - means - K.mean(axis=1)[:, None] + means.mean())
    size = np.abs(centred.diagonal()).sum()
    residual = np.linalg.norm(centred @ U - U * values, axis=0).max(initial=0.0) / (size if size > 0 else 1.0)
    inner = np.abs(U.T @ U - np.eye(len(values))).max(initial=0.0)
    if model.fit_inverse_transform and not _inverse_agrees(model, kernel, points, U * np.sqrt(values)):
        return Recheck(np.inf, 0.0, fingerprint)
    # What is lost of an eigenvalue of the centred matrix is relative to the uncentred one.
    blurred = 4e-16 * (10.0 + radius(kernel, points)) * np.abs(K).sum(axis=0).max() / (size if size > 0 else 1.0)
    return Recheck(float(max(residual, inner)), 2e-13 + float(blurred), fingerprint)


def _stored_state_agrees(model: Any, n_columns: int, n: int) -> bool:
    """Tell whether the shapes of what is stored fit the data, and γ its parameter."""
    gamma = 1.0 / n_columns if model.gamma is None else model.gamma
    return np.shape(model.kernel_means_) == (n,) and bool(np.isclose(model.gamma_, gamma, rtol=1e-12, atol=0.0))


def _inverse_agrees(model: Any, kernel: Any, points: Any, components: Any) -> bool:
    """Tell whether the learned inverse solves (K + αI)C = X for the kernel of the components."""
    stored = np.asarray(model.X_transformed_fit_)
    C = np.asarray(model.dual_coef_)
    if stored.shape != components.shape or C.shape != points.shape:
        return False
    if not np.abs(stored - components).max(initial=0.0) <= 1e-12 * np.abs(components).max(initial=0.0):
        return False
    K = np.concatenate([block for _, block in blocks_of_values(kernel, components, components)])
    residual = np.abs(points - K @ C - model.alpha * C)
    size = np.abs(points).max(initial=0.0) + 1e-4 * (np.abs(K) @ np.abs(C)).max(initial=0.0)
    return bool((residual <= 1e-8 * size).all())
