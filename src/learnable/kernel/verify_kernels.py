"""Kernel values, sums of them, γ and training data as an independent check computes them: from the formulas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from ..core import AnyArray, VerificationError
from ..data.checking import Rows, codes_of, fingerprint_of, numbers_of, plain_rows
from ..data.door import is_external
from ..data.sources import named_columns
from ..risk import kernels as known
from ..risk.kernels import Kernel
from ..risk.kernels.adopted import is_foreign

_BLOCK = 2**21  # numbers of a piece of the kernel matrix


class Data(NamedTuple):
    """The rows of a fit that have weight."""

    X: Any
    y: AnyArray  #: (n, t) numbers, or (n,) codes
    weight: AnyArray
    kept: AnyArray  #: which of the rows given these are
    fingerprint: str


def data_of(model: Any, X: Any, y: Any, sample_weight: Any, *, classes: bool = False) -> Data:
    """Read the data of a fit; raise VerificationError where they cannot be those of the model."""
    X, y, sample_weight = named_columns("verify", X, y, sample_weight)
    if is_external(X):
        raise VerificationError("verify: a kernel machine was fitted to rows in memory; pass them as an array.")
    targets = np.asarray([] if y is None else y).ravel() if classes else numbers_of(y)
    given = np.ones(len(targets)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    rows = plain_rows(model, X, targets, sample_weight)
    if classes:
        rows = rows._replace(y=codes_of(model.classes_, rows.y))
    fingerprint = fingerprint_of(rows, model.classes_ if classes else None)
    table = next(rows.pieces())
    kept = np.broadcast_to(given, (len(targets),)) > 0
    return Data(table, rows.y, np.asarray(rows.weight, dtype=np.float64), kept, fingerprint)


def stated_kernel(model: Any, n_features: int) -> known.Kernel:
    """Return the kernel that a model's parameters state, read afresh."""
    kernel = model.kernel
    if isinstance(kernel, known.Kernel):
        return kernel
    gamma = 1.0 / n_features if model.gamma is None else max(model.gamma, 1e-300)
    degree, coef0 = 3 if model.degree is None else model.degree, 1.0 if model.coef0 is None else model.coef0
    if callable(kernel) and type(kernel).__module__ != "sklearn.gaussian_process.kernels":
        params = model.kernel_params or {}
        return known.FunctionKernel(lambda x, z: kernel(x, z, **params), pairwise=True)
    if kernel in ("poly", "polynomial") and (degree < 1 or degree != int(degree)):
        return known.FunctionKernel(lambda X, Z: np.power(gamma * _dense(X @ Z.T) + coef0, degree))
    return known.as_kernel(kernel, gamma=float(gamma), degree=int(degree), coef0=float(coef0))


def blocks_of_values(kernel: known.Kernel, X: Any, Z: Any) -> Iterator[tuple[slice, AnyArray]]:
    """Yield rows of K(X, Z), some at a time, where Z is X itself: its diagonal is k(x, x)."""
    step = max(1, _BLOCK // max(1, Z.shape[0]))
    for start in range(0, X.shape[0], step):
        rows = slice(start, min(start + step, X.shape[0]))
        K = values(kernel, X[rows], Z)
        own = [values(kernel, X[[i]], X[[i]], same=True)[0, 0] for i in range(rows.start, rows.stop)]
        K[np.arange(len(K)), np.arange(rows.start, rows.stop)] = own
        yield rows, K


def values(kernel: known.Kernel, X: Any, Z: Any, same: bool = False) -> AnyArray:
    """Return k(xᵢ, zⱼ) from its formula; `same` says that x and z are one point, which the white kernel asks."""
    if isinstance(kernel, known.Sum):
        return values(kernel.left, X, Z, same) + values(kernel.right, X, Z, same)
    if isinstance(kernel, known.Product):
        return values(kernel.left, X, Z, same) * values(kernel.right, X, Z, same)
    if isinstance(kernel, known.Scaled):
        return kernel.scale * values(kernel.inner, X, Z, same)
    if isinstance(kernel, known.Restricted):
        return values(kernel.inner, X[:, list(kernel.columns)], Z[:, list(kernel.columns)], same)
    if isinstance(kernel, known.White):
        return np.full((X.shape[0], Z.shape[0]), kernel.noise if same else 0.0)
    if isinstance(kernel, known.Constant):
        return np.full((X.shape[0], Z.shape[0]), kernel.value)
    if isinstance(kernel, (known.Linear, known.Polynomial)):
        dot = _dense(X @ Z.T)
        return dot if isinstance(kernel, known.Linear) else (kernel.gamma * dot + kernel.coef0) ** kernel.degree
    X, Z = _dense(X), _dense(Z)
    if isinstance(kernel, known.Periodic):
        sines = sum(np.sin(np.pi / kernel.period * (X[:, [j]] - Z[:, j])) ** 2 for j in range(X.shape[1]))
        return np.asarray(np.exp(-2.0 * sines / kernel.length_scale**2))
    if hasattr(kernel, "length_scale"):
        return _radial(kernel, cdist(X / kernel.length_scale, Z / kernel.length_scale))
    return np.array(kernel._between(X, Z), dtype=np.float64)


def radius(kernel: known.Kernel, X: Any) -> float:
    """Return the largest squared distance from the mean, in length scales, that a kernel sees; zero without any."""
    if isinstance(kernel, (known.Sum, known.Product)):
        return max(radius(kernel.left, X), radius(kernel.right, X))
    if isinstance(kernel, known.Scaled):
        return radius(kernel.inner, X)
    if isinstance(kernel, known.Restricted):
        return radius(kernel.inner, X[:, list(kernel.columns)])
    if isinstance(kernel, known.Periodic) or not hasattr(kernel, "length_scale"):
        return 0.0
    scaled = _dense(X) / kernel.length_scale
    centre = 0.0 if sp.issparse(X) else scaled.mean(axis=0)
    return float(((scaled - centre) ** 2).sum(axis=1).max(initial=0.0))


def _radial(kernel: Any, r: AnyArray) -> AnyArray:
    """Return the kernels of a distance r."""
    if isinstance(kernel, known.Gaussian):
        return np.exp(-0.5 * r**2)
    if isinstance(kernel, known.RationalQuadratic):
        return np.asarray((1.0 + r**2 / (2.0 * kernel.alpha)) ** -kernel.alpha)
    nu = 0.5 if isinstance(kernel, known.DoubleExponential) else kernel.nu
    a = np.sqrt(2.0 * nu) * r
    front = {0.5: 1.0, 1.5: 1.0 + a, 2.5: 1.0 + a + a**2 / 3.0}[nu]
    return np.asarray(front * np.exp(-a))


def _dense(X: Any) -> AnyArray:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


_CHUNK = 2**21  # kernel values that exist at a time
_FAR = 1e4  # γ‖x − x̄‖² beyond which squares and products cancel each other's digits
_LARGEST = 1e8  # γ‖x − x̄‖² up to which a fit may trust them all the same
_ROUNDING = 1e-11  # of a sum of kernel values, relative to the sum of their sizes


def kernel_sums(model: Any, rows: Rows, members: AnyArray, beta: AnyArray, kept: AnyArray) -> tuple[AnyArray, float]:
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


def kernel_values(model: Any, A: Any, B: Any, gamma: float) -> AnyArray:
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


def largest_diagonal(model: Any, rows: Rows, kept: AnyArray) -> float:
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
