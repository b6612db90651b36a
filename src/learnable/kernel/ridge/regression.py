r"""Kernel ridge regression: least squares in the space of a kernel.

    min_f  Σᵢ wᵢ (yᵢ − f(xᵢ))² + α‖f‖²,        f = Σᵢ cᵢ k(·, xᵢ)   (representer theorem)

In the form n⁻¹ΣV + λΩ, with V = (y − f)² and Ω = ‖f‖², α = nλ. There is no offset. The coefficients solve

    (K + αW⁻¹) c = y,

so that yᵢ − f(xᵢ) = αcᵢ/wᵢ, and a residual r of these equations leaves the objective at most Σwᵢrᵢ² above its least
value. Leaving a row out changes its prediction to yᵢ − cᵢ/((K + αW⁻¹)⁻¹)ᵢᵢ: no refits are needed.

Reference: R. Rifkin and R. Lippert, Notes on regularized least-squares, MIT CSAIL TR-2007-025.

The diagonal of (K + D)⁻¹, which is all that exact leave-one-out needs besides the coefficients.

With A = K + D and c = A⁻¹y, the fit to all rows but i predicts yᵢ − cᵢ/(A⁻¹)ᵢᵢ for it. From a Cholesky factor, A = LLᵀ,
(A⁻¹)ᵢᵢ is the squared norm of column i of L⁻¹.

Reference: R. Rifkin and R. Lippert, Notes on regularized least-squares, MIT CSAIL TR-2007-025, section 2.

Regularised least-squares classification (RLSC): kernel ridge regression of the labels ±1.

    min_f  Σᵢ wᵢ (tᵢ − f(xᵢ))² + α‖f‖²,        tᵢ = ±1,

and the class is the sign of f. Of K > 2 classes, each has a function of its own, +1 for its rows and −1 for all others,
and the largest value wins: K right-hand sides of one and the same matrix.

Reference: R. Rifkin, G. Yeo and T. Poggio, Regularized least-squares classification, 2003.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import lapack
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin

from ...core import (
    MAX_SECONDS,
    N_JOBS,
    TOLERANCE,
    Array,
    ArrayLike,
    Certificate,
    DataError,
    NDArray,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    interruptible,
    law,
    laws,
    optional,
    param,
)
from ...data.door import Table, class_weights
from ...data.sources import NamedScore, rowwise
from ...linear.base import CLASS_WEIGHT
from ...risk.kernels import FunctionKernel, Kernel, Linear, Precomputed
from ..operators import MOST_ROWS_KEPT, Operator, Woodbury
from ..representer import (
    NAMED_KERNEL,
    RepresenterModel,
    finite_diagonal,
    kernel_of,
    memory_door,
    refuse_other_classes,
    training_points,
)
from .systems import KernelSolution, solve_dense, solve_iteratively

PENALTY = Number(low=0.0, high=1e100)
_RESIDUAL_ROUNDING = 1e-15  # of a residual, relative to the sum of the sizes of its terms


class KernelSmoother(RepresenterModel):
    """What regression and classification by kernel ridge share: the fit of numbers, exact leave-one-out."""

    alpha: Any = param(
        PENALTY | ArrayLike(PENALTY), "α ≥ 0, one for all targets or one each.", default=1.0, kw_only=False
    )
    solver: str = param(
        Options("auto", "cholesky", "cg"),
        '"cholesky" factorises the matrix, in float32 with refinement where that reaches full accuracy, '
        'else in float64; "cg" takes conjugate gradients with a partial factor as preconditioner; "auto" '
        'chooses by size and kernel, and from 3,000 rows on by how fast the first steps of "cg" converge.',
        default="auto",
    )
    tol: float = param(TOLERANCE, 'Relative residual at which "cg" stops; direct solutions reach 1e-12.', default=1e-8)
    max_iter: int | None = param(optional(Number(low=1, integer=True)), 'Most steps of "cg".', default=None)
    n_jobs: int | None = param(
        N_JOBS, "Threads; None uses all that BLAS may use. The result does not depend on it.", default=None
    )
    max_seconds: float | None = param(
        MAX_SECONDS,
        'Time after which "cg" returns the best so far. The clock is asked between tiles of the matrix, and '
        "time is kept for the product that measures the result; if there is none even for that, c = 0 is "
        "returned. Factorisations of up to 12,000 rows are not interrupted.",
        default=None,
    )

    n_iter_: int = fitted("int", "Steps of conjugate gradients.")
    certificate_: Certificate = fitted(
        "Certificate",
        "`closed-form`: the relative residual of (K + αW⁻¹)c = y; `bound` is the proven relative suboptimality.",
    )

    _remedy = "raise max_iter or max_seconds, or use a larger alpha"

    def _fit_numbers(self, table: Table, y: Array, weight: Array | None, run: Run) -> Certificate:
        """Fit targets (n,) or (n, t) and leave coefficients of the same shape."""
        owner = type(self).__name__
        kernel = kernel_of(self, table.n_columns)
        points = training_points(owner, self, table)
        finite_diagonal(owner, kernel, points)
        operator = Operator(kernel, points, keep=keeps_matrix(self.solver, kernel, points), n_jobs=self.n_jobs)
        Y = y.reshape(len(y), -1)
        alphas = alpha_per_target(owner, self.alpha, Y.shape[1])
        coef = np.empty_like(Y)
        certificates = []
        for alpha in np.unique(alphas):
            targets = np.flatnonzero(alphas == alpha)
            coef[:, targets], certificate = certified_solution(operator, float(alpha), Y[:, targets], weight, self, run)
            certificates.append(certificate)
        self._keep(points, coef.reshape(y.shape), table)
        worst = max(certificates, key=lambda certificate: certificate.value / certificate.tolerance)
        self.n_iter_ = worst.n_iter
        return worst

    def _leave_one_out_values(self, table: Table, y: Array, weight: Array | None) -> Array:
        """Return the values that fits to all other rows give each row, shaped like y."""
        owner = type(self).__name__
        if table.n_rows < 2:
            raise DataError(f"{owner}: needs at least 2 rows to leave one out; got 1 sample.")
        kernel = kernel_of(self, table.n_columns)
        points = training_points(owner, self, table)
        finite_diagonal(owner, kernel, points)
        operator = Operator(kernel, points, keep=not is_narrow(kernel, points), n_jobs=self.n_jobs)
        Y = y.reshape(len(y), -1)
        out = np.empty_like(Y)
        w = np.ones(len(Y)) if weight is None else weight
        alphas = alpha_per_target(owner, self.alpha, Y.shape[1])
        for alpha in np.unique(alphas):
            targets = np.flatnonzero(alphas == alpha)
            inverse = inverse_diagonal(operator, float(alpha) / w)
            if inverse is None:
                raise ParameterError(
                    f"{owner}: with alpha={alpha:g} the kernel matrix is singular, and leaving a row out is not "
                    "defined by the others; raise alpha."
                )
            coef, _ = certified_solution(operator, float(alpha), Y[:, targets], weight, self, Run())
            out[:, targets] = Y[:, targets] - coef / inverse[:, None]
        return out.reshape(y.shape)


class KernelRidge(NamedScore, MultiOutputMixin, RegressorMixin, KernelSmoother):
    r"""Kernel ridge regression: minimise Σᵢ wᵢ (yᵢ − f(xᵢ))² + α‖f‖² over functions f of the kernel's space.

    In the form n⁻¹ΣV + λΩ (V squared loss, Ω = ‖f‖²), α = nλ; there is no offset, as in scikit-learn. Up to 12,000 rows
    time is O(n³/3) or less, memory 21n² bytes (42n² if α = 0; by "cg" 24n²). Beyond, a few dozen products with the
    kernel matrix, which is never whole: at most 0.65 GB, 40 bytes for each entry of X, and 100 for each of y. The
    linear kernel of d < n columns takes O(nd²) time, and 40 bytes for each entry of X.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import KernelRidge
    >>> X = np.linspace(0.0, 6.0, 50)[:, None]
    >>> model = KernelRidge(alpha=0.01, kernel="rbf", gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[1.5]]).round(3), model.certificate_.holds
    (array([0.996]), True)
    """

    _theory = "kernel-ridge"

    kernel: Any = param(
        NAMED_KERNEL,
        "k: a name of scikit-learn's, a kernel of `learnable.risk.kernels` or scikit-learn, or a function of two rows.",
        default="linear",
    )

    _door = staticmethod(memory_door(target="numeric", multi_output=True))

    def _fit(self, table: Table, run: Run) -> Certificate:
        return self._fit_numbers(table, table.y, table.weight, run)

    @rowwise
    def predict(self, X: Any) -> Array:
        """Return f(x) = Σᵢ cᵢ k(x, xᵢ).

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            New rows; with kernel="precomputed" the matrix K(X, training rows).

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
            The predicted targets.
        """
        return self._values(X)

    def leave_one_out(self, X: Any, y: Any, sample_weight: Any = None) -> Array:
        """Return the prediction for each row by the fit to all others, exactly and without refits.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`; the model need not be fitted. A row without weight gets the prediction of the fit.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
            yᵢ − cᵢ/((K + αW⁻¹)⁻¹)ᵢᵢ.
        """
        draft = self._draft()
        table = type(self)._door(draft, X, y, sample_weight)
        values = draft._leave_one_out_values(table, table.y, table.weight)
        if table.kept is None:
            return values
        out = np.asarray(draft.fit(X, y, sample_weight).predict(X))
        out[table.kept] = values
        return out


def alpha_per_target(owner: str, alpha: Any, n_targets: int) -> Array:
    """Return α of each target; raise ParameterError for another number of them."""
    alphas = np.asarray(alpha, dtype=np.float64).ravel()
    if len(alphas) not in (1, n_targets):
        raise ParameterError(
            f"{owner}: alpha must be one number or one per target; got {len(alphas)} values for {n_targets} targets."
        )
    return np.asarray(np.broadcast_to(alphas, (n_targets,)))


def is_narrow(kernel: Kernel, X: Any) -> bool:
    """Tell whether K = XXᵀ has so few columns that it is better never formed."""
    return isinstance(kernel, Linear) and X.shape[1] < X.shape[0] and X.shape[1] <= 4000


def keeps_matrix(solver: str, kernel: Kernel, X: Any) -> bool:
    """Tell whether the kernel matrix is formed."""
    if solver == "cholesky":
        return True
    if is_narrow(kernel, X) or (solver == "cg" and isinstance(kernel, Linear)):
        return False
    return bool(X.shape[0] <= MOST_ROWS_KEPT)


def certified_solution(
    operator: Operator, alpha: float, Y: Array, weight: Array | None, model: Any, run: Run
) -> tuple[Array, Certificate]:
    """Return the coefficients for one α and what is proven about them.

    Parameters
    ----------
    operator : Operator
        K.
    alpha : float
        α.
    Y : (n, t) array
        Targets.
    weight : (n,) array or None
        w.
    model : object
        With `solver`, `tol` and `max_iter`.
    run : Run
        The fit in progress.
    """
    exponent = np.frexp(np.abs(Y).max(axis=0, initial=0.0))[1]
    targets = np.ldexp(Y, -exponent)  # of size one, so that no square overflows
    w = np.ones(len(Y)) if weight is None else weight
    d = alpha / w
    direct = operator.matrix is not None and (model.solver != "cg" or alpha == 0.0)
    if direct:
        found = solve_dense(operator, d, targets, w, whole=model.solver == "cholesky", progress=run.progress)
    elif alpha == 0.0:  # least squares in the space that the rows span
        if operator.n > MOST_ROWS_KEPT:
            raise ParameterError(
                f"{type(model).__name__}: alpha=0 needs the whole kernel matrix, too large for {operator.n} rows; use "
                "a positive alpha, or LinearRegression for the linear kernel."
            )
        found = solve_dense(Operator(operator.kernel, operator.X, keep=True), d, targets, w)
    else:
        found = solve_iteratively(
            operator,
            d,
            targets,
            tol=model.tol,
            max_iter=model.max_iter,
            progress=run.progress,
            seconds_left=partial(_seconds_left, getattr(model, "max_seconds", None), run),
        )
    sure = alpha > 0.0 and found.definite and not isinstance(operator.kernel, (FunctionKernel, Precomputed))
    bound = _suboptimality(found, targets, alpha, w, operator.diagonal) if sure else None
    with np.errstate(over="ignore"):
        coef = np.ldexp(found.coef, exponent)
    return coef, Certificate("closed-form", found.value, found.tolerance, bound, found.n_iter)


def _seconds_left(max_seconds: float | None, run: Run) -> float:
    return np.inf if max_seconds is None else max_seconds - run.seconds


def _suboptimality(found: KernelSolution, Y: Array, alpha: float, w: Array, diagonal: Array) -> float:
    """Return Σw(|r| + e)²/max(D, 10⁻⁸P₀), where e is what rounding may hide of the residual r.

    D = P − Σw(|r| + e)² is below the optimum, and P₀ is the objective of f = 0. Without e, the bound of a solution that
    is exact to rounding would be rounding itself, and another order of summation would give another one.
    """
    r = found.residual
    c = found.coef
    weight = (w / w.max())[:, None]
    shift = alpha / w.max() / weight
    miss = r + shift * c  # y − f
    primal = (weight * miss**2 + weight * shift * c * (Y - miss)).sum(axis=0)
    root = np.sqrt(np.abs(diagonal))
    terms = root[:, None] * (root @ np.abs(c)) + shift * np.abs(c) + np.abs(Y)  # |K||c| + d|c| + |y|, or more
    gap = (weight * (np.abs(r) + _RESIDUAL_ROUNDING * terms) ** 2).sum(axis=0)
    start = (weight * Y**2).sum(axis=0)
    size = np.maximum(primal - gap, 1e-8 * start)
    return float(np.max(np.where(size > 0, gap / np.where(size > 0, size, 1.0), 0.0), initial=0.0))


_SMALLEST_SHARE = 1e-6  # of dᵢ(A⁻¹)ᵢᵢ: below, a difference from one would lose more than ten digits


def inverse_diagonal(operator: Operator, d: Array) -> Array | None:
    """Return the diagonal of (K + D)⁻¹; None if the matrix is singular or not positive definite.

    Parameters
    ----------
    operator : Operator
        K.
    d : (n,) array
        Diagonal of D.
    """
    if operator.matrix is None and operator.is_linear and d.all():
        inverse = Woodbury(operator.X.astype(np.float64), d).diagonal()
        if (inverse * d).min(initial=1.0) > _SMALLEST_SHARE:
            return inverse
    K = operator.matrix if operator.matrix is not None else operator.kernel(operator.X)
    size = operator.diagonal + d
    if not (size > 0).all():
        return None
    scale = 1.0 / np.sqrt(size)
    A = K * (scale[:, None] * scale)
    A.flat[:: len(A) + 1] = 1.0
    L, info = interruptible(lapack.dpotrf, A.T, lower=1, overwrite_a=1, clean=1)
    if info != 0 or np.diag(L).min(initial=1.0) ** 2 < 8.0 * len(A) * 2.0**-52:
        return None
    inverse_root, _ = interruptible(lapack.dtrtri, L, lower=1, overwrite_c=1)
    return np.asarray(np.einsum("ij,ij->j", inverse_root, inverse_root) * scale**2)


class KernelRidgeClassifier(NamedScore, ClassifierMixin, KernelSmoother):
    r"""Classification by kernel ridge regression of ±1: minimise Σᵢ wᵢ (tᵢ − f(xᵢ))² + α‖f‖².

    In the form n⁻¹ΣV + λΩ, α = nλ; there is no offset. Time and memory are those of `KernelRidge`: all classes
    share one factorisation.

    Examples
    --------
    >>> from learnable import KernelRidgeClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["in", "out", "out", "in"]
    >>> model = KernelRidgeClassifier(alpha=0.1, gamma=1.0).fit(X, y)
    >>> model.predict([[0.1], [1.5]])
    array(['in', 'out'], dtype='<U3')
    """

    _theory = "kernel-ridge"

    alpha: float = param(PENALTY, "α ≥ 0.", default=1.0, kw_only=False)
    class_weight: Any = param(CLASS_WEIGHT, "Weights of the classes, multiplied onto the sample weights.", default=None)

    _door = staticmethod(memory_door(target="classes"))

    classes_: NDArray[Any] = fitted("(n_classes,)", "The labels.", kind="biufOUST")
    dual_coef_: Array = fitted(
        "(n_samples,) or (n_samples, n_scores)", "c; one column for two classes, whose positive one is the second."
    )

    def _fit(self, table: Table, run: Run) -> Certificate:
        self.classes_ = np.asarray(table.classes)
        return self._fit_numbers(table, signs_of(table.y, len(self.classes_)), self._weights(table), run)

    @rowwise
    def decision_function(self, X: Any) -> Array:
        """Return f(x): of shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        return self._values(X)

    @rowwise
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each row of X: by the sign of f, or the largest of several."""
        return self._labels(self._values(X))

    def leave_one_out(self, X: Any, y: Any, sample_weight: Any = None) -> NDArray[Any]:
        """Return the label that the fit to all other rows predicts for each, exactly and without refits.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`; the model need not be fitted. class_weight="balanced" keeps the weights of all rows.

        Returns
        -------
        array of shape (n_samples,)
            Labels.
        """
        draft = self._draft()
        table = type(self)._door(draft, X, y, sample_weight)
        draft.classes_ = np.asarray(table.classes)
        signs = signs_of(table.y, len(draft.classes_))
        labels = draft._labels(draft._leave_one_out_values(table, signs, draft._weights(table)))
        if table.kept is None:
            return labels
        out = np.asarray(draft.fit(X, y, sample_weight).predict(X))
        out[table.kept] = labels
        return out

    def _weights(self, table: Table) -> Array | None:
        """Return the weights of the rows times those of their classes."""
        of_class = class_weights(table, self.class_weight, type(self).__name__)
        if of_class is None:
            return table.weight
        return of_class[table.y] if table.weight is None else table.weight * of_class[table.y]

    def _labels(self, values: Array) -> NDArray[Any]:
        codes = (values > 0).astype(np.int64) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    _laws = laws(
        law("dual_coef_ does not fit classes_", lambda model: refuse_other_classes(model) >= 1),
    )


def signs_of(codes: NDArray[np.int64], n_classes: int) -> Array:
    """Return +1 for a row's own class and −1 for the others: (n,) of two classes, else (n, K).

    Examples
    --------
    >>> signs_of(np.array([0, 1]), 2), signs_of(np.array([2]), 3)
    (array([-1.,  1.]), array([[-1., -1.,  1.]]))
    """
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
