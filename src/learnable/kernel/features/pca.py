r"""Kernel principal components: directions of the kernel's space along which the points vary most.

With the centred matrix K̃ = JKJ, J = I − 11ᵀ/n, and K̃u = λu, the component of x along the direction Σᵢ uᵢ/√λ φ̃(xᵢ) is

    t(x) = Σᵢ uᵢ/√λ k̃(x, xᵢ),        k̃(x, z) = ⟨φ(x) − φ̄, φ(z) − φ̄⟩;

of the rows themselves it is √λ u. With the linear kernel this is PCA.

Reference: B. Schölkopf, A. Smola and K.-R. Müller, Nonlinear component analysis as a kernel eigenvalue problem, 1998.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ...core import (
    FLOATS,
    N_JOBS,
    RANDOM_STATE,
    TOLERANCE,
    Array,
    Boolean,
    Certificate,
    DataError,
    Estimator,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    interruptible,
    law,
    laws,
    one_thread_blas,
    optional,
    param,
    tags,
)
from ...data.door import Table, read_features, refuse_extreme_sizes
from ...solvers.systems.moments import CLOSED_FORM_TOLERANCE
from ..operators import Operator, product_by_rows
from ..representer import NAMED_KERNEL, KernelChoice, finite_diagonal, is_given, kernel_of, memory_door, training_points
from ..ridge.systems import solve_dense

_EPSILON = 2.0**-52  # distance from one to the next float64


def _symmetric(centred: Array, size: float) -> Array:
    """Return the centred matrix without rounding; raise unless it is symmetric, as far as centring can make it so."""
    if not np.abs(centred - centred.T).max(initial=0.0) <= 1e-8 * size:
        raise DataError(
            "KernelPCA: the kernel matrix must be symmetric, at least once it is centred; pass (K + K.T)/2 if it "
            "differs by rounding."
        )
    return np.asarray((centred + centred.T) / 2.0)


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelChoice, Estimator):
    r"""Kernel principal components: the eigenvectors of the centred kernel matrix, and the components of new points.

    Time O(n³) for all components, O(n²) a component for a few; memory 49n² bytes and 25n²; with
    the inverse transform 75n² and 32n². Signs make the largest entry of every eigenvector positive, as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import KernelPCA
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    >>> KernelPCA(n_components=1).fit_transform(X).ravel().round(3)
    array([ 2.121,  0.707, -0.707, -2.121])
    """

    _theory = "kernel-pca"

    kernel: Any = param(
        NAMED_KERNEL,
        "k: a name of scikit-learn's, a kernel of `learnable.risk.kernels` or scikit-learn, or a function of two rows.",
        default="linear",
    )
    n_components: int | None = param(
        optional(Number(low=1, integer=True)),
        "How many components, at most; None is all that are not zero.",
        default=None,
        kw_only=False,
    )
    alpha: float = param(
        Number(low=0.0, high=1e100), "Penalty of the ridge regression that learns the inverse transform.", default=1.0
    )
    fit_inverse_transform: bool = param(
        Boolean(), "Whether to learn it: kernel ridge regression of the rows on their components.", default=False
    )
    eigen_solver: str = param(
        Options("auto", "dense", "arpack", "randomized"),
        '"dense" for all components, "arpack" for a few; "randomized" means "arpack" here, which is exact.',
        default="auto",
    )
    tol: float = param(TOLERANCE, "Of ARPACK; 0 is machine precision.", default=0)
    max_iter: int | None = param(optional(Number(low=1, integer=True)), "Of ARPACK.", default=None)
    iterated_power: Any = param(
        Options("auto") | Number(low=0, integer=True), "Kept for compatibility.", default="auto"
    )
    remove_zero_eig: bool = param(Boolean(), "Whether components of eigenvalue zero are left out.", default=False)
    random_state: Any = param(RANDOM_STATE, "Kept for compatibility; nothing is random.", default=None)
    copy_X: bool = param(Boolean(), "Kept for compatibility; X is never changed.", default=True)
    n_jobs: int | None = param(N_JOBS, "Threads; the result does not depend on it.", default=None)

    X_fit_: Any = fitted("(n_points, n_features)", "The rows, dense or CSR.")
    eigenvalues_: Array = fitted("(n_kept,)", "λ, largest first.", low=0.0)
    eigenvectors_: Array = fitted("(n_points, n_kept)", "u.")
    gamma_: float = fitted("()", "γ.")
    kernel_means_: Array = fitted("(n_points,)", "Means of the rows of K, which centre new points.")
    dual_coef_: Array = fitted(
        "(n_points, n_features)", "The learned inverse, with `fit_inverse_transform`.", optional=True
    )
    X_transformed_fit_: Array = fitted("(n_points, n_kept)", "The components of the rows, likewise.", optional=True)
    certificate_: Certificate = fitted(
        "Certificate", "`closed-form`: the largest of ‖K̃u − λu‖/λ₁ and |uᵢᵀuⱼ − [i = j]|."
    )

    _door = staticmethod(memory_door(target="none"))
    _remedy = "raise max_iter, or use eigen_solver='dense'"

    n_features_in_: int = fitted("int", "Number of columns.")
    _tags = tags(sparse=True, pairwise=lambda model: is_given(model), preserves_dtype=FLOATS)

    def fit(self, X: Any, y: Any = None) -> Any:
        """Find the components of the rows of X; y is ignored."""
        return super().fit(X)

    def _fit(self, table: Table, run: Run) -> Certificate:
        if self.fit_inverse_transform and is_given(self):
            raise ParameterError(
                "KernelPCA: Cannot fit_inverse_transform with a precomputed kernel: it needs rows. Set it False."
            )
        if self.fit_inverse_transform and sp.issparse(table.X):
            raise DataError("KernelPCA: fit_inverse_transform needs dense rows; pass X.toarray().")
        points = training_points("KernelPCA", self, table, symmetric=False)
        kernel = kernel_of(self, table.n_columns)
        finite_diagonal("KernelPCA", kernel, points)
        K = np.array(points) if is_given(self) else kernel(points)
        self.kernel_means_ = K.mean(axis=0)
        largest = float(np.abs(K.diagonal()).max(initial=0.0))  # rounding of K outlives the centring
        of_rows = K.mean(axis=1) if is_given(self) else self.kernel_means_
        centred = K - self.kernel_means_ - (of_rows - self.kernel_means_.mean())[:, None]
        if is_given(self):
            centred = _symmetric(centred, float(np.abs(K).max(initial=0.0)))
        del K
        values, vectors, n_iter = self._decompose(centred)
        noise = 10.0 * _EPSILON * len(centred) * max(float(values[0]), largest)
        if values[-1] < -1e3 * noise - 1e-7 * abs(float(values[0])):
            raise DataError(
                "KernelPCA: There are significant negative eigenvalues: the kernel is not positive semidefinite here. "
                f"One is {values[-1]:.3g}, the largest {values[0]:.3g}. Use a Mercer kernel."
            )
        values = np.where(values > noise, values, 0.0)
        kept = values > 0 if self.remove_zero_eig or self.n_components is None else np.ones(len(values), dtype=bool)
        values = values[kept]
        vectors = vectors[:, kept]
        size = max(float(np.abs(centred.diagonal()).sum()), 1e12 * noise)
        with one_thread_blas():
            residual = product_by_rows(centred, vectors, self.n_jobs) - vectors * values
            inner = vectors.T @ vectors
        value = max(
            float(np.sqrt((residual**2).sum(axis=0)).max(initial=0.0)) / (size if size > 0 else 1.0),
            float(np.abs(inner - np.eye(len(values))).max(initial=0.0)),
        )
        self.X_fit_ = points
        self.eigenvalues_ = values
        signs = vectors[np.abs(vectors).argmax(axis=0), np.arange(len(values))]
        self.eigenvectors_ = np.ascontiguousarray(vectors * np.where(signs < 0, -1.0, 1.0))
        self.gamma_ = 1.0 / table.n_columns if self.gamma is None else float(self.gamma)
        self.n_iter_ = n_iter
        del centred, vectors, residual, inner  # the inverse needs their room
        if self.fit_inverse_transform:
            self._learn_inverse()
        return Certificate("closed-form", value, CLOSED_FORM_TOLERANCE if self.tol == 0 else max(1e-12, self.tol))

    def _decompose(self, K: Array) -> tuple[Array, Array, int]:
        """Return the largest eigenvalues, in descending order, and their eigenvectors."""
        n = len(K)
        m = n if self.n_components is None else min(n, self.n_components)
        few = n > 200 and m < 10 if self.eigen_solver == "auto" else self.eigen_solver != "dense" and m < n
        if not few:
            values, vectors = interruptible(eigh, K, subset_by_index=(n - m, n - 1), check_finite=False)
            return values[::-1], vectors[:, ::-1], 1
        start = np.random.default_rng(0).uniform(-1.0, 1.0, n)
        try:
            with one_thread_blas():
                values, vectors = eigsh(K, m, which="LA", tol=self.tol, maxiter=self.max_iter, v0=start)
        except ArpackNoConvergence:
            values, vectors = interruptible(eigh, K, subset_by_index=(n - m, n - 1), check_finite=False)
        order = np.argsort(values)[::-1]
        return values[order], vectors[:, order], 1

    def _learn_inverse(self) -> None:
        """Regress the rows on their components."""
        components = self.eigenvectors_ * np.sqrt(self.eigenvalues_)
        kernel = kernel_of(self, self.n_features_in_)
        operator = Operator(kernel, components, keep=True, n_jobs=self.n_jobs)
        rows = np.asarray(self.X_fit_, dtype=np.float64)
        self.dual_coef_ = np.ascontiguousarray(solve_dense(operator, np.full(len(rows), float(self.alpha)), rows).coef)
        self.X_transformed_fit_ = components

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Find the components and return those of the rows of X, √λ u."""
        self.fit(X)
        return (self.eigenvectors_ * np.sqrt(self.eigenvalues_)).astype(self.X_fit_.dtype, copy=False)

    def transform(self, X: Any) -> Array:
        """Return the components of new rows.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows; with kernel="precomputed" the matrix K(X, rows of the fit).

        Returns
        -------
        array of shape (n_samples, n_components)
            t(x); float32 for float32.
        """
        table = read_features(self, X)
        refuse_extreme_sizes(table, None, "KernelPCA")
        positive = self.eigenvalues_ > 0
        roots = np.where(positive, 1.0 / np.sqrt(np.where(positive, self.eigenvalues_, 1.0)), 0.0)
        directions = self.eigenvectors_ * roots
        directions = directions - directions.mean(axis=0)  # centring on the right: J
        if is_given(self):
            found = np.asarray(table @ directions, dtype=np.float64)
        else:
            kernel = kernel_of(self, self.n_features_in_)
            found = kernel.products(table, directions, self.X_fit_, n_jobs=self.n_jobs)
        return np.asarray(found - self.kernel_means_ @ directions, dtype=table.dtype)

    def inverse_transform(self, X: Any) -> Array:
        """Return rows whose components are nearly those given, by the learned regression.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)
            Components.

        Returns
        -------
        array of shape (n_samples, n_features)
            Rows.
        """
        if not self.fit_inverse_transform:
            raise NotFittedError("KernelPCA: there is no inverse transform; fit with fit_inverse_transform=True.")
        check_is_fitted(self)
        kernel = kernel_of(self, self.n_features_in_)
        return kernel.products(np.asarray(X, dtype=np.float64), self.dual_coef_, self.X_transformed_fit_)

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    _laws = laws(
        law(
            "eigenvalues_, eigenvectors_ and kernel_means_ must be float64",
            lambda model: (
                {model.eigenvalues_.dtype, model.eigenvectors_.dtype, model.kernel_means_.dtype}
                == {np.dtype(np.float64)}
            ),
        ),
        law(
            "dual_coef_ and X_transformed_fit_ do not fit X_fit_",
            lambda model: (
                not model.fit_inverse_transform
                or (hasattr(model, "dual_coef_") and hasattr(model, "X_transformed_fit_"))
            ),
        ),
    )
