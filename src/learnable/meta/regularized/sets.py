r"""The coefficients that a model may have: C = {W : l ≤ W ≤ h, AW = e}, column by column of W.

The projection onto bounds and equalities together is clip(x + Aᵀν, l, h) with the multipliers ν that make the
equalities hold: the minimum of a smooth convex function of as many variables as there are equalities, by Newton's
method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import Array, ParameterError
from ...solvers.conic.programs import InfeasibleError
from ...solvers.conic.quadratic import linear_program

_MOST_STEPS = 100  # of Newton's method for the projection, at most


@dataclass(frozen=True)
class CoefficientSet:
    """Bounds and equalities of the coefficients of each output.

    Attributes
    ----------
    low, high : (p,) arrays
        l and h; infinite where there is no bound.
    A : (m, p) array
        One row per equality.
    e : (m,) array
        Its right-hand side.
    """

    low: Array
    high: Array
    A: Array
    e: Array

    @property
    def constrains(self) -> bool:
        """Whether anything is forbidden."""
        return bool(len(self.e) or np.isfinite(self.low).any() or np.isfinite(self.high).any())

    @property
    def has_zero(self) -> bool:
        """Whether W = 0 is allowed."""
        return bool((self.low <= 0.0).all() and (self.high >= 0.0).all() and not self.e.any())

    def project(self, W: Array) -> tuple[Array, Array, Array]:
        """Return the nearest point of C, and the multipliers s and ν with W = point + s + Aᵀν.

        s is positive only at an upper bound, negative only at a lower one.
        """
        if not len(self.e):
            inside = np.clip(W, self.low[:, None], self.high[:, None])
            return inside, W - inside, np.zeros((0, W.shape[1]))
        point = np.empty_like(W)
        nu = np.empty((len(self.e), W.shape[1]))
        for k in range(W.shape[1]):
            point[:, k], nu[:, k] = self._project(W[:, k])
        return point, W - self.A.T @ nu - point, nu

    def _project(self, x: Array) -> tuple[Array, Array]:
        """Return the projection of one column, and ν with x − Aᵀν clipped to it."""
        nu: Array = np.asarray(np.linalg.lstsq(self.A @ self.A.T, self.A @ x - self.e, rcond=None)[0], dtype=np.float64)
        size = 1e-15 * (np.abs(self.A) @ np.abs(x) + np.abs(self.e) + 1.0)

        def at(nu: Array) -> tuple[Array, Array, float]:
            raw = x - self.A.T @ nu
            point = np.clip(raw, self.low, self.high)
            # Minus the dual function: its gradient is e − A clip(x − Aᵀν).
            value = float(0.5 * (raw @ raw) - 0.5 * ((raw - point) @ (raw - point)) + nu @ self.e)
            return point, self.e - self.A @ point, value

        point, slope, value = at(nu)
        for _ in range(_MOST_STEPS):
            if (np.abs(slope) <= size).all():
                break
            raw = x - self.A.T @ nu
            free = (raw > self.low) & (raw < self.high)
            curvature = self.A[:, free] @ self.A[:, free].T
            curvature.flat[:: len(curvature) + 1] += 1e-12 * (1.0 + np.trace(curvature))
            step = -np.linalg.solve(curvature, slope)
            length = 1.0
            for _ in range(60):
                trial = at(nu + length * step)
                if trial[2] <= value + 1e-4 * length * float(slope @ step) + 1e-15 * abs(value):
                    break
                length /= 2.0
            else:
                break
            nu = np.asarray(nu + length * step, dtype=np.float64)
            if length == 1.0 and float(np.abs(trial[1]).max()) >= float(np.abs(slope).max()) and not step.any():
                break
            point, slope, value = trial
        return point, nu

    def support(self, bounds: Array, equalities: Array) -> float:
        """Return the supremum of ⟨s + Aᵀν, W⟩ over C, or more: Σ max(l s, h s) + ⟨ν, e⟩."""
        low = np.broadcast_to(self.low[:, None], bounds.shape)
        high = np.broadcast_to(self.high[:, None], bounds.shape)
        above = bounds > 0
        below = bounds < 0
        total = float((bounds[above] * high[above]).sum() + (bounds[below] * low[below]).sum())
        return total + float((equalities * self.e[:, None]).sum())


def coefficient_set(owner: str, model: Any, p: int) -> CoefficientSet:
    """Return the set that a model's parameters state; raise ParameterError where no coefficients are in it."""
    low = _bound(owner, "lower", model.lower, p, -np.inf)
    high = _bound(owner, "upper", model.upper, p, np.inf)
    if model.positive:
        low = np.maximum(low, 0.0)
    rows: list[Array] = []
    right: list[float] = []
    if model.total is not None:
        rows.append(np.ones(p))
        right.append(float(model.total))
    if model.equalities is not None:
        A, e = _equalities(owner, model.equalities, p)
        rows.extend(A)
        right.extend(e.tolist())
    chosen = CoefficientSet(low, high, np.array(rows).reshape(len(rows), p), np.array(right))
    if (low > high).any():
        j = int(np.argmax(low > high))
        raise ParameterError(
            f"{owner}: no coefficients satisfy the constraints: column {j} must be >= {low[j]:g} and <= {high[j]:g}."
        )
    if rows:
        _refuse_contradictions(owner, chosen)
    return chosen


def _refuse_contradictions(owner: str, chosen: CoefficientSet) -> None:
    try:
        linear_program(np.zeros(len(chosen.low)), A=chosen.A, b=chosen.e, lower=chosen.low, upper=chosen.high)
    except InfeasibleError as error:
        reach = ""
        if len(chosen.e) == 1:
            ends = [
                np.where(chosen.A[0] > 0, chosen.A[0] * lo, chosen.A[0] * hi)[chosen.A[0] != 0].sum()
                for lo, hi in ((chosen.low, chosen.high), (chosen.high, chosen.low))
            ]
            reach = f" Within the bounds the sum reaches from {ends[0]:g} to {ends[1]:g}, not {chosen.e[0]:g}."
        raise ParameterError(
            f"{owner}: no coefficients satisfy the constraints: bounds and equalities contradict each other.{reach}"
        ) from error


def _bound(owner: str, name: str, given: Any, p: int, missing: float) -> Array:
    if given is None:
        return np.full(p, missing)
    values = np.asarray(given, dtype=np.float64)
    if values.shape not in ((), (p,)) or np.isnan(values).any():
        raise ParameterError(f"{owner}: {name} must be one number or one per column, {p}; got shape {values.shape}.")
    return np.array(np.broadcast_to(values, (p,)))


def _equalities(owner: str, given: Any, p: int) -> tuple[Array, Array]:
    A = np.atleast_2d(np.asarray(given[0], dtype=np.float64))
    e = np.atleast_1d(np.asarray(given[1], dtype=np.float64))
    if A.shape != (len(e), p) or not (np.isfinite(A).all() and np.isfinite(e).all()):
        raise ParameterError(
            f"{owner}: equalities must be (A, b) with A of shape (m, {p}) and b of length m; got {A.shape} and "
            f"{e.shape}."
        )
    return A, e
