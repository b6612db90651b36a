r"""The multi-task lasso and elastic net: several targets that use the same few columns.

    min_{b, B}  1/(2W) Σᵢ sᵢ ‖yᵢ − b − Bᵀxᵢ‖² + α(ρ Σⱼ ‖Bⱼ‖₂ + ½(1 − ρ)‖B‖²),      W = Σᵢ sᵢ

where Bⱼ holds the coefficients of column j for all targets: they are zero together. In the form n⁻¹ΣV + λΩ with
V = ‖y − f‖², λ = 2α. With one target it is the lasso.

Reference: G. Obozinski, B. Taskar and M. Jordan, Joint covariate selection and joint subspace selection for multiple
classification problems, Statistics and Computing 20, 2010.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin

from ..core.certificate import Certificate
from ..core.declare import fitted, param
from ..core.errors import DataError
from ..core.parameters import Number
from ..core.run import Run
from ..data.door import Table, door
from ..solvers.coordinate_sets import WorkingSet, design_of
from ..solvers.least_squares import least_squares
from .elastic_net import (
    SparseRegressor,
    penalised_fit,
    penalty_of,
    previous_coefficients,
    set_smooth,
)
from .single import is_single, round_sparse


class MultiTaskElasticNet(MultiOutputMixin, SparseRegressor):
    r"""Multi-task elastic net: minimise 1/(2W) Σᵢ sᵢ ‖yᵢ − b − Bᵀxᵢ‖² + α(ρ Σⱼ ‖Bⱼ‖₂ + ½(1 − ρ)‖B‖²).

    In the form n⁻¹ΣV + λΩ (V = ‖y − f‖²), λ = 2α. Memory besides the data: O(k(n + k)) for a working set of k columns.

    Examples
    --------
    >>> from learnable import MultiTaskElasticNet
    >>> model = MultiTaskElasticNet(alpha=0.1).fit([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]], [[0, 0], [1, 1], [2, 3]])
    >>> model.coef_.shape, model.certificate_.holds
    ((2, 2), True)
    """

    _theory = "group-lasso"

    alpha: float = param(Number(low=0.0, low_open=True), "α > 0.", default=1.0, kw_only=False)
    coef_: Any = fitted(
        "(n_targets, n_features)", "Bᵀ; float32 for float32 rows, if the certificate survives that rounding."
    )
    intercept_: Any = fitted("(n_targets,)", "b.")
    certificate_: Certificate = fitted(
        "Certificate", "`gap`: P is at most this share above the optimum. `closed-form` where ρ = 0."
    )

    _door = staticmethod(door(target="numeric", multi_output=True))
    positive = False

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

    In the form n⁻¹ΣV + λΩ (V = ‖y − f‖², Ω = Σⱼ ‖Bⱼ‖₂), λ = 2α. It is `MultiTaskElasticNet`
    with `l1_ratio` fixed at one.

    Examples
    --------
    >>> from learnable import MultiTaskLasso
    >>> model = MultiTaskLasso(alpha=0.5).fit([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]], [[0, 0], [1, 1], [2, 3]])
    >>> model.coef_.round(3) + 0.0
    array([[0.584, 0.   ],
           [0.876, 0.   ]])
    """

    _theory = "group-lasso"

    l1_ratio = 1.0
