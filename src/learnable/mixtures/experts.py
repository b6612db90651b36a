r"""Mixtures of experts: a gate that looks at x chooses among simple models of y given x.

    p(y | x) = Σₖ gₖ(x) pₖ(y | x),    g = softmax of linear scores,
    pₖ = N(y; wₖᵀx + bₖ, σₖ²), each with its own variance, or softmax(Wₖx + bₖ)

The fit climbs Σᵢ wᵢ log p(yᵢ | xᵢ) + log prior to a local maximum by EM (`ExpertSteps` has the two steps,
`solvers/em.py` the driver).

Reference: M. Jordan and R. Jacobs, Hierarchical mixtures of experts and the EM algorithm, Neural Computation 6 (1994),
181–214.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax, logsumexp
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..core import (
    MAX_ITER,
    MAX_SECONDS,
    N_JOBS,
    RANDOM_STATE,
    TOLERANCE,
    AnyArray,
    Certificate,
    DataError,
    Estimator,
    Number,
    Options,
    fitted,
    is_array,
    law,
    laws,
    param,
    tags,
)
from ..data.blocks import map_reduce
from ..data.door import Table, door, read_features, read_target, take_named_columns
from ..data.sample import MOST_ROWS, stride_for
from ..data.sources import rowwise
from ..meta.splits import as_generator
from ..solvers.em import em_in_time
from .normals import normalise
from .predictive import MixedNormal
from .starts import check_enough_rows, responsibilities, seconds_left, table_moments

_NUMBERS = door(target="numeric", sparse=False)
_CLASSES = door(target="classes", sparse=False)


def _read(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, run: Any = None) -> Table:
    return (_CLASSES if estimator.experts == "logistic" else _NUMBERS)(estimator, X, y, sample_weight, run)


def _classifies(model: Any) -> bool:
    return bool(model.experts == "logistic")


def _regresses(model: Any) -> bool:
    return not _classifies(model)


class MixtureOfExperts(Estimator):
    """Experts that a softmax gate chooses among: max Σᵢ wᵢ log Σₖ gₖ(xᵢ) pₖ(yᵢ | xᵢ) + log prior.

    A regressor with `experts="gaussian"`, a classifier with `experts="logistic"`. Memory besides X: O(K²d²), or
    O(KC²d²) with C classes, and a few thousand rows. Files and Dask are read once an iteration.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import MixtureOfExperts
    >>> x = np.linspace(-2, 2, 200)[:, None]
    >>> y = np.abs(x[:, 0]) + 0.01 * np.sin(40 * x[:, 0])
    >>> model = MixtureOfExperts(2, random_state=0).fit(x, y)
    >>> np.sort(model.coef_.ravel()).round(1)
    array([-1.,  1.])
    >>> model.predict_dist([[1.5]]).mean.round(1)
    array([1.5])
    """

    _theory = "experts"

    n_experts: int = param(Number(low=1, integer=True), "K.", default=2, kw_only=False)
    experts: str = param(
        Options("gaussian", "logistic"),
        "Linear regressions, each with its own variance, or softmax regressions of classes.",
        default="gaussian",
    )
    alpha: float = param(
        Number(low=0.0),
        "Penalty of the experts' slopes, in standardised columns: −½α‖wₖ‖²/σₖ², or −½α‖Wₖ‖². With zero, one "
        "Gaussian expert is least squares, and variances are those of maximum likelihood.",
        default=1e-3,
    )
    gate_alpha: float = param(
        Number(low=0.0),
        "Penalty −½γ‖V‖² of the gate's slopes, in standardised columns: keeps the borders between experts "
        "from getting infinitely sharp.",
        default=1e-3,
    )
    reg_variance: float = param(
        Number(low=0.0),
        "−½·reg_variance·var(y)·(W/K) Σₖ 1/σₖ² keeps variances from zero; W the weight of all rows.",
        default=1e-6,
    )
    tol: float = param(
        TOLERANCE, "A climb ends when a step adds no more than this to the objective per unit of weight.", default=1e-5
    )
    max_iter: int = param(MAX_ITER, "Steps of one restart.", default=500)
    n_init: int = param(Number(low=1, integer=True), "Restarts, of which the best is kept.", default=1)
    init_params: str = param(
        Options("kmeans", "k-means++", "random", "random_from_data"),
        "How responsibilities start: from clusters of (x, y), or of x if y is a class; or at random.",
        default="kmeans",
    )
    random_state: Any = param(RANDOM_STATE, "Draws the starts.", default=None)
    max_seconds: float | None = param(MAX_SECONDS, "Time after which the best so far is returned.", default=None)
    n_jobs: int | None = param(
        N_JOBS, "Threads; None uses all that BLAS may use. The result does not depend on it.", default=None
    )

    coef_: AnyArray = fitted(
        "(n_experts, n_features) or (n_experts, n_classes, n_features)", "Slopes of the experts.", kind="f8"
    )
    intercept_: AnyArray = fitted("(n_experts,) or (n_experts, n_classes)", "Their intercepts.", kind="f8")
    variances_: AnyArray = fitted("(n_experts,) or (0,)", "σ² of Gaussian experts; none of logistic ones.", kind="f8")
    gate_coef_: AnyArray = fitted("(n_experts, n_features)", "Slopes of the gate.", kind="f8")
    gate_intercept_: AnyArray = fitted("(n_experts,)", "Its intercepts.", kind="f8")
    classes_: AnyArray = fitted("(n_classes,)", "Labels, with logistic experts.", kind="biufOUST", optional=True)
    shift_: AnyArray = fitted("(n_features,)", "Means of the columns.", kind="f8")
    scale_: AnyArray = fitted("(n_features,)", "Their spread: the unit of penalties and steps.", kind="f8")
    largest_: AnyArray = fitted("array of shape (n_features + 1,)", "1, and the largest standardised entries.")
    converged_: bool = fitted("bool", "Whether the tolerance was reached.")
    n_iter_: int = fitted("int", "Steps of the best restart.")
    lower_bound_: float = fitted("float", "The objective per unit of weight.")
    bound_history_: AnyArray = fitted(
        "array of shape (n_steps,)", "`lower_bound_` at the start and after each step; never falls."
    )
    certificate_: Certificate = fitted("Certificate", "`ascent`: what one more step would add to `lower_bound_`.")
    _sizes = ("n_experts",)

    _door = staticmethod(_read)
    _remedy = "raise max_iter or tol"
    _tags = tags(role=lambda model: "classifier" if _classifies(model) else "regressor", required=True)

    def _fit(self, table: Table, run: Any) -> Certificate:
        owner = type(self).__name__
        K = self.n_experts
        check_enough_rows(owner, table.n_rows, K, "n_experts")
        blocks = table.blocks
        weight = float(table.weight_sum)
        with np.errstate(over="ignore", invalid="ignore"):
            shift, cov = table_moments(blocks, self.n_jobs)
            moments = map_reduce(blocks, partial(_ranges, shift), _merge_ranges, n_jobs=self.n_jobs)
            spread_y = moments[2] / weight - np.square(moments[1] / weight)
        if not np.isfinite(cov).all() or not np.isfinite(spread_y):
            raise DataError(f"{owner}: X or y has numbers whose squares overflow. Divide them by their spread.")
        scale = np.where(np.diag(cov) > 0, np.sqrt(np.diag(cov)), moments[0])  # squares may underflow
        scale = np.where(moments[0] > 1e-12 * np.abs(shift), scale, 1.0)  # a constant column has no scale
        if _classifies(self):
            self.classes_ = np.asarray(table.classes)
        else:  # a constant y has no spread of its own
            spread_y = _variance_of_target(blocks, moments[1] / weight, weight, self.n_jobs)
            spread_y = spread_y if spread_y > 0 else max(1e-12, (moments[1] / weight) ** 2)
        self.shift_ = shift
        self.scale_ = scale
        self.largest_ = np.r_[1.0, moments[0] / scale]
        self.y_variance_ = 0.0 if _classifies(self) else float(spread_y)
        problem = self._steps(weight)
        found = em_in_time(
            problem,
            blocks,
            self._starts(problem, blocks, run),
            run.should_stop if self.max_seconds is not None else None,
            owner=type(self).__name__,
            tol=self.tol * weight,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
            flag=run.flag,
            progress=run.progress,
        )
        self._set_experts(found.parameters)
        self.converged_ = bool(found.converged)
        self.n_iter_ = max(1, found.n_iter)
        self.lower_bound_ = found.bound / weight
        self.bound_history_ = found.history / weight
        rise = max(found.rise, 0.0) / weight
        return Certificate("ascent", value=rise, tolerance=self.tol, n_iter=self.n_iter_)

    @rowwise
    def predict(self, X: Any) -> AnyArray:
        """Return the mean of y given x, or the most probable class."""
        check_is_fitted(self)
        if _classifies(self):
            return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
        gate, mean = self._gate_and_scores(X)
        return np.asarray((gate * mean).sum(axis=1))

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    @rowwise
    def predict_proba(self, X: Any) -> AnyArray:
        """Return the probability of each class, (n_samples, n_classes)."""
        gate, scores = self._gate_and_scores(X)
        return np.asarray((gate[:, :, None] * np.exp(log_softmax(scores, axis=2))).sum(axis=1))

    @available_if(_regresses)  # type: ignore[untyped-decorator]
    def predict_dist(self, X: Any) -> MixedNormal:
        """Return the distribution of y given each row: a mixture of normal distributions."""
        gate, mean = self._gate_and_scores(X)
        gate = gate / gate.sum(axis=1, keepdims=True)
        return MixedNormal(gate, mean, np.broadcast_to(np.sqrt(self.variances_), mean.shape))

    @available_if(_regresses)  # type: ignore[untyped-decorator]
    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[AnyArray, AnyArray]:
        """Return lower and upper ends of the equal-tailed interval that holds y with probability `level`."""
        lower, upper = self.predict_dist(X).interval(level)
        return np.asarray(lower), np.asarray(upper)

    @rowwise
    def predict_gate(self, X: Any) -> AnyArray:
        """Return the probability with which the gate chooses each expert, (n_samples, n_experts)."""
        return self._gate_and_scores(X)[0]

    def responsibilities(self, X: Any, y: Any) -> AnyArray:
        """Return the probability of each expert given x and y, (n_samples, n_experts)."""
        logs = self._log_joint(X, y)
        return np.asarray(np.exp(logs - logsumexp(logs, axis=0)).T)

    def log_likelihood(self, X: Any, y: Any) -> AnyArray:
        """Return log p(y | x) of each row."""
        return np.asarray(logsumexp(self._log_joint(X, y), axis=0))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R², or the accuracy of a classifier."""
        from sklearn.metrics import accuracy_score, r2_score

        measure = accuracy_score if _classifies(self) else r2_score
        X, y, sample_weight = take_named_columns(type(self).__name__, X, y, sample_weight)
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def aic(self, X: Any, y: Any) -> float:
        """Return Akaike's criterion, 2(number of parameters) − 2 log-likelihood; lower is better."""
        return 2 * self._n_parameters() - 2 * float(np.sum(self.log_likelihood(X, y)))

    def bic(self, X: Any, y: Any) -> float:
        """Return the Bayesian criterion, log(n)·(number of parameters) − 2 log-likelihood; lower is better."""
        scores = self.log_likelihood(X, y)
        return self._n_parameters() * float(np.log(len(scores))) - 2 * float(np.sum(scores))

    def _n_parameters(self) -> int:
        K = self.n_experts
        p = self.n_features_in_ + 1
        of_experts = (len(self.classes_) - 1) * p if _classifies(self) else p + 1
        return (K - 1) * p + K * of_experts

    def _gate_and_scores(self, X: Any) -> tuple[AnyArray, AnyArray]:
        X = np.asarray(read_features(self, X, sparse=False), dtype=np.float64)
        gate = np.exp(log_softmax(X @ self.gate_coef_.T + self.gate_intercept_, axis=1))
        return gate, np.tensordot(X, self.coef_, axes=([1], [-1])) + self.intercept_

    def _log_joint(self, X: Any, y: Any) -> AnyArray:
        check_is_fitted(self)
        owner = type(self).__name__
        X, y, _ = take_named_columns(owner, X, y, None)
        X = np.asarray(read_features(self, X, sparse=False), dtype=np.float64)
        y = np.asarray(y)
        if _classifies(self):
            codes = np.searchsorted(self.classes_, y).clip(0, len(self.classes_) - 1)
            if not (self.classes_[codes] == y).all():
                raise DataError(f"{owner}: y has labels that the fit did not see. Leave these rows out.")
            y = codes
        else:
            y = np.asarray(read_target(owner, y, "numeric", False)[0])
        if y.shape != (len(X),):
            raise DataError(f"{owner}: y must have one entry per row, {(len(X),)}; got {y.shape}.")
        steps = self._steps(1.0)
        return steps.log_joint(steps.extend(X), y, self._experts(steps))

    def _steps(self, weight: float) -> ExpertSteps:
        C = len(self.classes_) if _classifies(self) else 0
        rho = self.reg_variance * self.y_variance_ * weight / self.n_experts
        return ExpertSteps(self.n_experts, C, self.shift_, self.scale_, self.largest_, self.alpha, self.gate_alpha, rho)

    def _starts(self, problem: ExpertSteps, blocks: Any, run: Any) -> Iterator[Experts]:
        rng = as_generator(self.random_state)
        K = self.n_experts
        p = problem.p
        X, y, weight = blocks.every(stride_for(int(blocks.n_rows), MOST_ROWS))
        weight = np.ones(len(y)) if weight is None else weight
        Z = problem.extend(X)
        features = Z[:, 1:]
        if not problem.C:
            scaled = (y - np.average(y, weights=weight)) / np.sqrt(self.y_variance_)
            features = np.column_stack([features, scaled])
        flat = Experts(
            np.zeros((K, p)), np.zeros((K, *([problem.C] if problem.C else []), p)), np.full(K, self.y_variance_)
        )
        features = np.ascontiguousarray(features)
        for _ in range(self.n_init):
            r = responsibilities(self.init_params, features, weight, K, rng, seconds_left(self.max_seconds, run)).T
            yield problem.maximisation(problem.sums(Z, y, weight, r, flat), flat)

    def _set_experts(self, experts: Experts) -> None:
        """Keep the parameters in the units of the columns."""
        self.gate_coef_, self.gate_intercept_ = _to_columns(experts.gate, self.shift_, self.scale_)
        self.coef_, self.intercept_ = _to_columns(experts.weights, self.shift_, self.scale_)
        self.variances_ = experts.variances if not _classifies(self) else np.empty(0)

    def _experts(self, steps: ExpertSteps) -> Experts:
        gate, weights = (
            np.concatenate([(b + coef @ steps.shift)[..., None], coef * steps.scale], axis=-1)
            for coef, b in ((self.gate_coef_, self.gate_intercept_), (self.coef_, self.intercept_))
        )
        return Experts(gate, weights, self.variances_)

    _laws = laws(
        law(
            "{owner}: coef_, intercept_, gate_coef_, gate_intercept_, shift_, scale_, largest_ and variances_ must be "
            "finite float64 arrays that fit the experts, the classes and the columns",
            lambda model: all(
                is_array(getattr(model, name), shape, finite=True) for name, shape in model._shapes().items()
            ),
            "coef_",
        ),
        law("{owner}: variances_ must be positive", lambda model: (model.variances_ > 0).all(), "coef_"),
    )

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the fitted arrays."""
        K = self.n_experts
        d = self.n_features_in_
        head = (K, len(self.classes_)) if _classifies(self) else (K,)
        shapes = {"coef_": (*head, d), "intercept_": head, "gate_coef_": (K, d), "gate_intercept_": (K,)}
        return shapes | {
            "shift_": (d,),
            "scale_": (d,),
            "largest_": (d + 1,),
            "variances_": (0,) if _classifies(self) else (K,),
        }


def _to_columns(weights: AnyArray, shift: AnyArray, scale: AnyArray) -> tuple[AnyArray, AnyArray]:
    coef = weights[..., 1:] / scale
    return np.ascontiguousarray(coef), np.ascontiguousarray(weights[..., 0] - coef @ shift)


def _ranges(shift: AnyArray, block: Any) -> tuple[AnyArray, float, float]:
    """Return the largest distance of each column from its mean, and sums of y and y²."""
    w = np.ones(len(block.X)) if block.weight is None else block.weight
    return np.abs(block.X - shift).max(axis=0), float(w @ block.y), float(w @ np.square(block.y, dtype=float))


def _deviations(mean: float, block: Any) -> float:
    """Return the weighted sum of (y − mean)²."""
    w = np.ones(len(block.X)) if block.weight is None else block.weight
    return float(w @ (block.y - mean) ** 2)


def _variance_of_target(blocks: Any, mean: float, weight: float, n_jobs: int | None) -> float:
    return float(map_reduce(blocks, partial(_deviations, mean), operator.add, n_jobs=n_jobs)) / weight


def _merge_ranges(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return np.maximum(a[0], b[0]), a[1] + b[1], a[2] + b[2]


# A mixture of experts as the two steps of EM.
#
#     p(y | x) = Σₖ gₖ(x) pₖ(y | x),    g(x) = softmax(Vx̃),    x̃ = (1, x standardised)
#
# with linear-Gaussian experts pₖ = N(y; wₖᵀx̃, σₖ²), each with its own variance, or logistic ones pₖ = softmax(Wₖx̃).
#
# E-step: rᵢₖ ∝ gₖ(xᵢ) pₖ(yᵢ | xᵢ). M-step, from sums over the rows with residuals of the last step:
# - a Gaussian expert is a weighted ridge regression, in closed form;
# - gate and logistic experts are softmax regressions with weights. One Newton step Δ raises their concave share Q of
# the
#   expected log-likelihood, if it is not too long. Its third derivative along Δ is at most R times the second, where
# R is
#   how far the scores x̃ᵀΔ of two classes differ at most; so Q rises by the step t·Δ with t = log(1 + R)/R, which
# tends to
#   the full step as R → 0. (A generalised M-step: Q need only rise.)
#
# The objective has the log-prior −½α Σₖ‖wₖ‖²/σₖ² − ½ρ Σₖ 1/σₖ² for Gaussian experts (ρ = reg_variance·var(y)·W/K
# keeps
# variances from zero), −½α Σ‖Wₖ‖² for logistic ones, −½γ‖V‖² for the gate; intercepts are free.
#
# References: R. Jacobs, M. Jordan, S. Nowlan and G. Hinton, Adaptive mixtures of local experts, Neural Computation 3
# (1991), 79–87; M. Jordan and R. Jacobs, Hierarchical mixtures of experts and the EM algorithm, Neural Computation 6
# (1994), 181–214; F. Bach, Self-concordant analysis for logistic regression, Electron. J. Statist. 4 (2010), 384–414
# (the length of the step).

_CHUNK_ROWS = 2048  # rows of which all outer products are held at a time

_LOG_2PI = float(np.log(2 * np.pi))


class Experts(NamedTuple):
    """The parameters, in the coordinates x̃ with p = d + 1 entries."""

    gate: AnyArray  #: (K, p) V
    weights: AnyArray  #: (K, p) w, or (K, C, p) W
    variances: AnyArray  #: (K,) σ²; empty for logistic experts


class ExpertSteps:
    """The two steps; knows the standardisation of the columns, the penalties and the largest entries of x̃.

    Parameters
    ----------
    n_classes : int
        C, or 0 for Gaussian experts.
    shift, scale : (d,) arrays
        x̃ = (1, (x − shift)/scale).
    largest : (p,) array
        The largest |x̃ⱼ| of the table.
    alpha, gamma, rho : float
        The penalties α, γ and ρ.
    """

    def __init__(
        self,
        K: int,
        n_classes: int,
        shift: AnyArray,
        scale: AnyArray,
        largest: AnyArray,
        alpha: float,
        gamma: float,
        rho: float,
    ) -> None:
        self.K = K
        self.C = n_classes
        self.shift = shift
        self.scale = scale
        self.largest = largest
        self.alpha = alpha
        self.gamma = gamma
        self.rho = rho
        self.p = len(shift) + 1
        self.penalised = np.r_[0.0, np.ones(self.p - 1)]

    def expectation(self, block: Any, experts: Experts) -> tuple[tuple[Any, ...], float]:
        """Return the sums over a block's rows, and their log-likelihood."""
        sums: Any = None
        total = 0.0
        w = np.ones(len(block.X)) if block.weight is None else block.weight
        for start in range(0, len(block.X), _CHUNK_ROWS):
            part = slice(start, start + _CHUNK_ROWS)
            Z = self.extend(block.X[part])
            y = block.y[part]
            likelihood, r = normalise(self.log_joint(Z, y, experts))
            total += float(w[part] @ likelihood)
            found = self.sums(Z, y, w[part], r, experts)
            sums = found if sums is None else tuple(a + b for a, b in zip(sums, found, strict=True))
        return sums, total

    def maximisation(self, statistics: tuple[Any, ...], experts: Experts) -> Experts:
        """Return parameters at which the expected log-likelihood and log-prior are no lower."""
        counts, gate_gradient, gate_hessian, *own = statistics
        gate = experts.gate + self._newton(gate_gradient, gate_hessian, experts.gate, self.gamma)
        if self.C:
            gradient, hessian = own
            steps = [self._newton(gradient[k], hessian[k], experts.weights[k], self.alpha) for k in range(self.K)]
            return Experts(gate, experts.weights + np.stack(steps), experts.variances)
        products, residuals, squares = own
        weights = experts.weights.copy()
        variances = experts.variances.copy()
        penalty = self.alpha * np.diag(self.penalised)
        for k in range(self.K):
            if not counts[k] > 0:  # an expert without rows stays
                continue
            step = solve_symmetric(products[k] + penalty, residuals[k] - penalty @ weights[k])
            weights[k] += step
            rest = squares[k] - 2 * step @ residuals[k] + step @ products[k] @ step
            rest = max(rest, 0.0) + weights[k] @ penalty @ weights[k] + self.rho
            variances[k] = max(rest / counts[k], 1e-300)
        return Experts(gate, weights, variances)

    def log_prior(self, experts: Experts) -> float:
        """Return the logarithm of the prior, up to a constant."""
        value = -0.5 * self.gamma * float((self.penalised * experts.gate**2).sum())
        squares = self.alpha * (self.penalised * experts.weights**2)
        if self.C:
            return value - 0.5 * float(squares.sum())
        return value - 0.5 * float(((squares.sum(axis=1) + self.rho) / experts.variances).sum())

    def extend(self, X: AnyArray) -> AnyArray:
        """Return x̃, (m, p)."""
        out = np.ones((len(X), self.p))
        np.subtract(X, self.shift, out=out[:, 1:])
        out[:, 1:] /= self.scale
        return out

    def log_joint(self, Z: AnyArray, y: AnyArray, experts: Experts) -> AnyArray:
        """Return log gₖ(x) + log pₖ(y | x) as (K, m)."""
        logs = log_softmax(experts.gate @ Z.T, axis=0)
        if self.C:
            rows = np.arange(len(Z))
            for k in range(self.K):
                logs[k] += log_softmax(Z @ experts.weights[k].T, axis=1)[rows, y]
            return np.asarray(logs)
        gap = y - experts.weights @ Z.T
        variances = experts.variances[:, None]
        return np.asarray(logs - 0.5 * (gap * gap / variances + np.log(variances) + _LOG_2PI))

    def sums(self, Z: AnyArray, y: AnyArray, w: AnyArray, r: AnyArray, experts: Experts) -> tuple[Any, ...]:
        """Return what the M-step needs of rows with responsibilities r (K, m)."""
        rw = r * w
        K = self.K
        p = self.p
        g = np.exp(log_softmax(experts.gate @ Z.T, axis=0))
        gate_gradient = (rw - g * w) @ Z
        gate_hessian = curvature(Z, g, w)
        if self.C:
            gradient = np.empty((K, self.C, p))
            hessian = np.empty((K, self.C, self.C, p, p))
            truth = y == np.arange(self.C)[:, None]
            for k in range(K):
                P = np.exp(log_softmax(experts.weights[k] @ Z.T, axis=0))
                gradient[k] = ((truth - P) * rw[k]) @ Z
                hessian[k] = curvature(Z, P, rw[k])
            return rw.sum(axis=1), gate_gradient, gate_hessian, gradient, hessian
        gap = y - experts.weights @ Z.T
        products = np.stack([(Z.T * rw[k]) @ Z for k in range(K)])
        return rw.sum(axis=1), gate_gradient, gate_hessian, products, (rw * gap) @ Z, (rw * gap * gap).sum(axis=1)

    def _newton(self, gradient: AnyArray, hessian: AnyArray, at: AnyArray, penalty: float) -> AnyArray:
        """Return a step of a softmax regression that raises its log-likelihood less ½·penalty·‖slopes‖²."""
        C, p = at.shape
        H = hessian.transpose(0, 2, 1, 3).reshape(C * p, C * p) + penalty * np.diag(np.tile(self.penalised, C))
        step = solve_symmetric(H, (gradient - penalty * self.penalised * at).ravel()).reshape(C, p)
        reach = float(self.largest @ np.ptp(step, axis=0))
        return np.asarray(step * (np.log1p(reach) / reach if reach > 1e-12 else 1.0))


def curvature(Z: AnyArray, P: AnyArray, w: AnyArray) -> AnyArray:
    """Return Σᵢ wᵢ (diag(P) − PPᵀ)ᵢ ⊗ x̃x̃ᵀ as (C, C, p, p), of probabilities P (C, m)."""
    C = len(P)
    p = Z.shape[1]
    out = np.empty((C, C, p, p))
    for a in range(C):
        for b in range(a + 1):
            share = w * P[a] * ((1.0 if a == b else 0.0) - P[b])
            out[a, b] = out[b, a] = (Z.T * share) @ Z
    return out


def solve_symmetric(H: AnyArray, g: AnyArray) -> AnyArray:
    """Return the least solution of Hs = g, H positive semi-definite: directions in which H vanishes are left alone."""
    values, vectors = np.linalg.eigh(H)
    keep = values > 1e-12 * max(values[-1], 1e-300)
    return np.asarray(vectors[:, keep] @ ((vectors[:, keep].T @ g) / values[keep]))
