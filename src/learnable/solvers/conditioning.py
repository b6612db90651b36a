r"""Whether a gradient step is too long for the curvature.

The second-order look at one gradient step is

    f(x − ηg) ≈ f(x) − ηgᵀg + ½η²gᵀHg.

Where ½η²gᵀHg exceeds ηgᵀg the function rises although the step goes downhill: the problem is ill-conditioned for η.

Reference: I. Goodfellow, Y. Bengio and A. Courville, Deep Learning, 2016, section 8.2.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh

from ..core.errors import ParameterError
from ..core.parameters import Number
from .objective import Objective, start_of

Array = NDArray[np.float64]

_MOST_EIGENVALUES = 1000  # parameters up to which all of them are computed


@dataclass(frozen=True)
class ConditioningReport:
    """What one gradient step of length η does, to second order.

    Attributes
    ----------
    step : float
        η.
    linear : float
        ηgᵀg, what the slope promises.
    quadratic : float
        ½η²gᵀHg, what the curvature takes back.
    predicted : float
        −ηgᵀg + ½η²gᵀHg.
    actual : float
        f(x − ηg) − f(x).
    best_step : float
        gᵀg/gᵀHg, the best step along −g to second order; infinite where the curvature is not positive.
    eigenvalues : (2,) array or None
        Smallest and largest eigenvalue of H; None above a thousand parameters, or for a Hessian known by products.
    """

    step: float
    linear: float
    quadratic: float
    predicted: float
    actual: float
    best_step: float
    eigenvalues: Array | None

    @property
    def ill_conditioned(self) -> bool:
        """Whether ½η²gᵀHg exceeds ηgᵀg."""
        return self.quadratic > self.linear

    @property
    def condition_number(self) -> float:
        """Largest over smallest eigenvalue; infinite unless both are positive, NaN if they are not known."""
        if self.eigenvalues is None:
            return float("nan")
        low, high = self.eigenvalues
        return float(high / low) if low > 0 else float("inf")

    def __repr__(self) -> str:
        verdict = "the step is too long: f rises" if self.ill_conditioned else "the step is short enough"
        sign = ">" if self.ill_conditioned else "<="
        known = "" if self.eigenvalues is None else f"; condition number {self.condition_number:.3g}"
        return (
            f"½η²gᵀHg = {self.quadratic:.4g} {sign} ηgᵀg = {self.linear:.4g}: {verdict}; best step {self.best_step:.4g}"
            f"{known}"
        )


def conditioning_report(
    fun: Any, x: Any, gradient: Any = None, hessian: Any = None, *, step: float
) -> ConditioningReport:
    """Compare ½η²gᵀHg with ηgᵀg at a point.

    Parameters
    ----------
    fun, gradient, hessian
        As for `minimize`; derivatives that are not given come from differences.
    x : (p,) array
        Where.
    step : float
        η > 0.

    Examples
    --------
    >>> from learnable.solvers import conditioning_report
    >>> valley = lambda x: 50 * x[0] ** 2 + 0.5 * x[1] ** 2
    >>> conditioning_report(valley, [1.0, 1.0], step=0.03)
    ½η²gᵀHg = 450 > ηgᵀg = 300: the step is too long: f rises; best step 0.01; condition number 100
    """
    if not Number(low=0.0, low_open=True).allows(step):
        raise ParameterError(f"conditioning_report: step must be a number > 0; got {step!r}.")
    objective = Objective(fun, gradient, hessian)
    point, now = start_of(x, objective)
    H, g = objective.hessian(point), now.gradient
    Hg = np.asarray(H(g) if callable(H) else H @ g)
    curvature, square = float(g @ Hg), float(g @ g)
    linear, quadratic = step * square, 0.5 * step**2 * curvature
    values = None
    if not callable(H) and len(point) <= _MOST_EIGENVALUES and np.isfinite(H).all():
        values = np.asarray(eigvalsh(H))[[0, -1]]
    return ConditioningReport(
        float(step),
        linear,
        quadratic,
        quadratic - linear,
        objective.value(point - step * g) - now.value,
        square / curvature if curvature > 0 else float("inf"),
        values,
    )


def largest_eigenvalue(product: Callable[[Array], Array], p: int, *, steps: int = 20) -> float:
    """Estimate the largest eigenvalue of a symmetric positive semidefinite matrix from products v ↦ Hv.

    Power iteration from a fixed random start: a lower bound, within a few per cent after twenty products, which is what
    a step size needs.

    Examples
    --------
    >>> import numpy as np
    >>> round(largest_eigenvalue(lambda v: np.array([1.0, 5.0]) * v, 2), 6)
    5.0
    """
    v = np.random.default_rng(0).standard_normal(p)
    value = 0.0
    for _ in range(steps):
        v /= max(float(np.linalg.norm(v)), np.finfo(float).tiny)
        Hv = product(v)
        value, v = max(value, float(v @ Hv)), Hv
        if not v.any():
            break
    return value
