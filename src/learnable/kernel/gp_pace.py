"""A time limit for searches whose steps grow with the cube of the rows.

A step that is begun has to be ended: so a step is not begun unless the time that is left is enough for it. How long one
takes is known from the last one, on all rows or on some of them.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.run import Run
from ..solvers.problem import Evaluation

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
        self._run, self._n_rows, self._power = run, n_rows, power
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
        self._objective, self._pace = objective, pace

    def evaluate(self, theta: NDArray[np.float64]) -> Evaluation:
        began = time.perf_counter()
        found: Evaluation = self._objective.evaluate(theta)
        self._pace.took(time.perf_counter() - began, len(self._objective.data.y))
        return found

    def value(self, theta: NDArray[np.float64]) -> float:
        return float(self._objective.value(theta))

    def curvature(self, theta: NDArray[np.float64]) -> Any:
        return self._objective.curvature(theta)
