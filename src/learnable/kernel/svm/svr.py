r"""Support vector regression with a tube.

    min_{f, b}  ½‖f‖² + Σᵢ cᵢ max(0, |tᵢ − f(xᵢ) − b| − ε),     cᵢ = C × sample weight

In the form n⁻¹ΣV + λΩ with Ω = ½‖f‖², λ = 1/(nC). The dual has two multipliers per row, β⁺ ∈ [0, c] and β⁻ ∈ [−c, 0]:

    max  Σ tᵢβᵢ − ε Σ(β⁺ᵢ − β⁻ᵢ) − ½ βᵀKβ,     β = β⁺ + β⁻,   Σβᵢ = 0;     f = Σ βᵢ k(·, xᵢ).

Rows inside the tube have β = 0, those on its edge 0 < |β| < c, those outside |β| = c.

Reference: A. Smola and B. Schölkopf, A tutorial on support vector regression, Statistics and Computing 14, 2004.

Support vector regression whose tube is as wide as a share ν of the rows allows.

    min_{f, b, ε ≥ 0}  ½‖f‖² + ν Σcᵢ ε + Σᵢ cᵢ max(0, |tᵢ − f(xᵢ) − b| − ε),     cᵢ = C × sample weight

At most a share ν of the (weighted) rows lies outside the tube, and at least that share on its edge or outside. The dual
fixes the sum of the multipliers of each side: Σβ⁺ = −Σβ⁻ = ν Σcᵢ/2.

Reference: B. Schölkopf et al., New support vector algorithms, Neural Computation 12, 2000.

The one-class machine: a region that holds all but a share ν of the rows.

    min_{f, ρ}  ½‖f‖² − ν Σsᵢ ρ + Σᵢ sᵢ max(0, ρ − f(xᵢ))

A row is an outlier where f(x) < ρ. In the dual 0 ≤ βᵢ ≤ sᵢ and Σβᵢ = ν Σsᵢ: at most a share ν of the rows are outliers,
and at least that share are support vectors.

Reference: B. Schölkopf et al., Estimating the support of a high-dimensional distribution, Neural Computation 13, 2001.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin, RegressorMixin

from ...core import Boolean, Certificate, DataError, Number, ParameterError, Run, fitted, law, laws, param
from ...data.door import Table
from ...data.sources import NamedScore, rowwise
from ...risk.losses import EpsilonInsensitiveLoss
from ...solvers.conic.smo import BoxProgram, Solution, Team
from .base import COST, Array, Fit, SupportVectorMachine, dual_bounds, fill_up, offset_between, svm_door


class SingleMachine(SupportVectorMachine):
    """Base of the machines that have one score: regression and the one-class machine."""

    def _store_one(self, table: Table, X: Any, fit: Fit, start_value: float) -> Certificate:
        """Store the machine and return its certificate."""
        used = np.flatnonzero(fit.beta)
        self._keep_support(table, used)
        self._keep_coefficients(table, fit.beta[None, used])
        self.n_support_ = np.array([len(used)], dtype=np.int32)
        self.intercept_ = np.array([fit.b])
        self.n_iter_ = fit.n_steps
        self.fit_status_ = int(fit.violation > self.tol)
        size = max(abs(fit.dual), 1e-8 * start_value)
        bound: float | None = max(fit.primal - fit.dual, 0.0) / size if size > 0 else 0.0
        proven = np.isfinite(fit.primal) and np.isfinite(size) and dual_bounds(self._mercer(), X)
        bound = bound if proven else None
        return Certificate("stationarity", fit.violation, self.tol, bound, fit.n_steps)

    def _score_rows(self, X: Any) -> Array:
        return (self._kernel_sums(self._read(X))[0] + self.intercept_)[:, 0]

    _laws = laws(
        law(
            "dual_coef_ and intercept_ must have one row",
            lambda model: model.dual_coef_.shape[0] == 1 and model.intercept_.shape == (1,),
            "certificate_",
        ),
        law(
            "n_support_ does not count the columns of dual_coef_",
            lambda model: np.array_equal(model.n_support_, [model.dual_coef_.shape[1]]),
            "certificate_",
        ),
    )


class RegressionMachine(NamedScore, RegressorMixin, SingleMachine):
    """Base of SVR and NuSVR."""

    C: float = param(
        COST,
        "Cost of a unit outside the tube; `np.inf` asks that no row is outside, and fails where that cannot be.",
        default=1.0,
    )

    support_: NDArray[np.int32] = fitted("(n_SV,)", "Rows on the edge of the tube or outside.", kind="i4", low=0)

    _door: ClassVar[Any] = staticmethod(svm_door("numeric"))

    def kkt_report(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return how every training row stands to the tube, and the residual of every optimality condition."""
        from .report import tube_report

        return tube_report(self, X, y, sample_weight)

    @rowwise
    def predict(self, X: Any) -> Array:
        """Return f(x) + b."""
        return self._score_rows(X)

    def _costs(self, table: Table) -> Array:
        weight = np.ones(table.n_rows) if table.weight is None else table.weight
        cost = float(self.C) * weight
        if np.isfinite(self.C) and not (np.isfinite(cost).all() and (cost > 0).all()):
            raise ParameterError(f"{type(self).__name__}: C times the weights must be positive and finite.")
        return np.asarray(cost)


