r"""Regularised risks: any convex loss with any convex penalty, in the three forms that the theory knows.

    Tikhonov   min_f  R(f) + λ Ω(f)
    Ivanov     min_f  R(f)            subject to  Ω(f) ≤ τ
    Phillips   min_f  Ω(f)            subject to  R(f) ≤ κ

with R(f) = Σᵢ wᵢ V(yᵢ, f(xᵢ))/Σ wᵢ and f(x) = xᵀβ + b, or f in the space of a kernel plus b. For convex V and Ω they
are the same problem in three parameters: a solution of one solves the others at τ = Ω(f) and κ = R(f), and λ is the
multiplier of Ivanov's constraint, 1/λ that of Phillips's.

References: A. N. Tikhonov, 1963; V. K. Ivanov, 1962; D. L. Phillips, 1962; L. Oneto, S. Ridella and D. Anguita,
Tikhonov, Ivanov and Morozov regularization for support vector machine learning, Machine Learning 103, 2016.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if

from ...core import (
    MAX_ITER,
    MAX_SECONDS,
    TOLERANCE,
    Array,
    ArrayLike,
    Boolean,
    Certificate,
    DataError,
    Estimator,
    Matches,
    NDArray,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    is_labels,
    law,
    laws,
    optional,
    param,
    tags,
)
from ...data.door import Table, door, read_features
from ...data.sources import NamedScore, rowwise
from ...risk.kernels import Kernel, as_kernel
from ...risk.kernels.adopted import NAMES
from ...risk.losses.multiclass import ArgmaxLoss
from ...risk.norms import NormPenalty
from ...risk.penalties import L2Penalty
from .choices import LOSS_RULE, PENALTY_RULE, is_classification, loss_of, penalty_of, refuse_nonconvex, targets_of
from .problem import Problem
from .sets import CoefficientSet, coefficient_set
from .solve import FormSolution, solve_form

_LARGEST = 1e100  # entry whose squares can still be summed
_NEGATIVE = 1e-8  # share of the largest eigenvalue below which a kernel matrix counts as positive semidefinite
_BOUND = optional(Number(finite=False) | ArrayLike(Number(finite=False)))
_numbers = door(target="numeric", multi_output=True)
_classes = door(target="classes")


def _read(model: Any, X: Any, y: Any = None, sample_weight: Any = None, run: Any = None) -> Table:
    """Read numbers or labels, as the loss asks."""
    reader = _classes if is_classification(loss_of(model)) else _numbers
    table = reader(model, X, y, sample_weight, run)
    table.require_memory(f"{type(model).__name__}: needs all rows in memory. Pass fewer rows, or X.compute() for Dask.")
    return table


class _ScoredByLoss(Estimator):
    """An estimator that is a classifier or a regressor, as its loss is."""

    _tags = tags(
        role=lambda model: "classifier" if is_classification(loss_of(model)) else "regressor",
        sparse=True,
        pairwise=lambda model: getattr(model, "kernel", None) == "precomputed",
        required=True,
        multi_class=lambda model: _is_multiclass(loss_of(model)),
        multi_output=lambda model: not is_classification(loss_of(model)),
    )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² of a regressor, the accuracy of a classifier."""
        from sklearn.metrics import accuracy_score, r2_score

        metric = accuracy_score if is_classification(loss_of(self)) else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))  # type: ignore[attr-defined]


def _is_multiclass(loss: Any) -> bool:
    return isinstance(loss, ArgmaxLoss)


def _has_probability(model: Any) -> bool:
    if not hasattr(loss_of(model), "probability"):
        raise AttributeError(f"{type(model).__name__}: {loss_of(model)!r} gives no probabilities.")
    return True


def _is_classifier(model: Any) -> bool:
    if not is_classification(loss_of(model)):
        raise AttributeError(f"{type(model).__name__}: {loss_of(model)!r} is a loss of numbers, not of labels.")
    return True


