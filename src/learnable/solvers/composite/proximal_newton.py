r"""Proximal Newton steps for P(x) = loss(x) + λ₁‖x‖₁ + ½λ₂‖x‖²: each minimises the penalised quadratic model of P.

The model is minimised by the coordinate descent that the lasso uses, from second moments alone, so that correlated
columns cost no further passes over the rows. A line search makes the step safe; where the fall of P drowns in
rounding, the duality gap has to fall instead.

Reference: J. Lee, Y. Sun and M. Saunders, Proximal Newton-type methods for minimizing composite functions, SIAM J.
Optimization 24, 2014.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...core import Array, Progress, no_progress
from ..problem import backtrack
from .coordinate import GramQuadratic, Penalty, descend

_EPOCHS = 500  # of coordinate descent in one step
_HALVINGS = 30  # 2⁻³⁰ of a step moves nothing that float64 could tell
_ENOUGH = 0.9  # share of the gap below which a step counts where P itself does not fall any more


class CompositePoint(NamedTuple):
    """P at a point, and what its dual point proves."""

    x: Array
    value: float  #: P
    gap: float  #: P − D
    relative: float  #: (P − D)/max(D, 1e-8·P₀)
    detail: Any  #: what the problem wants to remember of the point


class CompositeProblem(Protocol):
    """A smooth loss with a penalty of the kind above."""

    rounding: float  #: share of P by which its values may be off

    def at(self, x: Array, /) -> CompositePoint:
        """Evaluate P."""

    def model_minimum(self, point: CompositePoint, /) -> Array:
        """Return (about) the minimiser of the penalised quadratic model of P at a point."""


def proximal_newton(
    problem: CompositeProblem,
    point: CompositePoint,
    *,
    tol: float,
    max_iter: int,
    progress: Progress = no_progress,
    done: int = 0,
) -> tuple[CompositePoint, int, bool]:
    """Take steps until the relative gap is at most `tol`; `done` of the `max_iter` steps have been taken before.

    Returns
    -------
    tuple
        The point reached, the steps taken in all, and whether `progress` told to stop.
    """
    while point.relative > tol and done < max_iter:
        new = _search(problem, point, problem.model_minimum(point) - point.x)
        if new is None:
            break  # no more progress: rounding limit
        point = new
        done += 1
        if progress(done, point.relative):
            return point, done, True
    return point, done, False


def quadratic_minimum(
    H: Array,
    slope: Array,
    w: Array,
    loss: float,
    penalty: Penalty,
    *,
    goal: float,
    model: Callable[..., GramQuadratic] = GramQuadratic,
) -> Array:
    """Return the v that about minimises slopeᵀ(v − w) + ½(v − w)ᵀH(v − w) + penalty(v), to a gap of `goal`.

    Parameters
    ----------
    H, slope : (k, k) and (k,) arrays
        Hessian and gradient of the loss at w.
    w : (k,) array
        Where the model is made, and the start.
    loss : float
        The loss at w. The model's own dual then measures the gap in the units of P.
    penalty : Penalty
        λ₁ and λ₂ of each coordinate.
    goal : float
        Duality gap of the model at which to stop.
    model : callable
        Makes the model: `GramQuadratic`, or a subclass of it.
    """
    product = H @ w
    c = product - slope
    square = float(w @ (c + c - product)) + 2.0 * loss
    quadratic = model(np.ascontiguousarray(H), c[:, None].copy(), square, w[:, None])
    descend(quadratic, penalty, goal=goal, max_epochs=_EPOCHS)
    found: Array = quadratic.W[:, 0]
    return found


def _search(problem: CompositeProblem, point: CompositePoint, direction: Array) -> CompositePoint | None:
    """Halve the step until P falls, or, where the fall drowns in rounding, until the gap does."""
    noise = problem.rounding * abs(point.value)

    def trial(length: float) -> CompositePoint | None:
        new = problem.at(point.x + length * direction)
        drowned = new.value <= point.value + noise and new.gap < _ENOUGH * point.gap
        return new if new.value < point.value - noise or drowned else None

    return backtrack(trial, most=_HALVINGS)
