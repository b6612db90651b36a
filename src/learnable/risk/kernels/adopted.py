"""Kernels by other names: scikit-learn's strings, its objects for Gaussian processes, and functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import ParameterError
from .base import Kernel
from .composed import FunctionKernel, Precomputed
from .dot import Constant, Linear, Polynomial, White
from .foreign import ForeignKernel
from .stationary import Gaussian, Matern, Periodic, RationalQuadratic

_PEER = "sklearn.gaussian_process.kernels"
#: Names that scikit-learn's kernel machines know, and ours.
NAMES: tuple[str, ...] = ("linear", "poly", "polynomial", "rbf", "gaussian", "sigmoid", "laplacian", "cosine", "chi2")
NAMES += ("additive_chi2", "precomputed")


def as_kernel(kernel: Any, *, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0) -> Kernel:
    """Return a kernel of this library.

    Parameters
    ----------
    kernel : Kernel, str, scikit-learn kernel or callable
        One of `NAMES`; a kernel of `sklearn.gaussian_process.kernels`, whose "fixed" bounds fix the hyperparameter; or
        a function (X, Z) → matrix.
    gamma, degree, coef0 : float, int, float
        What the strings need. `sigmoid` is not Mercer's, and taken as it is.

    Examples
    --------
    >>> as_kernel("rbf", gamma=0.5).formula
    'exp(−½‖(x − z)‖²)'
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        return _named(kernel, gamma, degree, coef0)
    if is_foreign(kernel):
        return _adopted(kernel)
    if callable(kernel):
        return FunctionKernel(kernel)
    raise ParameterError(f"kernel must be a kernel, one of {', '.join(NAMES)}, or a function; got {kernel!r}.")


def _named(name: str, gamma: float, degree: int, coef0: float) -> Kernel:
    if name == "linear":
        return Linear()
    if name in ("poly", "polynomial"):
        if coef0 < 0:
            return FunctionKernel(_PairwiseMetric("polynomial", {"gamma": gamma, "degree": degree, "coef0": coef0}))
        return Polynomial(degree, gamma, coef0)
    if name in ("rbf", "gaussian"):
        return Gaussian.from_gamma(gamma)
    if name == "precomputed":
        return Precomputed()
    if name == "sigmoid":
        return FunctionKernel(_PairwiseMetric("sigmoid", {"gamma": gamma, "coef0": coef0}))
    if name == "laplacian":
        return FunctionKernel(_PairwiseMetric("laplacian", {"gamma": gamma}))
    if name == "chi2":
        return FunctionKernel(_PairwiseMetric("chi2", {"gamma": gamma}))
    if name in ("cosine", "additive_chi2"):
        return FunctionKernel(_PairwiseMetric(name, {}))
    raise ParameterError(f"kernel must be one of {', '.join(NAMES)}, or an object; got {name!r}.")


class _PairwiseMetric:
    """A kernel of scikit-learn by name, as a function that compares, prints and can be copied."""

    def __init__(self, metric: str, parameters: dict[str, Any]) -> None:
        self.metric, self.parameters = metric, parameters
        self.__name__ = metric

    def __call__(self, X: Any, Z: Any) -> Any:
        from sklearn.metrics.pairwise import pairwise_kernels

        return pairwise_kernels(X, Z, metric=self.metric, **self.parameters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _PairwiseMetric) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.metric, tuple(sorted(self.parameters.items()))))


def is_foreign(kernel: Any) -> bool:
    """Tell whether it is a kernel of scikit-learn's Gaussian processes."""
    return any(cls.__module__ == _PEER for cls in type(kernel).__mro__)


def _adopted(kernel: Any) -> Kernel:
    """Return our kernel for one of scikit-learn's Gaussian process kernels."""
    name = type(kernel).__name__
    if name == "CompoundKernel":
        raise ParameterError("kernel cannot be a CompoundKernel: it is a list of kernels; pass one of them.")
    if type(kernel).__module__ != _PEER or not kernel.requires_vector_input:
        simple = name in ("ConstantKernel", "WhiteKernel") and type(kernel).__module__ == _PEER
        if not simple:
            return ForeignKernel(kernel)
    if name in ("Sum", "Product"):
        left, right = _adopted(kernel.k1), _adopted(kernel.k2)
        return left + right if name == "Sum" else left * right
    if name == "ConstantKernel":
        return _bounded(Constant(kernel.constant_value), value=kernel.constant_value_bounds)
    if name == "WhiteKernel":
        return _bounded(White(kernel.noise_level), noise=kernel.noise_level_bounds)
    if name == "RBF":
        return _bounded(Gaussian(_plain(kernel.length_scale)), length_scale=kernel.length_scale_bounds)
    if name == "Matern" and kernel.nu in (0.5, 1.5, 2.5, np.inf):
        scale = _plain(kernel.length_scale)
        own = Gaussian(scale) if np.isinf(kernel.nu) else Matern(scale, kernel.nu)
        return _bounded(own, length_scale=kernel.length_scale_bounds)
    if name == "RationalQuadratic":
        bounds = {"length_scale": kernel.length_scale_bounds, "alpha": kernel.alpha_bounds}
        return _bounded(RationalQuadratic(_plain(kernel.length_scale), kernel.alpha), **bounds)
    if name == "ExpSineSquared":
        bounds = {"length_scale": kernel.length_scale_bounds, "period": kernel.periodicity_bounds}
        return _bounded(Periodic(kernel.length_scale, kernel.periodicity), **bounds)
    if name == "DotProduct":
        if kernel.sigma_0 == 0:
            return Linear()
        stated = kernel.sigma_0_bounds
        square = stated if isinstance(stated, str) else np.square(np.asarray(stated, dtype=np.float64))
        return Linear() + _bounded(Constant(kernel.sigma_0**2), value=square)
    return ForeignKernel(kernel)


def _plain(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else np.asarray(value, dtype=np.float64)


def _bounded(kernel: Kernel, **bounds: Any) -> Kernel:
    """Return a kernel with scikit-learn's bounds, of which "fixed" holds a hyperparameter."""
    held = [name for name, bound in bounds.items() if isinstance(bound, str)]
    free = {name: bound for name, bound in bounds.items() if name not in held}
    kernel = kernel.within(**free) if free else kernel
    return kernel.hold(*held) if held else kernel
