r"""Support vector regression whose tube is as wide as a share ν of the rows allows.

    min_{f, b, ε ≥ 0}  ½‖f‖² + ν Σcᵢ ε + Σᵢ cᵢ max(0, |tᵢ − f(xᵢ) − b| − ε),     cᵢ = C × sample weight

At most a share ν of the (weighted) rows lies outside the tube, and at least that share on its edge or outside. The dual
fixes the sum of the multipliers of each side: Σβ⁺ = −Σβ⁻ = ν Σcᵢ/2.

Reference: B. Schölkopf et al., New support vector algorithms, Neural Computation 12, 2000.
"""

from __future__ import annotations

import numpy as np

from ..core.certificate import Certificate
from ..core.declare import fitted, param
from ..core.parameters import Number
from ..core.run import Run
from ..data.door import Table
from ..solvers.decomposition import BoxProgram
from ..solvers.row_cache import Team
from .svm_base import Array
from .svm_program import Fit, offset_between
from .svr import RegressionMachine, joined, tube_loss


class NuSVR(RegressionMachine):
    r"""ν-support vector regression: minimise ½‖f‖² + C(ν Σs ε + Σᵢ sᵢ max(0, |tᵢ − f(xᵢ) − b| − ε)) over f, b and ε.

    In the form n⁻¹ΣV + λΩ with Ω = ½‖f‖², λ = 1/(nC). Memory and time: as `SVR`.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, function_, certificate_, …
        As in `SVR`.
    epsilon_ : float
        ε: half the width of the tube.

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
        X, t, cost = self._points(table), table.y, self._costs(table)
        n, zero, total = len(cost), np.zeros(len(cost)), 0.5 * self.nu * float(cost.sum())
        program = BoxProgram(
            np.concatenate([-t, -t]),
            np.concatenate([zero, -cost]),
            np.concatenate([cost, zero]),
            np.arange(2 * n) >= n,
        )
        filled = fill_up(cost, total)
        with Team(self.n_jobs) as team:
            found = self._solve(self._mercer(), X, program, run, team, start=np.concatenate([filled, -filled]))
        above, below = offset_between(found, program, 0), offset_between(found, program, 1)
        b, eps = 0.5 * (above + below), max(0.5 * (above - below), 0.0)
        beta = joined(found)
        square = float(beta @ found.f)
        violation = tube_violation(t - found.f, beta, cost, b, eps)
        primal = 0.5 * square + 2.0 * total * eps + tube_loss(t - found.f - b, eps, cost)
        fit = Fit(beta, b, found.f, violation, primal, float(t @ beta) - 0.5 * square, found.n_steps)
        self.epsilon_ = eps
        return self._store_one(table, X, fit, tube_loss(t, 0.0, cost))


def tube_violation(r: Array, beta: Array, cost: Array, b: float, eps: float) -> float:
    """Return by how much residuals r pull across the edges b ± ε of the tube, against what β allows."""
    upper, lower = np.maximum(beta, 0.0), np.minimum(beta, 0.0)
    tops = [np.max(r, where=upper < cost, initial=b + eps), np.max(r, where=lower < 0.0, initial=b - eps)]
    bottoms = [np.min(r, where=upper > 0.0, initial=b + eps), np.min(r, where=lower > -cost, initial=b - eps)]
    if eps == 0.0:  # both sides have one edge
        return float(max(tops) - min(bottoms))
    return float(max(top - bottom for top, bottom in zip(tops, bottoms, strict=True)))


def fill_up(cost: Array, total: float) -> Array:
    """Return multipliers at their bounds, from the first row on, that sum to `total`."""
    before = np.cumsum(cost) - cost
    return np.asarray(np.clip(total - before, 0.0, cost))
