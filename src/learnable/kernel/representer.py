r"""What models of the form f = Σᵢ cᵢ k(·, xᵢ) share: the choice of the kernel, values of f, invariants of a file.

scikit-learn names kernels by strings with `gamma`, `degree` and `coef0`; a function of two rows is a kernel too.
Kernels of `learnable.risk.kernels`, and of `sklearn.gaussian_process.kernels`, are taken as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ..core import (
    Array,
    DataError,
    Declared,
    Estimator,
    Matches,
    ModelFileError,
    Number,
    Options,
    fitted,
    optional,
    param,
    tags,
)
from ..data.door import Table, Target, door, read_features, refuse_extreme_sizes
from ..risk.kernels import FunctionKernel, Kernel, Linear, Precomputed, RKHSFunction, as_kernel
from ..risk.kernels.adopted import NAMES, is_foreign
from ..risk.kernels.base import inner

_LEAST_GAMMA = 1e-300  # in place of γ = 0, a constant kernel

NAMED_KERNEL = Options(*NAMES) | Matches(lambda v: isinstance(v, Kernel) or callable(v), "a kernel or a function")


def kernel_of(model: Any, n_features: int) -> Kernel:
    """Return the kernel that a model's parameters name; without gamma, γ = 1/d."""
    kernel = model.kernel
    if callable(kernel) and not isinstance(kernel, Kernel) and not is_foreign(kernel):
        return FunctionKernel(partial(kernel, **(model.kernel_params or {})), pairwise=True)
    gamma = 1.0 / n_features if model.gamma is None else max(float(model.gamma), _LEAST_GAMMA)
    degree = 3 if model.degree is None else model.degree
    coef0 = 1.0 if model.coef0 is None else model.coef0
    if isinstance(kernel, str) and kernel in ("poly", "polynomial") and (degree < 1 or degree != int(degree)):
        return FunctionKernel(RealPower(float(degree), gamma, float(coef0)))
    return as_kernel(kernel, gamma=gamma, degree=int(degree), coef0=float(coef0))


@dataclass(frozen=True)
class RealPower:
    """k(x, z) = (γ⟨x, z⟩ + c)^p for any p ≥ 0: a number wherever γ⟨x, z⟩ + c ≥ 0, a Mercer kernel seldom."""

    degree: float
    gamma: float
    coef0: float

    def __call__(self, X: Any, Z: Any) -> Array:
        """Return the values for two tables."""
        with np.errstate(invalid="ignore"):  # what is no number is refused by the kernel that calls
            return np.asarray((self.gamma * inner(X, Z) + self.coef0) ** self.degree)


def memory_door(*, target: Target = "numeric", multi_output: bool = False) -> Callable[..., Table]:
    """Return the door of models that need all rows at once: files are read if they are small, streams are refused."""
    read_table = door(target=target, multi_output=multi_output)

    def read(model: Any, X: Any, y: Any = None, sample_weight: Any = None, run: Any = None) -> Table:
        table = read_table(model, X, y, sample_weight, run)
        table.require_memory(
            f"{type(model).__name__}: a kernel machine needs all rows in memory. Pass fewer rows, or X.compute() "
            "for Dask."
        )
        return table

    return read


def finite_diagonal(owner: str, kernel: Kernel, X: Any) -> Array:
    """Return k(xᵢ, xᵢ); raise DataError where it overflows, or is negative, which no Mercer kernel's is."""
    with np.errstate(over="ignore", invalid="ignore"):
        diagonal = kernel.diagonal(X)
    if not np.isfinite(diagonal).all() or float(diagonal.max(initial=0.0)) > 1e200:
        row = int(np.argmax(~(diagonal <= 1e200)))
        raise DataError(f"{owner}: k(x, x) is {diagonal[row]:.3g} in row {row}, too large to compute with; rescale X.")
    return np.asarray(diagonal, dtype=np.float64)


def training_points(owner: str, model: Any, table: Table, *, symmetric: bool = True) -> Any:
    """Return the rows of a fit as a copy of their own; of a given kernel matrix, those of rows with weight.

    A given matrix must be `symmetric`, unless the caller sees to that.
    """
    X = table.X
    refuse_extreme_sizes(X, None, owner)
    if not is_given(model):
        return X.copy() if sp.issparse(X) else np.array(X, order="C")
    n_given = table.n_rows if table.kept is None else len(table.kept)
    if X.shape[1] != n_given:
        raise DataError(
            f"{owner}: Precomputed matrix must be a square matrix; got shape ({n_given}, {X.shape[1]}). "
            "Pass K(X, X) to fit, and K(X_new, X) to predict."
        )
    K = X if table.kept is None else X[:, np.flatnonzero(table.kept)]
    K = np.array(K.toarray() if sp.issparse(K) else K, dtype=np.float64)
    if not symmetric:
        return K
    size = float(np.abs(K).max(initial=0.0))
    if not np.abs(K - K.T).max(initial=0.0) <= 1e-8 * size:
        raise DataError(f"{owner}: the kernel matrix must be symmetric; pass (K + K.T)/2 if it differs by rounding.")
    return (K + K.T) / 2.0


