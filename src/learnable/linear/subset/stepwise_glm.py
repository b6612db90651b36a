r"""Stepwise maximum likelihood: one column in, or one out, at a time, in logistic, Poisson and gamma regression.

    forward:   S ← S ∪ argmax_j T(S, S ∪ {j}),        backward:   S ← S \ argmin_j T(S \ {j}, S),

with T the likelihood ratio, Wald or score statistic of a step, each asymptotically χ² with one degree of freedom where
the column does not matter. Of the whole path one size is kept: a given one, that of the least AIC or BIC (deviance
+ c·k), of the least deviance on folds, or where a test ends.

Gamma regression (log link) has a dispersion φ. It is estimated once, from all columns, by Pearson's statistic; the
statistics of steps and the deviance in AIC and BIC are divided by it, as Mallows' Cp does with σ², and the tests are
those of F with one and n − p − 1 degrees of freedom.

References: P. McCullagh and J. Nelder, Generalized Linear Models, 2nd ed., 1989; D. Hosmer and S. Lemeshow, Applied
Logistic Regression, section 4.3.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, xlog1py, xlogy
from scipy.stats import chi2, f
from sklearn.base import RegressorMixin

from ...core import (
    Array,
    Certificate,
    DataError,
    Matches,
    NDArray,
    Nothing,
    Number,
    Options,
    ParameterError,
    Run,
    SeparableDataError,
    fitted,
    optional,
    param,
    tags,
)
from ...data.blocks import map_reduce
from ...data.door import Table, door, refuse_extreme_sizes
from ...data.sources import named_columns, rowwise
from ..base import LinearModel
from ..choosing import plain_splits
from ..least_squares.ridge_cv import row_order
from .best_subset import COLUMNS, penalty_of
from .compressed import column_numbers

#: Share of the statistic by which a step may fall short of the best: equally good columns differ by rounding.
TOLERANCE = 1e-6
_NEWTON = 60  # steps; eight suffice unless a maximum lies at infinity
_STILL = 1e-12  # of the deviance: change at which Newton's method has ended
_HUGE = 30.0  # score beyond which a probability is zero or one: there the likelihood has no maximum
_MOST_COMPARED = 200  # subsets of one size up to which the best of them is found too
_DEPENDENT = 1e-10  # share of a column's squared norm, given the columns that are in, below which it depends on them


class Likelihood(NamedTuple):
    """Deviance and its derivatives by the score, in units of the dispersion."""

    name: str

    def mean(self, z: Array) -> Array:
        """Return the mean of y at scores z."""
        return np.asarray(expit(z) if self.name == "binomial" else np.exp(np.minimum(z, 500.0)))

    def deviance(self, y: Array, z: Array, w: Array) -> float:
        """Return Σ w d(y, mean)."""
        if self.name == "binomial":
            total = np.logaddexp(0.0, z) - y * z + xlogy(y, y) + xlog1py(1.0 - y, -y)
            return float(2.0 * w @ total)
        if self.name == "gamma":
            return float(2.0 * w @ (z - np.log(y) + y * np.exp(np.minimum(-z, 500.0)) - 1.0))
        m = self.mean(z)
        return float(2.0 * w @ (xlogy(y, y) - y * z - (y - m)))

    def slope(self, y: Array, m: Array) -> Array:
        """Return −½ of the derivative of the deviance by the score, at mean m."""
        return y / m - 1.0 if self.name == "gamma" else y - m

    def curvature(self, y: Array, m: Array) -> Array:
        """Return ½ of the second derivative of the deviance by the score."""
        return y / m if self.name == "gamma" else self.information(m)

    def information(self, m: Array) -> Array:
        """Return its expectation."""
        if self.name == "gamma":
            return np.ones_like(m)
        return m * (1.0 - m) if self.name == "binomial" else m


class Fit(NamedTuple):
    """A maximum likelihood fit on some columns."""

    beta: Array  #: intercept first, if there is one
    deviance: float
    z: Array  #: scores
    at_infinity: bool


class StepwiseGLM(RegressorMixin, LinearModel):
    r"""Stepwise logistic, Poisson or gamma regression: minimise the deviance of b + xᵀβ over few columns, greedily.

    In the form n⁻¹ΣV + λΩ (V the deviance, Ω = ‖β‖₀) AIC and BIC are λ = c/n. `predict` gives the mean: the probability
    of y = 1, or the expected count or size. "lr" and "wald" fit every candidate of every step, O(p²) Newton fits for a
    path; "score" fits one model per step and needs no fit of the others. Columns that depend on those chosen never
    enter.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import StepwiseGLM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 6))
    >>> y = rng.random(200) < 1 / (1 + np.exp(-2 * X[:, 1] + X[:, 4]))
    >>> model = StepwiseGLM("binomial").fit(X, y)
    >>> model.order_[:2].tolist(), np.flatnonzero(model.support_).tolist(), model.certificate_.bound
    ([1, 4], [1, 4], 0.0)
    """

    _theory = "forward-stepwise"

    family: str = param(
        Options("binomial", "poisson", "gamma"),
        "Of y: shares of one, counts, or positive numbers whose standard deviation grows with their mean.",
        default="poisson",
        kw_only=False,
    )
    direction: str = param(Options("forward", "backward"), "Whether columns come in or go out.", default="forward")
    size: int | None = param(
        optional(Number(low=0, integer=True)), "Columns to keep; None leaves it to `criterion`.", default=None
    )
    criterion: str = param(
        Options("bic", "aic", "cv", "test"),
        'What chooses the size: deviance + c·k, deviance on folds, or "test": the first step whose test says so.',
        default="bic",
    )
    test: str = param(Options("lr", "wald", "score"), "The statistic of a step.", default="lr")
    p_value: float = param(Number(low=0.0, high=1.0), 'Level of "test".', default=0.05)
    required: Any = param(COLUMNS, "Columns, by number or name, that are always in.", default=None)
    cv: Any = param(
        Nothing() | Matches(lambda v: not isinstance(v, (str, float, bool)), "a number of folds or a splitter"),
        'Folds of "cv"; None is 5.',
        default=None,
    )
    coef_: Any = fitted("(n_features,)", "β of the chosen columns.")
    support_: Any = fitted("(n_features,)", "The chosen columns.", kind="b")
    order_: Any = fitted(
        "(n_steps,)",
        "Columns in the order of the path, required ones first: the first k are its subset of size k.",
        kind="iu",
        low=0,
        below="n_features",
    )
    deviance_path_: Any = fitted("(n_sizes,)", "The deviance along the path, from the required columns alone upwards.")
    statistics_: Any = fitted("(n_tests,)", "The statistic of each step of the path, upwards.")
    dispersion_: float = fitted(
        "()", 'φ that the statistics are divided by: one, or of "gamma" that of all columns.', low=0.0
    )
    cv_deviances_: Any = fitted("(n_sizes, n_folds)", 'Mean deviance on the folds, with "cv".', optional=True)
    row_order_: int = fitted("int", "Checksum of the targets in their order, by which `verify` finds the folds again.")
    certificate_: Certificate = fitted(
        "Certificate",
        "`greedy`: by how much a step falls short of its best candidate. Its bound, where there are at most 200 "
        "subsets of this size, is the relative gap of the deviance to the best of them.",
    )

    _door = staticmethod(door(target="numeric"))
    _iterates = True
    max_seconds = None
    _tags = tags(positive_target=True)

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        table.require_memory(f"{owner}: needs the rows in memory; read the table.")
        _check_targets(owner, self.family, table.y)
        refuse_extreme_sizes(table.X, table.weight, owner)
        required = column_numbers(owner, "required", self.required, self)
        p = table.n_columns
        if self.size is not None and not len(required) <= self.size <= p:
            raise ParameterError(
                f"{owner}: size must lie between the number of required columns, {len(required)}, and that of all, "
                f"{p}; got {self.size}."
            )
        X = np.asarray(table.X.toarray() if hasattr(table.X, "toarray") else table.X, dtype=np.float64)
        weight = np.ones(len(X)) if table.weight is None else table.weight
        steps = Steps(X, table.y, weight, Likelihood(self.family), self.fit_intercept, self.test)
        self.dispersion_ = 1.0
        if self.family == "gamma":
            self.dispersion_ = steps.estimate_dispersion(owner)
            steps = steps._replace(dispersion=self.dispersion_)
        order, statistics = steps.path(self.direction, required, run)
        k = len(required)
        fits = [steps.fit(order[:size]) for size in range(k, len(order) + 1)]
        self.order_ = np.array(order, dtype=np.int64)
        self.deviance_path_ = np.array([fit.deviance for fit in fits])
        self.statistics_ = np.array(statistics)
        self.row_order_ = row_order(table)
        if self.criterion == "cv" and self.size is None:
            self.cv_deviances_ = self._fold_deviances(table, steps, required, len(fits))
        place = self._choose(k, float(weight.sum()))
        chosen = fits[place]
        columns = np.array(order[: k + place], dtype=np.int64)
        if chosen.at_infinity:
            raise SeparableDataError(
                f"{owner}: the columns {sorted(columns.tolist())} predict some targets without error, so the "
                "likelihood has no maximum there. Ask for a smaller size, or use LogisticRegression with a penalty."
            )
        self.coef_ = np.zeros(p)
        self.coef_[columns] = chosen.beta[1:] if self.fit_intercept else chosen.beta
        self.intercept_ = np.float64(chosen.beta[0] if self.fit_intercept else 0.0)
        self.support_ = np.isin(np.arange(p), columns)
        bound = _gap_to_best(steps, required, len(columns), chosen.deviance)
        return Certificate("greedy", 0.0, TOLERANCE, bound, max(1, len(order)), by_construction=True)

    def _choose(self, k: int, n: float) -> int:
        """Return the place on the path that is kept."""
        last = len(self.deviance_path_) - 1
        if self.size is not None:
            return min(self.size - k, last)
        sizes = k + np.arange(last + 1)
        if self.criterion == "cv":
            return int(np.argmin(self.cv_deviances_.mean(axis=1)))
        if self.criterion != "test":
            return int(np.argmin(self.deviance_path_ / self.dispersion_ + penalty_of(self.criterion, n) * sizes))
        small = self._p_values(n) <= self.p_value
        if self.direction == "forward":
            return int(np.argmin(np.r_[small, False]))
        return len(small) - int(np.argmax(np.r_[small[::-1], True]))

    def _p_values(self, n: float) -> Array:
        """Return the p-value of each step; with an estimated dispersion those of F."""
        if self.family != "gamma":
            return np.asarray(chi2.sf(self.statistics_, 1.0))
        return np.asarray(f.sf(self.statistics_, 1.0, n - self.n_features_in_ - int(self.fit_intercept)))

    def _fold_deviances(self, table: Table, steps: Steps, required: list[int], n_sizes: int) -> Array:
        """Return the mean deviance on every fold of the sizes of its own path; where that ends early, of its last."""
        try:
            splits = plain_splits(self.cv, table)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"{type(self).__name__}: cv={self.cv!r} does not work here: {error}") from error

        def of_fold(split: tuple[Any, Any]) -> list[Array]:
            train, test = split
            inner = steps.of_rows(train)
            order, _ = inner.path(self.direction, required, None)
            deviances = []
            for size in range(len(required), len(required) + n_sizes):
                columns = order[:size]
                z = steps.of_rows(test).design(columns) @ inner.fit(columns).beta
                deviances.append(inner.family.deviance(steps.y[test], z, steps.weight[test]) / steps.weight[test].sum())
            return [np.array(deviances)]

        found: list[Array] = map_reduce(splits, of_fold, lambda a, b: a + b, n_jobs=self.n_jobs)
        return np.column_stack(found)

    @rowwise
    def predict(self, X: Any) -> Array:
        """Return the mean of y: the probability of one, or the expected count or size."""
        return Likelihood(self.family).mean(self._score_rows(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the deviance that is explained, 1 − D/D₀."""
        X, y, sample_weight = named_columns(type(self).__name__, X, y, sample_weight)
        y = np.asarray(y, dtype=np.float64)
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        family = Likelihood(self.family)
        mean = np.clip(np.average(y, weights=weight), 1e-300, None)
        level = np.log(mean / (1.0 - mean)) if self.family == "binomial" else np.log(mean)
        whole = family.deviance(y, np.full(len(y), level), weight)
        left = family.deviance(y, self._score_rows(X), weight)
        return float(1.0 - left / whole) if whole > 0 else float(left == 0)


