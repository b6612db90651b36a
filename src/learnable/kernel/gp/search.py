r"""The hyperparameters of greatest marginal likelihood, in a box of their logarithms.

One evaluation costs n³ operations, so the search starts where the same search on half of the rows ended, and that one
on a half of those: an evaluation there costs an eighth. (With inducing points, n operations and an eighth of the rows.)
Their curvature, scaled by the number of rows, is the first
Hessian. What is found is stationary for all rows; where the start came from proves nothing and matters little.

A hyperparameter of which the rows say next to nothing, such as the length scale of a column without effect, has ripples
of the likelihood in which a search gets caught: it is tried at its bounds too.

A time limit for searches whose steps grow with the cube of the rows.

A step that is begun has to be ended: so a step is not begun unless the time that is left is enough for it. How long one
takes is known from the last one, on all rows or on some of them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ...core import Array, NDArray, ParameterError, Progress, Run, never, no_progress
from ...risk.kernels.base import Kernel
from ...solvers.problem import Evaluation, Solution
from ...solvers.smooth.quasi_newton import bounded_bfgs
from .likelihood import Objective, Observations, small_blas

_FARTHEST = float(np.log(1e100))  # a hyperparameter beyond leaves no room for sums and squares
_FEW_ROWS = 600  # no search on fewer rows comes before one on these
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
    stop: Callable[[], bool] = never,
) -> Solution:
    """Search from one start, on a share of the rows first if there are many.

    Parameters
    ----------
    problem : function of data
        Gives an objective with `evaluate`, `value` and `curvature`.
    data : Observations
        All rows; with `some`, `share` and an entry of `y` for each.
    start, bounds : (p,) and (p, 2) arrays
        Of θ.
    tol, max_iter, progress
        As for every solver.
    stop : function
        Asked between evaluations; once it says True, one evaluation of all rows is left, which tells the value and
        the measure of the best θ so far.
    """
    with small_blas(len(data.y)), np.errstate(over="ignore", invalid="ignore"):  # infinity and NaN are no θ
        return _climb(problem, data, start, bounds, _Limits(tol, max_iter, progress, stop))


class _Limits(NamedTuple):
    tol: float
    max_iter: int
    progress: Progress
    stop: Callable[[], bool]


def _climb(
    problem: Callable[[Any], Any], data: Any, start: Array, bounds: Array, limits: _Limits, is_last: bool = True
) -> Solution:
    """Search on some rows, or on all (`is_last`)."""
    n = len(data.y)
    whole = problem(data)
    stop = limits.stop
    few = data
    if n > _FEW_ROWS and not stop():
        rows = np.sort(np.random.default_rng(0).permutation(n)[: max(n // data.share, _FEW_ROWS // 2)])
        roughly = limits._replace(tol=max(_ROUGH, limits.tol))
        with small_blas(len(rows)):
            rough = _climb(problem, data.some(rows), start, bounds, roughly, is_last=False)
        if stop() and not is_last:
            return rough  # all rows are evaluated at the end; no other caller needs a value
        start = rough.x if np.isfinite(rough.value) else start
        few = data.some(rows[:: max(1, len(rows) // _FEW_ROWS)])
    start = np.clip(start, *bounds.T)

    def information(theta: Array) -> Array:
        return n / len(few.y) * np.asarray(problem(few).curvature(theta))

    def search(start: Array, hessian: Array | None) -> Solution:
        return bounded_bfgs(whole, start, *bounds.T, hessian=hessian, **limits._asdict())

    found = search(start, None if stop() else information(start))
    if not np.isfinite(found.value) or not found.converged or stop():
        return found
    known = information(found.x)
    beyond = _at_bounds(whole, found, bounds, np.diagonal(known), stop)
    if beyond is None:
        return found
    other = search(beyond, known)
    return (other if other.value < found.value else found)._replace(n_iter=found.n_iter + other.n_iter)


def _at_bounds(
    whole: Any, found: Solution, bounds: Array, information: Array, stop: Callable[[], bool]
) -> Array | None:
    """Return θ with its undetermined entries at bounds where that is better, one after the other; None if nowhere."""
    best = found.x
    value = found.value
    for j in np.flatnonzero(information < _UNDETERMINED):
        for bound in bounds[j]:
            if stop():
                return None  # what was found is stationary
            theta = best.copy()
            theta[j] = bound
            there = whole.value(theta) if bound != best[j] else np.inf
            if there < value:
                best = theta
                value = there
    return best if value < found.value else None


def _as_it_is(objective: Any) -> Any:
    return objective


def maximise(
    kernel: Kernel,
    data: Observations,
    bounds: Array,
    *,
    restarts: int = 0,
    random_state: Any = None,
    owner: str = "maximise",
    tol: float = 1e-6,
    max_iter: int = 100,
    progress: Progress = no_progress,
    stop: Callable[[], bool] = never,
    timed: Callable[[Any], Any] = _as_it_is,
) -> Found:
    """Return the best of several searches: from the kernel's own hyperparameters, and from random ones in the box."""
    starts = [kernel.theta, *random_starts(owner, kernel, bounds, restarts, random_state)]
    best = None
    n_iter = 0
    stopped = False

    def report(iteration: int, value: float) -> bool:
        nonlocal stopped
        stopped = progress(n_iter + iteration, value)
        return stopped

    for start in starts:
        found = climb(
            lambda some: timed(Objective(kernel, some, bounds)),
            data,
            start,
            bounds,
            tol=tol,
            max_iter=max_iter,
            progress=report,
            stop=stop,
        )
        n_iter += found.n_iter
        if best is None or found.value < best.value:
            best = found
        if stopped or stop():
            break
    return Found(best.x, best.measure, n_iter)  # type: ignore[union-attr]


