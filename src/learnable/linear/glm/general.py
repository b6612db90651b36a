r"""Generalised linear models by maximum likelihood: any family, any link, offsets, and Firth's bias reduction.

    max_θ  Σᵢ sᵢ log p(yᵢ | μᵢ),      g(μᵢ) = ηᵢ = oᵢ + b + xᵢᵀw

by Fisher scoring, Newton's method with the expected information I(θ), in coordinates in which the columns are
orthonormal. The certificate is √(uᵀI⁻¹u/φ), u the score: how far the coefficients are, in standard errors, from where
the score vanishes. There is no penalty, so that I⁻¹ has the standard errors (`summary`).

With bias reduction, ½ log det I is added to the log-likelihood. For the canonical links of counts and proportions this
removes the first-order bias, and it is finite where a column separates the classes.

Reference: P. McCullagh and J. Nelder, Generalized Linear Models, 2nd ed., 1989; D. Firth, Biometrika 80 (1993).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import digamma
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ...core.certificate import Certificate
from ...core.declare import MAX_ITER, TOLERANCE, Boolean, Matches, Nothing, Number, Options, fitted, optional, param
from ...core.errors import DataError, ParameterError, SeparableDataError
from ...core.estimator import Run
from ...core.loaded import law, laws
from ...data.blocks import map_reduce
from ...data.door import Table, door
from ...data.sources import NamedScore, rowwise
from ...solvers.problem import Evaluation, Solution
from ...solvers.smooth.newton import newton
from ..base import LinearModel
from ..inference.design import Design, centred, design_of, independent_columns, inverse_of, leverages, triangle
from ..inference.families import FAMILIES, LINKS, Family, Link, family_of_power, negative_binomial
from ..inference.infer import RowTerms, fit_statistics, score_terms
from ..inference.summary import Inference

Array = NDArray[np.float64]

_FAMILIES = (*FAMILIES, "negative-binomial", "tweedie")
_COLUMN = Nothing() | Number(low=0, integer=True) | Matches(lambda v: isinstance(v, str), "the name of a column")
_SMALL_OVERDISPERSION = 1e-3  # up to which Stirling's series has all digits
_OVERDISPERSIONS = (1e-8, 1e8)  # between which a is looked for: outside, counts are Poisson's or have no mean
_SETTLED = 1e-10  # relative change of a at which the alternation stops: two digits beyond the default tolerance
_MOST_ROUNDS = 200  # of coefficients given the parameter of the family and back, at most
_SEPARATED = 1e-6  # share of the largest movement that a row may move against a direction which separates


class GLM(NamedScore, RegressorMixin, LinearModel):
    r"""Generalised linear model: maximise Σᵢ sᵢ log p(yᵢ | μᵢ), g(μᵢ) = b + xᵢᵀw, for inference.

    In the form n⁻¹ΣV + λΩ, V is half the unit deviance and λ = 0. Time O(np²) an iteration, memory O(p²) besides the
    data. For prediction with a penalty there are `PoissonRegressor`, `GammaRegressor` and `LogisticRegression`.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import GLM
    >>> X = np.arange(8.0)[:, None]
    >>> model = GLM("poisson").fit(X, [1, 0, 2, 1, 4, 4, 9, 8])
    >>> print(model.summary())
    GLM: poisson family, log link
    coefficient   estimate  std. error       z   P(>|z|)        95% interval
    (intercept)  -0.452179      0.5633  -0.803     0.422  [-1.5563, 0.65194]
    x0            0.390826      0.1008   3.877  0.000106  [0.19325, 0.58841]
    8 rows, 6 residual degrees of freedom
    classical errors
    deviance 4.40798 (null 23.0789)
    pseudo-R² 0.4223 (McFadden)
    test of all coefficients but the intercept: χ²(1) = 18.6709, p = 1.553e-05
    log-likelihood -12.7725, AIC 29.5449, BIC 29.7038
    """

    _theory = "maximum-likelihood"

    family: str = param(Options(*_FAMILIES), "Variance as a function of the mean.", default="normal", kw_only=False)
    link: str | None = param(
        Options(*LINKS) | Nothing(),
        "g. None is the identity for normal, logit for binomial, else the logarithm.",
        default=None,
    )
    power: float = param(Number(low=-100.0, high=100.0), 'p of "tweedie", whose variance is μᵖ.', default=1.5)
    overdispersion: float | None = param(
        optional(Number(low=0.0, low_open=True)),
        'a of "negative-binomial", whose variance is μ + aμ²; None estimates it.',
        default=None,
    )
    offset: Any = param(
        _COLUMN, "Column of X, by number or name, whose coefficient is one: log exposure, say.", default=None
    )
    bias_reduction: bool = param(Boolean(), "Firth's: for the canonical links of binomial and poisson.", default=False)
    tol: float = param(TOLERANCE, "Distance from the optimum, in standard errors, at which to stop.", default=1e-8)
    max_iter: int = param(MAX_ITER, "Most iterations.", default=100)
    coef_: Any = fitted("(n_features,)", "w; one for the offset.")
    intercept_: Any = fitted("()", "b.")
    dispersion_: float = fitted("()", "φ: 1 for counts and proportions, else Pearson's.", finite=False, low=0.0)
    overdispersion_: float = fitted("()", "a of the negative binomial; 0 elsewhere.", low=0.0)
    information_factor_: Array = fitted(
        "(n_free, n_free)", "Upper triangular F; FᵀF is the expected information of intercept and free columns, φ = 1."
    )
    deviance_: float = fitted("()", "Σ sᵢ d(yᵢ, μᵢ).")
    null_deviance_: float = fitted("()", "The same of the model with an intercept only.", finite=False)
    log_likelihood_: float = fitted("()", "At the estimates; NaN where there is no closed form.", finite=False)
    null_log_likelihood_: float = fitted("()", "The same of the model with an intercept only.", finite=False)
    free_columns_: Any = fitted(
        "(n_slopes,)",
        "Columns whose coefficients are estimated: neither the offset nor those that depend on columns before them, "
        "whose coefficients are zero.",
        kind="iu",
        low=0,
    )
    offset_column_: int = fitted("int", "Number of the offset's column; −1 without.")
    n_rows_: int = fitted("int", "Rows of positive weight.")
    n_iter_: int = fitted("int", "Iterations.")
    certificate_: Certificate = fitted("Certificate", "`stationarity`, in standard errors.")

    _door = staticmethod(door(target="numeric"))
    _remedy = "raise max_iter, or try another link"
    max_seconds = None  # a fit is a handful of passes

    def _fit(self, table: Table, run: Run) -> Certificate:
        table.require_memory(
            "GLM: rows on disk or on Dask are not read; use PoissonRegressor, GammaRegressor or a sample."
        )
        family, link = self._stated(1.0)
        y = np.asarray(table.y, dtype=np.float64)
        weight = np.ones(len(y)) if table.weight is None else table.weight
        family.check("GLM", y)
        self.offset_column_ = self._offset_number()
        design, offset = self._design(table.X)
        basis = triangle(design, weight, self.n_jobs)
        kept = independent_columns(basis)
        if len(kept) < design.width:
            b = int(self.fit_intercept)
            design = design._replace(columns=design.columns[kept[kept >= b] - b])
        self.free_columns_ = design.columns
        design = centred(design, weight, self.n_jobs)
        basis = triangle(design, weight, self.n_jobs)
        estimates = self.family == "negative-binomial" and self.overdispersion is None
        rows = _Rows(design, basis, inverse_of(basis), y, weight, offset, self.n_jobs)
        a = 1.0 if estimates else float(self.overdispersion or 0.0)
        found: Solution | None = None
        total = 0
        for _ in range(_MOST_ROUNDS if estimates else 1):
            family, link = self._stated(a)
            problem = _Likelihood(rows, family, link, firth=self.bias_reduction)
            start = _start(problem) if found is None else found.x
            found = newton(problem, start, tol=self.tol, max_iter=self.max_iter, progress=run.progress)
            total += found.n_iter
            if not estimates:
                break
            before = a
            a = _best_overdispersion(y, problem.means(found.x), weight)
            if abs(a - before) <= _SETTLED * a or run.should_stop():
                break
        assert found is not None
        self._refuse_separated(problem, found)
        theta = rows.inverse @ found.x
        if design.centre is not None:
            theta[0] -= design.centre @ theta[1:]
        eta = problem.scores_at(found.x)
        self._store(theta, family, link, eta, rows, a if self.family == "negative-binomial" else 0.0)
        self.n_iter_ = max(1, total)
        measure = found.measure
        if design.centre is not None:  # columns far from zero: the intercept's last digit moves every score
            moved = 0.5 * np.spacing(abs(self.intercept_)) * self.information_factor_[0, 0]
            measure = max(measure, float(moved / np.sqrt(problem.dispersion(link.mean(eta)) or np.inf)))
        if estimates:
            measure = max(measure, _overdispersion_error(y, link.mean(eta), weight, a))
        return Certificate("stationarity", float(measure), float(self.tol), None, self.n_iter_)

    def _store(self, theta: Array, family: Family, link: Link, eta: Array, rows: _Rows, a: float) -> None:
        """Store the estimates and how well they fit."""
        b = int(self.fit_intercept)
        design = rows.design._replace(centre=None)
        self.coef_ = np.zeros(self.n_features_in_)
        self.coef_[design.columns] = theta[b:]
        if self.offset_column_ >= 0:
            self.coef_[self.offset_column_] = 1.0
        self.intercept_ = np.float64(theta[0] if b else 0.0)
        self.overdispersion_ = float(a)
        u, h = score_terms(family, link, rows.y, eta, rows.weight)
        self.information_factor_ = _positive_diagonal(triangle(design, h, self.n_jobs))
        mean = np.asarray(link.mean(eta))
        terms = RowTerms(
            self,
            family,
            link,
            design,
            [],
            theta,
            rows.y,
            mean,
            rows.weight,
            u[:, None],
            h[:, None, None],
            None,
            rows.offset,
        )
        self.n_rows_ = len(rows.y)
        fit = fit_statistics(terms, float(self.n_rows_), float(self.n_rows_ - len(theta)))
        self.dispersion_ = float(fit.dispersion)
        self.deviance_ = float(fit.deviance)
        self.null_deviance_ = float(fit.null_deviance)
        self.log_likelihood_ = float(fit.log_likelihood)
        self.null_log_likelihood_ = float(fit.null_log_likelihood)

    def _stated(self, a: float) -> tuple[Family, Link]:
        """Return family and link, given the overdispersion."""
        if self.family == "negative-binomial":
            family = negative_binomial(a)
        elif self.family == "tweedie":
            family = family_of_power(float(self.power))
        else:
            family = FAMILIES[self.family]
        link = LINKS[self.link or family.link]
        if self.bias_reduction and not (family.knows_dispersion and link.name == family.canonical):
            raise ParameterError(
                "GLM: bias_reduction is for family='binomial' with the logit and family='poisson' with the log link; "
                f"got {self.family} and {link.name}."
            )
        return family, link

    def _generalised(self) -> tuple[Family, Link]:
        """Return family and link of the fit, for `infer`."""
        return self._stated(self.overdispersion_ or 1.0)

    @property
    def estimates_overdispersion_(self) -> bool:
        """Whether a was estimated."""
        return self.family == "negative-binomial" and self.overdispersion is None

    def _offset_number(self) -> int:
        if self.offset is None:
            return -1
        names = list(getattr(self, "feature_names_in_", []))
        if isinstance(self.offset, str):
            if self.offset not in names:
                raise ParameterError(f"GLM: offset names the column {self.offset!r}, which X does not have.")
            return names.index(self.offset)
        if self.offset >= self.n_features_in_:
            raise ParameterError(f"GLM: offset must be a column of X, below {self.n_features_in_}; got {self.offset}.")
        return int(self.offset)

    def _design(self, X: Any) -> tuple[Design, Array]:
        free = [j for j in range(X.shape[1]) if j != self.offset_column_]
        design = design_of(X, free, bool(self.fit_intercept))
        if self.offset_column_ < 0:
            return design, np.zeros(X.shape[0])
        column = X[:, [self.offset_column_]]
        column = column.toarray() if sp.issparse(column) else np.asarray(column)
        return design, column.astype(np.float64).ravel()

    def _free_names(self, names: Sequence[str] | None = None) -> list[str]:
        given = names if names is not None else getattr(self, "feature_names_in_", None)
        columns = [f"x{j}" for j in range(self.n_features_in_)] if given is None else [str(name) for name in given]
        if len(columns) != self.n_features_in_:
            raise ParameterError(f"GLM: names must hold {self.n_features_in_} names; got {len(columns)}.")
        free = [columns[j] for j in self.free_columns_]
        return ["(intercept)", *free] if self.fit_intercept else free

    _laws = laws(
        law(
            "free_columns_ or offset_column_ name a column that the model does not have",
            lambda model: max(model.free_columns_.max(initial=-1), int(model.offset_column_)) < model.n_features_in_,
            "coef_",
        ),
        law(
            "information_factor_ must have one row per estimated coefficient",
            lambda model: len(model.information_factor_) == len(model.free_columns_) + int(model.fit_intercept),
            "coef_",
        ),
    )

    def _refuse_separated(self, problem: _Likelihood, found: Solution) -> None:
        """Raise SeparableDataError if the likelihood grows for ever along a direction."""
        rows = problem.rows
        if self.family != "binomial" or self.bias_reduction or not np.isin(rows.y, (0.0, 1.0)).all():
            return
        side = 2.0 * rows.y - 1.0
        last = np.asarray(np.linalg.lstsq(problem.hessian(found.x), -found.gradient, rcond=None)[0], dtype=np.float64)
        for direction in (found.x, last):
            moved = np.asarray(side * rows.products(direction))
            size = float(np.abs(moved).max(initial=0.0))
            far = np.abs(problem.scores_at(found.x)).max(initial=0.0) > 15
            if size > 0 and far and moved.min() >= -_SEPARATED * size:
                raise SeparableDataError(
                    "GLM: a linear rule separates the classes, so the likelihood grows for ever along it and has no "
                    "maximum. Set bias_reduction=True, which has finite estimates, or drop the column that separates."
                )

    @rowwise
    def predict(self, X: Any) -> Array:
        """Return the means μ = g⁻¹(b + xᵀw)."""
        check_is_fitted(self)
        link = self._generalised()[1]
        return np.asarray(link.mean(self._score_rows(X).astype(np.float64)))

    def summary(self, level: float = 0.95, names: Sequence[str] | None = None) -> Inference:
        """Return estimates, classical standard errors, tests and intervals; `infer` has robust and clustered ones.

        Columns that depend on others are left out.

        Parameters
        ----------
        level : float
            Level of the intervals.
        names : sequence of str, optional
            Names of all columns of X.
        """
        check_is_fitted(self)
        family, link = self._generalised()
        F = self.information_factor_
        width = len(F)
        df = float(self.n_rows_ - width)
        if not family.knows_dispersion and df <= 0:
            raise DataError(f"GLM: {self.n_rows_} rows and {width} coefficients leave no degrees of freedom for φ.")
        half = np.sqrt(self.dispersion_) * inverse_of(F)
        free = self.free_columns_
        return Inference(
            model=self,
            title=f"GLM: {family.name} family, {link.name} link",
            names=self._free_names(names),
            estimate=np.r_[[self.intercept_] if self.fit_intercept else [], self.coef_[free]],
            covariance=half @ half.T,
            covariance_kind="classical",
            df=np.inf if family.knows_dispersion else df,
            level=level,
            n_rows=float(self.n_rows_),
            df_resid=df,
            dispersion=self.dispersion_,
            deviance=self.deviance_,
            null_deviance=self.null_deviance_,
            log_likelihood=self.log_likelihood_,
            null_log_likelihood=self.null_log_likelihood_,
            n_estimated=width + (0 if family.knows_dispersion else 1) + int(self.estimates_overdispersion_),
            leverage=None,
            pearson=None,
            family=family,
            link=link,
            design_width=width,
            free_columns=free,
        )

    def conf_int(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return lower and upper ends of the coefficients, in the shape of `coef_`; the offset's is [1, 1].

        A coefficient that is not determined has NaN.
        """
        lower, upper = self.summary(level).conf_int()
        skip = int(self.fit_intercept)
        ends = np.full((2, self.n_features_in_), np.nan)
        ends[0, self.free_columns_] = lower[skip:]
        ends[1, self.free_columns_] = upper[skip:]
        if self.offset_column_ >= 0:
            ends[:, self.offset_column_] = 1.0
        return ends[0], ends[1]

    def predict_dist(self, X: Any) -> Any:
        """Return the distribution of a new observation at each row, at the estimated coefficients and φ."""
        return self.summary().predict_dist(X)

    def predict_interval(
        self, X: Any, level: float = 0.95, kind: Literal["mean", "new"] = "new"
    ) -> tuple[Array, Array]:
        """Return ends that hold a new observation, or the mean, of each row; see `Inference.predict_interval`."""
        return self.summary(level).predict_interval(X, kind=kind)


