"""The small protocols that solvers work on, and what they return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from ..core import Array, Certificate

T = TypeVar("T")


class Evaluation(NamedTuple):
    """A smooth function at one point."""

    value: float
    gradient: Array  #: (p,)
    measure: float  #: what the solver drives below `tol`: a duality gap, a relative gradient norm …
    rounding: float = 0.0  #: by how much the value may be wrong; solvers assume at least a few of its last digits


class Smooth(Protocol):
    """A function with a gradient and a measure of optimality."""

    def evaluate(self, x: Array, /) -> Evaluation:
        """Return value, gradient and measure at x."""


class TwiceSmooth(Smooth, Protocol):
    """A function that also has a Hessian."""

    def hessian(self, x: Array, /) -> Array | Callable[[Array], Array]:
        """Return the Hessian at x, as a matrix or as a function v ↦ Hv."""


def backtrack(trial: Callable[[float], T | None], *, most: int, first: float = 1.0, shrink: float = 0.5) -> T | None:
    """Return what the first of the step lengths `first`, `first`·`shrink`, … gives that `trial` accepts.

    Parameters
    ----------
    trial : function
        length ↦ what the step leads to, or None where it does not descend enough.
    most : int
        Most trials; after them None is returned.

    Examples
    --------
    >>> backtrack(lambda length: length if length**2 < 0.1 else None, most=10)
    0.25
    """
    length = first
    for _ in range(most):
        found = trial(length)
        if found is not None:
            return found
        length *= shrink
    return None


class Moment(NamedTuple):
    """One iteration as a callback sees it."""

    iteration: int  #: 0 at the start
    x: Array  #: (p,), a copy
    value: float  #: the function there
    gradient: Array  #: (p,), a copy
    measure: float  #: the measure of optimality there
    step: float  #: length of the step that led here, in the method's own units; 0 at the start


@dataclass(frozen=True)
class Trace:
    """The way a solver went: one entry an iteration (an epoch, with mini-batches), the start included.

    Attributes
    ----------
    value : (T,) array
        The function.
    gradient_norm : (T,) array
        ‖∇f‖₂ (of the proximal gradient mapping, or of a subgradient, where there is no gradient).
    measure : (T,) array
        What the solver drives below `tol`.
    step : (T,) array
        The step that led to each point, in the method's own units: a rate η, or the length of a line search.
    evaluations : (T,) array
        Evaluations until then, of value and gradient together; a mini-batch of b of n rows counts b/n.
    path : (T, p) array or None
        The points; kept up to p = 100 unless the caller says otherwise.
    mean : (p,) array
        Mean of the iterates x₀ … x_{T−1} that steps were taken from: Polyak's average.
    note : str
        What a reader of the numbers has to know, such as that derivatives are numerical.
    """

    value: Array
    gradient_norm: Array
    measure: Array
    step: Array
    evaluations: Array
    path: Array | None
    mean: Array
    note: str = ""

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        note = f"; {self.note}" if self.note else ""
        return f"Trace: {len(self)} points, value {self.value[0]:.4g} to {self.value[-1]:.4g}{note}"


class Solution(NamedTuple):
    """Where a solver stopped."""

    x: Array  #: the best point found
    value: float  #: the function there
    gradient: Array  #: its gradient there
    measure: float  #: the measure of optimality there
    n_iter: int  #: iterations spent
    converged: bool  #: whether the measure reached the tolerance
    certificate: Certificate | None = None  #: what is proven, where a caller asked `minimize`
    trace: Trace | None = None  #: the way there, likewise
