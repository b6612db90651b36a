r"""Kernel ridge regression over a whole path of penalties, and the choice among them.

`kernel_ridge_path` gives the coefficients for every α from one eigendecomposition; `KernelRidgeCV` chooses α by exact
leave-one-out, generalised cross-validation, or folds.

    LOO(α) = Σ wᵢ (yᵢ − ŷ₍ᵢ₎)² / W,      GCV(α) = (Σ wᵢ rᵢ²/W) / (1 − tr H/n)².

Reference: R. Rifkin and R. Lippert, Notes on regularized least-squares, MIT CSAIL TR-2007-025.

One eigendecomposition of a kernel matrix, and from it kernel ridge regression for every penalty.

With √w K √w = U diag(λ) Uᵀ and z = Uᵀ√w y,

    c(α) = √w U (λ + α)⁻¹ z,        (K + αW⁻¹)⁻¹ᵢᵢ = wᵢ Σₖ uᵢₖ²/(λₖ + α),        tr H(α) = Σₖ λₖ/(λₖ + α),

so that a further α costs two products with U: coefficients, exact leave-one-out errors and degrees of freedom.

Reference: R. Rifkin and R. Lippert, Notes on regularized least-squares, MIT CSAIL TR-2007-025, section 3.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh
from sklearn.base import MultiOutputMixin, RegressorMixin

from ...core import (
    N_JOBS,
    Array,
    ArrayLike,
    Boolean,
    Certificate,
    DataError,
    Matches,
    Nothing,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    interruptible,
    one_thread_blas,
    param,
)
from ...data.door import Table
from ...data.sources import NamedScore, rowwise
from ...linear.choosing import accepted, plain_splits
from ...linear.least_squares.ridge_cv import _flat, _Identity
from ...solvers.systems.moments import CLOSED_FORM_TOLERANCE
from ..operators import Operator
from ..representer import RepresenterModel, finite_diagonal, kernel_of, memory_door, training_points
from .systems import refine, solve_dense

_POSITIVE = Number(low=0.0, high=1e100, low_open=True)


class KernelRidgeCV(NamedScore, MultiOutputMixin, RegressorMixin, RepresenterModel):
    r"""Kernel ridge regression, with α chosen among `alphas`: exact leave-one-out from one eigendecomposition.

    For each α the model is that of `KernelRidge`: minimise Σᵢ wᵢ (yᵢ − f(xᵢ))² + α‖f‖², where α = nλ in the form
    n⁻¹ΣV + λΩ. Time O(n³ + n²·n_alphas), memory 41n² bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import KernelRidgeCV
    >>> X = np.linspace(0.0, 6.0, 40)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.cos(37.0 * X[:, 0])
    >>> KernelRidgeCV(alphas=[1e-4, 1e-2, 1.0, 100.0], gamma=1.0).fit(X, y).alpha_
    0.01
    """

    _theory = "kernel-ridge"

    alphas: Any = param(ArrayLike(_POSITIVE) | _POSITIVE, "The candidates.", default=(0.1, 1.0, 10.0), kw_only=False)
    scoring: Any = param(
        Nothing() | Matches(lambda v: isinstance(v, str) or callable(v), "a scorer or its name"),
        "What to maximise; None is minus the mean squared error, or R² if `cv` is given.",
        default=None,
    )
    cv: Any = param(
        Nothing() | Matches(lambda v: not isinstance(v, (str, float, bool)), "a number of folds or a splitter"),
        "None is exact leave-one-out; else folds, each with an eigendecomposition of its own.",
        default=None,
    )
    criterion: str = param(
        Options("loo", "gcv"),
        "Leave-one-out, or generalised cross-validation, which does not change when rows are rotated.",
        default="loo",
    )
    store_cv_results: bool = param(
        Boolean(),
        "Whether to keep the squared leave-one-out errors (predictions when `scoring` is given).",
        default=False,
    )
    alpha_per_target: bool = param(Boolean(), "Whether each target gets an α of its own.", default=False)
    n_jobs: int | None = param(N_JOBS, "Threads; the result does not depend on it.", default=None)

    alpha_: Any = fitted("float or array of shape (n_targets,)", "The chosen penalty.")
    best_score_: Any = fitted("float or array of shape (n_targets,)", "Its score.")
    criterion_path_: Array = fitted(
        "array of shape (n_alphas,) or (n_targets, n_alphas)", "The score of every candidate; greater is better."
    )
    cv_results_: Array = fitted(
        "array of shape (n_samples, n_alphas) or (n_samples, n_targets, n_alphas)",
        "Only with `store_cv_results`.",
        optional=True,
    )
    n_iter_: int = fitted("int", "1.")
    certificate_: Certificate = fitted(
        "Certificate", "`closed-form`: the relative residual of the equations of the chosen fit."
    )

    _door = staticmethod(memory_door(target="numeric", multi_output=True))
    _remedy = "use larger alphas"

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        if self.cv is not None and (self.store_cv_results or self.alpha_per_target):
            raise ParameterError(f"{owner}: store_cv_results and alpha_per_target need cv=None (exact leave-one-out).")
        if table.in_memory and table.n_rows < 2:
            raise DataError(f"{owner}: needs at least 2 rows to leave one out; got 1 sample (n_samples=1).")
        points = training_points(owner, self, table)
        kernel = kernel_of(self, table.n_columns)
        finite_diagonal(owner, kernel, points)
        operator = Operator(kernel, points, keep=True, n_jobs=self.n_jobs)
        alphas = np.asarray(self.alphas, dtype=np.float64).ravel()
        Y = table.y.reshape(table.n_rows, -1)
        exponent = np.frexp(np.abs(Y).max(axis=0, initial=0.0))[1]
        targets = np.ldexp(Y, -exponent)
        spectrum = kernel_spectrum(operator.matrix, targets, table.weight)  # type: ignore[arg-type]
        if self.cv is None:
            scores = self._leave_one_out_scores(spectrum, targets, exponent, table, alphas)
        else:
            scores = self._fold_scores(operator.matrix, targets, table, alphas)[None, :]
        chosen = np.argmax(scores, axis=1)
        per_target = self.alpha_per_target and table.y.ndim == 2
        self.alpha_ = alphas[chosen] if per_target else float(alphas[chosen[0]])
        best = scores[np.arange(len(scores)), chosen]
        self.best_score_ = best if per_target else float(best[0])
        self.criterion_path_ = scores if per_target else scores[0]
        coef = np.empty_like(Y)
        value = 0.0
        each = np.broadcast_to(self.alpha_, (Y.shape[1],))
        for alpha in np.unique(each):
            columns = np.flatnonzero(each == alpha)
            coef[:, columns], size = _exact(operator, spectrum, float(alpha), targets[:, columns], table.weight)
            value = max(value, size)
        with np.errstate(over="ignore"):
            self._keep(points, np.ldexp(coef, exponent).reshape(table.y.shape), table)
        self.n_iter_ = 1
        return Certificate("closed-form", value, CLOSED_FORM_TOLERANCE)

    def _leave_one_out_scores(
        self, spectrum: KernelSpectrum, Y: Array, exponent: Array, table: Table, alphas: Array
    ) -> Array:
        """Return scores of shape (1 or n_targets, n_alphas); greater is better."""
        w = spectrum.root**2
        with np.errstate(over="ignore"):
            units = np.ldexp(1.0, exponent)[:, None]
            if self.criterion == "gcv" and self.scoring is None:
                free = np.maximum(spectrum.freedom(alphas), 1e-150)
                squares = np.einsum("i,ika->ka", w / w.sum(), spectrum.residuals(alphas) ** 2)
                scores = -((units / free) ** 2) * squares
            else:
                errors = spectrum.leave_one_out(alphas)
                predictions = (Y[:, :, None] - errors) * units
                if self.scoring is None:
                    scores = -np.einsum("i,ika->ka", w / w.sum(), errors**2) * units**2
                else:
                    scores = self._scores_of(predictions, Y * units[:, 0], table.weight)
                if self.store_cv_results:
                    stored = (errors * units) ** 2 if self.scoring is None else predictions
                    self.cv_results_ = stored[:, 0] if table.y.ndim == 1 else stored
        return scores if self.alpha_per_target else scores.mean(axis=0, keepdims=True)

    def _scores_of(self, predictions: Array, y: Array, weight: Array | None) -> Array:
        """Score predictions (n, t, n_alphas): each target alone, or all of them at once."""
        from sklearn.metrics import check_scoring

        groups = [slice(k, k + 1) for k in range(y.shape[1])] if self.alpha_per_target else [slice(None)]
        try:
            scorer = check_scoring(_Identity(), self.scoring)
            extra = accepted(scorer, {} if weight is None else {"sample_weight": weight})
            return np.array(
                [
                    [
                        scorer(_Identity(), _flat(predictions[:, group, a]), _flat(y[:, group]), **extra)
                        for a in range(predictions.shape[2])
                    ]
                    for group in groups
                ]
            )
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            reason = str(error).splitlines()[0]
            raise ParameterError(f"KernelRidgeCV: scoring={self.scoring!r} does not work here: {reason}") from error

    def _fold_scores(self, K: Any, Y: Array, table: Table, alphas: Array) -> Array:
        """Return the mean score of every α over the folds."""
        try:
            splits = plain_splits(self.cv, table)
            if not splits or any(len(train) < 1 or len(test) < 1 for train, test in splits):
                raise ValueError("it leaves a fold without rows")
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            reason = str(error).splitlines()[0]
            raise ParameterError(f"KernelRidgeCV: cv={self.cv!r} does not work here: {reason}") from error
        total = np.zeros(len(alphas))
        for train, test in splits:
            weight = None if table.weight is None else table.weight[train]
            coefs = kernel_spectrum(K[np.ix_(train, train)], Y[train], weight).coefficients(alphas)
            predictions = np.moveaxis(K[np.ix_(test, train)] @ coefs, 0, -1)
            total += self._scores_of(predictions, Y[test], None if table.weight is None else table.weight[test])[0]
        return total / len(splits)

    @rowwise
    def predict(self, X: Any) -> Array:
        """Return f(x) = Σᵢ cᵢ k(x, xᵢ) for the rows of X."""
        return self._values(X)


def _exact(
    operator: Operator, spectrum: KernelSpectrum, alpha: float, Y: Array, weight: Array | None
) -> tuple[Array, float]:
    """Return the coefficients for the chosen α, refined until their equations hold, and the relative residual."""
    d = alpha / (np.ones(len(Y)) if weight is None else weight)
    found = refine(operator, lambda R: spectrum.inverse(R, alpha), d, Y, tol=CLOSED_FORM_TOLERANCE, max_iter=10)
    if not found.value <= CLOSED_FORM_TOLERANCE:
        found = min(found, solve_dense(operator, d, Y, weight), key=lambda solution: solution.value)
    return found.coef, found.value


def kernel_ridge_path(
    X: Any,
    y: Any,
    alphas: Any,
    *,
    kernel: Any = "rbf",
    gamma: float | None = None,
    degree: float = 3,
    coef0: float = 1,
    sample_weight: Any = None,
) -> Array:
    """Return the coefficients of kernel ridge regression for every α, from one eigendecomposition.

    Parameters
    ----------
    X, y, sample_weight
        As for `KernelRidge.fit`; rows must have weight.
    alphas : array of numbers > 0
        The penalties.
    kernel, gamma, degree, coef0
        The kernel, as in `KernelRidge`.

    Returns
    -------
    array of shape (n_alphas, n_samples) or (n_alphas, n_samples, n_targets)
        c(α): to about 1e-12 of their size times the condition of K + αW⁻¹; `KernelRidge` refines one of them.

    Examples
    --------
    >>> from learnable.kernel import kernel_ridge_path
    >>> kernel_ridge_path([[0.0], [1.0]], [1.0, 0.0], [1.0, 10.0], kernel="linear").round(3)
    array([[1. , 0. ],
           [0.1, 0. ]])
    """
    model = KernelRidgeCV(alphas, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0)
    for name in ("alphas", "kernel", "gamma", "degree", "coef0"):
        if not model._parameters[name].allows(getattr(model, name)):
            raise ParameterError(
                f"kernel_ridge_path: {name} must be {model._parameters[name].phrase}; got {getattr(model, name)!r}."
            )
    table = KernelRidgeCV._door(model, X, y, sample_weight)
    points = training_points("kernel_ridge_path", model, table)
    chosen = kernel_of(model, table.n_columns)
    finite_diagonal("kernel_ridge_path", chosen, points)
    Y = table.y.reshape(table.n_rows, -1)
    coefs = kernel_spectrum(chosen(points), Y, table.weight).coefficients(np.asarray(alphas, dtype=float).ravel())
    return coefs[:, :, 0] if table.y.ndim == 1 else coefs


class KernelSpectrum(NamedTuple):
    """Eigenvalues and eigenvectors of √w K √w, w scaled to at most one, and the targets in their terms."""

    values: Array  #: λ ≥ 0, (n,)
    vectors: Array  #: U, (n, n)
    root: Array  #: √w, (n,)
    weight_scale: float  #: the largest weight: α here is α/weight_scale
    projected: Array  #: Uᵀ√w y, (n, t)

    def coefficients(self, alphas: Array) -> Array:
        """Return c(α) of every α, of shape (n_alphas, n, t)."""
        out = np.empty((len(alphas), *self.projected.shape))
        with one_thread_blas():
            for number, alpha in enumerate(alphas / self.weight_scale):
                out[number] = self.root[:, None] * (self.vectors @ (self.projected / (self.values + alpha)[:, None]))
        return out

    def leave_one_out(self, alphas: Array) -> Array:
        """Return yᵢ − ŷ₍ᵢ₎ of every α > 0, of shape (n, t, n_alphas)."""
        coef = self.coefficients(alphas)
        squares = self.vectors**2
        out = np.empty((*self.projected.shape, len(alphas)))
        with one_thread_blas():
            for number, alpha in enumerate(alphas / self.weight_scale):
                inverse = self.root**2 * (squares @ (1.0 / (self.values + alpha)))
                out[:, :, number] = coef[number] / inverse[:, None]
        return out

    def residuals(self, alphas: Array) -> Array:
        """Return yᵢ − f(xᵢ) = αcᵢ/wᵢ of every α, of shape (n, t, n_alphas)."""
        scaled = (alphas / self.weight_scale)[:, None, None]
        return np.moveaxis(scaled * self.coefficients(alphas) / self.root[:, None] ** 2, 0, -1)

    def freedom(self, alphas: Array) -> Array:
        """Return the share of degrees of freedom that a fit leaves, 1 − tr H/n, of shape (n_alphas,)."""
        scaled = (alphas / self.weight_scale)[:, None]
        return np.asarray((scaled / (self.values + scaled)).mean(axis=1))

    def inverse(self, R: Array, alpha: float) -> Array:
        """Return (K + αW⁻¹)⁻¹R for R of shape (n, t)."""
        with one_thread_blas():
            z = self.vectors.T @ (self.root[:, None] * R)
            z /= (self.values + alpha / self.weight_scale)[:, None]
            return np.asarray(self.root[:, None] * (self.vectors @ z))


def kernel_spectrum(K: Array, Y: Array, weight: Array | None = None) -> KernelSpectrum:
    """Return the eigendecomposition of a kernel matrix (n, n) with targets (n, t) and weights (n,).

    Examples
    --------
    >>> K, Y = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1.0], [0.0]])
    >>> kernel_spectrum(K, Y).coefficients(np.array([1.0])).round(4).ravel()
    array([ 0.375, -0.125])
    """
    scale = 1.0 if weight is None else float(weight.max())
    root = np.ones(len(K)) if weight is None else np.sqrt(weight / scale)
    values, vectors = interruptible(eigh, K * (root[:, None] * root), driver="evd", check_finite=False)
    with one_thread_blas():
        projected = vectors.T @ (root[:, None] * Y)
    return KernelSpectrum(np.maximum(values, 0.0), vectors, root, scale, projected)