class _Rows(NamedTuple):
    """The rows, and coordinates γ = Rθ in which the columns are orthonormal."""

    design: Design
    basis: Array  #: R
    inverse: Array  #: R⁻¹
    y: Array
    weight: Array
    offset: Array
    n_jobs: int | None

    def products(self, gamma: Array) -> Array:
        """Return X̃R⁻¹γ."""
        theta = self.inverse @ gamma
        return np.concatenate(
            map_reduce(
                self.design.blocks,
                lambda block: [self.design.rows(block) @ theta],
                lambda a, b: [*a, *b],
                n_jobs=self.n_jobs,
            )
        )

    def sums(self, u: Array, h: Array) -> tuple[Array, Array]:
        """Return Zᵀu and Zᵀdiag(h)Z with Z = X̃R⁻¹."""

        def part(block: Any) -> tuple[Array, Array]:
            rows = self.design.rows(block)
            return rows.T @ self.design.cut(u, block), (rows.T * self.design.cut(h, block)) @ rows

        def merge(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
            return a[0] + b[0], a[1] + b[1]

        g, J = map_reduce(self.design.blocks, part, merge, n_jobs=self.n_jobs)
        return self.inverse.T @ g, self.inverse.T @ J @ self.inverse


class _Likelihood:
    """Minus the log-likelihood in γ, up to constants, with the expected information for a Hessian."""

    def __init__(self, rows: _Rows, family: Family, link: Link, *, firth: bool) -> None:
        self.rows = rows
        self.family = family
        self.link = link
        self.firth = firth
        self._at: tuple[Array, Array] | None = None

    def scores_at(self, gamma: Array) -> Array:
        """Return η."""
        return np.asarray(self.rows.offset + self.rows.products(gamma))

    def means(self, gamma: Array) -> Array:
        """Return μ."""
        return np.asarray(self.link.mean(self.scores_at(gamma)))

    @np.errstate(all="ignore")  # a step too long may leave the family: its value is then infinite
    def evaluate(self, gamma: Array) -> Evaluation:
        rows = self.rows
        family = self.family
        eta = self.scores_at(gamma)
        mean = self.link.mean(eta)
        deviance = rows.weight * family.deviance(rows.y, mean)
        value = 0.5 * float(deviance.sum())
        if not (family.inside(mean).all() and np.isfinite(value)):
            return Evaluation(np.inf, np.full(len(gamma), np.nan), np.inf)
        u, h = score_terms(family, self.link, rows.y, eta, rows.weight)
        g, J = rows.sums(u, h)
        if self.firth:
            sign, logdet = np.linalg.slogdet(J)
            if sign <= 0:
                return Evaluation(np.inf, np.full(len(gamma), np.nan), np.inf)
            value -= 0.5 * float(logdet)
            half = np.linalg.inv(np.linalg.cholesky(J)).T
            lever = leverages(rows.design, rows.inverse @ half, h, rows.n_jobs)
            # dh/dη over h: 1 − 2μ for the logit, 1 for the logarithm.
            rate = 1.0 - 2.0 * mean if self.link.name == "logit" else np.ones(len(mean))
            g = g + rows.sums(0.5 * lever * rate, np.zeros(len(mean)))[0]
        self._at = gamma, J
        rounding = np.finfo(float).eps * float(np.abs(deviance).sum() + len(gamma))
        return Evaluation(value, -g, self._distance(g, J, mean), rounding)

    def hessian(self, gamma: Array) -> Array:
        if self._at is None or not np.array_equal(self._at[0], gamma):
            self.evaluate(gamma)
        assert self._at is not None
        return self._at[1]

    def _distance(self, g: Array, J: Array, mean: Array) -> float:
        """Return √(gᵀJ⁻¹g/φ)."""
        step = np.linalg.lstsq(J, g, rcond=None)[0]
        squared = max(float(g @ step), 0.0)
        phi = self.dispersion(mean)
        return float(np.sqrt(squared / phi)) if phi > 0 else float(squared > 0)

    def dispersion(self, mean: Array) -> float:
        """Return φ: one for counts and proportions, else Pearson's, with a floor."""
        if self.family.knows_dispersion:
            return 1.0
        rows = self.rows
        pearson = float(rows.weight @ ((rows.y - mean) ** 2 / self.family.variance(mean)))
        size = float(rows.weight @ (rows.y**2 / self.family.variance(mean)))
        df = max(len(mean) - rows.design.width, 1)
        # An exact fit has φ = 0, and rounding of the score is 1e-16 of the targets: distances are then in units of a
        # noise of which the standard error of a mean is 1e-7 of the targets.
        return max(pearson / df, 1e-14 * size)


def _start(problem: _Likelihood) -> Array:
    """Return γ of one step of weighted least squares from means near the targets, or of the best constant."""
    rows = problem.rows
    family = problem.family
    link = problem.link
    mean = float(rows.weight @ rows.y / rows.weight.sum())
    with np.errstate(all="ignore"):
        near = family.first_means(rows.y, mean)
        eta = np.asarray(link.score(near))
        u, h = score_terms(family, link, rows.y, eta, rows.weight)
        g, J = rows.sums(h * (eta - rows.offset) + u, h)
        if np.isfinite(g).all() and np.isfinite(J).all():
            start = np.asarray(np.linalg.lstsq(J, g, rcond=None)[0], dtype=np.float64)
            if np.isfinite(problem.evaluate(start).value):
                return start
        constant = np.zeros(rows.design.width)
        if rows.design.intercept:
            constant[0] = float(link.score(np.array([mean]))[0] - np.mean(rows.offset))
        start = rows.basis @ constant
        if np.isfinite(problem.evaluate(start).value):
            return start
    raise DataError(
        f"GLM: with the {link.name} link no start has means that the {family.name} family allows; use the log link, or "
        "fit_intercept=True."
    )


def _best_overdispersion(y: Array, mean: Array, weight: Array) -> float:
    """Return a of the greatest likelihood, given the means; the least allowed where counts vary less than Poisson's."""
    low, high = np.log(_OVERDISPERSIONS)
    grid = np.linspace(low, high, 75)
    slopes = np.array([weight @ _overdispersion_terms(y, mean, float(np.exp(value))) for value in grid])
    rising = slopes > 0
    tops = np.flatnonzero(rising[:-1] & ~rising[1:])  # between this point of the grid and the next
    found = [_top_of(y, mean, weight, grid[k], grid[k + 1]) for k in tops]
    found += [float(np.exp(low))] if not rising[0] else []
    found += [float(np.exp(high))] if rising[-1] else []
    if len(found) == 1:
        return found[0]
    return max(found, key=lambda a: float(weight @ negative_binomial(a).log_likelihood(y, mean, 1.0)))


def _top_of(y: Array, mean: Array, weight: Array, low: float, high: float) -> float:
    """Return a between exp(low), where the likelihood rises, and exp(high), where it falls: Newton's, kept inside."""
    log_a = 0.5 * (low + high)
    for _ in range(60):
        slope, curve = _overdispersion_slopes(y, mean, weight, float(np.exp(log_a)))
        low, high = (log_a, high) if slope > 0 else (low, log_a)
        step = -slope / curve if curve < 0 else np.inf
        inside = low < log_a + step < high
        before = log_a
        log_a = log_a + step if inside else 0.5 * (low + high)
        if abs(log_a - before) < 1e-13 * max(1.0, abs(log_a)):
            break
    return float(np.exp(log_a))


def _overdispersion_terms(y: Array, mean: Array, a: float) -> Array:
    """Return the derivative of every row's log-likelihood by log a.

    With k = 1/a it is k(log(1 + aμ) − ψ(y + k) + ψ(k)) + (y − μ)/(1 + aμ), of the size of a. For small a its terms
    cancel, so Stirling's series of ψ is put in, and δ = a(y − μ)/(1 + aμ) leaves k(δ − log(1 + δ)) of the first ones.
    """
    size = 1.0 / a
    if a > _SMALL_OVERDISPERSION:
        log_part = np.log1p(a * mean) - digamma(y + size) + digamma(size)
        return np.asarray(size * log_part + (y - mean) / (1.0 + a * mean))
    d = a * (y - mean) / (1.0 + a * mean)
    r = 1.0 / (1.0 + a * y)
    bend = np.where(np.abs(d) < 0.02, _minus_log1p_series(np.clip(d, -0.02, 0.02)), d - np.log1p(d))
    return np.asarray(size * bend - 0.5 * a * y * r + a / 12.0 * (r * r - 1.0) - a**3 / 120.0 * (r**4 - 1.0))


def _minus_log1p_series(d: Array) -> Array:
    """Return δ − log(1 + δ) for small δ."""
    total = np.zeros_like(d)
    for power in range(10, 1, -1):
        total = total * d + (1.0 if power % 2 == 0 else -1.0) / power
    return total * d * d


def _overdispersion_slopes(y: Array, mean: Array, weight: Array, a: float) -> tuple[float, float]:
    """Return the first derivative by log a and, by central differences of it, the second."""
    step = 1e-5
    low, middle, high = (
        float(weight @ _overdispersion_terms(y, mean, a * float(np.exp(shift)))) for shift in (-step, 0.0, step)
    )
    return middle, (high - low) / (2 * step)


def _overdispersion_error(y: Array, mean: Array, weight: Array, a: float) -> float:
    """Return the slope by log a over its standard error; at an end of what is allowed, only the slope inwards."""
    terms = _overdispersion_terms(y, mean, a)
    size = float(np.sqrt(weight @ terms**2))
    slope = float(weight @ terms)
    if a <= _OVERDISPERSIONS[0] * 1.01:
        slope = max(slope, 0.0)
    elif a >= _OVERDISPERSIONS[1] / 1.01:
        slope = min(slope, 0.0)
    return abs(slope) / size if size else 0.0


def _positive_diagonal(R: Array) -> Array:
    return np.asarray(R * np.where(np.diag(R) < 0, -1.0, 1.0)[:, None])
