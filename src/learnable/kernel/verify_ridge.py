r"""Independent checks of kernel ridge regression: the residual of (K + αW⁻¹)c = y, evaluated from the formulas.

Kernel values are computed again from the points of the data (not from those that the model stores), by differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checking import Recheck
from ..core.errors import VerificationError
from ..data.checking import Rows, class_weights_of
from ..risk.kernels import Kernel, Precomputed
from .verify_kernels import Data, blocks_of_values, data_of, radius, stated_kernel

Array = NDArray[Any]

_ROUNDING = 2e-13


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


def _check_equations(model: Any, data: Data, Y: Array, weight: Array, alpha: Any) -> Recheck:
    """Evaluate the residual and its relative size, target by target."""
    n = len(weight)
    C = np.asarray(model.dual_coef_, dtype=np.float64)
    C = C.reshape(len(C), -1)
    kernel = stated_kernel(model, data.X.shape[1])
    points = data.X
    if isinstance(kernel, Precomputed):
        if len(C) == len(data.kept):
            if C[~data.kept].any():
                return Recheck(np.inf, 0.0, data.fingerprint)
            C, points = C[data.kept], points[:, np.flatnonzero(data.kept)]
        if not _same_points(model.X_fit_, _symmetric(points)):
            return Recheck(np.inf, 0.0, data.fingerprint)
    elif not _same_points(model.X_fit_, points):
        return Recheck(np.inf, 0.0, data.fingerprint)
    if C.shape != (n, Y.shape[1]):
        raise VerificationError(
            f"verify: the model has coefficients {C.shape}, the data {n} rows and {Y.shape[1]} targets."
        )
    scale = np.abs(Y).max(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    Y, C = Y / scale, C / scale
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


def _suboptimality(R: Array, Y: Array, C: Array, d: Array, weight: Array) -> float:
    """Return Σwr²/max(P − Σwr², 10⁻⁸P₀) of the worst target: P = Σw(y − f)² + α cᵀKc, P₀ that of f = 0."""
    w = (weight / weight.max())[:, None]
    miss = R + d * C
    primal = (w * (miss**2 + d * C * (Y - miss))).sum(axis=0)
    gap, start = (w * R**2).sum(axis=0), (w * Y**2).sum(axis=0)
    size = np.maximum(primal - gap, 1e-8 * start)
    return float(np.max(np.where(size > 0, gap / np.where(size > 0, size, 1.0), 0.0), initial=0.0))


def _sizes(R: Array, Y: Array, C: Array, diagonal: Array, d: Array, tol: float) -> Array:
    """Return ‖r‖/(‖y‖ + (10⁻¹⁴/tol) S) of each target."""
    root = np.sqrt(np.abs(diagonal))
    terms = np.outer(root, root @ np.abs(C)) + d * np.abs(C)
    size = np.linalg.norm(Y, axis=0) + 1e-14 / tol * np.linalg.norm(terms, axis=0)
    norm = np.linalg.norm(R, axis=0)
    return np.where(norm == 0, 0.0, norm / size)


def _products(kernel: Kernel, X: Any, C: Array) -> tuple[Array, Array, Array]:
    """Return KC, the diagonal of K, and |K||C|."""
    if isinstance(kernel, Precomputed):
        K = _symmetric(X)
        return K @ C, K.diagonal(), np.abs(K) @ np.abs(C)
    out, diagonal, terms = np.empty(C.shape), np.empty(len(C)), np.empty(C.shape)
    for rows, K in blocks_of_values(kernel, X, X):
        out[rows], diagonal[rows] = K @ C, K[np.arange(len(K)), np.arange(rows.start, rows.stop)]
        terms[rows] = np.abs(K) @ np.abs(C)
    return out, diagonal, terms


def _symmetric(X: Any) -> Array:
    """Return a given kernel matrix without what rounding makes of its symmetry."""
    K = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    return np.asarray((K + K.T) / 2.0)


def _same_points(stored: Any, given: Any) -> bool:
    if stored.shape != given.shape:
        return False
    if hasattr(stored, "toarray") or hasattr(given, "toarray"):
        return bool(abs(stored - given).max() == 0)
    return bool((np.asarray(stored, dtype=np.float64) == given).all())
