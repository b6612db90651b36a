"""Standard errors, t-tests and confidence intervals of a least squares fit, as a record that prints as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..probability.student_t import StudentT

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RegressionSummary:
    """One row a coefficient (the intercept first), one table a target.

    Attributes
    ----------
    names : list of str
        Names of the coefficients.
    estimate, std_error, t, p_value, lower, upper : arrays of shape (n_targets, n_coefficients)
        β̂, se(β̂), β̂/se(β̂), P(|T| ≥ |t|) if β were zero, and the ends of the confidence interval.
    residual_std : array of shape (n_targets,)
        σ̂.
    df_resid : int
        Degrees of freedom of the t-distributions.
    level : float
        Level of the intervals.
    """

    names: list[str]
    estimate: Array
    std_error: Array
    t: Array
    p_value: Array
    lower: Array
    upper: Array
    residual_std: Array
    df_resid: int
    level: float

    def __str__(self) -> str:
        width = max(len(name) for name in [*self.names, "coefficient"])
        share = f"{100 * self.level:g}%"
        head = (
            f"{'coefficient':<{width}} {'estimate':>12} {'std. error':>12} {'t':>9} {'P(>|t|)':>9}   {share} interval"
        )
        lines = []
        for target in range(len(self.estimate)):
            if len(self.estimate) > 1:
                lines.append(f"target {target}")
            lines.append(head)
            columns = (self.estimate, self.std_error, self.t, self.p_value, self.lower, self.upper)
            for name, *row in zip(self.names, *(column[target] for column in columns), strict=True):
                est, se, t, p, low, high = row
                lines.append(f"{name:<{width}} {est:>12.6g} {se:>12.4g} {t:>9.3f} {p:>9.2g}   [{low:.6g}, {high:.6g}]")
            lines.append(f"residual std. {self.residual_std[target]:.6g} on {self.df_resid} degrees of freedom")
        return "\n".join(lines)


def row_norms(A: Array) -> Array:
    """Return the length of every row, free of overflow and underflow."""
    exponents = np.frexp(np.abs(A).max(axis=1, initial=0.0))[1]
    return np.asarray(np.ldexp(np.linalg.norm(np.ldexp(A, -exponents[:, None]), axis=1), exponents))


def regression_summary(
    model: Any, inverse_factor: Array, level: float, names: Sequence[str] | None = None
) -> RegressionSummary:
    """Return the summary of a fitted LinearRegression; `inverse_factor` is F⁻¹ with FᵀF the centred Gram matrix."""
    if names is None:
        names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
    names = list(names)
    estimate = np.atleast_2d(model.coef_)
    unit = row_norms(inverse_factor)  # √diag((XᵀX)⁻¹)
    if model.fit_intercept:
        names = ["(intercept)", *names]
        estimate = np.column_stack([np.atleast_1d(model.intercept_), estimate])
        at_zero = np.r_[1.0 / np.sqrt(model.weight_sum_), model.x_mean_ @ inverse_factor]
        unit = np.r_[row_norms(at_zero[None, :]), unit]
    error = np.outer(model.residual_std_, unit)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = estimate / error
    unit_t = StudentT(model.df_resid_, 0.0, 1.0)
    half = error * float(np.asarray(unit_t.interval(level)[1]))
    return RegressionSummary(
        names,
        estimate,
        error,
        t,
        2 * np.asarray(unit_t.cdf(-np.abs(t))),
        estimate - half,
        estimate + half,
        model.residual_std_,
        model.df_resid_,
        level,
    )
