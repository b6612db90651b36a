r"""Support vector regression with a tube.

    min_{f, b}  ½‖f‖² + Σᵢ cᵢ max(0, |tᵢ − f(xᵢ) − b| − ε),     cᵢ = C × sample weight

In the form n⁻¹ΣV + λΩ with Ω = ½‖f‖², λ = 1/(nC). The dual has two multipliers a row, β⁺ ∈ [0, c] and β⁻ ∈ [−c, 0]:

    max  Σ tᵢβᵢ − ε Σ(β⁺ᵢ − β⁻ᵢ) − ½ βᵀKβ,     β = β⁺ + β⁻,   Σβᵢ = 0;     f = Σ βᵢ k(·, xᵢ).

Rows inside the tube have β = 0, those on its edge 0 < |β| < c, those outside |β| = c.

Reference: A. Smola and B. Schölkopf, A tutorial on support vector regression, Statistics and Computing 14, 2004.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from ..core.certificate import Certificate
from ..core.declare import param
from ..core.errors import DataError, ModelFileError, ParameterError
from ..core.parameters import Boolean, Number
from ..core.run import Run
from ..data.door import Table
from ..data.sources import NamedScore, rowwise
from ..solvers.decomposition import BoxProgram, Solution
from ..solvers.row_cache import Team
from .svm_base import COST, Array, SupportVectorMachine
from .svm_door import svm_door
from .svm_program import Fit, dual_bounds, offset_between


class SingleMachine(SupportVectorMachine):
    """Base of the machines that have one score: regression and the one-class machine."""

    def _store_one(self, table: Table, X: Any, fit: Fit, start_value: float) -> Certificate:
        """Store the machine and return its certificate."""
        used = np.flatnonzero(fit.beta)
        self._keep_support(table, used)
        self._keep_coefficients(table, fit.beta[None, used])
        self.n_support_ = np.array([len(used)], dtype=np.int32)
        self.intercept_ = np.array([fit.b])
        self.n_iter_, self.fit_status_ = fit.n_steps, int(fit.violation > self.tol)
        size = max(abs(fit.dual), 1e-8 * start_value)
        bound: float | None = max(fit.primal - fit.dual, 0.0) / size if size > 0 else 0.0
        proven = np.isfinite(fit.primal) and np.isfinite(size) and dual_bounds(self._mercer(), X)
        bound = bound if proven else None
        return Certificate("stationarity", fit.violation, self.tol, bound, fit.n_steps)

    def _score_rows(self, X: Any) -> Array:
        return (self._kernel_sums(self._read(X))[0] + self.intercept_)[:, 0]

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if not hasattr(self, "certificate_"):
            return
        if self.dual_coef_.shape[0] != 1 or self.intercept_.shape != (1,):
            raise ModelFileError("load: dual_coef_ and intercept_ must have one row.")
        if not np.array_equal(self.n_support_, [self.dual_coef_.shape[1]]):
            raise ModelFileError("load: n_support_ does not count the columns of dual_coef_.")


class RegressionMachine(NamedScore, RegressorMixin, SingleMachine):
    """Base of SVR and NuSVR."""

    C: float = param(
        COST,
        "Cost of a unit outside the tube; `np.inf` asks that no row is outside, and fails where that cannot be.",
        default=1.0,
    )

    _door: ClassVar[Any] = staticmethod(svm_door("numeric"))

    def kkt_report(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return how every training row stands to the tube, and the residual of every optimality condition."""
        from .tube_report import tube_report

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

    Attributes
    ----------
    support_, support_vectors_, n_support_ : arrays
        Rows on the edge of the tube or outside, these rows themselves, and their number.
    dual_coef_ : array of shape (1, n_SV)
        β.
    intercept_ : array of shape (1,)
        b.
    coef_ : array of shape (1, n_features)
        The weights, of the linear kernel.
    fit_status_, shape_fit_, n_iter_, n_features_in_, feature_names_in_
        As in scikit-learn; `gamma_` is γ as a number.
    function_ : RKHSFunction
        f.
    certificate_ : Certificate
        `stationarity`: the violation; `bound` is the relative duality gap.

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
        X, t, cost = self._points(table), table.y, self._costs(table)
        eps, zero = float(self.epsilon), np.zeros(len(cost))
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
        beta, square = joined(found), float(joined(found) @ found.f)
        primal = 0.5 * square + tube_loss(t - found.f - b, eps, cost)
        dual = float(t @ beta) - eps * float(np.abs(found.beta).sum()) - 0.5 * square
        violation = max(found.rises[0], b) - min(found.falls[0], b)
        fit = Fit(beta, b, found.f, max(violation, 0.0), primal, dual, found.n_steps)
        return self._store_one(table, X, fit, tube_loss(t, eps, cost))


def joined(found: Solution) -> Array:
    """Return β = β⁺ + β⁻ of every row."""
    return np.asarray(found.beta.reshape(2, -1).sum(axis=0))


def net(found: Solution, program: BoxProgram) -> Solution:
    """Return the solution with one multiplier a row: where both sides have one, their sum does with less loss."""
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
    outside = np.maximum(0.0, np.abs(residual) - epsilon)
    return float((cost[outside > 0] * outside[outside > 0]).sum())
