r"""Independent check of kernel principal components: K̃u = λu and uᵢᵀuⱼ = [i = j], with kernel values by formulas."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.checking import Recheck
from ..core.errors import VerificationError
from ..data.checking import Rows, fingerprint_of, plain_rows
from ..data.door import is_external
from ..risk.kernels import Precomputed
from .verify_kernels import blocks_of_values, radius, stated_kernel
from .verify_ridge import _same_points, _symmetric


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def kernel_pca(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Recompute the certificate of a KernelPCA."""
    if is_external(X):
        raise VerificationError("verify: KernelPCA was fitted to rows in memory; pass them as an array.")
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    rows = plain_rows(model, X, np.zeros((np.shape(X)[0], 0)), sample_weight)
    points, kernel = next(rows.pieces()), stated_kernel(model, rows.n_columns)
    fingerprint = fingerprint_of(Rows(rows.pieces, rows.n_columns, rows.y, rows.weight))
    U, values = np.asarray(model.eigenvectors_), np.asarray(model.eigenvalues_)
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
    stored, C = np.asarray(model.X_transformed_fit_), np.asarray(model.dual_coef_)
    if stored.shape != components.shape or C.shape != points.shape:
        return False
    if not np.abs(stored - components).max(initial=0.0) <= 1e-12 * np.abs(components).max(initial=0.0):
        return False
    K = np.concatenate([block for _, block in blocks_of_values(kernel, components, components)])
    residual = np.abs(points - K @ C - model.alpha * C)
    size = np.abs(points).max(initial=0.0) + 1e-4 * (np.abs(K) @ np.abs(C)).max(initial=0.0)
    return bool((residual <= 1e-8 * size).all())
