r"""Logistic regression: two classes, or K by the softmax.

    min_{W, b}  C Σᵢ sᵢ ℓ(yᵢ, b + Wxᵢ) + ½‖W‖²,      ℓ(y, z) = log Σₖ e^{zₖ} − z_y

(two classes: one score z, ℓ = log(1 + e^z) − [y = 1]z). In the form n⁻¹ΣV + λΩ with Ω = ½‖W‖², λ = 1/(nC); it is
also the MAP estimate under W ~ N(0, C). The intercept is never penalised. C = inf is maximum likelihood.

The problem is convex, and the certificate is its duality gap, from a feasible dual point: no other coefficients, by
whatever solver, can be better by more than that. Without a penalty there is no such bound, and the certificate is
the relative gradient.

Reference: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2nd ed., section 4.4.

What `penalty`, `C` and `l1_ratio` of a logistic regression say together, with scikit-learn's warnings.

scikit-learn 1.8 deprecated `penalty`, `l1_ratio=None` and `n_jobs` (which has an effect here, and stays).
"""

from __future__ import annotations

import warnings
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, log_expit, log_softmax, softmax

from ...core import (
    RANDOM_STATE,
    TOLERANCE,
    Array,
    Boolean,
    Certificate,
    DataError,
    Matches,
    Nothing,
    Number,
    Options,
    ParameterError,
    Run,
    SeparableDataError,
    fitted,
    param,
    unobserved,
)
from ...data.blocks import Blocks, Part
from ...data.door import LARGEST_ENTRY, TOO_LARGE, Table, class_weights, door, refuse_extreme_sizes
from ...data.sources import rowwise
from ...risk.classes import ClassRisk, ClassSums, class_sums
from ...risk.penalties import LinearLikelihood
from ...solvers.problem import Solution
from ...solvers.smooth.shapes import solve
from .. import descent
from ..base import (
    DEFAULT_TOLERANCE,
    GRADIENT_MARGIN,
    LikelihoodModel,
    LinearClassifierModel,
    in_range,
    in_units_of_columns,
    is_explicit,
    weighted_blocks,
)
from .separation import is_separable
from .sparse import Composite, is_tall, proven, solve_sparse

SOLVERS = ("auto", "lbfgs", "newton-cholesky", "newton-cg", "sag", "saga", *descent.SOLVERS)


class ScoreProbabilities:
    """Probabilities that are the (softmax) likelihood of a classifier's scores."""

    @rowwise
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, in the order of `classes_`."""
        z = self.decision_function(X)  # type: ignore[attr-defined]
        return np.column_stack([expit(-z), expit(z)]) if z.ndim == 1 else np.asarray(softmax(z, axis=1))

    @rowwise
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`, accurate where a probability underflows."""
        z = self.decision_function(X)  # type: ignore[attr-defined]
        return np.column_stack([log_expit(-z), log_expit(z)]) if z.ndim == 1 else np.asarray(log_softmax(z, axis=1))


