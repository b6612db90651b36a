"""Kernel values, their sums and γ as the check of a support vector machine computes them: from the formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ..data.checking import Rows
from ..risk.kernels import Kernel
from ..risk.kernels.adopted import is_foreign

Array = NDArray[Any]

_CHUNK = 2**21  # kernel values that exist at a time
_FAR = 1e4  # γ‖x − x̄‖² beyond which squares and products cancel each other's digits
_LARGEST = 1e8  # γ‖x − x̄‖² up to which a fit may trust them all the same
_ROUNDING = 1e-11  # of a sum of kernel values, relative to the sum of their sizes


def kernel_sums(model: Any, rows: Rows, members: Array, beta: Array, kept: Array) -> tuple[Array, float]:
    """Return Kβ of some rows over themselves, and how far rounding may have moved it."""
    X = next(iter(rows.pieces()))[members]
    used = np.flatnonzero(beta)
    points, gamma, f, size = X[used], stated_gamma(model, rows), np.zeros(len(members)), 0.0
    step = max(1, _CHUNK // max(1, len(used)))
    for start in range(0, len(members), step):
        part = slice(start, start + step)
        K = X[part][:, kept[members[used]]] if has_matrix(model) else kernel_values(model, X[part], points, gamma)
        f[part] = K @ beta[used]
        size = max(size, float((abs(K) @ abs(beta[used])).max(initial=0.0)))
    lost = 0.0  # the fit may take distances from inner products, up to a limit
    if isinstance(model.kernel, str) and model.kernel == "rbf" and len(members):
        squares = X.multiply(X) if sp.issparse(X) else (X - X.mean(axis=0)) ** 2
        lost = 1e-15 * min(gamma * float(squares.sum(axis=1).max()), _LARGEST)
    return f, _ROUNDING * (1.0 + size) + lost * size


def has_matrix(model: Any) -> bool:
    """Tell whether X is a matrix of kernel values, given or computed by a function of other objects."""
    return hasattr(model, "X_fit_") or (isinstance(model.kernel, str) and model.kernel == "precomputed")


def stated_gamma(model: Any, rows: Rows) -> float:
    """Return γ as the parameter defines it from the data; 0 where the kernel has none of ours."""
    function = callable(model.kernel) and not isinstance(model.kernel, Kernel) and not is_foreign(model.kernel)
    if has_matrix(model) or function:
        return 0.0
    if not isinstance(model.gamma, str):
        return float(model.gamma)
    if model.gamma == "auto":
        return 1.0 / rows.n_columns
    X = next(iter(rows.pieces()))
    size = X.shape[0] * X.shape[1]
    mean = X.sum() / size
    away = (X.data - mean) ** 2 if sp.issparse(X) else (X - mean) ** 2
    square = (away.sum() + (size - away.size) * mean**2) / size
    constant = square <= (4 * np.finfo(float).eps * mean) ** 2  # what rounding leaves of equal numbers
    return 1.0 if constant else 1.0 / (rows.n_columns * square)


def kernel_values(model: Any, A: Any, B: Any, gamma: float) -> Array:
    """Return k(a, b) from its formula."""
    if not isinstance(model.kernel, str):
        return np.asarray(model.kernel(A, B))
    dots = A @ B.T
    dots = dots.toarray() if sp.issparse(dots) else dots
    if model.kernel == "linear":
        return np.asarray(dots)
    if model.kernel == "poly":
        return np.asarray((gamma * dots + model.coef0) ** model.degree)
    if model.kernel == "sigmoid":
        return np.tanh(gamma * dots + model.coef0)
    if sp.issparse(A):
        squares = [np.asarray(Z.multiply(Z).sum(axis=1)).ravel() for Z in (A, B)]
    else:
        centre = B.mean(axis=0) if len(B) else 0.0
        A, B = A - centre, B - centre
        squares, dots = [(A * A).sum(axis=1), (B * B).sum(axis=1)], A @ B.T
        if gamma * max(Z.max(initial=0.0) for Z in squares) > _FAR:
            return np.exp(-gamma * cdist(A, B, "sqeuclidean"))
    return np.exp(-gamma * np.maximum(squares[0][:, None] + squares[1][None, :] - 2.0 * dots, 0.0))


def largest_diagonal(model: Any, rows: Rows, kept: Array) -> float:
    """Return the largest |k(x, x)|."""
    X = next(iter(rows.pieces()))
    if has_matrix(model):
        values = [X[i, kept[i]] for i in range(X.shape[0])]
    elif isinstance(model.kernel, str) and model.kernel == "rbf":
        return 1.0
    else:
        gamma = stated_gamma(model, rows)
        values = [kernel_values(model, X[[i]], X[[i]], gamma)[0, 0] for i in range(X.shape[0])]
    return float(np.abs(values).max())