class SVR(RegressionMachine):
    r"""Support vector regression: minimise ½‖f‖² + C Σᵢ sᵢ max(0, |tᵢ − f(xᵢ) − b| − ε).

    In the form n⁻¹ΣV + λΩ with Ω = ½‖f‖², λ = 1/(nC). Memory: as `SVC` of two classes. Time: O(nd) for each kernel row
    that is used; between O(n²d) and O(n³d), the more the larger C and the narrower the tube.

    Examples
    --------
    >>> from learnable import SVR
    >>> model = SVR(kernel="linear", C=100.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> model.predict([[3.0]]).round(2)
    array([2.8])
    >>> model.certificate_.holds
    True
    """

    _theory = "svr"

    epsilon: float = param(Number(low=0.0), "Half the width of the tube.", default=0.1)
    fit_intercept: bool = param(Boolean(), "Whether there is an offset b.", default=True)

    def _fit(self, table: Table, run: Run) -> Certificate:
        X = self._points(table)
        t = table.y
        cost = self._costs(table)
        eps = float(self.epsilon)
        zero = np.zeros(len(cost))
        program = BoxProgram(
            np.concatenate([eps - t, -eps - t]),
            np.concatenate([zero, -cost]),
            np.concatenate([cost, zero]),
            constrained=self.fit_intercept,
        )
        with Team(self.n_jobs) as team:
            found = self._solve(self._mercer(), X, program, run, team)
        if found.runs_away:
            raise DataError(
                "SVR: C=inf asks that every row lies in the tube, but no function of this kernel does that. Use a "
                "finite C, a larger epsilon, or a kernel of smaller scale."
            )
        found = net(found, program)
        b = offset_between(found, program)
        beta = joined(found)
        square = float(joined(found) @ found.f)
        primal = 0.5 * square + tube_loss(t - found.f - b, eps, cost)
        dual = float(t @ beta) - eps * float(np.abs(found.beta).sum()) - 0.5 * square
        violation = max(found.rises[0], b) - min(found.falls[0], b)
        fit = Fit(beta, b, found.f, max(violation, 0.0), primal, dual, found.n_steps)
        return self._store_one(table, X, fit, tube_loss(t, eps, cost))


def joined(found: Solution) -> Array:
    """Return β = β⁺ + β⁻ of every row."""
    return np.asarray(found.beta.reshape(2, -1).sum(axis=0))


def net(found: Solution, program: BoxProgram) -> Solution:
    """Return the solution with one multiplier per row: where both sides have one, their sum does with less loss."""
    beta = joined(found)
    both = np.concatenate([np.maximum(beta, 0.0), np.minimum(beta, 0.0)])
    if (both == found.beta).all():
        return found
    pull = -(np.tile(found.f, 2) + program.linear)
    rises = float(np.max(pull, where=both < program.high, initial=-np.inf))
    falls = float(np.min(pull, where=both > program.low, initial=np.inf))
    return found._replace(beta=both, rises=(rises,), falls=(falls,))


def tube_loss(residual: Array, epsilon: float, cost: Array) -> float:
    """Return Σ c max(0, |r| − ε); an infinite cost of nothing is nothing."""
    outside = EpsilonInsensitiveLoss(epsilon).value(residual, np.zeros(1))
    return float((cost[outside > 0] * outside[outside > 0]).sum())


class NuSVR(RegressionMachine):
    r"""ν-support vector regression: minimise ½‖f‖² + C(ν Σs ε + Σᵢ sᵢ max(0, |tᵢ − f(xᵢ) − b| − ε)) over f, b and ε.

    In the form n⁻¹ΣV + λΩ with Ω = ½‖f‖², λ = 1/(nC). Memory and time: as `SVR`.

    Examples
    --------
    >>> from learnable import NuSVR
    >>> model = NuSVR(kernel="linear", C=100.0, nu=0.9).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0])
    >>> model.predict([[4.0]]).round(2)
    array([4.])
    >>> model.certificate_.holds
    True
    """

    _theory = "svr"

    nu: float = param(
        Number(low=0.0, low_open=True, high=1.0),
        "ν: largest share of rows outside the tube, and smallest share of support vectors.",
        default=0.5,
    )
    C: float = param(Number(low=0.0, low_open=True), "Cost of a unit outside the tube.", default=1.0)

    epsilon_: float = fitted("()", "ε: half the width of the tube.", low=0.0)

    def _fit(self, table: Table, run: Run) -> Certificate:
        X = self._points(table)
        t = table.y
        cost = self._costs(table)
        n = len(cost)
        zero = np.zeros(len(cost))
        total = 0.5 * self.nu * float(cost.sum())
        program = BoxProgram(
            np.concatenate([-t, -t]),
            np.concatenate([zero, -cost]),
            np.concatenate([cost, zero]),
            np.arange(2 * n) >= n,
        )
        filled = fill_up(cost, total)
        with Team(self.n_jobs) as team:
            found = self._solve(self._mercer(), X, program, run, team, start=np.concatenate([filled, -filled]))
        above = offset_between(found, program, 0)
        below = offset_between(found, program, 1)
        b = 0.5 * (above + below)
        eps = max(0.5 * (above - below), 0.0)
        beta = joined(found)
        square = float(beta @ found.f)
        violation = tube_violation(t - found.f, beta, cost, b, eps)
        primal = 0.5 * square + 2.0 * total * eps + tube_loss(t - found.f - b, eps, cost)
        fit = Fit(beta, b, found.f, violation, primal, float(t @ beta) - 0.5 * square, found.n_steps)
        self.epsilon_ = eps
        return self._store_one(table, X, fit, tube_loss(t, 0.0, cost))