class LogisticRegression(ScoreProbabilities, LikelihoodModel, LinearClassifierModel):
    r"""Logistic regression: minimise C Σᵢ sᵢ ℓ(yᵢ, b + Wxᵢ) + ½‖W‖², ℓ the (softmax) cross-entropy.

    In the form n⁻¹ΣV + λΩ with Ω = ½‖W‖², λ = 1/(nC). Time O(nd² + iterations·nd) for n ≫ d; memory O(nK + (Kd)²)
    besides the data.

    Examples
    --------
    >>> from learnable import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]
    >>> model = LogisticRegression().fit(X, y)
    >>> model.predict([[0.5], [2.5]])
    array(['no', 'yes'], dtype='<U3')
    >>> model.certificate_.kind, model.certificate_.holds
    ('gap', True)
    """

    _theory = "maximum-likelihood"

    penalty: str | None = param(
        Options("deprecated", "l1", "l2", "elasticnet") | Nothing(),
        "Deprecated as in scikit-learn: `l1_ratio` and `C` say it all.",
        default="deprecated",
        kw_only=False,
    )
    C: float = param(
        Number(low=1e-100, high=1e100) | Matches(lambda v: v == np.inf, "infinity"),
        "Inverse strength of the penalty; `np.inf` for none.",
        default=1.0,
    )
    l1_ratio: float | None = param(
        Number(low=0.0, high=1.0) | Nothing(),
        "ρ: share of the L1 penalty, 1 for the lasso's. With ρ > 0 every solver means proximal Newton steps.",
        default=0.0,
    )
    dual: bool = param(Boolean(), "Kept for compatibility.", default=False)
    tol: float = param(
        TOLERANCE,
        "Relative duality gap (relative gradient if C = inf) at which to stop; at least 1e-6 for float32 "
        "data. A `tol` that is given also bounds the largest entry of the mean loss's gradient, which is what "
        "scikit-learn's `tol` bounds.",
        default=DEFAULT_TOLERANCE,
    )
    intercept_scaling: float = param(
        Number(low=0.0, low_open=True),
        'With solver="liblinear" the value of the constant column whose coefficient is the (penalised) intercept.',
        default=1,
    )
    random_state: Any = param(RANDOM_STATE, 'Order of the rows in "sgd"; nothing else is random.', default=None)
    solver: str = param(
        Options(*SOLVERS, "liblinear"),
        '"auto" chooses by shape. "newton-cholesky", "newton-cg" and "lbfgs" do what they say, and so '
        'do "gd" (gradient descent with a line search) and "sgd" (mini-batches of 32 rows in memory; '
        "`max_iter` counts epochs), which are slower, and warn with the gap they reached; the other names of "
        'scikit-learn are accepted and mean "auto", because the optimum is the same. "liblinear" states '
        "another problem, as it does there: the intercept is penalised like a coefficient; two classes only.",
        default="auto",
    )
    max_iter: int = param(Number(low=0, integer=True), "Most iterations.", default=100)
    n_iter_: Any = fitted("(1,)", "Iterations on all rows.", kind="iu", low=0)
    certificate_: Certificate = fitted("Certificate", "`gap`, or `stationarity` if C = inf.")

    _door = staticmethod(door(target="classes"))

    @property
    def _remedy(self) -> str:  # type: ignore[override]
        """What to do when the certificate does not hold, after the words that scikit-learn has for it."""
        words = FAILED_TO_CONVERGE.get(self.solver, "").format(n_iter=int(np.max(getattr(self, "n_iter_", 0))))
        return f"{words}{words and ': '}raise max_iter or max_seconds, or standardise the columns of X"

    def _likelihood(self, sum_of_weights: float) -> LinearLikelihood:
        """Return the (softmax) likelihood; ½‖W‖²/C is a normal prior of variance C."""
        if self.l1_ratio:
            raise ParameterError("posterior: the L1 penalty is no normal prior; pass prior={'coef': Laplace(…)}.")
        return LinearLikelihood("categorical", 0.0 if np.isinf(self.C) else 1.0 / self.C)

    def _fit(self, table: Table, run: Run) -> Certificate:
        self.classes_ = np.asarray(table.classes)
        stated = stated_penalty(self)
        if not table.in_memory:
            table.blocks.expect_passes()
        blocks = weighted_blocks(table, class_weights(table, self.class_weight, type(self).__name__))
        # Without weights the sums of the fit tell whether there may be enormous numbers: no pass over all rows more.
        if table.in_memory and (np.isinf(stated.C) or blocks.parts[0].weight is not None):
            refuse_extreme_sizes(table.X, blocks.parts[0].weight, type(self).__name__)
        return self._fit_rows(blocks, stated, run)

    def _fit_rows(self, blocks: Any, stated: StatedPenalty, run: Run) -> Certificate:
        """Fit the classes of `classes_` to rows whose weights hold those of the classes."""
        if self.solver == "liblinear":
            blocks = self._with_constant_column(blocks)
        units = np.ones(1)
        if np.isinf(stated.C) and blocks.in_memory:
            blocks, units = in_units_of_columns(blocks)
        free = self.fit_intercept and self.solver != "liblinear"
        # The smooth fit has the same bits for any order of the numbers in memory; L1 models read columns as they lie.
        l1 = stated.l1_ratio > 0 and bool(np.isfinite(stated.C))
        with np.errstate(over="ignore", invalid="ignore"):  # what is enormous is refused next
            sums = class_sums(blocks, len(self.classes_), intercept=free, n_jobs=self.n_jobs, by_columns=l1)
        if (
            blocks.in_memory
            and not ((sums.square < LARGEST_ENTRY) & (np.abs(sums.centre) < np.sqrt(LARGEST_ENTRY))).all()
        ):
            for part in blocks.parts:
                refuse_extreme_sizes(part.X, part.weight, type(self).__name__)
        if not (sums.square < LARGEST_ENTRY**2).all():
            size = float(np.sqrt(sums.square.max()))
            raise DataError(TOO_LARGE.format(owner="LogisticRegression", what="X", size=size))
        if np.isinf(stated.C) and ((sums.square == 0) & np.abs(sums.x).any(axis=0)).any():
            raise DataError("LogisticRegression: squares of a column of X underflow; rescale the column.")
        if l1:
            return self._fit_sparse(blocks, sums, stated, free, run)
        problem = ClassRisk.of(blocks, sums, stated.C, intercept=free, n_jobs=self.n_jobs)
        if is_explicit(self.tol):
            # In scikit-learn's unit: that of the mean loss.
            problem.gradient_unit = GRADIENT_MARGIN * problem.cost * float(sums.weight.sum())
        single = blocks.in_memory and blocks.parts[0].X.dtype == np.float32
        tol = max(float(self.tol), 1e-6) if single else float(self.tol)
        reached: list[Array] = []  # the last iterate, where callbacks ask for it

        def progress(iteration: int, value: float) -> bool:
            ready = reached and not np.isinf(stated.C) and self.solver != "liblinear"
            state = partial(self._attributes_at, problem, reached[-1], iteration, value <= tol) if ready else None
            return run.progress(iteration, value, state)

        start = self._start(run, problem)
        limits: dict[str, Any] = {"tol": tol, "max_iter": self.max_iter, "progress": progress}
        if self.solver in descent.SOLVERS:
            x0 = np.zeros(problem.n_scores * problem.width) if start is None else start
            solution = descent.descend_likelihood(problem, x0, self.solver, random_state=self.random_state, **limits)
        else:
            observe = reached.append if run.shows_models else unobserved
            method = "auto" if self.solver == "liblinear" else self.solver
            solution = solve(problem, start, method, stop=run.should_stop, observe=observe, **limits)
        if np.isinf(stated.C):
            _refuse_separable(problem, solution)
            solution = solution._replace(x=problem.minimum_norm(solution.x))
            measure = problem.certified(solution.x)
        elif solution.converged or solution.n_iter < self.max_iter:
            solution = problem.polished(solution)
            measure = problem.certified(solution.x)
        else:
            measure = _gap_of_cut_fit(problem, solution)
        self._set_solution(problem, solution.x, solution.n_iter)
        if (units != 1).any():
            self.coef_ = in_range(self.coef_ * units, "LogisticRegression")
        elif single and self.solver != "liblinear":  # whose numbers scikit-learn keeps in float64, too
            measure = self._stored_in_single(problem, measure, tol)
        if np.isinf(stated.C):
            return Certificate("stationarity", measure, tol, None, solution.n_iter)
        return Certificate("gap", measure, tol, measure, solution.n_iter)

    def _set_solution(self, problem: ClassRisk, x: Array, n_iter: int) -> None:
        """Store θ as coefficients and intercepts."""
        theta = x.reshape(problem.shape).copy()
        if problem.n_scores > 1:
            # The softmax does not see a common shift of all scores. At the optimum the penalty makes that of the
            # coefficients zero; the large gradient of the likelihood would leave its rounding there instead.
            theta -= theta.mean(axis=0)
        self._set_scores(theta, problem.sums.centre)
        self.n_iter_ = np.array([n_iter], dtype=np.int32)

    def _attributes_at(self, problem: ClassRisk, x: Array, n_iter: int, converged: bool) -> dict[str, Any]:
        """Return the fitted attributes of a fit that ends after `n_iter` iterations at x."""
        if converged:
            at = problem.evaluate(x)
            x = problem.polished(Solution(x, at.value, at.gradient, at.measure, n_iter, True)).x
        twin = copy(self)
        twin._set_solution(problem, x, n_iter)
        return {name: value for name, value in vars(twin).items() if name.endswith("_") and not name.startswith("_")}

    def _fit_sparse(self, blocks: Any, sums: ClassSums, stated: StatedPenalty, free: bool, run: Run) -> Certificate:
        """Solve the problem with an L1 part; its default tolerance is that of proximal methods."""
        likelihood = ClassRisk.of(blocks, sums, np.inf, intercept=free, n_jobs=self.n_jobs)
        if blocks.in_memory and not blocks.sparse and not is_tall(likelihood):
            # every sweep would copy blocks of another memory order
            blocks = Blocks([part._replace(X=np.ascontiguousarray(part.X)) for part in blocks.parts])
            likelihood = ClassRisk.of(blocks, sums, np.inf, intercept=free, n_jobs=self.n_jobs)
        tol = float(self.tol) if is_explicit(self.tol) else 1e-6
        composite = Composite(likelihood, stated.C, stated.l1_ratio, 1.0 - stated.l1_ratio)
        start = self._start(run, likelihood)
        found = solve_sparse(
            composite,
            None if start is None else start.reshape(likelihood.shape),
            tol=tol,
            max_iter=self.max_iter,
            progress=run.progress,
        )
        value = proven(composite, found, tol)
        theta = found.theta.copy()
        if likelihood.n_scores > 1 and free:
            theta[:, 0] -= theta[:, 0].mean()
        self._set_scores(theta, sums.centre)
        self.n_iter_ = np.array([max(1, found.n_iter)], dtype=np.int32)
        return Certificate("gap", value, tol, value, found.n_iter)

    def _with_constant_column(self, blocks: Any) -> Any:
        """Return the rows with liblinear's constant column, whose coefficient stands for the intercept."""
        if len(self.classes_) > 2 or not blocks.in_memory:
            raise ParameterError(
                "LogisticRegression: The 'liblinear' solver does not support multiclass classification. It takes rows "
                "in memory, too; use another solver, or OneVsRestClassifier."
            )
        if not self.fit_intercept:
            return blocks
        X, y, weight = blocks.joined()
        column = np.full((X.shape[0], 1), float(self.intercept_scaling))
        X = sp.hstack([X, sp.csr_array(column)], format="csr") if sp.issparse(X) else np.hstack([X, column])
        return Blocks([Part(X, y, weight)])

    def _set_scores(self, theta: Array, centre: Array) -> None:
        """Store coefficients and intercepts; liblinear's intercept is that of its constant column."""
        self.coef_ = np.ascontiguousarray(theta[:, 1:])
        self.intercept_ = np.zeros(len(theta))
        if self.fit_intercept and self.solver == "liblinear":
            self.intercept_ = self.coef_[:, -1] * self.intercept_scaling
            self.coef_ = np.ascontiguousarray(self.coef_[:, :-1])
        elif self.fit_intercept:
            self.intercept_ = theta[:, 0] - self.coef_ @ centre

    def _stored_in_single(self, problem: ClassRisk, measure: float, tol: float) -> float:
        """Store float32 numbers for float32 data, where they keep the certificate, and return their own measure."""
        coef = self.coef_.astype(np.float32)
        intercept = self.intercept_.astype(np.float32)
        W = coef.astype(np.float64)
        b = intercept.astype(np.float64)
        level = b + W @ problem.sums.centre if self.fit_intercept else b
        x = np.column_stack([level, W]).ravel()
        end = problem.evaluate(x)
        rounded = problem.proven
        if problem.strength and self.fit_intercept:
            # The dual point is that of the best intercept; the stored one only raises the objective.
            best = problem.polished(Solution(x, end.value, end.gradient, end.measure, 0, True))
            rounded = problem.certified(best.x) + max(0.0, end.value - best.value) / best.value
        if not rounded <= tol:
            return measure
        self.coef_ = coef
        self.intercept_ = intercept
        return rounded

    def _start(self, run: Run, problem: ClassRisk) -> Array | None:
        """Return the last fit's θ for `warm_start`, where it has the right shape."""
        previous = run.previous
        if not self.warm_start or not hasattr(previous, "coef_"):
            return None
        if previous.coef_.shape != (problem.n_scores, problem.width - 1):
            return None
        intercept = previous.intercept_ + previous.coef_ @ problem.sums.centre
        return np.column_stack([intercept if self.fit_intercept else 0 * intercept, previous.coef_]).ravel()


