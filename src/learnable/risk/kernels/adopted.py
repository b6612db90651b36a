"""Kernels by other names: scikit-learn's strings, its objects for Gaussian processes, and functions.

Kernels of scikit-learn's Gaussian processes that have no formula here: taken as they are, with their derivatives.

Such a kernel brings its own hyperparameters, bounds and gradient, and may compare anything: texts, trees, molecules.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ...core.errors import DataError, ParameterError
from .base import Array, Gaussian, Kernel, read_points
from .composed import FunctionKernel, Precomputed
from .elementary import Constant, Linear, Matern, Periodic, Polynomial, RationalQuadratic, White
from .peers import Parameter

_PEER = "sklearn.gaussian_process.kernels"
#: Names that scikit-learn's kernel machines know, and ours.
NAMES: tuple[str, ...] = ("linear", "poly", "polynomial", "rbf", "gaussian", "sigmoid", "laplacian", "cosine", "chi2")
NAMES += ("additive_chi2", "precomputed")


def adopted(kernel: Any, gamma: float, degree: int, coef0: float) -> Kernel:
    """Return the kernel of this library for what `as_kernel` was given, unless it is one."""
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
        self.metric = metric
        self.parameters = parameters
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
        left = _adopted(kernel.k1)
        right = _adopted(kernel.k2)
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


@dataclass(frozen=True, eq=False)
class ForeignKernel(Kernel):
    """A kernel object of scikit-learn's, or with its interface.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern
    >>> from learnable.risk.kernels import as_kernel
    >>> kernel = as_kernel(Matern(2.0, nu=0.8))
    >>> float(kernel.with_theta([0.0]).length_scale)
    1.0
    """

    kernel: Any = None

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of scikit-learn's object, such as `length_scale`."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.kernel, name)

    def __repr__(self) -> str:
        return repr(self.kernel)

    @property
    def requires_vector_input(self) -> bool:  # type: ignore[override]
        """Whether points have to be rows of numbers."""
        return bool(self.kernel.requires_vector_input)

    def _read(self, X: Any, other: Any = None) -> Any:
        if not self.requires_vector_input and not is_matrix(X):
            return as_structures(X)
        return read_points(X, None if other is None else other.shape[1])

    def _between(self, X: Any, Z: Any) -> Array:
        K = np.array(self.kernel(_plain_rows(X), _plain_rows(Z)), dtype=np.float64)
        if K.shape != (len(X), len(Z)):
            raise DataError(f"kernel: {self.kernel!r} must give a matrix of shape {(len(X), len(Z))}; got {K.shape}.")
        if not np.isfinite(K).all():
            raise DataError(f"kernel: {self.kernel!r} must give finite numbers. Scale the columns, or change it.")
        return K

    def _diagonal(self, X: Any) -> Array:
        return np.array(self.kernel.diag(_plain_rows(X)), dtype=np.float64)

    def _is_pointwise(self) -> bool:
        return False

    def _is_mercer(self) -> bool:
        return False

    def _is_invariant(self) -> bool:
        return False  # a custom kernel's word for it is not enough to move points

    def is_stationary(self) -> bool:
        """Tell what the kernel says of itself."""
        return bool(self.kernel.is_stationary())

    @property
    def theta(self) -> Array:
        """The logarithms of the free hyperparameters."""
        return np.array(self.kernel.theta, dtype=np.float64)

    @property
    def theta_names(self) -> list[str]:
        """What they are called."""
        free = [one for one in self.kernel.hyperparameters if not one.fixed]
        return [one.name if one.n_elements == 1 else f"{one.name}[{i}]" for one in free for i in range(one.n_elements)]

    def with_theta(self, theta: Any) -> Self:
        """Return the kernel with other hyperparameters."""
        theta = np.asarray(theta, dtype=np.float64)
        if theta.shape != self.theta.shape:
            raise ParameterError(f"{type(self).__name__}: theta must have shape {self.theta.shape}; got {theta.shape}.")
        return replace(self, kernel=self.kernel.clone_with_theta(theta))

    def hold(self, *names: str) -> Self:
        """Return the kernel with some hyperparameters fixed, by default all."""
        names = names or tuple(one.name for one in self.kernel.hyperparameters)
        held = self.kernel.clone_with_theta(self.theta)
        held.set_params(**{f"{name}_bounds": "fixed" for name in names})
        return replace(self, kernel=held)

    def _gradients(self, X: Any) -> list[Array]:
        if not len(self.theta):
            return []
        return list(
            np.moveaxis(np.asarray(self.kernel(_plain_rows(X), eval_gradient=True)[1], dtype=np.float64), -1, 0)
        )

    def _parameters(self) -> list[Parameter]:
        params = self.kernel.get_params()
        return [
            Parameter(one.name, params[one.name], "fixed" if one.fixed else np.asarray(one.bounds, dtype=float), True)
            for one in self.kernel.hyperparameters
        ]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of scikit-learn's object."""
        return dict(self.kernel.get_params(deep))

    def set_params(self, **params: Any) -> Self:
        """Change parameters of scikit-learn's object, in place."""
        self.kernel.set_params(**params)
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ForeignKernel) and bool(self.kernel == other.kernel)

    def __hash__(self) -> int:
        return hash((type(self.kernel), self.theta.tobytes()))

    def __deepcopy__(self, memo: Any) -> Self:
        return type(self)(copy.deepcopy(self.kernel, memo))

    @property
    def formula(self) -> str:
        """The kernel as scikit-learn shows it."""
        return f"{self.kernel!r}"


def is_matrix(X: Any) -> bool:
    """Tell whether X is a matrix of numbers."""
    return getattr(X, "ndim", 0) == 2 and getattr(getattr(X, "dtype", None), "kind", "O") in "biuf"


def as_structures(X: Any) -> Any:
    """Return a sequence of things, one for each point, as an array of one dimension; a matrix stays one."""
    if isinstance(X, np.ndarray) and X.ndim > 0:
        return X
    things = list(X)
    if all(isinstance(one, str) for one in things):
        return np.asarray(things)
    out = np.empty(len(things), dtype=object)
    for i, one in enumerate(things):
        out[i] = one
    return out


def _plain_rows(X: Any) -> Any:
    """Return points as the kernel's author expects them: rows of numbers as a dense array."""
    return X.toarray() if hasattr(X, "toarray") else X
