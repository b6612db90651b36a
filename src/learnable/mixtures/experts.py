r"""Mixtures of experts: a gate that looks at x chooses among simple models of y given x.

    p(y | x) = Σₖ gₖ(x) pₖ(y | x),    g = softmax of linear scores,
    pₖ = N(y; wₖᵀx + bₖ, σₖ²), each with its own variance, or softmax(Wₖx + bₖ)

The fit climbs Σᵢ wᵢ log p(yᵢ | xᵢ) + log prior to a local maximum by EM (`experts_steps.py` has the two steps,
`solvers/em.py` the driver).

Reference: M. Jordan and R. Jacobs, Hierarchical mixtures of experts and the EM algorithm, Neural Computation 6 (1994),
181–214.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..core.certificate import Certificate
from ..core.declare import param
from ..core.errors import DataError, ModelFileError
from ..core.estimator import Estimator
from ..core.parameters import MAX_ITER, MAX_SECONDS, N_JOBS, RANDOM_STATE, TOLERANCE, Number, Options
from ..data.blocks import map_reduce
from ..data.door import Table, door, read_features, take_named_columns
from ..data.sample import MOST_ROWS, stride_for
from ..data.sources import rowwise
from ..data.targets import read_target
from ..meta.splits import as_generator
from ..solvers.em import em_in_time
from .experts_steps import Experts, ExpertSteps
from .gaussian_starts import responsibilities, seconds_left, table_moments
from .predictive import MixedNormal
from .starts import check_enough_rows

Array = NDArray[Any]

_NUMBERS, _CLASSES = door(target="numeric", sparse=False), door(target="classes", sparse=False)


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

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (K, d) and (K,), or (K, C, d) and (K, C)
        The experts.
    variances_ : array of shape (K,)
        σ² of Gaussian experts; empty for logistic ones.
    gate_coef_, gate_intercept_ : arrays of shape (K, d) and (K,)
        The gate.
    classes_ : array of shape (C,)
        Labels, with logistic experts.
    converged_, n_iter_ : bool and int
        Whether the tolerance was reached, and steps of the best restart.
    lower_bound_ : float
        The objective per unit of weight.
    bound_history_ : array of shape (n_iter_ + 1,)
        The objective per unit of weight at the start and after each step; never falls.
    shift_, scale_, largest_ : arrays
        Mean and spread of the columns, and the largest standardised entries: the units of penalties and steps.
    certificate_ : Certificate
        What one more step would add to `lower_bound_`.

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

    _door = staticmethod(_read)
    _remedy = "raise max_iter or tol"

    def _fit(self, table: Table, run: Any) -> Certificate:
        owner, K = type(self).__name__, self.n_experts
        check_enough_rows(owner, table.n_rows, K, "n_experts")
        blocks, weight = table.blocks, float(table.weight_sum)
        with np.errstate(over="ignore", invalid="ignore"):
            shift, cov = table_moments(blocks, self.n_jobs)
            moments = map_reduce(blocks, _Ranges(shift), _merge_ranges, n_jobs=self.n_jobs)
            spread_y = moments[2] / weight - (moments[1] / weight) ** 2
        if not np.isfinite(cov).all() or not np.isfinite(spread_y):
            raise DataError(f"{owner}: X or y has numbers whose squares overflow. Divide them by their spread.")
        scale = np.where(np.diag(cov) > 0, np.sqrt(np.diag(cov)), moments[0])  # squares may underflow
        scale = np.where(moments[0] > 1e-12 * np.abs(shift), scale, 1.0)  # a constant column has no scale
        if _classifies(self):
            self.classes_ = np.asarray(table.classes)
        else:  # a constant y has no spread of its own
            spread_y = _variance_of_target(blocks, moments[1] / weight, weight, self.n_jobs)
            spread_y = spread_y if spread_y > 0 else max(1e-12, (moments[1] / weight) ** 2)
        self.shift_, self.scale_, self.largest_ = shift, scale, np.r_[1.0, moments[0] / scale]
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
        self.converged_, self.n_iter_ = bool(found.converged), max(1, found.n_iter)
        self.lower_bound_ = found.bound / weight
        self.bound_history_ = found.history / weight
        rise = max(found.rise, 0.0) / weight
        return Certificate("ascent", value=rise, tolerance=self.tol, n_iter=self.n_iter_)

    @rowwise
    def predict(self, X: Any) -> Array:
        """Return the mean of y given x, or the most probable class."""
        check_is_fitted(self)
        if _classifies(self):
            return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
        gate, mean = self._gate_and_scores(X)
        return np.asarray((gate * mean).sum(axis=1))

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    @rowwise
    def predict_proba(self, X: Any) -> Array:
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
    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[Array, Array]:
        """Return lower and upper ends of the equal-tailed interval that holds y with probability `level`."""
        lower, upper = self.predict_dist(X).interval(level)
        return np.asarray(lower), np.asarray(upper)

    @rowwise
    def predict_gate(self, X: Any) -> Array:
        """Return the probability with which the gate chooses each expert, (n_samples, n_experts)."""
        return self._gate_and_scores(X)[0]

    def responsibilities(self, X: Any, y: Any) -> Array:
        """Return the probability of each expert given x and y, (n_samples, n_experts)."""
        logs = self._log_joint(X, y)
        return np.asarray(np.exp(logs - logsumexp(logs, axis=0)).T)

    def log_likelihood(self, X: Any, y: Any) -> Array:
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
        K, p = self.n_experts, self.n_features_in_ + 1
        of_experts = (len(self.classes_) - 1) * p if _classifies(self) else p + 1
        return (K - 1) * p + K * of_experts

    def _gate_and_scores(self, X: Any) -> tuple[Array, Array]:
        check_is_fitted(self)
        X = np.asarray(read_features(self, X, sparse=False), dtype=np.float64)
        gate = np.exp(log_softmax(X @ self.gate_coef_.T + self.gate_intercept_, axis=1))
        return gate, np.tensordot(X, self.coef_, axes=([1], [-1])) + self.intercept_

    def _log_joint(self, X: Any, y: Any) -> Array:
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
            raise DataError(f"{owner}: y must have one entry a row, {(len(X),)}; got {y.shape}.")
        steps = self._steps(1.0)
        return steps.log_joint(steps.extend(X), y, self._experts(steps))

    def _steps(self, weight: float) -> ExpertSteps:
        C = len(self.classes_) if _classifies(self) else 0
        rho = self.reg_variance * self.y_variance_ * weight / self.n_experts
        return ExpertSteps(self.n_experts, C, self.shift_, self.scale_, self.largest_, self.alpha, self.gate_alpha, rho)

    def _starts(self, problem: ExpertSteps, blocks: Any, run: Any) -> Iterator[Experts]:
        rng, K, p = as_generator(self.random_state), self.n_experts, problem.p
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if _classifies(self):
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags

    def _check_loaded(self) -> None:
        if not hasattr(self, "coef_"):
            return
        K, d = self.n_experts, self.n_features_in_
        head = (K, len(self.classes_)) if _classifies(self) else (K,)
        shapes = {"coef_": (*head, d), "intercept_": head, "gate_coef_": (K, d), "gate_intercept_": (K,)}
        shapes |= {
            "shift_": (d,),
            "scale_": (d,),
            "largest_": (d + 1,),
            "variances_": () if _classifies(self) else (K,),
        }
        for name, shape in shapes.items():
            array = getattr(self, name, None)
            shape = (0,) if shape == () else shape
            if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != np.float64:
                raise ModelFileError(f"{type(self).__name__}: {name} must be a float64 array of shape {shape}.")
            if not np.isfinite(array).all():
                raise ModelFileError(f"{type(self).__name__}: {name} must be finite.")
        if not (self.variances_ > 0).all():
            raise ModelFileError(f"{type(self).__name__}: variances_ must be positive.")


def _to_columns(weights: Array, shift: Array, scale: Array) -> tuple[Array, Array]:
    coef = weights[..., 1:] / scale
    return np.ascontiguousarray(coef), np.ascontiguousarray(weights[..., 0] - coef @ shift)


class _Ranges:
    """The largest distance of each column from its mean, and sums of y and y²."""

    def __init__(self, shift: Array) -> None:
        self.shift = shift

    def __call__(self, block: Any) -> tuple[Array, float, float]:
        w = np.ones(len(block.X)) if block.weight is None else block.weight
        return np.abs(block.X - self.shift).max(axis=0), float(w @ block.y), float(w @ np.square(block.y, dtype=float))


class _Deviations:
    """The weighted sum of (y − mean)²."""

    def __init__(self, mean: float) -> None:
        self.mean = mean

    def __call__(self, block: Any) -> float:
        w = np.ones(len(block.X)) if block.weight is None else block.weight
        return float(w @ (block.y - self.mean) ** 2)


def _variance_of_target(blocks: Any, mean: float, weight: float, n_jobs: int | None) -> float:
    return float(map_reduce(blocks, _Deviations(mean), operator.add, n_jobs=n_jobs)) / weight


def _merge_ranges(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return np.maximum(a[0], b[0]), a[1] + b[1], a[2] + b[2]
