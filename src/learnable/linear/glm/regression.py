r"""What Poisson, Gamma and Tweedie regression share: the fit, predictions, and the share of the deviance explained.

Generalised linear models of counts and positive targets: Poisson, Gamma and Tweedie regression.

    min_{w, b}  1/(2S) Σᵢ sᵢ d(yᵢ, μᵢ) + ½α‖w‖²,      g(μᵢ) = b + xᵢᵀw,      S = Σᵢ sᵢ

with d the unit deviance of a family whose variance is φμᵖ: p = 0 normal, 1 Poisson, between 1 and 2 compound Poisson
(zeros and positive numbers), 2 Gamma, 3 inverse Gaussian. In the form n⁻¹ΣV + λΩ, with V = d/2 and Ω = ½‖w‖², λ = α. It
is the MAP estimate under w ~ N(0, φ/(Sα)). The intercept is never penalised.

With the log link and 1 ≤ p ≤ 2, and for p = 0 with the identity, the problem is convex, and with α > 0 the certificate
is its duality gap. Otherwise it is the relative gradient: with p outside [1, 2] a fit may be a local optimum.

Reference: P. McCullagh and J. Nelder, Generalized Linear Models, 2nd ed., 1989; B. Jørgensen, J. R. Statist. Soc. B 49
(1987).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.special import xlogy
from sklearn.base import RegressorMixin

from ...core import (
    MAX_ITER,
    TOLERANCE,
    Array,
    Certificate,
    DataError,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    hook,
    param,
    tags,
)
from ...data import Blocks, Table, door, map_reduce
from ...data.sources import named_columns, rowwise
from ...risk.deviance import DevianceRisk, TargetSums, target_sums
from ...risk.losses import DevianceLoss
from ...risk.penalties import L2Penalty, LinearLikelihood
from ...solvers.problem import Solution
from ...solvers.smooth.newton import newton
from ...solvers.smooth.shapes import solve
from ..base import DEFAULT_TOLERANCE, GRADIENT_MARGIN, IterativeModel, LikelihoodModel, is_explicit

_SOLVERS = ("auto", "lbfgs", "newton-cholesky", "newton-cg")
_LARGEST_SQUARE = 1e200  # mean square of a column, beyond which products overflow
_SMALLEST_TARGET = 1e-100  # targets all below it, or all beyond its inverse, are fitted in other units


class DevianceRegressor(LikelihoodModel, RegressorMixin, IterativeModel):
    """What Poisson, Gamma and Tweedie regression share; not to be used directly."""

    alpha: float = param(
        Number(low=0.0, high=1e100),
        "α ≥ 0. With α = 0 the maximum of the likelihood may lie at infinity, for example if a column is positive only "
        "where y = 0.",
        default=1.0,
    )
    solver: str = param(
        Options(*_SOLVERS),
        '"auto" chooses by shape; "lbfgs", "newton-cholesky" and "newton-cg" do what they say. The optimum is the '
        "same.",
        default="auto",
    )
    max_iter: int = param(MAX_ITER, "Most iterations.", default=100)
    tol: float = param(
        TOLERANCE,
        "Relative duality gap (relative gradient if α = 0) at which to stop; at least 1e-6 for float32 data. A `tol` "
        "that is given also bounds the largest entry of the gradient, which is what scikit-learn's `tol` bounds.",
        default=DEFAULT_TOLERANCE,
    )
    coef_: Any = fitted("(n_features,)", "w.")
    intercept_: Any = fitted("()", "b.")
    n_iter_: int = fitted("int", "Iterations on all rows.")
    dispersion_: float = fitted(
        "()",
        "φ by Pearson's χ²/(n − p), p the number of coefficients: the variance is φμ to the family's power. Much above "
        "1, counts vary more than a Poisson distribution does. Absent if n ≤ p, or if nothing is left to measure.",
        low=0.0,
        optional=True,
    )
    certificate_: Certificate = fitted("Certificate", "`gap`, or `stationarity` if α = 0.")

    #: Intervals believe the family and the fitted coefficients; `with_intervals` has some that need not.
    _intervals_are_plug_in = True
    _door = staticmethod(door(target="numeric"))
    _remedy = "raise max_iter or max_seconds, raise alpha, or standardise the columns of X"
    _tags = tags(positive_target=lambda model: model._family()[0] > 0)

    _family = hook(
        "() → tuple[float, bool]: Return the power p of the variance function, and whether the link is the logarithm."
    )

    @property
    def log_link(self) -> bool:
        """Whether the logarithm of the prediction is linear in the columns."""
        return self._family()[1]

    def _fit(self, table: Table, run: Run) -> Certificate:
        power, log_link = self._family()
        blocks, alpha, unit = self._in_units_of_targets(table, power, log_link)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = target_sums(blocks, intercept=self.fit_intercept, n_jobs=self.n_jobs)
        problem = DevianceRisk(
            DevianceLoss(power, "log" if log_link else "identity"),
            L2Penalty(alpha),
            blocks,
            sums=sums,
            base=self._null_intercept(sums, power, log_link),
            intercept=self.fit_intercept,
            n_jobs=self.n_jobs,
        )
        single = table.in_memory and table.X.dtype == np.float32
        tol = max(float(self.tol), 1e-6) if single else float(self.tol)
        if is_explicit(self.tol):
            problem.gradient_unit = GRADIENT_MARGIN
        solution = self._solve(problem, self._start(run, problem) if unit == 1 else None, tol, run)
        theta = solution.x if alpha > 0 else problem.minimum_norm(solution.x)
        measure = problem.certified(theta)
        self._set_scores(theta, problem, unit, log_link)
        if single and unit == 1:
            measure = self._stored_in_single(problem, measure, tol)
        self.n_iter_ = int(solution.n_iter)
        self._set_dispersion(table.blocks, power, log_link)
        if problem.has_gap:
            return Certificate("gap", measure, tol, measure, solution.n_iter)
        return Certificate("stationarity", measure, tol, None, solution.n_iter)

    def _in_units_of_targets(self, table: Table, power: float, log_link: bool) -> tuple[Any, float, float]:
        """Return rows, α and unit u of the same problem in y·u, where squares of y itself would leave float64.

        A deviance is homogeneous: d(uy, uμ) = u²⁻ᵖ d(y, μ). A power of two makes the change of units exact.
        """
        alpha = float(self.alpha)
        if not table.in_memory:
            return table.blocks, alpha, 1.0
        largest = float(np.abs(table.y).max(initial=0.0))
        if 0 < largest < 1e-300 and not log_link:
            raise DataError(
                f"{type(self).__name__}: y is at most {largest:.3g}, where float64 has few digits left; rescale y."
            )
        if largest == 0 or _SMALLEST_TARGET <= largest <= 1 / _SMALLEST_TARGET:
            return table.blocks, alpha, 1.0
        unit = 2.0 ** float(np.clip(-np.frexp(largest)[1], -1000, 1000))
        with np.errstate(all="ignore"):
            scaled = alpha * np.float64(unit) ** (2 - power if log_link else -power)
        if alpha > 0 and not 1e-300 < scaled < 1e300:
            return table.blocks, alpha, 1.0
        blocks = Blocks([part._replace(y=np.asarray(part.y) * unit) for part in table.blocks.parts])
        return blocks, float(scaled), unit

    def _set_scores(self, theta: Array, problem: DevianceRisk, unit: float, log_link: bool) -> None:
        """Store coefficients and intercept in the units of y."""
        self.coef_ = theta[1:].copy() if log_link else theta[1:] / unit
        intercept = 0.0
        if self.fit_intercept:
            intercept = problem.base + theta[0] - theta[1:] @ problem.centre
            intercept = intercept - np.log(unit) if log_link else intercept / unit
        self.intercept_ = np.float64(intercept)

    def _stored_in_single(self, problem: DevianceRisk, measure: float, tol: float) -> float:
        """Store float32 numbers for float32 data, where they keep the certificate, and return their own measure."""
        w = self.coef_.astype(np.float32)
        b = np.float32(self.intercept_)
        start = np.float64(b) + w.astype(np.float64) @ problem.centre - problem.base if self.fit_intercept else 0.0
        rounded = problem.certified(np.r_[start, w.astype(np.float64)])
        if not rounded <= tol:
            return measure
        self.coef_ = w
        self.intercept_ = b
        return rounded

    def _set_dispersion(self, blocks: Blocks, power: float, log_link: bool) -> None:
        """Store φ, where there are more rows than coefficients and the sum is within the range of float64."""
        coef = self.coef_.astype(np.float64)
        part = partial(_pearson_of_block, coef=coef, intercept=float(self.intercept_), power=power, log_link=log_link)
        chi2, n_rows = map_reduce(blocks, part, np.add, n_jobs=self.n_jobs)
        df = n_rows - len(coef) - int(self.fit_intercept)
        if df > 0 and _SMALLEST_TARGET**2 <= chi2 < np.inf:
            self.dispersion_ = float(chi2 / df)

    def _null_intercept(self, sums: TargetSums, power: float, log_link: bool) -> float:
        """Return the link of the mean target, having checked that there is a model for these targets."""
        owner = type(self).__name__
        if power > 0 and (sums.lowest < 0 or (power >= 2 and sums.lowest == 0)):
            rule = "> 0" if power >= 2 else ">= 0"
            raise DataError(
                f"{owner}: Some value(s) of y are out of the valid range of the loss: y must be {rule} for power "
                f"{power:g}; the smallest is {sums.lowest:g}. Drop such rows, or choose a power that allows them."
            )
        if not (np.isfinite(sums.y) and (sums.square < _LARGEST_SQUARE * sums.weight).all()):
            raise DataError(f"{owner}: sums of squares of X, or of y, would overflow; rescale them.")
        if not self.fit_intercept:
            return 0.0
        mean = sums.y / sums.weight
        if mean <= 0 and (log_link or power != 0):
            raise DataError(
                f"{owner}: the mean of y must be > 0, because the model's means are; it is {mean:g}. Add rows with "
                "positive targets, or use a model for any real target, such as Ridge."
            )
        return float(np.log(mean)) if log_link else float(mean)

    def _solve(self, problem: DevianceRisk, start: Array | None, tol: float, run: Run) -> Solution:
        if start is not None and not np.isfinite(problem.evaluate(start).value):
            start = None
        if start is None and not np.isfinite(problem.null_value):
            start = self._feasible_start(problem)
        limits: dict[str, Any] = {"tol": tol, "max_iter": self.max_iter, "progress": run.progress}
        solution = solve(problem, start, self.solver, **limits)
        if not np.isfinite(solution.value):  # the thinned problem's optimum is out of range for other rows
            solution = newton(problem, np.zeros(problem.width), **limits)
        if problem.has_gap and problem.intercept:
            if problem.at is None or not np.array_equal(problem.at, solution.x):
                problem.evaluate(solution.x)
            moved = solution.x.copy()
            moved[0] += problem.step  # then the slopes are the feasible dual point themselves
            before = problem.proven
            end = problem.evaluate(moved)
            if problem.proven <= before:
                return solution._replace(x=moved, value=end.value, gradient=end.gradient, measure=end.measure)
        return solution

    def _feasible_start(self, problem: DevianceRisk) -> Array:
        """Return coefficients with positive means, for the identity link without an intercept."""
        owner = type(self).__name__
        if problem.log_link or problem.intercept:
            raise DataError(f"{owner}: the deviance of y overflows at its mean; rescale y.")
        small = 1e-10 * float(problem.sums.square.max(initial=0.0)) / problem.sums.weight
        sums = problem.sums._replace(xy=problem.sums.x)
        squares = DevianceRisk(
            DevianceLoss(0.0, "identity"),
            L2Penalty(small),
            problem.blocks,
            sums=sums,
            intercept=False,
            n_jobs=self.n_jobs,
        )
        start = newton(squares, np.zeros(problem.width), max_iter=2).x
        if not np.isfinite(problem.evaluate(start).value):
            raise DataError(
                f"{owner}: with link='identity' and no intercept, no start with positive means was found; set "
                "fit_intercept=True or link='log'."
            )
        return start

    def _start(self, run: Run, problem: DevianceRisk) -> Array | None:
        """Return the last fit's θ for `warm_start`, where it has the right shape."""
        previous = run.previous
        if not self.warm_start or getattr(previous, "coef_", np.zeros(0)).shape != (problem.width - 1,):
            return None
        w = previous.coef_
        b = previous.intercept_ + w @ problem.centre - problem.base
        return np.r_[b if self.fit_intercept else 0.0, w]

    @rowwise
    def predict(self, X: Any) -> Array:
        """Return the means μ = g⁻¹(b + xᵀw).

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            The predicted means; of a Dask array or frame a lazy array or series.
        """
        scores = self._score_rows(X)
        with np.errstate(over="ignore"):
            return np.exp(scores) if self.log_link else scores

    def predict_dist(self, X: Any) -> Any:
        """Return the distribution of a new observation at each row: the family's, at the fitted mean and φ.

        The coefficients are taken for the true ones; `infer(model, X, y).predict_interval` adds their uncertainty.
        """
        from ..inference.families import family_of_power

        mean = np.asarray(self.predict(X), dtype=np.float64)
        family = family_of_power(self._family()[0])
        if family.distribution is None:
            raise ParameterError(
                f"{type(self).__name__}: the {family.name} family of power {self._family()[0]:g} has no distribution "
                "in closed form. For intervals use with_intervals(model)."
            )
        if not family.knows_dispersion and not hasattr(self, "dispersion_"):
            raise DataError(
                f"{type(self).__name__}: φ is not known, because the fit had no more rows than coefficients, or left "
                "nothing of y over; fit more rows."
            )
        return family.distribution(mean, getattr(self, "dispersion_", 1.0))

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[Array, Array]:
        """Return ends that hold a new observation at each row with probability `level`: quantiles of `predict_dist`."""
        if not 0 < level < 1:
            raise ParameterError(f"{type(self).__name__}: level must lie between 0 and 1; got {level}.")
        low, high = self.predict_dist(X).interval(level)
        return np.asarray(low), np.asarray(high)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return D², the share of the deviance explained: 1 − deviance(y, μ)/deviance(y, ȳ).

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection
            Rows to predict.
        y, sample_weight : array or str
            Their targets and weights; with a frame, a path or Dask also the name of a column.
        """
        X, y, sample_weight = named_columns(type(self).__name__, X, y, sample_weight)
        mean = np.asarray(self.predict(X))
        target = np.asarray(y, dtype=np.float64).ravel()
        weight = np.ones(len(target)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        power = self._family()[0]
        null = np.full(len(target), weight @ target / weight.sum())
        with np.errstate(all="ignore"):
            rest, whole = (float(weight @ unit_deviance(target, mu, power)) for mu in (mean, null))
        if whole == 0:
            return 1.0 if rest == 0 else 0.0
        return 1.0 - rest / whole


@np.errstate(all="ignore")  # means beyond float64 leave φ unknown
def _pearson_of_block(block: Any, coef: Array, intercept: float, power: float, log_link: bool) -> Array:
    """Return Σ s (y − μ)²/μᵖ of the rows, and how many have a weight."""
    eta = np.asarray(block.X @ coef, dtype=np.float64) + intercept
    mean = np.exp(eta) if log_link else eta
    y = np.asarray(block.y, dtype=np.float64)
    weight = np.ones(len(y)) if block.weight is None else block.weight
    rest = y - mean
    scaled = rest if power == 0 else rest / mean ** (0.5 * power)
    return np.array([weight @ scaled**2, np.count_nonzero(weight)], dtype=np.float64)


def unit_deviance(y: Array, mu: Array, power: float) -> Array:
    """Return d(y, μ) of the variance function μᵖ.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.linear.glm.regression import unit_deviance
    >>> unit_deviance(np.array([0.0, 2.0]), np.array([1.0, 1.0]), power=1).round(4)
    array([2.    , 0.7726])
    """
    p = power
    if p == 0:
        return (y - mu) ** 2
    if p == 1:
        return 2 * (xlogy(y, y / mu) - y + mu)
    if p == 2:
        return 2 * (np.log(mu / y) + y / mu - 1)
    whole = np.maximum(y, 0.0) ** (2 - p) / ((1 - p) * (2 - p))
    return 2 * (whole - y * mu ** (1 - p) / (1 - p) + mu ** (2 - p) / (2 - p))


class PoissonRegressor(DevianceRegressor):
    r"""Poisson regression of counts y ≥ 0: minimise S⁻¹ Σᵢ sᵢ (μᵢ − yᵢ + yᵢ log(yᵢ/μᵢ)) + ½α‖w‖², μᵢ = exp(b + xᵢᵀw).

    In the form n⁻¹ΣV + λΩ with V half the unit deviance and Ω = ½‖w‖², λ = α. Time O(nd² + iterations·nd) for n ≫ d;
    memory O(n + d²) besides the data.

    Examples
    --------
    >>> from learnable import PoissonRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1, 1, 3, 7]
    >>> model = PoissonRegressor(alpha=0.01).fit(X, y)
    >>> model.predict([[0.0], [3.0]]).round(2)
    array([0.67, 6.76])
    >>> model.certificate_.kind, model.certificate_.holds
    ('gap', True)
    """

    _theory = "maximum-likelihood"

    def _family(self) -> tuple[float, bool]:
        return 1.0, True

    def _likelihood(self, sum_of_weights: float) -> LinearLikelihood:
        """Return the Poisson likelihood; S times the objective is the negative log posterior."""
        return LinearLikelihood("poisson", self.alpha * sum_of_weights)


class GammaRegressor(DevianceRegressor):
    r"""Gamma regression of targets y > 0: minimise S⁻¹ Σᵢ sᵢ (log(μᵢ/yᵢ) + yᵢ/μᵢ − 1) + ½α‖w‖², μᵢ = exp(b + xᵢᵀw).

    In the form n⁻¹ΣV + λΩ with V half the unit deviance and Ω = ½‖w‖², λ = α. Time and memory are those of
    `PoissonRegressor`.

    Examples
    --------
    >>> from learnable import GammaRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 2.0, 5.0, 7.0]
    >>> model = GammaRegressor(alpha=0.01).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.97
    """

    _theory = "maximum-likelihood"

    def _family(self) -> tuple[float, bool]:
        return 2.0, True

    def _likelihood(self, sum_of_weights: float) -> LinearLikelihood:
        """Return the Gamma likelihood with dispersion φ; S/φ times the objective is the negative log posterior."""
        return LinearLikelihood("gamma", self.alpha * sum_of_weights, in_units_of_noise=True)


class TweedieRegressor(DevianceRegressor):
    r"""Tweedie regression: minimise 1/(2S) Σᵢ sᵢ d_p(yᵢ, μᵢ) + ½α‖w‖², d_p the unit deviance of the variance μᵖ.

    In the form n⁻¹ΣV + λΩ with V half the unit deviance and Ω = ½‖w‖², λ = α. Time and memory are those of
    `PoissonRegressor`.

    Examples
    --------
    >>> from learnable import TweedieRegressor
    >>> X, y = [[1.0, 2.0], [2.0, 3.0], [3.0, 4.0], [4.0, 3.0]], [2.0, 3.5, 5.0, 5.5]
    >>> model = TweedieRegressor().fit(X, y)
    >>> model.coef_.round(4), round(model.intercept_, 4)
    (array([0.6, 0.3]), np.float64(1.6))
    """

    _theory = "maximum-likelihood"

    power: float = param(
        Number(low=-100.0, high=100.0),
        "p: 0 normal, 1 Poisson, (1, 2) compound Poisson, 2 Gamma, 3 inverse Gaussian. No distribution has a "
        "power between 0 and 1, but the deviance exists.",
        default=0.0,
    )
    link: str = param(
        Options("auto", "identity", "log"),
        'g; "auto" is the identity for p ≤ 0 and the logarithm otherwise. With the identity and p ≠ 0, '
        "means are kept positive on the rows of the fit; those predicted for others can be negative. Where a "
        "mean of zero would be best, there is no optimum, and the fit warns.",
        default="auto",
    )
    certificate_: Certificate = fitted(
        "Certificate",
        "`gap` where the problem is convex and α > 0: p = 0 with the identity, 1 ≤ p ≤ 2 with the logarithm. "
        "Otherwise `stationarity`.",
    )

    def _family(self) -> tuple[float, bool]:
        power = float(self.power)
        return power, self.link == "log" or (self.link == "auto" and power > 0)
