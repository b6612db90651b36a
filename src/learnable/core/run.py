"""One fit in progress: its clock, its stop flag and its callbacks.

Solvers see only a function, `progress(iteration, value) -> stop`; kernels see only the flag's array. Everything a user
can attach to a fit (a progress bar, a time limit, Ctrl-C) arrives through these two.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: What a solver calls once an iteration, with the value it drives to zero; True means: stop and return the best so far.
Progress = Callable[[int, float], bool]
#: What it calls just before that with the point it has reached.
Observer = Callable[[Any], None]


def no_progress(iteration: int, value: float) -> bool:
    """Observe nothing and never stop: the default of every solver."""
    return False


def unobserved(x: Any) -> None:
    """Look at no point: the default of every solver."""


def never() -> bool:
    """Never stop: the default of loops inside an iteration."""
    return False


class StopFlag:
    """A flag that another thread may raise and a `nogil` kernel may poll through `array[0] != 0`."""

    def __init__(self) -> None:
        self.array: NDArray[np.int64] = np.zeros(1, dtype=np.int64)

    def raise_(self) -> None:
        """Ask everybody who polls to stop."""
        self.array[0] = 1

    @property
    def raised(self) -> bool:
        """Whether somebody asked to stop."""
        return bool(self.array[0])


class Run:
    """The clock, the stop flag and the callbacks of one fit.

    Parameters
    ----------
    estimator : estimator or None
        Whose callbacks are called; None calls none. Models with `warm_start` read its last fit as `previous`.
    context : sklearn.callback.CallbackContext or None
        The fit's root task.
    max_seconds : float or None
        After this time `progress` answers "stop".
    n_jobs : int or None
        Threads that the fit may use.
    data : (X, y, sample_weight)
        As `fit` was given them; callbacks get them with a partly fitted model, to score it.
    """

    def __init__(
        self,
        estimator: Any = None,
        context: Any = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        data: tuple[Any, Any, Any] = (None, None, None),
    ) -> None:
        self.flag = StopFlag()
        self.n_jobs = n_jobs
        self.previous = estimator
        self._estimator = estimator
        self._context = context
        self._data = data
        self._state: Callable[[], dict[str, Any]] | None = None  # fitted attributes after the last iteration
        self._started = time.perf_counter()
        self._deadline = None if max_seconds is None else self._started + max_seconds
        self.told_to_stop = False  # whether the fit asked for the time after its deadline

    @property
    def data(self) -> tuple[Any, Any, Any]:
        """X, y and the weights as `fit` was given them."""
        return self._data

    @property
    def seconds(self) -> float:
        """Time since the fit began."""
        return time.perf_counter() - self._started

    @property
    def out_of_time(self) -> bool:
        """Whether the deadline has passed; whoever asks then has to stop."""
        passed = self._deadline is not None and time.perf_counter() > self._deadline
        self.told_to_stop |= passed
        return passed

    def should_stop(self) -> bool:
        """Tell whether the time is up or somebody raised the flag, for loops inside an iteration."""
        return self.flag.raised or self.out_of_time

    @property
    def is_watched(self) -> bool:
        """Whether the estimator has callbacks."""
        return self._context is not None and bool(getattr(self._estimator, "_skl_callbacks", None))

    @cached_property
    def shows_models(self) -> bool:
        """Whether a callback asks for the fitted model of each iteration, as scikit-learn's `ScoringMonitor` does."""
        hooks = [callback.on_fit_task_end for callback in self._estimator._skl_callbacks] if self.is_watched else []
        return any("fitted_estimator" in inspect.signature(hook).parameters for hook in hooks)

    def progress(self, iteration: int, value: float, state: Callable[[], dict[str, Any]] | None = None) -> bool:
        """Report one iteration to the callbacks; return True when the solver has to stop.

        `state` gives the fitted attributes of a fit that ends here. If a callback asks for models, all get one, with
        the data, and sample weights as metadata: what a scorer takes. Otherwise the metadata are the value.
        """
        stop = self.should_stop()
        if self.is_watched:
            task = self._context.subcontext(task_name=f"iteration {iteration}")
            begin = {}
            end = {"metadata": {"value": value}}
            if state is not None and self.shows_models:
                begin = self._scorable(self._state)
                end = self._scorable(state)
            task.call_on_fit_task_begin(estimator=self._estimator, **begin)
            stop |= task.call_on_fit_task_end(estimator=self._estimator, **end)
            self._state = state
        return stop

    def _scorable(self, state: Callable[[], dict[str, Any]] | None) -> dict[str, Any]:
        """Return what a hook is given of a partly fitted model; names of columns and files are not data to score."""
        X, y, weight = self._data
        if isinstance(y, str) or isinstance(weight, str) or not hasattr(X, "__len__") or isinstance(X, str):
            return {"reconstruction_attributes": state}
        metadata = None if weight is None else {"sample_weight": weight}
        return {"X": X, "y": y, "metadata": metadata, "reconstruction_attributes": state}
