r"""The hyperparameters of greatest marginal likelihood, in a box of their logarithms.

One evaluation costs n³ operations, so the search starts where the same search on half of the rows ended, and that one
on a half of those: an evaluation there costs an eighth. Their curvature, scaled by the number of rows, is the first
Hessian. What is found is stationary for all rows; where the start came from proves nothing and matters little.

A hyperparameter of which the rows say next to nothing, such as the length scale of a column without effect, has ripples
of the likelihood in which a search gets caught: it is tried at its bounds too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.run import Progress, no_progress
from ..risk.kernels.base import Kernel
from ..solvers.bounded import bounded_bfgs
from ..solvers.problem import Solution
from .gp_likelihood import Objective, Observations, small_blas

Array = NDArray[np.float64]

#: scikit-learn's bounds of every hyperparameter, unless its kernel says otherwise.
DEFAULT_BOUNDS = (1e-5, 1e5)
_FEW_ROWS = 600  # no search on fewer rows comes before one on these
_SHARE = 2
_UNDETERMINED = 4.0  # information at which a logarithm of a hyperparameter is known to one half
_ROUGH = 1e-3  # relative gradient at which a search on some rows has done its work


class Found(NamedTuple):
    """Where a search ended."""

    theta: Array
    measure: float  #: the relative gradient there
    n_iter: int


def climb(
    problem: Callable[[Any], Any],
    data: Any,
    start: Array,
    bounds: Array,
    *,
    tol: float,
    max_iter: int,
    progress: Progress = no_progress,
) -> Solution:
    """Search from one start, on half of the rows first if there are many.

    Parameters
    ----------
    problem : function of data
        Gives an objective with `evaluate`, `value` and `curvature`.
    data : Observations
        All rows.
    start, bounds : (p,) and (p, 2) arrays
        Of θ.
    tol, max_iter, progress
        As for every solver.
    """
    with small_blas(len(data.y)):
        return _climb(problem, data, start, bounds, tol, max_iter, progress)


def _climb(
    problem: Callable[[Any], Any], data: Any, start: Array, bounds: Array, tol: float, max_iter: int, progress: Progress
) -> Solution:
    n, whole = len(data.y), problem(data)
    if n > _FEW_ROWS:
        rows = np.sort(np.random.default_rng(0).permutation(n)[: max(n // _SHARE, _FEW_ROWS // 2)])
        part = data.some(rows)
        rough = climb(problem, part, start, bounds, tol=max(_ROUGH, tol), max_iter=max_iter, progress=progress)
        start = rough.x if np.isfinite(rough.value) else start
        few = data.some(rows[:: max(1, len(rows) // _FEW_ROWS)])
        hessian = n / len(few.y) * problem(few).curvature(start)
    else:
        few, hessian = data, whole.curvature(np.clip(start, *bounds.T))

    def search(start: Array, hessian: Array) -> Solution:
        return bounded_bfgs(whole, start, *bounds.T, hessian=hessian, tol=tol, max_iter=max_iter, progress=progress)

    found = search(start, hessian)
    if not np.isfinite(found.value) or not found.converged:
        return found
    information = n / len(few.y) * problem(few).curvature(found.x)
    beyond = _at_bounds(whole, found, bounds, np.diagonal(information))
    if beyond is None:
        return found
    other = search(beyond, information)
    return (other if other.value < found.value else found)._replace(n_iter=found.n_iter + other.n_iter)


def _at_bounds(whole: Any, found: Solution, bounds: Array, information: Array) -> Array | None:
    """Return θ with its undetermined entries at bounds where that is better, one after the other; None if nowhere."""
    best, value = found.x, found.value
    for j in np.flatnonzero(information < _UNDETERMINED):
        for bound in bounds[j]:
            theta = best.copy()
            theta[j] = bound
            there = whole.value(theta) if bound != best[j] else np.inf
            if there < value:
                best, value = theta, there
    return best if value < found.value else None


def maximise(
    kernel: Kernel,
    data: Observations,
    bounds: Array,
    *,
    restarts: int = 0,
    random_state: Any = None,
    tol: float = 1e-6,
    max_iter: int = 100,
    progress: Progress = no_progress,
) -> Found:
    """Return the best of several searches: from the kernel's own hyperparameters, and from random ones in the box."""
    rng = np.random.default_rng(random_state)
    starts: list[Array] = [kernel.theta, *(np.asarray(rng.uniform(*bounds.T)) for _ in range(restarts))]
    best, n_iter, stopped = None, 0, False

    def report(iteration: int, value: float) -> bool:
        nonlocal stopped
        stopped = progress(n_iter + iteration, value)
        return stopped

    for start in starts:
        found = climb(
            lambda some: Objective(kernel, some, bounds),
            data,
            start,
            bounds,
            tol=tol,
            max_iter=max_iter,
            progress=report,
        )
        n_iter += found.n_iter
        if best is None or found.value < best.value:
            best = found
        if stopped:
            break
    return Found(best.x, best.measure, n_iter)  # type: ignore[union-attr]


def log_bounds(given: Any, kernel: Kernel, default: tuple[float, float] = DEFAULT_BOUNDS) -> Array:
    """Return bounds of θ, of shape (p, 2): those of a scikit-learn kernel, else the default; the start is inside.

    Parameters
    ----------
    given : kernel
        As the user gave it.
    kernel : Kernel
        The same as one of ours.
    """
    p = len(kernel.theta)
    found = _foreign_bounds(given) if hasattr(given, "hyperparameters") else []
    bounds = np.log(np.array(found if len(found) == p else [default] * p, dtype=np.float64).reshape(p, 2))
    return np.column_stack([np.minimum(bounds[:, 0], kernel.theta), np.maximum(bounds[:, 1], kernel.theta)])


def _foreign_bounds(kernel: Any) -> list[Any]:
    """Return the bounds that scikit-learn's kernel states, in the order of our hyperparameters."""
    if hasattr(kernel, "k1"):
        return _foreign_bounds(kernel.k1) + _foreign_bounds(kernel.k2)
    if hasattr(kernel, "exponent"):
        return _foreign_bounds(kernel.kernel) * int(kernel.exponent)
    names = ("constant_value", "noise_level", "length_scale", "alpha", "periodicity", "sigma_0")
    found: list[Any] = []
    for name in names:
        stated = {h.name: h for h in kernel.hyperparameters}.get(name)
        if stated is not None and not stated.fixed:
            bounds = np.broadcast_to(np.atleast_2d(stated.bounds), (stated.n_elements, 2))
            found += list(bounds**2 if name == "sigma_0" else bounds)
    return found
