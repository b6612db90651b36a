"""Kernels of scikit-learn's Gaussian processes that have no formula here: taken as they are, with their derivatives.

Such a kernel brings its own hyperparameters, bounds and gradient, and may compare anything: texts, trees, molecules.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ...core.errors import DataError, ParameterError
from .base import Array, Kernel, read_points
from .interface import Parameter


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
        K = np.array(self.kernel(_plain(X), _plain(Z)), dtype=np.float64)
        if K.shape != (len(X), len(Z)):
            raise DataError(f"kernel: {self.kernel!r} must give a matrix of shape {(len(X), len(Z))}; got {K.shape}.")
        if not np.isfinite(K).all():
            raise DataError(f"kernel: {self.kernel!r} must give finite numbers. Scale the columns, or change it.")
        return K

    def _diagonal(self, X: Any) -> Array:
        return np.array(self.kernel.diag(_plain(X)), dtype=np.float64)

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
        return list(np.moveaxis(np.asarray(self.kernel(_plain(X), eval_gradient=True)[1], dtype=np.float64), -1, 0))

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


def _plain(X: Any) -> Any:
    """Return points as the kernel's author expects them: rows of numbers as a dense array."""
    return X.toarray() if hasattr(X, "toarray") else X
