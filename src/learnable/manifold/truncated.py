r"""Truncated singular value decomposition: X ≈ UΣVᵀ with a few singular values, without centring.

Of all matrices of rank k, UΣVᵀ of the k largest singular values is nearest to X (Eckart and Young, 1936). Of word
counts this is latent semantic analysis (S. Deerwester et al., 1990).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..core.declare import FLOATS, RANDOM_STATE, TOLERANCE, Number, Options, fitted, param, tags
from ..core.errors import DataError, ParameterError
from ..core.estimator import Certificate, Estimator, Run
from ..data.door import Table, door, read_features, refuse_extreme_sizes
from ..meta.splits import as_generator
from ..solvers.eigen import PAIR_TOLERANCE, singular_triplets

Array = NDArray[np.float64]

#: Relative residual that a random subspace is iterated to.
_RANDOM_TOLERANCE = 1e-9


class TruncatedSVD(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    r"""The largest singular values of a dense or sparse table and their vectors, X ≈ UΣVᵀ.

    Unlike scikit-learn's, `algorithm="randomized"` iterates its random subspace, `n_iter` times at least and until the
    residual is 1e-9 of the largest singular value, so that the vectors are those of X. Memory: O((n + d)k).

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.manifold import TruncatedSVD
    >>> model = TruncatedSVD(n_components=1, random_state=0).fit(np.array([[3.0, 0.0], [0.0, 1.0], [4.0, 0.0]]))
    >>> model.singular_values_.round(6), model.components_.round(6)
    (array([5.]), array([[1., 0.]]))
    """

    _theory = "principal-components"

    n_components: int = param(Number(low=1, integer=True), "How many, k.", default=2, kw_only=False)
    algorithm: str = param(
        Options("arpack", "randomized"), "Lanczos, or an iterated random subspace.", default="randomized"
    )
    n_iter: int = param(Number(low=0, integer=True), "Least iterations of the random subspace.", default=5)
    n_oversamples: int = param(Number(low=1, integer=True), "Additional vectors of the random subspace.", default=10)
    power_iteration_normalizer: str = param(
        Options("auto", "QR", "LU", "none"), "Kept for compatibility; always QR.", default="auto"
    )
    random_state: Any = param(RANDOM_STATE, "Of the random subspace.", default=None)
    tol: float = param(TOLERANCE, "Of Lanczos; 0 is machine precision.", default=0.0)

    components_: Array = fitted("(n_components, n_features)", "Vᵀ.")
    singular_values_: Array = fitted("(n_components,)", "σ, the largest first.", low=0.0)
    explained_variance_: Array = fitted("(n_components,)", "Variances of the columns of XV.", low=0.0)
    explained_variance_ratio_: Array = fitted(
        "(n_components,)", "The same as shares of the variances of all columns of X.", low=0.0
    )
    n_features_in_: int = fitted("int", "Number of columns.")
    certificate_: Certificate = fitted(
        "Certificate", "`closed-form`: the largest of ‖XᵀXv − σ²v‖/σ₁² and |vᵢᵀvⱼ − [i = j]|."
    )

    _door = staticmethod(door(target="none"))
    _remedy = "use algorithm='arpack'"
    _tags = tags(sparse=True, preserves_dtype=FLOATS)

    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Find the singular values and vectors of X; y is ignored."""
        return super().fit(X)

    def _fit(self, table: Table, run: Run) -> Certificate:
        if table.X is None:
            raise DataError("TruncatedSVD: the rows must be in memory; PCA takes tables on disk.")
        refuse_extreme_sizes(table.X, None, "TruncatedSVD")
        X = sp.csr_array(table.X.astype(np.float64)) if sp.issparse(table.X) else np.asarray(table.X, dtype=np.float64)
        n, d = X.shape
        if self.n_components > d:
            raise ParameterError(f"TruncatedSVD: n_components({self.n_components}) must be <= n_features({d}).")
        k = min(self.n_components, n)
        random = self.algorithm == "randomized"
        found = singular_triplets(
            X,
            k,
            method="randomized" if random else "lanczos",
            tol=_RANDOM_TOLERANCE / 10.0 if random else self.tol,
            n_oversamples=self.n_oversamples,
            random_state=as_generator(self.random_state) if random else None,
            owner="TruncatedSVD",
        )
        V = found.right.T
        self.components_ = found.right
        self.singular_values_ = found.values
        power = _unit_of(float(found.values[0]))
        X = X if power == 1.0 else X / power
        values = found.values / power
        image = np.asarray(X @ V)
        variances = image.var(axis=0)
        self.explained_variance_ = variances * power * power
        total = _column_variances(X)
        self.explained_variance_ratio_ = variances / total if total > 0 else np.zeros(k)
        residual = np.sqrt(((X.T @ image - V * values**2) ** 2).sum(axis=0)).max()
        unit = float(values[0] ** 2) or 1.0
        inner = np.abs(V.T @ V - np.eye(k)).max()
        tolerance = _RANDOM_TOLERANCE if random else max(PAIR_TOLERANCE, self.tol)
        return Certificate("closed-form", float(max(residual / unit, inner)), tolerance, n_iter=found.n_iter)

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Find the vectors and return XV."""
        return self.fit(X).transform(X)

    def transform(self, X: Any) -> Array:
        """Return XV, the coordinates of rows; float32 for float32."""
        check_is_fitted(self)
        table = read_features(self, X)
        return np.asarray(table @ self.components_.T, dtype=table.dtype)

    def inverse_transform(self, X: Any) -> Array:
        """Return the rows of rank k with these coordinates, XVᵀ."""
        check_is_fitted(self)
        scores = np.asarray(X, dtype=np.float64)
        if scores.ndim != 2 or scores.shape[1] != len(self.components_):
            raise DataError(
                f"TruncatedSVD: inverse_transform needs {len(self.components_)} columns; got shape {scores.shape}."
            )
        return np.asarray(scores @ self.components_)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])


def _unit_of(size: float) -> float:
    """Return the power of two by which to divide numbers whose squares would leave the range of float64, else one."""
    return 1.0 if size == 0 or 1e-140 < size < 1e140 else float(2.0 ** np.frexp(size)[1])


def _column_variances(X: Any) -> float:
    """Return the sum of the variances of the columns."""
    if not sp.issparse(X):
        return float(X.var(axis=0).sum())
    mean = np.asarray(X.mean(axis=0)).ravel()
    square = np.asarray(X.multiply(X).mean(axis=0)).ravel()
    return float(np.maximum(square - mean**2, 0.0).sum())
