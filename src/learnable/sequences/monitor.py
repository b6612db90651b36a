"""The record of a fit in hmmlearn's form: what EM's objective was after each step, and whether it converged."""

from __future__ import annotations

from collections import deque
from typing import Any


class ConvergenceMonitor:
    """History of the objective of one fit.

    Parameters
    ----------
    tol : float
        A smaller rise counts as convergence.
    n_iter : int
        Steps that a fit may take.
    verbose : bool
        Kept for hmmlearn's sake; use callbacks.

    Attributes
    ----------
    history : deque of float
        The objective at the start and after each step.
    iter : int
        How many values were reported.
    converged : bool
        Whether the last rise was below `tol`, or all steps were taken.
    """

    def __init__(self, tol: float, n_iter: int, verbose: bool = False) -> None:
        self.tol = tol
        self.n_iter = n_iter
        self.verbose = verbose
        self.history: deque[float] = deque()
        self.iter = 0

    def report(self, log_prob: float) -> None:
        """Take note of the objective after a step."""
        self.history.append(log_prob)
        self.iter += 1

    @property
    def converged(self) -> bool:
        """Whether the last rise was below `tol`, or all steps were taken."""
        last = list(self.history)[-2:]
        return self.iter >= self.n_iter or (len(last) == 2 and last[1] - last[0] < self.tol)


def replay(monitor: Any, values: Any) -> Any:
    """Tell a monitor, anew, what a fit found."""
    monitor.history.clear()
    monitor.iter = 0
    for value in values:
        monitor.report(float(value))
    return monitor
