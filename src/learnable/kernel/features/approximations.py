r"""Features whose inner products are, nearly, a kernel: linear models of them are kernel machines for large n.

    Nyström      φ(x) = N k(m, x), N = K(m, m)^−½ for m of the rows: exact wherever one of the points is a landmark
    Fourier      φ(x) = √(2/D) cos(Wx + b), W ~ N(0, 2γI), b uniform: E φ(x)ᵀφ(z) = exp(−γ‖x − z‖²)

References: C. Williams and M. Seeger, Using the Nyström method to speed up kernel machines, 2001;
A. Rahimi and B. Recht, Random features for large-scale kernel machines, 2007.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state

from ...core import (
    FLOATS,
    N_JOBS,
    RANDOM_STATE,
    Array,
    DataError,
    Declared,
    NDArray,
    Number,
    Options,
    ParameterError,
    check_parameters,
    fitted,
    interruptible,
    is_array,
    law,
    laws,
    one_thread_blas,
    optional,
    param,
    tags,
)
from ...data.door import read_features, refuse_extreme_sizes
from ...risk.kernels import FunctionKernel, Kernel, as_kernel
from ...risk.kernels.adopted import is_foreign
from ..representer import KernelChoice, finite_diagonal, is_given, kernel_of

_SMALLEST = 1e-12  # share of the largest eigenvalue below which one is rounding


class _Features(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Declared):
    """A transformer that draws at random: what both share."""

    n_components: int = param(
        Number(low=1, integer=True), "How many features; of `Nystroem`, at most the number of rows.", default=100
    )
    random_state: Any = param(RANDOM_STATE, "Draws the landmarks, or W and b.", default=None)

    n_features_in_: int = fitted("int", "Number of columns.")
    _tags = tags(sparse=True, preserves_dtype=FLOATS)

    def _generator(self) -> Any:
        """Return what draws: a Generator as it is, else scikit-learn's RandomState of this seed."""
        seed = self.random_state
        return seed if isinstance(seed, np.random.Generator) else check_random_state(seed)