def _gap_of_cut_fit(problem: ClassRisk, solution: Solution) -> float:
    """Return the relative gap of a fit that `max_iter` cut, which keeps its intercept so that another fit can go on.

    The dual point is that of the best intercept for these coefficients; the one that is stored raises the objective.
    """
    best = problem.polished(solution)
    value = problem.certified(best.x)
    dual = best.value / (1.0 + value)
    floor = 1e-8 * problem.cost * float(problem.sums.weight.sum()) * np.log(problem.n_classes)
    return value + max(0.0, solution.value - best.value) / max(dual, floor)


def _refuse_separable(problem: ClassRisk, solution: Solution) -> None:
    """Raise if a linear rule separates the classes: then the likelihood has no maximum to return."""
    if is_separable(problem, solution):
        raise SeparableDataError(
            "LogisticRegression: a linear rule separates the classes without error, so with C=inf the likelihood grows "
            "for ever along that rule and has no maximum. Use a finite C (for example C=1e4)."
        )


PENALTY_DEPRECATED = (
    "'penalty' was deprecated in version 1.8 and will be removed in 1.10. To avoid this warning, leave 'penalty' set "
    "to its default value and use 'l1_ratio' or 'C' instead. Use l1_ratio=0 instead of penalty='l2', l1_ratio=1 "
    "instead of penalty='l1', l1_ratio set to a float between 0 and 1 instead of penalty='elasticnet', and C=np.inf "
    "instead of penalty=None."
)
L1_RATIO_NONE_DEPRECATED = (
    "'l1_ratio=None' was deprecated in version 1.8 and will trigger an error in 1.10. Use 0<=l1_ratio<=1 instead."
)


