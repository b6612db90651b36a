"""Kernel values and training data as an independent check computes them: from formulas, by differences of points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ..core.errors import VerificationError
from ..data.checking import codes_of, fingerprint_of, numbers_of, plain_rows
from ..data.door import is_external
from ..data.sources import named_columns
from ..risk import kernels as known

Array = NDArray[Any]

_BLOCK = 2**21


class Data(NamedTuple):
    """The rows of a fit that have weight."""

    X: Any
    y: Array  #: (n, t) numbers, or (n,) codes
    weight: Array
    kept: Array  #: which of the rows given these are
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


def blocks_of_values(kernel: known.Kernel, X: Any, Z: Any) -> Iterator[tuple[slice, Array]]:
    """Yield rows of K(X, Z), some at a time, where Z is X itself: its diagonal is k(x, x)."""
    step = max(1, _BLOCK // max(1, Z.shape[0]))
    for start in range(0, X.shape[0], step):
        rows = slice(start, min(start + step, X.shape[0]))
        K = values(kernel, X[rows], Z)
        own = [values(kernel, X[[i]], X[[i]], same=True)[0, 0] for i in range(rows.start, rows.stop)]
        K[np.arange(len(K)), np.arange(rows.start, rows.stop)] = own
        yield rows, K


def values(kernel: known.Kernel, X: Any, Z: Any, same: bool = False) -> Array:
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


def _radial(kernel: Any, r: Array) -> Array:
    """Return the kernels of a distance r."""
    if isinstance(kernel, known.Gaussian):
        return np.exp(-0.5 * r**2)
    if isinstance(kernel, known.RationalQuadratic):
        return np.asarray((1.0 + r**2 / (2.0 * kernel.alpha)) ** -kernel.alpha)
    nu = 0.5 if isinstance(kernel, known.DoubleExponential) else kernel.nu
    a = np.sqrt(2.0 * nu) * r
    front = {0.5: 1.0, 1.5: 1.0 + a, 2.5: 1.0 + a + a**2 / 3.0}[nu]
    return np.asarray(front * np.exp(-a))


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
