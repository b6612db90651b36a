r"""Kernel logistic regression: two classes, or K by the softmax, with scores from the space of a kernel.

    min_{f, b}  C Σᵢ sᵢ ℓ(yᵢ, f(xᵢ) + b) + ½‖f‖²,      ℓ(y, z) = log Σₖ e^{zₖ} − z_y,      f = Σᵢ cᵢ k(·, xᵢ)

(two classes: one score z, ℓ = log(1 + e^z) − [y = 1]z). In the form n⁻¹ΣV + λΩ with Ω = ½‖f‖², λ = 1/(nC). The offset
b is never penalised. With the linear kernel it is `LogisticRegression`.

Reference: J. Zhu and T. Hastie, Kernel logistic regression and the import vector machine, JCGS 14, 2005.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin

from ...core.declare import MAX_ITER, MAX_SECONDS, N_JOBS, TOLERANCE, Boolean, Number, fitted, param
from ...core.errors import DataError, ModelFileError
from ...core.estimator import Certificate, Run, never
from ...data.door import Table
from ...data.sources import NamedScore, rowwise
from ...linear.base import CLASS_WEIGHT, class_weights
from ..operators import MOST_ROWS_KEPT, Operator, OutOfTimeError
from ..representer import RepresenterModel, finite_diagonal, kernel_of, memory_door, training_points
from ..svm.program import FACTORED, dual_bounds
from .newton import KernelLogisticProblem, fit_logistic

Array = NDArray[np.float64]

_TWO_CLASSES_RANK, _MANY_CLASSES_RANK = 1500, 1800  # of the preconditioner, times classes
_SMALLEST_RANK = 60
_SMALLEST_TOLERANCE = 1e-12


class KernelLogisticRegression(NamedScore, ClassifierMixin, RepresenterModel):
    r"""Kernel logistic regression: minimise C Σᵢ sᵢ ℓ(yᵢ, f(xᵢ) + b) + ½‖f‖², ℓ the (softmax) cross-entropy.

    In the form n⁻¹ΣV + λΩ with Ω = ½‖f‖², λ = 1/(nC). Newton steps, each solved by conjugate gradients whose
    preconditioner is the factor of the whole system up to 3,000 rows times scores, and beyond has a partial factor of
    the kernel matrix. Memory: that matrix (8n² bytes) up to 12,000 rows, then only tiles of it; and for the
    preconditioner 0.3 GB and 12,000n bytes.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_classes)
        c; one column for two classes, whose positive one is the second.
    intercept_ : array of shape (1,) or (n_classes,)
        b.
    X_fit_, function_
        As in `KernelRidge`; `function_` is f without b.
    n_iter_ : int
        Newton steps.
    certificate_ : Certificate
        `gap`: the relative duality gap.

    Examples
    --------
    >>> from learnable import KernelLogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["in", "out", "out", "in"]
    >>> model = KernelLogisticRegression(C=10.0, gamma=1.0).fit(X, y)
    >>> model.predict([[0.1], [1.5]]), model.certificate_.kind
    (array(['in', 'out'], dtype='<U3'), 'gap')
    """

    _theory = "kernel-logistic"

    C: float = param(Number(low=1e-50, high=1e50), "Inverse strength of the penalty.", default=1.0, kw_only=False)
    fit_intercept: bool = param(Boolean(), "Whether b is free or zero.", default=True)
    class_weight: Any = param(CLASS_WEIGHT, "Weights of the classes, multiplied onto the sample weights.", default=None)
    tol: float = param(TOLERANCE, "Relative duality gap at which to stop.", default=1e-8)
    max_iter: int = param(MAX_ITER, "Most Newton steps.", default=100)
    n_jobs: int | None = param(N_JOBS, "Threads; the result does not depend on it.", default=None)
    max_seconds: float | None = param(MAX_SECONDS, "Time after which the best so far is returned.", default=None)

    _door = staticmethod(memory_door(target="classes"))
    _remedy = "raise max_iter or max_seconds, or lower C"

    classes_: NDArray[Any] = fitted("(n_classes,)", "The labels.", kind="biufOUST")
    intercept_: Array = fitted("(n_scores,)", "b.")

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        self.classes_ = np.asarray(table.classes)
        kernel = kernel_of(self, table.n_columns)
        points = training_points(owner, self, table)
        finite_diagonal(owner, kernel, points)
        stop = never if self.max_seconds is None else run.should_stop
        try:
            operator = Operator(kernel, points, keep=table.n_rows <= MOST_ROWS_KEPT, n_jobs=self.n_jobs, stop=stop)
        except OutOfTimeError:
            return self._keep_nothing(table, points)
        if table.n_rows <= FACTORED and not dual_bounds(kernel, points, operator.matrix):
            raise DataError(
                f"{owner}: the kernel matrix has a negative eigenvalue, so that the objective has no minimum. Use a "
                "Mercer kernel (rbf, poly with coef0 >= 0, linear, Matern), or SVC, which bears others."
            )
        of_class = class_weights(table, self.class_weight, owner)
        weight = np.ones(table.n_rows) if table.weight is None else table.weight
        kappa = self.C * (weight if of_class is None else weight * of_class[table.y])
        problem = KernelLogisticProblem(operator, table.y, len(self.classes_), kappa, self.fit_intercept)
        rank = _TWO_CLASSES_RANK if problem.binary else max(_SMALLEST_RANK, _MANY_CLASSES_RANK // len(self.classes_))
        found = fit_logistic(
            problem,
            tol=max(self.tol, _SMALLEST_TOLERANCE),
            max_iter=self.max_iter,
            rank=min(table.n_rows, rank),
            progress=run.progress,
            stop=run.should_stop,
            seconds_left=lambda: np.inf if self.max_seconds is None else self.max_seconds - run.seconds,
        )
        self._keep(points, found.coef[:, 0] if problem.binary else found.coef, table)
        self.intercept_, self.n_iter_ = found.intercept, found.n_iter
        tolerance = max(self.tol, _SMALLEST_TOLERANCE)
        return Certificate("gap", found.gap, tolerance, found.gap, found.n_iter)

    def _keep_nothing(self, table: Table, points: Any) -> Certificate:
        """Store f = 0 and b = 0: there was no time for the kernel's matrix, and nothing is known of the gap."""
        n_classes = len(self.classes_)
        columns = () if n_classes == 2 else (n_classes,)
        self._keep(points, np.zeros((table.n_rows, *columns)), table)
        self.intercept_, self.n_iter_ = np.zeros(columns or (1,)), 0
        return Certificate("gap", np.inf, max(self.tol, _SMALLEST_TOLERANCE), None, 0)

    @rowwise
    def decision_function(self, X: Any) -> Array:
        """Return the scores f(x) + b: of shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        values = self._values(X)
        return values + (self.intercept_[0] if values.ndim == 1 else self.intercept_)

    @rowwise
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each row of X."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    @rowwise
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, of shape (n_samples, n_classes)."""
        z = self.decision_function(X)
        return np.column_stack([expit(-z), expit(z)]) if z.ndim == 1 else np.asarray(softmax(z, axis=1))

    @rowwise
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities."""
        z = self.decision_function(X)
        return np.column_stack([log_expit(-z), log_expit(z)]) if z.ndim == 1 else np.asarray(log_softmax(z, axis=1))

    def _check_loaded(self) -> None:
        super()._check_loaded()
        classes, b = getattr(self, "classes_", None), getattr(self, "intercept_", None)
        if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
            raise ModelFileError("load: classes_ must hold at least two labels.")
        columns = () if len(classes) == 2 else (len(classes),)
        if self.dual_coef_.shape[1:] != columns:
            raise ModelFileError(f"load: dual_coef_ {self.dual_coef_.shape} does not fit {len(classes)} classes.")
        if not isinstance(b, np.ndarray) or b.shape != (columns or (1,)) or not np.isfinite(b).all():
            raise ModelFileError("load: intercept_ must have one finite number for each score.")
