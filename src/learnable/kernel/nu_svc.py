r"""Support vector classification whose margin is as wide as a share ν of the rows allows.

    min_{f, b, ρ}  ½‖f‖² − ν Σcᵢ ρ + Σᵢ cᵢ max(0, ρ − yᵢ(f(xᵢ) + b)),     cᵢ = sample weight × class weight

At most a share ν of the rows lies inside the margin, and at least that share on it or inside. In the dual, Σβ over each
class is ±ν Σcᵢ/2. The machine shown is divided by ρ, so that its margin is at ±1: it is the `SVC` of C = 1/ρ.

Reference: B. Schölkopf et al., New support vector algorithms, Neural Computation 12, 2000.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.certificate import Certificate
from ..core.declare import param
from ..core.errors import DataError
from ..core.parameters import Number
from ..core.run import Run
from ..data.door import Table
from ..risk.kernels import Kernel
from ..solvers.decomposition import BoxProgram
from ..solvers.row_cache import Team
from .nu_svr import fill_up
from .svc import row_costs
from .svm_base import Array
from .svm_classes import PairSolver, PairwiseSVM
from .svm_program import Fit, offset_between


class NuSVC(PairwiseSVM):
    r"""ν-support vector classifier: minimise ½‖f‖² − νρ Σsᵢ + Σᵢ sᵢ max(0, ρ − yᵢ(f(xᵢ) + b)) over f, b and ρ.

    The machine is divided by ρ. Each pair of classes has its own. In the form n⁻¹ΣV + λΩ with Ω = ½‖f‖², λ = ρ/n for
    the divided machine. Memory and time: as `SVC`.

    Attributes
    ----------
    classes_, support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, function_, certificate_, …
        As in `SVC`.

    Examples
    --------
    >>> from learnable import NuSVC
    >>> X, y = [[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]], [1, 1, 2, 2]
    >>> NuSVC().fit(X, y).predict([[-0.8, -1.0]])
    array([1])
    """

    _theory = "svm"

    nu: float = param(
        Number(low=0.0, low_open=True, high=1.0),
        "ν: largest share of rows inside the margin, and smallest share of support vectors. Of two classes of "
        "unequal weight, ν/2 must not exceed the smaller one's share.",
        default=0.5,
    )

    def _fit(self, table: Table, run: Run) -> Certificate:
        cost = row_costs(self, table, 1.0)
        totals = np.sort(np.bincount(table.y, cost))
        if 0.5 * self.nu * (totals[0] + totals[-1]) > totals[0] * (1 + 1e-12):
            most = 2.0 * totals[0] / (totals[0] + totals[-1])
            raise DataError(
                f"NuSVC: specified nu is infeasible: with classes of so different weight it is at most {most:.4g}; "
                f"got {self.nu!r}."
            )
        found, _ = self._fit_pairs(table, run, cost)
        return self._certify(found, 0.0)

    def _pair_solver(self, run: Run) -> PairSolver:
        return lambda kernel, X, y, c, team: self._solve_pair(kernel, X, y, c, team, run)

    def _solve_pair(self, kernel: Kernel, X: Any, y: Array, c: Array, team: Team, run: Run) -> Fit:
        """Return the machine of two classes y = ±1, divided by ρ; P and D are those before the division."""
        first = y > 0
        # A fold may lack rows of a class: its ν is then the largest that these allow.
        total = min(0.5 * self.nu * float(c.sum()), float(c[first].sum()), float(c[~first].sum()))
        start = np.empty(len(y))
        start[first], start[~first] = fill_up(c[first], total), -fill_up(c[~first], total)
        program = BoxProgram(np.zeros(len(y)), np.where(first, 0.0, -c), np.where(first, c, 0.0), ~first)
        found = self._solve(kernel, X, program, run, team, start=start)
        lower, upper = offset_between(found, program, 0), offset_between(found, program, 1)
        b, rho = 0.5 * (lower + upper), 0.5 * (upper - lower)
        if not rho > 0.0 and found.violation > self.tol:
            rho = 1.0  # stopped early: there is no margin yet to divide by
        if not rho > 0.0:
            raise DataError(
                f"NuSVC: with nu={self.nu!r} the margin of this kernel is zero: the classes overlap in more rows. "
                "Use a larger nu; if none will do, the kernel does not tell the rows apart: scale the columns, or use "
                "a larger gamma."
            )
        square = float(found.beta @ found.f)
        slack = np.maximum(0.0, rho - y * (found.f + b))
        primal = 0.5 * square - 2.0 * total * rho + float((c * slack).sum())
        return Fit(found.beta / rho, b / rho, found.f / rho, found.violation, primal, -0.5 * square, found.n_steps)