def log_bounds(kernel: Kernel) -> Array:
    """Return bounds of θ, of shape (p, 2): those that the kernel states, within what numbers can hold."""
    return np.clip(kernel.bounds, -_FARTHEST, _FARTHEST)


def random_starts(owner: str, kernel: Kernel, bounds: Array, count: int, random_state: Any) -> list[Array]:
    """Return points of the box at random; raise where the kernel states no finite one."""
    if count and not np.isfinite(kernel.bounds).all():
        raise ParameterError(
            f"{owner}: Multiple optimizer restarts (n_restarts_optimizer>0) requires that all bounds are finite; state "
            "finite ones, or use n_restarts_optimizer=0."
        )
    rng = np.random.default_rng(random_state)
    return [np.asarray(rng.uniform(*bounds.T)) for _ in range(count)]


def warn_at_bounds(kernel: Kernel) -> None:
    """Warn, as scikit-learn does, of hyperparameters that a search left at a given bound."""
    for one in kernel._parameters():
        if isinstance(one.bounds, str) or not one.stated:
            continue
        for dimension, (value, (low, high)) in enumerate(zip(np.atleast_1d(one.value), one.bounds, strict=True)):
            for bound, side, remedy in ((low, "lower", "Decreasing"), (high, "upper", "Increasing")):
                if np.isfinite(bound) and bound > 0.0 and np.isclose(np.log(value), np.log(bound)):
                    warnings.warn(
                        f"The optimal value found for dimension {dimension} of parameter {one.name} is close to the "
                        f"specified {side} bound {bound}. {remedy} the bound and calling fit again may find a better "
                        "value.",
                        ConvergenceWarning,
                        stacklevel=6,
                    )


_AFTERWARDS = 1.6  # a step on all rows, and what of it is repeated when its result is stored


class Pace:
    """Tells a search when to stop; called as a function, it answers.

    Parameters
    ----------
    run : Run
        The fit, with its stop flag.
    n_rows : int
        All rows.
    seconds : float or None
        What the search may take from now on; None for no limit, and then nothing depends on time.
    power : int
        Of the number of rows, that a step's time grows with.
    """

    def __init__(self, run: Run, n_rows: int, seconds: float | None, power: int = 3) -> None:
        self._run = run
        self._n_rows = n_rows
        self._power = power
        self._ends = None if seconds is None else time.perf_counter() + seconds
        self._reserve = 0.0

    def __call__(self) -> bool:
        """Tell whether to stop: another step of all rows would end too late."""
        late = self._ends is not None and time.perf_counter() + self._reserve > self._ends
        return late or self._run.should_stop()

    def over(self) -> bool:
        """Tell whether the time is up, for loops inside a step."""
        return self._run.should_stop() or (self._ends is not None and time.perf_counter() > self._ends)

    def timed(self, objective: Any) -> _Timed:
        """Return an objective whose evaluations set the pace."""
        return _Timed(objective, self)

    def took(self, seconds: float, n_rows: int) -> None:
        """Remember how long a step on some rows took, as the time that one on all rows is expected to take."""
        self._reserve = _AFTERWARDS * seconds * (self._n_rows / max(n_rows, 1)) ** self._power


def share_of(model: Any, run: Run, left: int) -> float | None:
    """Return the seconds of one of several searches that are left; None without a limit."""
    return None if model.max_seconds is None else max(model.max_seconds - run.seconds, 0.0) / max(left, 1)


class _Timed:
    """An objective and a clock."""

    def __init__(self, objective: Any, pace: Pace) -> None:
        self._objective = objective
        self._pace = pace

    def evaluate(self, theta: NDArray[np.float64]) -> Evaluation:
        began = time.perf_counter()
        found: Evaluation = self._objective.evaluate(theta)
        self._pace.took(time.perf_counter() - began, len(self._objective.data.y))
        return found

    def value(self, theta: NDArray[np.float64]) -> float:
        return float(self._objective.value(theta))

    def curvature(self, theta: NDArray[np.float64]) -> Any:
        return self._objective.curvature(theta)
