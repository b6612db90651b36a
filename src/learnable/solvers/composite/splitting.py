r"""Splitting: minimise a sum of functions of linear images, each known by its proximal operator alone.

    min_x  Σⱼ fⱼ(Bⱼx)

covers what no smooth or coordinate method does: losses with kinks, penalties that are not sums over coordinates, and
constraints, all at once. One step of Douglas and Rachford's method (ADMM is another name of it) in the variables sⱼ:

    yⱼ = prox of fⱼ at sⱼ,     x = argmin Σⱼ ‖Bⱼx − (2yⱼ − sⱼ)‖²,     sⱼ ← sⱼ + α(Bⱼx − yⱼ)

in the norms ‖·‖ that the terms' weights define, with over-relaxation α = 1.6. The duals qⱼ = ρWⱼ(sⱼ − yⱼ) are
subgradients of fⱼ at yⱼ, exactly; Σ Bⱼᵀqⱼ tends to zero and Bⱼx − yⱼ too, and ρ is changed until both do at the same
pace. Steps are accelerated by Anderson's extrapolation from the last thirty, and taken back where that does not help.

What is proven of a point is the caller's business: every few steps `judge` gets x, y and q, and answers with a gap.

References: S. Boyd, N. Parikh, E. Chu, B. Peleato and J. Eckstein, Distributed optimization and statistical learning
via the alternating direction method of multipliers, Foundations and Trends in Machine Learning 3, 2011; A. Fu, J.
Zhang and S. Boyd, Anderson accelerated Douglas–Rachford splitting, SIAM J. Scientific Computing 42, 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...core import Array, Progress, no_progress

_RELAXATION = 1.6  # of 1, 1.6 and 1.8 the one with the fewest steps on ten of twelve loss–penalty pairs
_MEMORY = 30  # points that an extrapolation uses: of 32 piecewise linear problems 10 need 26,090 steps, 30 17,860
_PATIENCE = 2.0  # an extrapolated point may have a residual this many times the last one
_FARTHEST = 1e4  # sum of the sizes of an extrapolation's coefficients beyond which the points are thrown away
_BALANCED = 3.0  # ratio of the two residuals beyond which ρ is changed
_LAST_CHANGE = 5000  # step after which ρ stays as it is, so that the method converges
_JUDGE_EVERY = 10  # steps between two measurements of the gap


class Term(Protocol):
    """A function f(Bx) with a metric W on the values of B."""

    weight: Array | float  #: diagonal of W, which broadcasts against the values of B

    def forward(self, x: Array, /) -> Array:
        """Return Bx."""
        ...

    def adjoint(self, y: Array, /) -> Array:
        """Return Bᵀy."""
        ...

    def prox(self, y: Array, step: float, /) -> Array:
        """Return the v that minimises f(v) + ‖v − y‖²_W/(2 step)."""
        ...


class SplitPoint(NamedTuple):
    """Where the method stands."""

    x: Array
    values: list[Array]  #: yⱼ, near Bⱼx and in the domain of fⱼ
    duals: list[Array]  #: qⱼ, a subgradient of fⱼ at yⱼ


def split(
    terms: Sequence[Term],
    solve: Callable[[Array], Array],
    x0: Array,
    *,
    judge: Callable[[SplitPoint], float],
    tol: float,
    max_iter: int,
    rho: float = 1.0,
    progress: Progress = no_progress,
) -> tuple[SplitPoint, int, bool]:
    """Step until `judge` returns at most `tol`.

    Parameters
    ----------
    terms : sequence of Term
        fⱼ, Bⱼ and Wⱼ.
    solve : function
        r ↦ (Σ BⱼᵀWⱼBⱼ)⁻¹ r.
    x0 : array
        Where to start.
    judge : function
        What is proven at a point: a number that is driven below `tol`. It keeps what it needs.
    tol : float
        Where to stop.
    max_iter : int
        Most steps.
    rho : float
        First ρ.
    progress : function
        Called with the step and the judged number; True stops.

    Returns
    -------
    tuple
        The last point, the steps taken, and whether `progress` told to stop.

    Examples
    --------
    The point of the line x₁ + x₂ = 2 with the least |x₁| + 3|x₂|:

    >>> import numpy as np
    >>> class L1:
    ...     weight = 1.0
    ...     forward = adjoint = staticmethod(lambda x: x)
    ...     prox = staticmethod(lambda y, step: y - np.clip(y, [-step, -3 * step], [step, 3 * step]))
    >>> class Line(L1):
    ...     prox = staticmethod(lambda y, step: y + (2.0 - y.sum()) / 2)
    >>> def residual(point):
    ...     return float(abs(point.values[0] - point.values[1]).max())
    >>> start = np.zeros(2)
    >>> point, steps, _ = split([L1(), Line()], lambda r: r / 2, start, judge=residual, tol=1e-9, max_iter=999)
    >>> point.values[0].round(6)
    array([2., 0.])
    """
    roots = [np.sqrt(term.weight) for term in terms]
    state = [term.forward(x0) for term in terms]
    history = _Extrapolation(roots)
    step = 0
    stopped = False
    while True:
        values = [term.prox(s, 1.0 / rho) for term, s in zip(terms, state, strict=True)]
        towards = [term.adjoint(term.weight * (2.0 * y - s)) for term, y, s in zip(terms, values, state, strict=True)]
        x = solve(np.sum(towards, axis=0))
        images = [term.forward(x) for term in terms]
        residual = [image - y for image, y in zip(images, values, strict=True)]
        if step % _JUDGE_EVERY == 0 or step >= max_iter:
            duals = [rho * term.weight * (s - y) for term, s, y in zip(terms, state, values, strict=True)]
            point = SplitPoint(x, values, duals)
            measure = judge(point)
            stopped = progress(step, measure)
            if measure <= tol or step >= max_iter or stopped:
                return point, step, stopped
            factor = _imbalance(terms, roots, images, point) if 0 < step <= _LAST_CHANGE else 1.0
            if not 1.0 / _BALANCED <= factor <= _BALANCED:
                rho = float(np.clip(rho * math.sqrt(factor), 1e-8, 1e8))
                state = [y + q / (rho * term.weight) for term, y, q in zip(terms, values, duals, strict=True)]
                history.forget()
                step += 1
                continue
        state = history.next(state, residual)
        step += 1


def _imbalance(terms: Sequence[Term], roots: list[Any], images: list[Array], point: SplitPoint) -> float:
    """Return how many times larger the relative residual of y = Bx is than that of Σ Bᵀq = 0."""
    primal = math.sqrt(sum(_square(r * (i - y)) for r, i, y in zip(roots, images, point.values, strict=True)))
    size = math.sqrt(sum(_square(r * y) for r, y in zip(roots, point.values, strict=True)))
    pulls = [term.adjoint(q) for term, q in zip(terms, point.duals, strict=True)]
    dual = float(np.linalg.norm(np.sum(pulls, axis=0)))
    pull = max(float(np.linalg.norm(p)) for p in pulls)
    if primal == 0.0 or dual == 0.0 or size == 0.0 or pull == 0.0:
        return 1.0
    return float(np.clip((primal / size) / (dual / pull), 1e-4, 1e4))


class _Extrapolation:
    """Anderson's method on the map s ↦ s + α(Bx − y), with the step taken back where the residual grows."""

    def __init__(self, roots: list[Any]) -> None:
        self._roots = roots
        self.forget()

    def forget(self) -> None:
        """Start anew."""
        self._residuals: list[Array] = []
        self._images: list[Array] = []
        self._safe: list[Array] | None = None  # where the plain step would have led, if the last one was not plain
        self._size = math.inf

    def next(self, state: list[Array], residual: list[Array]) -> list[Array]:
        """Return the next s."""
        plain = [s + _RELAXATION * r for s, r in zip(state, residual, strict=True)]
        size = math.sqrt(sum(_square(w * r) for w, r in zip(self._roots, residual, strict=True)))
        if self._safe is not None and not size <= _PATIENCE * self._size:
            safe = self._safe
            self.forget()
            return safe
        self._size = size
        self._safe = None
        self._residuals.append(self._flat(residual))
        self._images.append(self._flat(plain))
        if len(self._residuals) > _MEMORY + 1:
            self._residuals.pop(0)
            self._images.pop(0)
        if len(self._residuals) < 3:
            return plain
        changes = np.diff(np.array(self._residuals), axis=0)
        gram = changes @ changes.T
        gram.flat[:: len(gram) + 1] += 1e-12 * np.trace(gram) + 1e-300  # correlated differences need no exact solution
        gamma = np.linalg.solve(gram, changes @ self._residuals[-1])
        if not float(np.abs(gamma).sum()) <= _FARTHEST:
            self.forget()
            return plain
        moved = self._images[-1] - np.diff(np.array(self._images), axis=0).T @ gamma
        self._safe = plain
        return self._shaped(moved, state)

    def _flat(self, parts: list[Array]) -> Array:
        return np.concatenate([(w * p).ravel() for w, p in zip(self._roots, parts, strict=True)])

    def _shaped(self, flat: Array, like: list[Array]) -> list[Array]:
        out = []
        start = 0
        for root, part in zip(self._roots, like, strict=True):
            out.append(flat[start : start + part.size].reshape(part.shape) / root)
            start += part.size
        return out


def _square(values: Array) -> float:
    return float(np.vdot(values, values))
