r"""The one-class machine: a region that holds all but a share ν of the rows.

    min_{f, ρ}  ½‖f‖² − ν Σsᵢ ρ + Σᵢ sᵢ max(0, ρ − f(xᵢ))

A row is an outlier where f(x) < ρ. In the dual 0 ≤ βᵢ ≤ sᵢ and Σβᵢ = ν Σsᵢ: at most a share ν of the rows are outliers,
and at least that share are support vectors.

Reference: B. Schölkopf et al., Estimating the support of a high-dimensional distribution, Neural Computation 13, 2001.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin

from ..core.certificate import Certificate
from ..core.declare import fitted, param
from ..core.errors import ModelFileError
from ..core.parameters import Number
from ..core.run import Run
from ..data.door import Table
from ..data.sources import rowwise
from ..solvers.decomposition import BoxProgram
from ..solvers.row_cache import Team
from .nu_svr import fill_up
from .svm_base import Array
from .svm_door import svm_door
from .svm_program import Fit, offset_between
from .svr import SingleMachine


class OneClassSVM(OutlierMixin, SingleMachine):
    r"""One-class support vector machine: minimise ½‖f‖² − νρ Σsᵢ + Σᵢ sᵢ max(0, ρ − f(xᵢ)) over f and ρ.

    In the form n⁻¹ΣV + λΩ with Ω = ½‖f‖², λ = 1/n, V = max(0, ρ − f(x)) − νρ. Memory: as `SVC` of two classes. Time:
    O(nd) for each kernel row that is used, about O(νn²d).

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, coef_, function_, certificate_, …
        As in `SVR`.
    intercept_ : array of shape (1,)
        −ρ.
    offset_ : float
        ρ: `decision_function` is `score_samples` less this.

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

    def _check_loaded(self) -> None:
        super()._check_loaded()
        offset: Any = getattr(self, "offset_", np.nan)
        if hasattr(self, "certificate_") and not np.array_equal(offset, -self.intercept_[0]):
            raise ModelFileError("load: offset_ must be the negative of intercept_.")

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