def is_given(model: Any) -> bool:
    """Tell whether X is the kernel matrix itself."""
    return isinstance(model.kernel, Precomputed) or (isinstance(model.kernel, str) and model.kernel == "precomputed")


class KernelChoice(Declared):
    """The parameters by which a kernel is chosen."""

    kernel: Any = param(
        NAMED_KERNEL,
        "k: a name of scikit-learn's, a kernel of `learnable.risk.kernels` or scikit-learn, or a function of two rows.",
        default="rbf",
    )
    gamma: float | None = param(
        optional(Number(low=0.0)), "γ of the kernels that have one by name; None is 1/n_features.", default=None
    )
    degree: float | None = param(
        Number(low=0.0),
        "Degree of the polynomial kernel, a number >= 0; one that is not whole needs γ⟨x, z⟩ + coef0 >= 0.",
        default=3,
    )
    coef0: float | None = param(Number(), "Constant of the polynomial and sigmoid kernels.", default=1)
    kernel_params: dict[str, Any] | None = param(
        optional(Matches(lambda v: isinstance(v, dict), "a dict of arguments")),
        "Further arguments of a function.",
        default=None,
    )


class RepresenterModel(KernelChoice, Estimator):
    """A model that predicts from values of f = Σᵢ cᵢ k(·, xᵢ)."""

    kernel: Any
    X_fit_: Any = fitted("(n_points, n_columns)", "The rows with weight, dense or CSR; a kernel matrix that was given.")
    dual_coef_: Array = fitted("(n_samples,) or (n_samples, n_scores)", "c.")
    n_features_in_: int = fitted("int", "Number of columns.")
    _tags = tags(sparse=True, pairwise=lambda model: is_given(model))

    @property
    def function_(self) -> RKHSFunction:
        """The fitted function as an element of the kernel's space: it evaluates, adds, and has inner products."""
        check_is_fitted(self)
        if is_given(self):
            raise DataError(f"{type(self).__name__}: a given kernel matrix has no points at which to evaluate k.")
        return RKHSFunction(kernel_of(self, self.n_features_in_), self.X_fit_, self.dual_coef_)

    def _keep(self, points: Any, coefficients: Array, table: Table) -> None:
        """Store what predictions need; of a given matrix, rows without weight keep a coefficient of zero."""
        if is_given(self) and table.kept is not None:
            every = np.zeros((len(table.kept), *coefficients.shape[1:]))
            every[table.kept] = coefficients
            coefficients = every
        self.X_fit_ = points
        self.dual_coef_ = np.ascontiguousarray(coefficients)
        if not np.isfinite(coefficients).all():
            raise DataError(f"{type(self).__name__}: the coefficients are beyond the range of float64; rescale y.")

    def _values(self, X: Any) -> Array:
        """Return f(x) of new rows, of shape (n,) or (n, t)."""
        X = read_features(self, X)
        if is_given(self):
            return np.asarray(X @ self.dual_coef_, dtype=np.float64)
        refuse_extreme_sizes(X, None, type(self).__name__)
        kernel = kernel_of(self, self.n_features_in_)
        if isinstance(kernel, Linear):
            return np.asarray(X @ (self.X_fit_.T @ self.dual_coef_), dtype=np.float64)
        return kernel.products(X, self.dual_coef_, self.X_fit_, n_jobs=getattr(self, "n_jobs", None))

    def _check_loaded(self) -> None:
        super()._check_loaded()
        points = self.X_fit_
        coef = self.dual_coef_
        columns = self.n_features_in_
        expected = (points.shape[0], points.shape[0]) if is_given(self) else (len(coef), columns)
        if coef.dtype != np.float64 or points.shape != expected or (is_given(self) and len(coef) != columns):
            raise ModelFileError(
                f"load: X_fit_ {points.shape} and dual_coef_ {coef.shape} do not fit {columns} columns."
            )
        kernel_of(self, max(1, points.shape[1]))


def refuse_other_classes(model: Any) -> int:
    """Return how many scores a loaded classifier has; raise where `dual_coef_` does not fit its classes."""
    k = len(model.classes_)
    if k < 2 or model.dual_coef_.shape[1:] != (() if k == 2 else (k,)):
        raise ModelFileError(f"load: dual_coef_ {model.dual_coef_.shape} does not fit {k} classes.")
    return 1 if k == 2 else k