class Nystroem(KernelChoice, _Features):
    r"""Features of the Nyström method: φ(x) = K(m, m)^−½ k(m, x) for some rows m as landmarks.

    φ(x)ᵀφ(z) = k(x, m) K(m, m)⁺ k(m, z): the kernel of the projections onto the span of the landmarks' features, so
    that it never exceeds the kernel on the diagonal, and equals it where x or z is a landmark. The same landmarks as
    scikit-learn's for the same `random_state`. Time O(m³) for the fit, O(nmd + nm²) to transform; memory 50m² bytes and
    16 per row for the fit, 24nm to transform. Nothing is optimised, so there is no certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import Nystroem
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> features = Nystroem(gamma=0.1, n_components=6, random_state=0).fit_transform(X)
    >>> bool(np.allclose(features @ features.T, np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))))
    True
    """

    _theory = "nystroem"

    _positional: ClassVar[tuple[str, ...]] = ("kernel",)
    coef0: float | None = param(optional(Number()), "Constant of the polynomial and sigmoid kernels.", default=None)
    degree: float | None = param(
        optional(Number(low=0.0)),
        "Degree of the polynomial kernel, a number >= 0; one that is not whole needs γ⟨x, z⟩ + coef0 >= 0.",
        default=None,
    )
    n_jobs: int | None = param(N_JOBS, "Kept for compatibility.", default=None)

    component_indices_: NDArray[np.int64] = fitted("(n_landmarks,)", "Rows of the landmarks in the table.", kind="i")
    components_: Any = fitted("(n_landmarks, n_features)", "The landmarks, dense or CSR.")
    normalization_: Array = fitted(
        "(n_landmarks, n_landmarks)", "K(m, m)^−½; eigenvalues that are zero up to rounding are left out."
    )
    _tags = tags(pairwise=lambda model: is_given(model))

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the landmarks and take the root of their kernel matrix.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows; with kernel="precomputed" the kernel matrix.
        y : ignored
            There for pipelines.

        Returns
        -------
        self
            The fitted transformer.
        """
        check_parameters("Nystroem", self.get_params(deep=False), self._parameters)
        self._refuse_idle_parameters()
        table = read_features(self, X, reset=True)
        n = table.shape[0]
        m = min(table.shape[0], self.n_components)
        if self.n_components > n:
            warnings.warn(
                f"Nystroem: n_components={self.n_components} > n_samples={n}; all {n} rows are landmarks.",
                UserWarning,
                stacklevel=2,
            )
        picks = np.asarray(self._generator().permutation(n)[:m], dtype=np.int64)
        if is_given(self):
            if table.shape[1] != n:
                raise DataError(
                    f"Nystroem: Precomputed matrix must be a square matrix; got shape {table.shape}. Pass K(X, X)."
                )
            self.components_: Any = table[picks]
            K = self.components_[:, picks]
            K = np.asarray(K.toarray() if sp.issparse(K) else K, dtype=np.float64)
        else:
            self.components_ = table[picks]
            refuse_extreme_sizes(self.components_, None, "Nystroem")
            kernel = self._kernel_of(table.shape[1])
            points = self.components_.astype(np.float64)
            if isinstance(kernel, FunctionKernel) and kernel.pairwise:
                K = _half_matrix(kernel, points)
            else:
                finite_diagonal("Nystroem", kernel, points)
                K = kernel._between(points, points)
        if not np.abs(K - K.T).max(initial=0.0) <= 1e-8 * np.abs(K).max(initial=0.0):
            raise DataError(
                "Nystroem: the kernel matrix must be symmetric; pass (K + K.T)/2 if it differs by rounding."
            )
        values, vectors = interruptible(eigh, (K + K.T) / 2.0, driver="evd", check_finite=False)
        kept = values > _SMALLEST * max(float(values[-1]), 0.0)
        roots = np.where(kept, 1.0 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
        with one_thread_blas():
            self.normalization_ = ((vectors * roots) @ vectors.T).astype(table.dtype)
        self.component_indices_ = picks
        return self

    def _kernel_of(self, n_features: int) -> Kernel:
        """Return the kernel; as in scikit-learn, γ of "chi2" is 1 unless it is given."""
        if self.gamma is None and isinstance(self.kernel, str) and self.kernel == "chi2":
            return as_kernel("chi2", gamma=1.0)
        return kernel_of(self, n_features)

    def _refuse_idle_parameters(self) -> None:
        """Raise where a parameter is given that a function or a given matrix does not read."""
        given = [name for name in ("gamma", "coef0", "degree") if getattr(self, name) is not None]
        if given and (is_given(self) or (not isinstance(self.kernel, (str, Kernel)) and not is_foreign(self.kernel))):
            raise ParameterError(
                "Nystroem: Don't pass gamma, coef0 or degree to Nystroem if using a callable or precomputed kernel; "
                f"got {given[0]}. Use kernel_params for a function."
            )

    def transform(self, X: Any) -> NDArray[Any]:
        """Return φ(x) of each row.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows; with kernel="precomputed" the matrix K(X, rows of the fit).

        Returns
        -------
        array of shape (n_samples, n_components)
            The features; float32 for float32.
        """
        table = read_features(self, X)
        if is_given(self):
            K = table[:, self.component_indices_]
            K = np.asarray(K.toarray() if sp.issparse(K) else K, dtype=np.float64)
            return np.asarray(K @ self.normalization_, dtype=table.dtype)
        refuse_extreme_sizes(table, None, "Nystroem")
        kernel = self._kernel_of(self.n_features_in_)
        found = kernel.products(table, self.normalization_, self.components_, n_jobs=self.n_jobs)
        return found.astype(table.dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return len(self.component_indices_)

    _laws = laws(
        law(
            "component_indices_ are out of range",
            lambda model: (
                is_array(picks := model.component_indices_, (None,), np.int64)
                and picks.size
                and (not is_given(model) or 0 <= picks.min() <= picks.max() < model.components_.shape[1])
            ),
        ),
    )


def _half_matrix(kernel: FunctionKernel, X: Any) -> Array:
    """Return the symmetric matrix of a function of two points, which is called once for each pair."""
    points = X.toarray() if sp.issparse(X) else X
    K = np.zeros((len(points), len(points)))
    for i in range(len(points)):
        for j in range(i, len(points)):
            K[i, j] = K[j, i] = kernel._between(points[[i]], points[[j]])[0, 0]
    return K


class RBFSampler(_Features):
    r"""Random Fourier features: φ(x) = √(2/D) cos(Wx + b), whose inner products are exp(−γ‖x − z‖²) on average.

    By Hoeffding's inequality φ(x)ᵀφ(z) misses the kernel by more than ε with probability at most 2exp(−Dε²/8). The same
    draws as scikit-learn's for the same `random_state`. Time O(ndD), memory O(dD) and the features, 8nD bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import RBFSampler
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> features = RBFSampler(gamma=0.5, n_components=20_000, random_state=0).fit_transform(X)
    >>> round(float(features[0] @ features[1]), 2), round(float(np.exp(-0.5)), 2)
    (0.6, 0.61)
    """

    _theory = "random-features"

    gamma: Any = param(Options("scale") | Number(low=0.0), 'γ; "scale" is 1/(n_features · variance of X).', default=1.0)

    random_weights_: Any = fitted("(n_features, n_drawn)", "Wᵀ, one column per component.")
    random_offset_: Any = fitted("(n_drawn,)", "b.")
    gamma_: float = fitted("()", "γ.", low=0.0)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw frequencies and phases; of X only the number of columns matters, and its variance for "scale".

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows.
        y : ignored
            There for pipelines.

        Returns
        -------
        self
            The fitted transformer.
        """
        check_parameters("RBFSampler", self.get_params(deep=False), self._parameters)
        table = read_features(self, X, reset=True)
        self.gamma_ = self._scaled_gamma(table) if isinstance(self.gamma, str) else float(self.gamma)
        draw = self._generator()
        normal = draw.normal(size=(table.shape[1], self.n_components))
        self.random_weights_ = (np.sqrt(2.0 * self.gamma_) * normal).astype(table.dtype)
        self.random_offset_ = draw.uniform(0, 2 * np.pi, size=self.n_components).astype(table.dtype)
        return self

    @property
    def _gamma(self) -> float:
        return self.gamma_

    def _scaled_gamma(self, table: Any) -> float:
        mean = float(table.mean())
        with np.errstate(over="ignore", invalid="ignore"):
            square = (table.multiply(table).mean() - mean**2) if sp.issparse(table) else np.var(table, dtype=np.float64)
        if not np.isfinite(square):
            raise DataError("RBFSampler: the variance of X overflows; rescale it, or give gamma a number.")
        return 1.0 / (table.shape[1] * float(square)) if square > 0 else 1.0

    def transform(self, X: Any) -> NDArray[Any]:
        """Return φ(x) of each row.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_components)
            The features; float32 for float32.
        """
        table = read_features(self, X)
        with np.errstate(over="ignore", invalid="ignore"):
            angles = np.asarray(table @ self.random_weights_)
        angles += self.random_offset_.astype(angles.dtype)
        if not np.isfinite(angles).all():
            raise DataError("RBFSampler: Wx overflows; rescale X or lower gamma.")
        np.cos(angles, out=angles)
        angles *= np.sqrt(2.0 / self.n_components)
        return angles

    @property
    def _n_features_out(self) -> int:
        return int(self.random_weights_.shape[1])

    _laws = laws(
        law(
            "random_weights_ must have one column per component",
            lambda model: model.random_weights_.shape[1] == model.n_components,
        ),
    )
