"""What `verbose` prints while a fit climbs: a line for a start, for every iteration, and for its end.

The lines are those of scikit-learn, so that what reads them goes on reading them.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ..core import AnyArray, Boolean, Number, Progress

VERBOSE = Boolean() | Number(low=0, integer=True)


class LloydNarrator:
    """The lines of k-means: "Initialization complete", "Iteration 3, inertia 17.2.", "Converged at iteration 4: …".

    Parameters
    ----------
    verbose : bool
        Whether anything is printed.
    unit : float
        The centres of the fit are those of the data times this.
    limit : float
        Squared shift of the centres that counts as none.
    """

    def __init__(self, verbose: Any, unit: float, limit: float) -> None:
        self.verbose = bool(verbose)
        self.unit = unit
        self.limit = limit
        self.reason = ""

    def begin(self) -> None:
        """Say that a start is drawn."""
        self.reason = ""
        if self.verbose:
            print("Initialization complete")

    def settle(self, before: AnyArray, after: AnyArray) -> None:
        """Take note of the step that ends the climb."""
        if not self.verbose:
            return
        shift = float(((after - before) ** 2).sum())
        moved = self._in_data(shift)
        limit = self._in_data(self.limit)
        within = f"center shift {moved:.6g} within tolerance {limit:.6g}"
        self.reason = "strict convergence" if shift == 0 or self.limit == 0 else within

    def report(self, progress: Progress) -> Progress:
        """Return `progress` that prints, too."""
        if not self.verbose:
            return progress

        def narrate(iteration: int, objective: float) -> bool:
            print(f"Iteration {iteration - 1}, inertia {self._in_data(max(-objective, 0.0)):.6g}.")
            if self.reason:
                print(f"Converged at iteration {iteration - 1}: {self.reason}.")
            return progress(iteration, objective)

        return narrate

    def _in_data(self, square: float) -> np.float64:
        """Return a squared length in the units of the data; infinite where it is beyond float64."""
        with np.errstate(over="ignore"):
            return np.float64(square) / self.unit / self.unit


class BatchNarrator:
    """The lines of k-means by batches: "Minibatch step 3/500: mean batch inertia: …", "Converged (…) at step 9/500".

    Parameters
    ----------
    verbose : bool
        Whether anything is printed.
    unit : float
        The centres of the fit are those of the data times this.
    most : int
        Steps that the fit may take.
    """

    def __init__(self, verbose: Any, unit: float, most: int) -> None:
        self.verbose = bool(verbose)
        self.unit = unit
        self.most = most

    def step(self, number: int, inertia: float, smoothed: float) -> None:
        """Say what a batch was like, and the average over the last ones."""
        if self.verbose:
            with np.errstate(over="ignore"):
                own, mean = (np.float64(value) / self.unit / self.unit for value in (inertia, smoothed))
            print(f"Minibatch step {number}/{self.most}: mean batch inertia: {own:.6g}, ewa inertia: {mean:.6g}")

    def end(self, number: int, reason: str) -> None:
        """Say why there are no more batches."""
        if self.verbose:
            print(f"Converged ({reason}) at step {number}/{self.most}")


class MixtureNarrator:
    """The lines of EM: "Initialization 0", "  Iteration 10", "Initialization converged."; with `verbose` > 1, figures.

    Parameters
    ----------
    verbose, interval : int
        What the model's `verbose` and `verbose_interval` say.
    weight : float
        Total weight of the rows, by which the objective is divided.
    """

    def __init__(self, verbose: Any, interval: int, weight: float) -> None:
        self.verbose = int(verbose)
        self.interval = int(interval)
        self.weight = weight
        self.number = 0
        self.bound = -np.inf
        self.began = 0.0
        self.last = 0.0

    def begin(self, start: Any) -> Any:
        """Say that a start is drawn, and return it."""
        if self.verbose:
            print(f"Initialization {self.number}")
        self.number += 1
        self.bound = -np.inf
        self.began = self.last = time.monotonic()
        return start

    def end(self, converged: bool) -> None:
        """Say how the climb ended."""
        if self.verbose == 1:
            print(f"Initialization {'converged' if converged else 'did not converge'}.")
        elif self.verbose > 1:
            seconds = time.monotonic() - self.began
            print(f"Initialization converged: {converged}\t time lapse {seconds:.5f}s\t lower bound {self.bound:.5f}.")

    def report(self, progress: Progress) -> Progress:
        """Return `progress` that prints, too."""
        if not self.verbose:
            return progress

        def narrate(iteration: int, objective: float) -> bool:
            rise = objective / self.weight - self.bound
            self.bound = objective / self.weight
            step = iteration - 1
            if step and step % self.interval == 0:
                now = time.monotonic()
                figures = f"\t time lapse {now - self.last:.5f}s\t lower bound change {rise:.5f}"
                print(f"  Iteration {step}{figures if self.verbose > 1 else ''}")
                self.last = now
            return progress(iteration, objective)

        return narrate