class RegularizedRisk(NamedScore, _ScoredByLoss):
    r"""Any convex loss with any convex penalty, in Tikhonov's, Ivanov's or Phillips's form.

    $$ \min R + \lambda\Omega, \qquad \min R \;\text{ s.t. } \Omega \le \tau, \qquad
       \min \Omega \;\text{ s.t. } R \le \kappa, \qquad
       R = \frac{\sum_i w_i V(y_i, f(x_i))}{\sum_i w_i}, \quad f(x) = x^\top \beta + b. $$

    `value` is λ, τ or κ. The intercept b is never penalised. With a kernel, f = Σ cᵢ k(·, xᵢ) + b: the penalties "l2"
    and "norm" are then ½‖f‖² and ‖f‖ in the kernel's space, and every other penalty is one of the coefficients c.
    `equivalent` gives the parameter of another form with the same solution. Constraints hold for the coefficients of
    each output.

    Every fit proves its gap by a feasible dual point, which it keeps. Time is O(np + p²) for each step of a splitting
    method, after a factorisation of the smaller of p×p and n×n; memory O(np + min(n, p)²), with a kernel O(n²).

    See Also
    --------
    Lasso, Ridge, LogisticRegression, LinearSVC, KernelRidge : Faster, each for its own pair.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import RegularizedRisk
    >>> from learnable.meta import equivalent
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 5))
    >>> y = X @ [2.0, 0.0, 0.0, -1.0, 0.0] + 0.1 * rng.normal(size=80)
    >>> model = RegularizedRisk("absolute", "l1", value=0.2).fit(X, y)
    >>> model.coef_.round(2), model.certificate_.kind
    (array([ 2.  ,  0.  ,  0.  , -0.98,  0.02]), 'gap')
    >>> other = equivalent(model, "ivanov")
    >>> other.model.fit(X, y).coef_.round(2)
    array([ 2.  ,  0.  ,  0.  , -0.98,  0.02])
    """

    _theory = "regularised-risk"

    loss: Any = param(LOSS_RULE, "V: a name, or an object of `learnable.risk`.", default="squared", kw_only=False)
    penalty: Any = param(
        PENALTY_RULE, "Ω: a name, or an object with value, prox and conjugate.", default="l2", kw_only=False
    )
    form: str = param(
        Options("tikhonov", "ivanov", "phillips"), "What is minimised and what is bounded.", default="tikhonov"
    )
    value: float = param(Number(), "λ > 0, τ > 0, or κ.", default=1.0)
    fit_intercept: bool = param(Boolean(), "Whether b is free or zero.", default=True)
    kernel: Any = param(
        optional(Options(*NAMES) | Matches(lambda v: isinstance(v, Kernel) or callable(v), "a kernel or a function")),
        "None for linear functions; a name of scikit-learn's, a kernel of `learnable.risk.kernels`, or a "
        "function of two "
        "tables.",
        default=None,
    )
    gamma: float | None = param(
        optional(Number(low=0.0, low_open=True)), "γ of kernels by name; None is 1/n_features.", default=None
    )
    degree: int = param(Number(low=1, integer=True), "Degree of the polynomial kernel.", default=3)
    coef0: float = param(Number(low=0.0), "Constant of the polynomial kernel.", default=1.0)
    positive: bool = param(Boolean(), "Whether all coefficients must be >= 0.", default=False)
    lower: Any = param(_BOUND, "Least coefficients, one number or one per column; None for no bound.", default=None)
    upper: Any = param(_BOUND, "Largest coefficients, likewise.", default=None)
    total: float | None = param(optional(Number()), "What the coefficients must sum to.", default=None)
    equalities: Any = param(
        optional(Matches(lambda v: isinstance(v, (tuple, list)) and len(v) == 2, "a pair (A, b)")),
        "(A, b): the coefficients β must satisfy Aβ = b.",
        default=None,
    )
    tol: float = param(TOLERANCE, "Relative duality gap at which to stop.", default=1e-6)
    max_iter: int = param(MAX_ITER, "Most steps.", default=20_000)
    max_seconds: float | None = param(MAX_SECONDS, "Time after which the best so far is returned.", default=None)

    coef_: Array = fitted("(n_features,) or (n_outputs, n_features)", "β; not with a kernel.", optional=True)
    intercept_: Any = fitted("() or (n_outputs,)", "b.")
    classes_: NDArray[Any] = fitted("array of labels", "The labels, with a loss of labels.", optional=True)
    X_fit_: Any = fitted("array or CSR array", "With a kernel: the rows with weight.", optional=True)
    expansion_: Array = fitted("(n_points,) or (n_points, n_outputs)", "With a kernel: c.", optional=True)
    dual_point_: Array = fitted("(n_rows,) or (n_rows, n_outputs)", "θ: the feasible dual point that proves the gap.")
    bound_dual_: Array = fitted("(n_features,) or (n_features, n_outputs)", "Multipliers of the bounds.", optional=True)
    equality_dual_: Array = fitted(
        "(n_equalities,) or (n_equalities, n_outputs)", "Multipliers of sum and equalities.", optional=True
    )
    multiplier_: float = fitted(
        "()", "λ itself; of Ω ≤ τ, minus the rate dR/dτ; of R ≤ κ, minus the rate dΩ/dκ (0 if idle).", low=0.0
    )
    risk_: float = fitted("()", "R.")
    least_risk_: float = fitted("()", "Σ wᵢ min V(yᵢ, ·)/Σ wᵢ, from which the gap counts the risk.")
    penalty_: float = fitted("()", "Ω.", low=0.0)
    n_iter_: int = fitted("int", "Steps of the splitting method.")
    certificate_: Certificate = fitted("Certificate", "`gap`, in the form that was asked for.")

    _door = staticmethod(_read)
    _remedy = "raise max_iter or max_seconds, or scale the columns of X"

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        loss = loss_of(self)
        penalty = penalty_of(self)
        refuse_nonconvex(owner, loss, penalty)
        self._check_value(owner)
        _refuse_extreme(owner, table)
        if is_classification(loss):
            self.classes_ = np.asarray(table.classes)
        n_classes = len(self.classes_) if is_classification(loss) else 0
        y, n_scores = targets_of(owner, loss, table.y, n_classes)
        weight = np.full(table.n_rows, 1.0) if table.weight is None else table.weight
        design, spread = self._design(owner, table, penalty)
        allowed = self._allowed(owner, design.shape[1])
        problem = Problem(design, y, n_scores, weight / weight.sum(), loss, penalty, self.fit_intercept, allowed)
        value = float(self.value)
        if self.form == "phillips":
            value = value - problem.base
            if value < 0.0:
                raise ParameterError(
                    f"{owner}: value must be at least {problem.base:.6g} in the form 'phillips', the least that "
                    "the loss "
                    f"can be on these targets; got {self.value:.6g}."
                )
        found = solve_form(problem, self.form, value, tol=self.tol, max_iter=self.max_iter, progress=run.progress)
        self._keep(found, problem, table, spread)
        return Certificate("gap", found.gap, self.tol, found.gap, found.n_iter)

    def _check_value(self, owner: str) -> None:
        if self.form != "phillips" and not self.value > 0.0:
            name = "λ"
            remedy = "Without a penalty, use the form 'ivanov' with a large value."
            if self.form == "ivanov":
                name = "τ"
                remedy = "No penalty is below zero; τ bounds it from above."
            raise ParameterError(
                f"{owner}: value, {name} of the form {self.form!r}, must be > 0; got {self.value!r}. {remedy}"
            )

    def _allowed(self, owner: str, n_coefficients: int) -> CoefficientSet:
        constrained = self.positive or any(
            given is not None for given in (self.lower, self.upper, self.total, self.equalities)
        )
        if constrained and self.kernel is not None:
            raise ParameterError(
                f"{owner}: kernel must be None where coefficients are constrained; got {self.kernel!r}."
            )
        return coefficient_set(owner, self, n_coefficients)

    def _design(self, owner: str, table: Table, penalty: Any) -> tuple[Any, Array | None]:
        """Return the columns of the problem, and how its coefficients become those of the kernel's functions."""
        X = table.X
        if self.kernel is None:
            return X.astype(np.float64) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64), None
        K = self._gram(owner, table)
        if not isinstance(penalty, (L2Penalty, NormPenalty)):
            return K, np.eye(len(K))
        eigenvalues, vectors = np.linalg.eigh(K)
        largest = float(max(eigenvalues.max(initial=0.0), 0.0))
        if float(eigenvalues.min(initial=0.0)) < -_NEGATIVE * max(largest, 1e-300):
            raise DataError(
                f"{owner}: the kernel matrix has the eigenvalue {eigenvalues.min():.3g}, so that it is no inner "
                "product "
                "and Ω no norm. Use a Mercer kernel (rbf, poly with coef0 >= 0, linear, Matern)."
            )
        kept = eigenvalues > 1e-13 * len(K) * largest
        if not kept.any():
            kept[-1] = True
        root = np.sqrt(np.maximum(eigenvalues[kept], 1e-300))
        return vectors[:, kept] * root, vectors[:, kept] / root

    def _gram(self, owner: str, table: Table) -> Array:
        X = table.X
        if self.kernel == "precomputed":
            n_given = table.n_rows if table.kept is None else len(table.kept)
            if X.shape[1] != n_given:
                raise DataError(
                    f"{owner}: Precomputed matrix must be a square matrix; got shape ({n_given}, {X.shape[1]})."
                )
            K = X if table.kept is None else X[:, np.flatnonzero(table.kept)]
            K = np.asarray(K.toarray() if sp.issparse(K) else K, dtype=np.float64)
        else:
            K = np.asarray(self._kernel(X.shape[1])(X), dtype=np.float64)
        if not np.isfinite(K).all() or np.abs(K - K.T).max(initial=0.0) > 1e-8 * np.abs(K).max(initial=0.0):
            raise DataError(f"{owner}: the kernel matrix must be finite and symmetric; check the kernel, or rescale X.")
        return (K + K.T) / 2.0

    def _kernel(self, n_features: int) -> Kernel:
        gamma = 1.0 / n_features if self.gamma is None else float(self.gamma)
        return as_kernel(self.kernel, gamma=gamma, degree=self.degree, coef0=float(self.coef0))

    def _keep(self, found: FormSolution, problem: Problem, table: Table, spread: Array | None) -> None:
        flat = not is_classification(problem.loss) and table.y_shape == ()
        W = found.x[1:]
        b = found.x[0]
        if self.kernel is None:
            self.coef_ = W[:, 0].copy() if flat else np.ascontiguousarray(W.T)
        else:
            c = np.asarray(spread) @ W
            if self.kernel == "precomputed" and table.kept is not None:
                every = np.zeros((len(table.kept), c.shape[1]))
                every[table.kept] = c
                c = every
            self.expansion_ = c[:, 0].copy() if flat or c.shape[1] == 1 else c
            if self.kernel != "precomputed":
                self.X_fit_ = table.X.copy()
        self.intercept_ = np.float64(b[0]) if flat else b.copy()
        one = problem.shape[1] == 1
        self.dual_point_ = found.dual.theta[:, 0].copy() if one else found.dual.theta
        if problem.allowed.constrains:
            self.bound_dual_ = found.dual.bounds[:, 0].copy() if one else found.dual.bounds
            self.equality_dual_ = found.dual.equalities[:, 0].copy() if one else found.dual.equalities
        strength = found.dual.strength
        self.multiplier_ = float(strength if self.form != "phillips" else 1.0 / strength)
        self.risk_ = float(problem.raw_risk(problem.scores(found.x)))
        self.penalty_ = float(problem.omega(found.x))
        self.least_risk_ = float(problem.base)
        self.n_iter_ = found.n_iter

    def _scores(self, X: Any) -> Array:
        """Return f(x), (n,) or (n, k)."""
        X = read_features(self, X)
        if self.kernel is None:
            scores = X @ self.coef_.T
            scores = np.asarray(scores.toarray() if sp.issparse(scores) else scores, dtype=np.float64)
        elif self.kernel == "precomputed":
            scores = np.asarray(X @ self.expansion_, dtype=np.float64)
        else:
            scores = np.asarray(self._kernel(self.n_features_in_).products(X, self.expansion_, self.X_fit_))
        if scores.ndim == 2 and scores.shape[1] == 1:
            scores = scores[:, 0] if is_classification(loss_of(self)) else scores
        if scores.ndim == 1:
            single = scores + float(np.ravel(self.intercept_)[0])
            return single[:, None] if np.ndim(self.intercept_) == 1 and not is_classification(loss_of(self)) else single
        return np.asarray(scores + self.intercept_)

    @available_if(_is_classifier)  # type: ignore[untyped-decorator]
    @rowwise
    def decision_function(self, X: Any) -> Array:
        """Return the scores: of shape (n_samples,) for two classes by one score, else (n_samples, n_classes)."""
        scores = self._scores(X)
        return scores if scores.ndim == 1 or len(self.classes_) > 2 else scores[:, 1] - scores[:, 0]

    @rowwise
    def predict(self, X: Any) -> NDArray[Any]:
        """Return what the scores stand for: numbers, means, or labels.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            New rows; with kernel="precomputed" the matrix K(X, training rows).
        """
        loss = loss_of(self)
        scores = self._scores(X)
        if not is_classification(loss):
            return np.asarray(loss.predict(scores))
        codes = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    @available_if(_has_probability)  # type: ignore[untyped-decorator]
    @rowwise
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, where the loss determines them."""
        p = np.asarray(loss_of(self).probability(self._scores(X)))
        return np.column_stack([1.0 - p, p]) if p.ndim == 1 else p

    _laws = laws(
        law("n_features_in_ must be an integer", lambda model: isinstance(model.n_features_in_, int), "intercept_"),
        law(
            "coef_ does not fit intercept_ and the number of columns",
            lambda model: (
                model.kernel is not None or model.coef_.shape == (*np.shape(model.intercept_), model.n_features_in_)
            ),
            "intercept_",
        ),
        law(
            "X_fit_ does not have the model's columns",
            lambda model: model.kernel in (None, "precomputed") or model.X_fit_.shape[1] == model.n_features_in_,
            "intercept_",
        ),
        law(
            "expansion_ does not have one row per point",
            lambda model: (
                model.kernel is None
                or len(model.expansion_)
                == (model.n_features_in_ if model.kernel == "precomputed" else model.X_fit_.shape[0])
            ),
            "intercept_",
        ),
        law(
            "expansion_ does not fit intercept_",
            lambda model: (
                model.kernel is None
                or model.expansion_.shape[1:] == (() if np.size(model.intercept_) == 1 else np.shape(model.intercept_))
            ),
            "intercept_",
        ),
        law(
            "classes_ must hold at least two labels",
            lambda model: not is_classification(loss_of(model)) or is_labels(model.classes_),
            "intercept_",
        ),
        law(
            "intercept_ does not have one number per score",
            lambda model: (
                not is_classification(loss_of(model))
                or np.shape(model.intercept_) == ((len(model.classes_),) if _is_multiclass(loss_of(model)) else (1,))
            ),
            "intercept_",
        ),
    )


def _refuse_extreme(owner: str, table: Table) -> None:
    """Raise DataError where squares of X or of the targets would overflow."""
    for name, values in (("X", table.X.data if sp.issparse(table.X) else table.X), ("y", table.y)):
        largest = float(np.abs(values).max(initial=0.0)) if values.dtype.kind == "f" else 0.0
        if largest > _LARGEST or math.isinf(largest):
            raise DataError(f"{owner}: {name} reaches {largest:.3g}, beyond {_LARGEST:g}; rescale it.")
