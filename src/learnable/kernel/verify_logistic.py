r"""Independent check of kernel logistic regression: its duality gap, with kernel values computed from the formulas.

The dual point is made of the model's own probabilities, mixed with a constant distribution until every class has its
total weight, which is what a free offset asks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checking import Recheck
from ..core.errors import VerificationError
from ..data.checking import Rows, class_weights_of
from ..linear.verify import probabilities
from ..risk.kernels import Precomputed
from .verify_kernels import data_of, radius, stated_kernel
from .verify_ridge import _products, _same_points, _symmetric

Array = NDArray[Any]


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def kernel_logistic(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a KernelLogisticRegression."""
    data = data_of(model, X, y, sample_weight, classes=True)
    n, K = len(data.weight), len(model.classes_)
    rows = Rows(lambda: iter([data.X]), data.X.shape[1], data.y, data.weight)
    kappa = model.C * data.weight * class_weights_of(model.class_weight, model.classes_, rows)[data.y]
    coef, points = np.asarray(model.dual_coef_, dtype=np.float64), data.X
    coef = coef.reshape(len(coef), -1)
    kernel = stated_kernel(model, data.X.shape[1])
    if isinstance(kernel, Precomputed):
        if len(coef) != len(data.kept) or coef[~data.kept].any():
            return Recheck(np.inf, 0.0, data.fingerprint)
        coef, points = coef[data.kept], points[:, np.flatnonzero(data.kept)]
        if not _same_points(model.X_fit_, _symmetric(points)):
            return Recheck(np.inf, 0.0, data.fingerprint)
    elif not _same_points(model.X_fit_, points):
        return Recheck(np.inf, 0.0, data.fingerprint)
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


def _with_class_totals(U: Array, own: Array, kappa: Array) -> Array:
    """Mix probabilities with a constant distribution so that Σκu = Σκe for every class."""
    totals, sums = kappa @ own, kappa @ U
    share = np.clip(np.max((sums - totals) / sums), 0.0, 1.0)
    if share == 0:
        return U
    share = min(1.0, share * (1 + 1e-9))
    rest = np.maximum(totals - (1 - share) * sums, 0)
    return (1 - share) * U + share * rest / rest.sum()