def tube_violation(r: Array, beta: Array, cost: Array, b: float, eps: float) -> float:
    """Return by how much residuals r pull across the edges b ± ε of the tube, against what β allows."""
    upper = np.maximum(beta, 0.0)
    lower = np.minimum(beta, 0.0)
    tops = [np.max(r, where=upper < cost, initial=b + eps), np.max(r, where=lower < 0.0, initial=b - eps)]
    bottoms = [np.min(r, where=upper > 0.0, initial=b + eps), np.min(r, where=lower > -cost, initial=b - eps)]
    if eps == 0.0:  # both sides have one edge
        return float(max(tops) - min(bottoms))
    return float(max(top - bottom for top, bottom in zip(tops, bottoms, strict=True)))


class OneClassSVM(OutlierMixin, SingleMachine):
    r"""One-class support vector machine: minimise ½‖f‖² − νρ Σsᵢ + Σᵢ sᵢ max(0, ρ − f(xᵢ)) over f and ρ.

    In the form n⁻¹ΣV + λΩ with Ω = ½‖f‖², λ = 1/n, V = max(0, ρ − f(x)) − νρ. Memory: as `SVC` of two classes. Time:
    O(nd) for each kernel row that is used, about O(νn²d).

    Examples
    --------
    >>> from learnable import OneClassSVM
    >>> model = OneClassSVM(gamma="auto", nu=0.4).fit([[0.0], [0.44], [0.45], [0.46], [1.0]])
    >>> model.predict([[0.45], [3.0]])
    array([ 1, -1])
    """

    _theory = "one-class"

    nu: float = param(
        Number(low=0.0, low_open=True, high=1.0),
        "ν: largest share of outliers among the training rows, and smallest share of support vectors.",
        default=0.5,
    )

    _door: ClassVar[Any] = staticmethod(svm_door("none"))

    intercept_: Array = fitted("(n_machines,)", "−ρ.", kind="f8")
    offset_: float = fitted("()", "ρ: `decision_function` is `score_samples` less this.")

    def _fit(self, table: Table, run: Run) -> Certificate:
        X = self._points(table)
        kernel = self._mercer()
        cost = np.ones(table.n_rows) if table.weight is None else table.weight
        total = self.nu * float(cost.sum())
        program = BoxProgram(np.zeros(len(cost)), np.zeros(len(cost)), np.asarray(cost))
        with Team(self.n_jobs) as team:
            found = self._solve(kernel, X, program, run, team, start=fill_up(cost, total))
        rho = -offset_between(found, program)
        square = float(found.beta @ found.f)
        primal = 0.5 * square - rho * total + float((cost * np.maximum(0.0, rho - found.f)).sum())
        violation = max(found.rises[0], -rho) - min(found.falls[0], -rho)
        fit = Fit(found.beta, -rho, found.f, max(violation, 0.0), primal, -0.5 * square, found.n_steps)
        self.offset_ = np.float64(rho)
        # The size of ½‖f‖² before anything cancels: where the optimum is f = 0, a share of it would be rounding.
        largest = float(np.abs(X.diagonal() if self._has_matrix() else kernel.diagonal(X)).max())
        return self._store_one(table, X, fit, 0.5 * total**2 * largest)

    _laws = laws(
        law(
            "offset_ must be the negative of intercept_",
            lambda model: np.array_equal(model.offset_, -model.intercept_[0]),
            "certificate_",
        ),
    )

    @rowwise
    def decision_function(self, X: Any) -> Array:
        """Return f(x) − ρ: negative for outliers."""
        return self._score_rows(X)

    @rowwise
    def score_samples(self, X: Any) -> Array:
        """Return f(x)."""
        return self._score_rows(X) + self.offset_

    @rowwise
    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return 1 for inliers and −1 for outliers."""
        return np.where(self._score_rows(X) >= 0.0, 1, -1)
