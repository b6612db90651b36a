r"""The multi-task lasso and elastic net: several targets that use the same few columns.

    min_{b, B}  1/(2W) Σᵢ sᵢ ‖yᵢ − b − Bᵀxᵢ‖² + α(ρ Σⱼ ‖Bⱼ‖₂ + ½(1 − ρ)‖B‖²),      W = Σᵢ sᵢ

where Bⱼ holds the coefficients of column j for all targets: they are zero together. In the form n⁻¹ΣV + λΩ with
V = ‖y − f‖², λ = 2α. With one target it is the lasso.

Reference: G. Obozinski, B. Taskar and M. Jordan, Joint covariate selection and joint subspace selection for multiple
classification problems, Statistics and Computing 20, 2010.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from ..core.certificate import Certificate
from ..core.errors import DataError
from ..core.parameters import Boolean, Number, Rule
from ..core.run import Run
from ..data.door import Table, door
from ..data.sources import NamedScore
from ..solvers.coordinate_sets import WorkingSet, design_of
from ..solvers.least_squares import least_squares
from ._base import LinearRegressorModel
from .elastic_net import (
    NOT_CONVERGED,
    SPARSE_PARAMETERS,
    penalised_fit,
    penalty_of,
    previous_coefficients,
    set_smooth,
)
from .single import is_single, round_sparse


class MultiTaskElasticNet(NamedScore, MultiOutputMixin, RegressorMixin, LinearRegressorModel):
    r"""Multi-task elastic net: minimise 1/(2W) Σᵢ sᵢ ‖yᵢ − b − Bᵀxᵢ‖² + α(ρ Σⱼ ‖Bⱼ‖₂ + ½(1 − ρ)‖B‖²).

    In the form n⁻¹ΣV + λΩ (V = ‖y − f‖²), λ = 2α. Memory besides the data: O(k(n + k)) for a working set of k columns.

    Parameters
    ----------
    alpha : float, default=1.0
        α > 0.
    l1_ratio : float, default=0.5
        ρ in [0, 1]; with 0 the model is ridge regression.
    fit_intercept : bool, default=True
        Whether b is free or zero.
    copy_X : bool, default=True
        Kept for compatibility; X is never changed.
    max_iter : int, default=1000
        Most epochs over the working columns.
    tol : float, default=1e-6
        Relative duality gap at which to stop.
    warm_start : bool, default=False
        Start from the last fit's coefficients.
    random_state : default=None
        Kept for compatibility; nothing here is random.
    selection : {"cyclic", "random"}, default="cyclic"
        Kept for compatibility; the optimum is the same.
    n_jobs : int or None, default=None
        Threads; the result does not depend on it.
    max_seconds : float or None, default=None
        Time after which the best so far is returned.

    Attributes
    ----------
    coef_ : array of shape (n_targets, n_features)
        Bᵀ; float32 for float32 rows, if the certificate survives that rounding.
    intercept_ : array of shape (n_targets,)
        b.
    n_iter_ : int
        Epochs.
    dual_gap_ : float
        P − D in the units of the objective.
    certificate_ : Certificate
        `gap`: P is at most this share above the optimum. `closed-form` where ρ = 0.

    Examples
    --------
    >>> from learnable import MultiTaskElasticNet
    >>> model = MultiTaskElasticNet(alpha=0.1).fit([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]], [[0, 0], [1, 1], [2, 3]])
    >>> model.coef_.shape, model.certificate_.holds
    ((2, 2), True)
    """

    _parameters: ClassVar[dict[str, Rule]] = {
        "alpha": Number(low=0.0, low_open=True),
        "l1_ratio": Number(low=0.0, high=1.0),
        "warm_start": Boolean(),
        **SPARSE_PARAMETERS,
    }
    _door = staticmethod(door(target="numeric", multi_output=True))
    _remedy = NOT_CONVERGED

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-6,
        warm_start: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        n_jobs: int | None = None,
        max_seconds: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.selection = selection
        self.n_jobs = n_jobs
        self.max_seconds = max_seconds

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        return tags

    def _fit(self, table: Table, run: Run) -> Certificate:
        if not table.y_shape:
            name = type(self).__name__
            raise DataError(f"{name}: y must have two dimensions, one column a task; use {name[9:]} for one target.")
        if self.l1_ratio == 0:
            return self._fit_smooth(table)
        start = previous_coefficients(self, run, table)
        design = design_of(table.blocks, intercept=self.fit_intercept, n_jobs=self.n_jobs)
        solver = WorkingSet(design, None if start is None else start.T)
        fit = penalised_fit(solver, self, self.alpha, self.l1_ratio, run)
        rounded = None
        if is_single(table):
            rounded = round_sparse(design, fit, penalty_of(design, self.alpha, self.l1_ratio), self.tol)
        fit = fit if rounded is None else rounded
        intercept = design.y_mean - design.x_mean @ fit.W
        self._set_coefficients(fit.W, intercept, table.y_shape, single=rounded is not None)
        if not self.fit_intercept:
            self.intercept_ = np.zeros(table.y_shape)
        self.n_iter_, self.dual_gap_ = max(int(start is None), fit.n_iter), fit.gap.gap / design.weight
        return Certificate("gap", fit.value, self.tol, fit.value, max(1, self.n_iter_))

    def _fit_smooth(self, table: Table) -> Certificate:
        """Solve the problem without a norm of rows directly: it is ridge regression with the penalty Wα."""
        penalty = table.weight_sum * self.alpha
        fit = least_squares(table.blocks, penalty, intercept=self.fit_intercept, n_jobs=self.n_jobs)
        if fit is None:
            raise DataError(
                f"{type(self).__name__}: with l1_ratio=0 this table is too wide for a direct solution; use Ridge."
            )
        certificate = set_smooth(self, table, fit, penalty)
        if not self.fit_intercept:
            self.intercept_ = np.zeros(table.y_shape)
        return certificate


class MultiTaskLasso(MultiTaskElasticNet):
    r"""Multi-task lasso: minimise 1/(2W) Σᵢ sᵢ ‖yᵢ − b − Bᵀxᵢ‖² + α Σⱼ ‖Bⱼ‖₂.

    In the form n⁻¹ΣV + λΩ (V = ‖y − f‖², Ω = Σⱼ ‖Bⱼ‖₂), λ = 2α. Parameters and attributes are those of
    `MultiTaskElasticNet`, whose `l1_ratio` is fixed at one here.

    Parameters
    ----------
    alpha : float, default=1.0
        α > 0.
    fit_intercept, copy_X, max_iter, tol, warm_start, random_state, selection, n_jobs, max_seconds
        As in `MultiTaskElasticNet`.

    Attributes
    ----------
    coef_, intercept_, n_iter_, dual_gap_, certificate_
        As in `MultiTaskElasticNet`.

    Examples
    --------
    >>> from learnable import MultiTaskLasso
    >>> model = MultiTaskLasso(alpha=0.5).fit([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]], [[0, 0], [1, 1], [2, 3]])
    >>> model.coef_.round(3) + 0.0
    array([[0.584, 0.   ],
           [0.876, 0.   ]])
    """

    l1_ratio = 1.0
    _parameters: ClassVar[dict[str, Rule]] = {
        name: rule for name, rule in MultiTaskElasticNet._parameters.items() if name != "l1_ratio"
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-6,
        warm_start: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        n_jobs: int | None = None,
        max_seconds: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.selection = selection
        self.n_jobs = n_jobs
        self.max_seconds = max_seconds
