r"""What a solver, a certificate or a boosting round may ask of a loss, as small protocols.

A loss $V(y, z)$ compares the truth $y$ with the score $z$ of a model. Each loss is a frozen dataclass that
holds its formula and nothing else; it works on float64 arrays, one entry (or, with K classes, one row) a
sample, and does not check them: the estimators have checked their data before.

- The truth is a real number (regression), ±1 (margin losses) or a class code 0 … K-1 (multiclass losses).
- The gradient is taken in $z$. At a kink it is one subgradient, and the docstring says which one.
- The conjugate $V^*(y, u) = \sup_z\, [u z - V(y, z)]$ is +inf outside its domain. It gives the dual
  problem, and with it the duality gap: $V(y, z) + V^*(y, u) \ge u z$, with equality if and only if $u$ is a
  subgradient at $z$.
- The proximal operator is the minimiser over $v$ of $V(y, v) + (v - z)^2/(2t)$, with one step $t > 0$ for all samples
  or one for each; it serves splitting methods.
- A value beyond the floats is inf, without a warning; no score up to 1e300 gives NaN.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Real targets, scores, gradients.
Array: TypeAlias = NDArray[np.float64]
#: Class codes 0 … K-1.
Codes: TypeAlias = NDArray[np.intp]
#: Either of them, as a particular loss defines it.
Targets: TypeAlias = NDArray[Any]

#: Steps of a proximal operator: one, or one per sample.
Step: TypeAlias = float | Array

#: Decorates formulas whose true value can exceed the largest float: it is then inf, as it should be.
overflow_is_inf = np.errstate(over="ignore")


class Loss(Protocol):
    """Any loss, the 0/1 loss included."""

    def value(self, y: Targets, z: Array) -> Array:
        """Return V(y, z) for each sample."""

    def predict(self, z: Array) -> Targets:
        """Return the prediction that the score stands for, on the scale of y."""


class ConvexLoss(Loss, Protocol):
    """A loss that is convex in the score, with its dual."""

    @property
    def lipschitz(self) -> float:
        """The least L with |V(y, a) - V(y, b)| <= L‖a - b‖₂ for all y, a, b; inf if there is none."""

    @property
    def smoothness(self) -> float:
        """The Lipschitz constant of the gradient, likewise."""

    def gradient(self, y: Targets, z: Array) -> Array:
        """Return dV/dz, or a subgradient."""

    def conjugate(self, y: Targets, u: Array) -> Array:
        """Return the supremum over z of u·z - V(y, z)."""

    def prox(self, y: Targets, z: Array, step: Step) -> Array:
        """Return the v that minimises V(y, v) + ‖v - z‖²/(2 step)."""


class SmoothLoss(ConvexLoss, Protocol):
    """A loss of a scalar score whose gradient is continuous, so that Newton's method applies."""

    def curvature(self, y: Targets, z: Array) -> Array:
        """Return d²V/dz²; where the gradient has a kink, the derivative from one side."""


class ProbabilisticLoss(Loss, Protocol):
    """A loss whose minimiser determines the probabilities of the classes."""

    def probability(self, z: Array) -> Array:
        """Return P(y = +1 | z), or with K classes the row of all K probabilities."""


_MOST_ROOT_STEPS = 200  # doublings, and then steps: bisection alone reaches the last digit in fewer


def proximal_root(loss: SmoothLoss, y: Array, z: Array, step: Step) -> Array:
    """Return the root v of v + step V'(y, v) = z: Newton's method, kept between both ends by bisection.

    The left side rises at least as fast as v, and at v = z it has the sign of V'(y, z).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        side = -np.sign(loss.gradient(y, z))
        width = np.ones_like(z)
        for _ in range(_MOST_ROOT_STEPS):
            end = z + side * width
            short = side * (end - z + step * loss.gradient(y, end)) < 0.0
            if not short.any():
                break
            width = np.where(short, 2.0 * width, width)
        low = np.minimum(z, end)
        high = np.maximum(z, end)
        v = 0.5 * (low + high)
        for _ in range(_MOST_ROOT_STEPS):
            miss = v - z + step * loss.gradient(y, v)
            low = np.where(miss < 0.0, v, low)
            high = np.where(miss > 0.0, v, high)
            newton = v - miss / (1.0 + step * loss.curvature(y, v))
            inside = (newton >= low) & (newton <= high)
            new = np.where(miss == 0.0, v, np.where(inside, newton, 0.5 * (low + high)))
            moved = np.abs(new - v)
            v = new
            last_digits = 4.0 * np.finfo(np.float64).eps * (np.abs(v) + np.abs(z) + 1e-300)
            if ((moved <= last_digits) | (np.abs(miss) <= last_digits)).all():
                break
    return v