class Steps(NamedTuple):
    """The rows, and how candidates are compared."""

    X: Array
    y: Array
    weight: Array
    family: Likelihood
    intercept: bool
    test: str
    dispersion: float = 1.0

    def estimate_dispersion(self, owner: str) -> float:
        """Return Σ w (y/m − 1)²/(n − p − 1) of the fit on all columns."""
        p = self.X.shape[1]
        freedom = float(self.weight.sum()) - p - int(self.intercept)
        if freedom <= 0:
            raise DataError(
                f"{owner}: family='gamma' estimates its dispersion from all columns, which needs more rows than "
                f"coefficients; got rows of weight {self.weight.sum():g} for {p + int(self.intercept)} coefficients. "
                "Leave columns out, or use GLM with a penalty."
            )
        m = self.family.mean(self.fit(range(p)).z)
        return max(float(self.weight @ (self.y / m - 1.0) ** 2) / freedom, 1e-12)

    def of_rows(self, rows: Any) -> Steps:
        """Return the same on some rows."""
        return self._replace(X=self.X[rows], y=self.y[rows], weight=self.weight[rows])

    def design(self, columns: Any) -> Array:
        """Return the columns with a column of ones before them, if there is an intercept."""
        part = self.X[:, list(columns)]
        return np.column_stack([np.ones(len(part)), part]) if self.intercept else part

    def fit(self, columns: Any) -> Fit:
        """Maximise the likelihood by Newton's method with halved steps."""
        Z = self.design(columns)
        y = self.y
        w = self.weight
        beta = np.zeros(Z.shape[1])
        if self.intercept:
            mean = float(np.clip(w @ y / w.sum(), 1e-12, None))
            beta[0] = np.log(mean / max(1.0 - mean, 1e-12)) if self.family.name == "binomial" else np.log(mean)
        z = Z @ beta
        value = self.family.deviance(y, z, w)
        for _ in range(_NEWTON if Z.shape[1] else 0):
            m = self.family.mean(z)
            root = np.sqrt(np.maximum(w * self.family.curvature(y, m), 1e-300))
            step = np.linalg.lstsq(root[:, None] * Z, w * self.family.slope(y, m) / root, rcond=1e-12)[0]
            length = 1.0
            while length > 1e-6:
                new = z + length * (Z @ step)
                lower = self.family.deviance(y, new, w)
                if lower <= value:
                    break
                length *= 0.5
            if not lower < value:
                break
            gain = value - lower
            beta = beta + length * step
            z = new
            value = lower
            if gain <= _STILL * max(value, 1e-8):
                break
        edge = np.abs(z) if self.family.name == "binomial" else np.where(y == 0, -z, 0.0)  # no gamma target is zero
        return Fit(beta, max(value, 0.0), z, bool(edge.max(initial=0.0) > _HUGE))

    def path(self, direction: str, required: list[int], run: Run | None) -> tuple[list[int], list[float]]:
        """Return all columns in the order of the path, required ones first, and the statistic of each step upwards."""
        return self._forward(required, run) if direction == "forward" else self._backward(required, run)

    def _forward(self, required: list[int], run: Run | None) -> tuple[list[int], list[float]]:
        order = list(required)
        statistics: list[float] = []
        while len(order) < self.X.shape[1]:
            here = self.fit(order)
            free = self.independent(order, here)
            if not len(free) or here.at_infinity:
                break
            found = self.entries(order, here, free)
            if not np.isfinite(found).all() or found.max() < -1e-6 * here.deviance:
                raise DataError(
                    "StepwiseGLM: a column more makes the fit worse, because sums over these columns lose their "
                    "digits; rescale the columns of X, and look for a cell that is far from all others."
                )
            best = int(np.flatnonzero(found >= found.max() - 1e-9 * abs(found.max()))[0])
            order.append(int(free[best]))
            statistics.append(float(found[best]))
            if run is not None:
                run.progress(len(order), float(found[best]))
        return order, statistics

    def _backward(self, required: list[int], run: Run | None) -> tuple[list[int], list[float]]:
        kept = list(range(self.X.shape[1]))
        gone: list[int] = []
        statistics: list[float] = []
        while len(kept) > len(required):
            free = np.array([j for j in kept if j not in required])
            found = self.exits(kept, free)
            last = int(np.flatnonzero(found <= found.min() * (1.0 + 1e-9) + 1e-12)[-1])
            statistics.append(float(found[last]))
            gone.append(int(free[last]))
            kept.remove(int(free[last]))
            if run is not None:
                run.progress(len(gone), float(found[last]))
        return [*required, *reversed(gone)], statistics[::-1]

    def independent(self, order: list[int], here: Fit) -> NDArray[np.intp]:
        """Return the columns that do not depend on those in."""
        own, rest = self._apart(order, here, np.setdiff1d(np.arange(self.X.shape[1]), order))
        return np.setdiff1d(np.arange(self.X.shape[1]), order)[rest > _DEPENDENT * np.maximum(own, 1e-300)]

    def _apart(self, order: list[int], here: Fit, free: Any) -> tuple[Array, Array]:
        """Return the weighted squared norms of columns, and of what is left of them beside those in."""
        root = np.sqrt(np.maximum(self.weight * self.family.information(self.family.mean(here.z)), 1e-300))
        columns = root[:, None] * self.X[:, free]
        own = (columns**2).sum(axis=0)
        Z = root[:, None] * self.design(order)
        if Z.shape[1]:
            Q = np.linalg.qr(Z)[0]
            columns = columns - Q @ (Q.T @ columns)
        return own, (columns**2).sum(axis=0)

    def entries(self, order: list[int], here: Fit, free: Any) -> Array:
        """Return the statistic of every column that may come in."""
        if self.test == "score":
            _, variance = self._apart(order, here, free)
            slope = (self.weight * self.family.slope(self.y, self.family.mean(here.z))) @ self.X[:, free]
            return np.asarray(slope**2 / (variance * self.dispersion))
        if self.test == "lr":
            gains = [here.deviance - self.fit([*order, j]).deviance for j in free.tolist()]
            return np.array(gains) / self.dispersion
        return np.array([self.wald([*order, j])[-1] for j in free.tolist()])

    def exits(self, kept: list[int], free: Any) -> Array:
        """Return the statistic of every column that may go out."""
        if self.test == "wald":
            found = self.wald(kept)
            return np.array([found[kept.index(j)] for j in free.tolist()])
        rest = {j: [i for i in kept if i != j] for j in free.tolist()}
        if self.test == "lr":
            here = self.fit(kept).deviance
            return np.array([self.fit(rest[j]).deviance - here for j in free.tolist()]) / self.dispersion
        return np.array([self.entries(rest[j], self.fit(rest[j]), np.array([j]))[0] for j in free.tolist()])

    def wald(self, columns: list[int]) -> Array:
        """Return β²/var β of each column."""
        fit = self.fit(columns)
        Z = self.design(columns)
        root = np.sqrt(np.maximum(self.weight * self.family.information(self.family.mean(fit.z)), 1e-300))
        inverse = np.linalg.pinv((root[:, None] * Z).T @ (root[:, None] * Z), rcond=1e-14, hermitian=True)
        variance = np.maximum(self.dispersion * np.diag(inverse), 1e-300)
        return np.asarray((fit.beta**2 / variance)[int(self.intercept) :])


def _check_targets(owner: str, family: str, y: Array) -> None:
    if family == "binomial" and ((y < 0) | (y > 1)).any():
        raise DataError(f"{owner}: y must lie between 0 and 1 for family='binomial'; encode labels as 0 and 1.")
    if family == "poisson" and (y < 0).any():
        raise DataError(f"{owner}: y must not be negative for family='poisson'.")
    if family == "gamma" and (y <= 0).any():
        raise DataError(f"{owner}: y must be positive for family='gamma'; use family='poisson' where zeros occur.")


def _gap_to_best(steps: Steps, required: list[int], size: int, deviance: float) -> float | None:
    """Return how far the deviance is above that of the best subset of its size, where there are few subsets."""
    free = [j for j in range(steps.X.shape[1]) if j not in required]
    more = size - len(required)
    if comb(len(free), more) > _MOST_COMPARED:
        return None
    best = min(steps.fit([*required, *chosen]).deviance for chosen in combinations(free, more))
    null = steps.fit(required).deviance
    gap = max(0.0, deviance - best) / max(best, 1e-8 * null, 1e-300)
    return gap if gap > TOLERANCE else 0.0
