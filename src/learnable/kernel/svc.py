r"""Support vector classification.

    min_{f, b}  ½‖f‖² + Σᵢ cᵢ max(0, 1 − yᵢ(f(xᵢ) + b)),     cᵢ = C × sample weight × class weight

over functions f of the kernel's space, for two classes y = ±1; for more, one machine for each pair. In the form n⁻¹ΣV +
λΩ with Ω = ½‖f‖², λ = 1/(nC). The dual, in signed multipliers β = yα,

    max_β  Σ yᵢβᵢ − ½ βᵀKβ,     0 ≤ yᵢβᵢ ≤ cᵢ,   Σβᵢ = 0,

has no bound cᵢ with C = ∞ (hard margin) and no equality without an offset. f = Σ βᵢ k(·, xᵢ); rows with β = 0 stand
outside the margin, those with 0 < |β| < c on it, those with |β| = c inside.

Reference: C. Cortes and V. Vapnik, Support-vector networks, Machine Learning 20, 1995.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.certificate import Certificate
from ..core.declare import param
from ..core.errors import DataError, ParameterError
from ..core.parameters import Boolean, Options
from ..core.run import Run
from ..data.door import Table
from ..risk.kernels import Kernel
from ..solvers.decomposition import BoxProgram
from ..solvers.row_cache import Team
from .svm_base import COST, Array
from .svm_classes import PairSolver, PairwiseSVM, class_factors
from .svm_program import Fit, offset_between, solve_program


class SVC(PairwiseSVM):
    r"""Support vector classifier: minimise ½‖f‖² + C Σᵢ sᵢ max(0, 1 − yᵢ(f(xᵢ) + b)).

    Each pair of classes has its own machine. In the form n⁻¹ΣV + λΩ with Ω = ½‖f‖², λ = 1/(nC). Memory: four copies
    of X at most, `cache_size` megabytes of kernel rows for each pair in work (at least 1,024 rows), 32 MB a thread for
    working sets and exact sums, O(n). Time: O(nd) for each kernel row that is used, of one row at least
    for each support vector; between O(n²d) and O(n³d), the more the larger C and the noisier the labels.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    support_, support_vectors_, n_support_ : arrays
        Rows of the support vectors by class, these rows themselves, and their number in each class.
    dual_coef_ : array of shape (n_classes - 1, n_SV)
        β in LIBSVM's order; positive for the second of two classes. Sparse after a fit to sparse rows, as is `coef_`.
    intercept_ : array of shape (n_pairs,)
        b of each pair.
    coef_ : array of shape (n_pairs, n_features)
        The weights, of the linear kernel.
    sigmoids_ : array of shape (n_pairs, 2)
        A and B of each pair's probability 1/(1 + exp(As + B)); `probA_` and `probB_` are its columns. Without rows if
        there are no probabilities.
    class_weight_, fit_status_, shape_fit_, n_iter_, n_features_in_, feature_names_in_
        As in scikit-learn; `gamma_` is γ as a number.
    function_ : RKHSFunction
        The scores without b as functions in the kernel's space.
    certificate_ : Certificate
        `stationarity`: the largest violation of a pair; `bound` is the relative duality gap of all pairs together, None
        where nobody knows whether the kernel is positive semidefinite: "sigmoid", a function, a given matrix.

    Examples
    --------
    >>> from learnable import SVC
    >>> X, y = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], ["same", "same", "other", "other"]
    >>> model = SVC(C=100.0).fit(X, y)
    >>> model.predict([[0.1, 0.1], [0.9, 0.1]])
    array(['same', 'other'], dtype='<U5')
    >>> model.certificate_.kind, model.certificate_.holds
    ('stationarity', True)
    """

    _theory = "svm"

    C: float = param(
        COST,
        "Cost of a row inside the margin; `np.inf` asks for a hard margin, and fails where there is none.",
        default=1.0,
    )
    fit_intercept: bool = param(Boolean(), "Whether there is an offset b.", default=True)
    solver: str = param(
        Options("auto", "decomposition", "primal"),
        '"primal" minimises a smoothed primal by Newton\'s method on representer coefficients; it holds the '
        "kernel matrix, 8n² bytes, of at most 20,000 rows of a pair, and needs a finite C.",
        default="auto",
    )

    def _fit(self, table: Table, run: Run) -> Certificate:
        cost = row_costs(self, table)
        found, members = self._fit_pairs(table, run, cost)
        finite = np.where(np.isfinite(cost), cost, 1.0)
        return self._certify(found, float(sum(finite[rows].sum() for rows in members)))

    def _pair_solver(self, run: Run) -> PairSolver:
        def solve(kernel: Kernel, X: Any, y: Array, c: Array, team: Team) -> Fit:
            if self.solver == "primal":
                from .primal import solve_primal

                return solve_primal(kernel, X, y, c, self, run)
            return solve_pair(
                kernel,
                X,
                y,
                c,
                team,
                fit_intercept=self.fit_intercept,
                tol=self.tol,
                megabytes=self.cache_size,
                max_steps=None if self.max_iter < 0 else self.max_iter,
                shrinking=self.shrinking,
                run=run,
            )

        return solve


def row_costs(model: Any, table: Table, C: float | None = None) -> Array:
    """Return cᵢ = C × sample weight × class weight; C is the model's own unless it is given."""
    owner, C = type(model).__name__, model.C if C is None else C
    weight = np.ones(table.n_rows) if table.weight is None else table.weight
    share = weight * class_factors(table, model.class_weight, owner)[table.y]
    cost = np.where(share > 0, float(C) * share, 0.0)
    if np.isfinite(C) and not (np.isfinite(cost).all() and (cost[share > 0] > 0).all()):
        raise ParameterError(f"{owner}: C times the weights must be positive and finite; got C = {C!r}.")
    return np.asarray(cost)


def solve_pair(
    kernel: Kernel,
    X: Any,
    y: Array,
    cost: Array,
    team: Team,
    *,
    fit_intercept: bool = True,
    owner: str = "SVC",
    **settings: Any,
) -> Fit:
    """Return the machine of two classes y = ±1; settings are those of `solve_program`."""
    program = BoxProgram(-y, np.where(y > 0, 0.0, -cost), np.where(y > 0, cost, 0.0), constrained=fit_intercept)
    found = solve_program(kernel, X, program, team, **settings)
    if found.runs_away:
        raise DataError(
            f"{owner}: C=inf asks for a hard margin, but the classes are not separable by this kernel: their convex "
            "hulls touch. Use a finite C, or a kernel of smaller scale."
        )
    b = offset_between(found, program)
    f, beta = found.f, found.beta
    margin, square = y * (f + b), float(beta @ f)
    dual = float(np.abs(beta).sum()) - 0.5 * square
    if np.isfinite(cost).all():
        primal = 0.5 * square + float((cost * np.maximum(0.0, 1.0 - margin)).sum())
    else:  # the function divided by its smallest margin keeps all rows outside
        least = float(margin.min())
        primal = 0.5 * square / least**2 if least > 0 else np.inf
    violation = max(found.rises[0], b) - min(found.falls[0], b)
    return Fit(beta, b, f, max(violation, 0.0), primal, dual, found.n_steps)
