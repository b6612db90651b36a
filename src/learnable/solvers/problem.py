"""The small protocols that solvers work on, and what they return."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Evaluation(NamedTuple):
    """A smooth function at one point."""

    value: float
    gradient: Array  #: (p,)
    measure: float  #: what the solver drives below `tol`: a duality gap, a relative gradient norm …


class Smooth(Protocol):
    """A function with a gradient and a measure of optimality."""

    def evaluate(self, x: Array, /) -> Evaluation:
        """Return value, gradient and measure at x."""
        ...


class TwiceSmooth(Smooth, Protocol):
    """A function that also has a Hessian."""

    def hessian(self, x: Array, /) -> Array | Callable[[Array], Array]:
        """Return the Hessian at x, as a matrix or as a function v ↦ Hv."""
        ...


class Solution(NamedTuple):
    """Where a solver stopped."""

    x: Array  #: the best point found
    value: float  #: the function there
    gradient: Array  #: its gradient there
    measure: float  #: the measure of optimality there
    n_iter: int  #: iterations spent
    converged: bool  #: whether the measure reached the tolerance