class StatedPenalty(NamedTuple):
    """The penalty of a fit."""

    C: float  #: inverse strength; infinite without a penalty
    l1_ratio: float  #: share of the L1 part


def stated_penalty(model: Any) -> StatedPenalty:
    """Return the penalty that the parameters state, and warn about those that scikit-learn deprecated."""
    ratio = model.l1_ratio
    match model.penalty:
        case "deprecated":
            if ratio is None:
                warnings.warn(L1_RATIO_NONE_DEPRECATED, FutureWarning, stacklevel=4)
            found = StatedPenalty(float(model.C), float(ratio or 0.0))
        case None:
            found = StatedPenalty(np.inf, 0.0)
        case "elasticnet":
            if ratio is None:
                raise ParameterError(
                    "LogisticRegression: l1_ratio must be specified when penalty is elasticnet. Set it between 0 and 1."
                )
            found = StatedPenalty(float(model.C), float(ratio))
        case kind:
            found = StatedPenalty(float(model.C), 1.0 if kind == "l1" else 0.0)
    if model.penalty != "deprecated":
        _warn_of_penalty(model, ratio)
    if model.solver == "liblinear" and np.isinf(found.C):
        raise ParameterError(
            "LogisticRegression: C=np.inf as well as penalty=None is not supported for the liblinear solver; use "
            "another solver."
        )
    return found


def _warn_of_penalty(model: Any, ratio: float | None) -> None:
    warnings.warn(PENALTY_DEPRECATED, FutureWarning, stacklevel=5)
    if model.penalty != "elasticnet" and ratio is not None and 0 < ratio < 1:
        warnings.warn(
            f"l1_ratio parameter is only used when penalty is 'elasticnet'. Got (penalty={model.penalty})", stacklevel=5
        )
    if (model.penalty == "l2" and ratio not in (0, None)) or (model.penalty == "l1" and ratio not in (1, None)):
        warnings.warn(
            f"Inconsistent values: penalty={model.penalty} with l1_ratio={ratio}. penalty is deprecated. Please use "
            "l1_ratio only.",
            stacklevel=5,
        )
    if model.penalty is None and model.C != 1.0:
        warnings.warn("Setting penalty=None will ignore the C and l1_ratio parameters", stacklevel=5)


FAILED_TO_CONVERGE = {
    "lbfgs": "lbfgs failed to converge",
    "newton-cg": "newton-cg failed to converge. Increase the number of iterations",
    "newton-cholesky": "Newton solver did not converge after {n_iter} iterations",
    "liblinear": "Liblinear failed to converge, increase the number of iterations",
    "sag": "The max_iter was reached which means the coef_ did not converge",
    "saga": "The max_iter was reached which means the coef_ did not converge",
}
