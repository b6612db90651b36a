"""How far a long fit is: one line on stderr for the person waiting.

    HistGradientBoostingClassifier ━━━━━━━━━─────── round 57 of 100, loss 0.312, 4.1 s, about 3.1 s left

Only the outermost fit of the main thread shows it, only if stderr is a terminal or a notebook, and only after two
seconds. The fit itself stores two numbers per step and does nothing else: a daemon thread looks at them five times a
second and draws. So a fit of a millisecond pays for one look at a few flags, and no result can depend on the line.

Whether a fit is part of something larger (a search, a cross-validation, an ensemble of other models) is read off the
call stack, once, after the two seconds: the caller of the fit need not know of progress.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from functools import cached_property, wraps
from types import FrameType
from typing import Any, Final, NamedTuple, TypeVar

from .config import wants_progress
from .estimator import has_screen, is_notebook, stderr
from .threads import Background, on_main_thread

R = TypeVar("R")

PATIENCE: Final = 2.0  #: seconds after which the line appears
_TICK: Final = 0.2  # seconds between two looks at the fit
_IDLE: Final = 300  # ticks without a fit after which the watcher ends: a minute
_WIDTH: Final = 10  # characters of the bar
#: Modules through which a single fit may pass on its way from the user to the model.
_PASSAGES: Final = (
    "sklearn.callback", "sklearn.base", "sklearn.utils", "sklearn.pipeline", "learnable.cli", "learnable.__main__",
)  # fmt: skip
_SINGLE: Final = ("learnable.meta.table_model", "learnable.meta.scaled_target")
#: Modules whose calls are parts of something larger.
_LARGER: Final = ("sklearn.", "joblib.", "learnable.", "dask.", "distributed.", "concurrent.", "multiprocessing.")


class Steps(NamedTuple):
    """What the steps of a model are, in words.

    Attributes
    ----------
    unit : str
        "round", "epoch", "tree" …
    measure : str
        What the reported number is; "" if it says nothing to a reader.
    total : str or None
        The parameter that says how many steps there will be.
    goal : str or None
        The parameter that says how small the number has to become.
    """

    unit: str = "step"
    measure: str = "residual"
    total: str | None = None
    goal: str | None = "tol"


_ROUNDS: Final = Steps("round", "loss", "n_estimators", None)
_EM: Final = Steps("step", "objective", None, None)
_MODELS: Final = Steps("model", "", None, None)  # a step is the fit of a member
#: By the name of a model's class or of one of its bases; a model that is not here drives a residual to `tol`.
STEPS: Final[dict[str, Steps]] = {
    "Forest": Steps("tree", "", "n_estimators", None),
    "HistBoosting": Steps("round", "loss", "max_iter", None),
    "GradientBoosting": _ROUNDS,
    "AdaBoostClassifier": _ROUNDS,
    "AdaBoostRegressor": Steps("round", "error", "n_estimators", None),
    "ForwardStagewiseAdditive": _ROUNDS,
    "NetworkParameters": Steps("epoch", "loss", "max_iter", None),
    "MixtureBase": _EM,
    "MixtureOfExperts": _EM,
    "HiddenMarkovModel": _EM,
    "CentreModel": Steps("step", "sum of squares", None, None),
    "KMedoids": Steps("step", "sum of distances", None, None),
    "LatentDirichletAllocation": Steps("pass", "objective", None, None),
    "PopulationStructure": _EM,
    "NMF": Steps("step", "change", None, "tol"),
    "Bagging": _MODELS._replace(total="n_estimators"),
    "_Blend": _MODELS,
    "BinaryReduction": _MODELS,
    "ColumnSelector": Steps("column", "", None, None),
    "BestSubset": Steps("node", "gap", None, "tol"),
}


def steps_of(cls: type) -> Steps:
    """Return what the steps of a class of models are."""
    return next((STEPS[base.__name__] for base in cls.__mro__ if base.__name__ in STEPS), Steps())


class Line:
    """What one fit has reached. The fit calls `step`, the watcher `look`, the fit at last `close`."""

    def __init__(self, estimator: Any, max_seconds: float | None, caller: FrameType | None) -> None:
        self.estimator = estimator
        self.max_seconds = max_seconds
        self.started = time.perf_counter()
        self.iteration = 0
        self.value = math.nan
        self.begun: tuple[float, int] | None = None  # seconds and number of the first step: reading rows is no step
        self.first: tuple[float, float] | None = None  # seconds and value when the goal was first seen ahead
        self.caller = caller
        self.in_notebook = is_notebook(stderr())
        self.shown: bool | None = None  # None before the two seconds have passed
        self.is_due = False  # in a notebook the fit draws: output of a thread lands in the cell that started it
        self.width = 0  # characters on the screen

    # What only a line that is drawn needs: most fits end before that.

    @cached_property
    def steps(self) -> Steps:
        """What the steps of the model are."""
        return steps_of(type(self.estimator))

    @cached_property
    def total(self) -> float | None:
        """How many steps there will be."""
        return _number(self.estimator, self.steps.total)

    @cached_property
    def goal(self) -> float | None:
        """How small the number has to become."""
        return _number(self.estimator, self.steps.goal)

    def step(self, iteration: int, value: float) -> None:
        """Note a step."""
        if self.begun is None:
            self.begun = (self.seconds, iteration)
        self.iteration = iteration
        self.value = value
        if self.is_due:
            self.is_due = False
            self.draw()

    def look(self) -> None:
        """Draw the line if the fit has run for long enough and is not part of another fit."""
        if self.seconds < PATIENCE:
            return
        if self.shown is None:
            self.shown = not is_part(self.caller)
            self.caller = None
        if self.shown and self.in_notebook:
            self.is_due = True
        elif self.shown:
            self.draw()

    @property
    def seconds(self) -> float:
        """Time since the fit began."""
        return time.perf_counter() - self.started

    def text(self, seconds: float, room: int | None = None) -> str:
        """Return the line after so many seconds; where there is little room, without what matters least."""
        name = type(self.estimator).__name__
        left = self.seconds_left(seconds)
        step = _count(self.steps.unit, self.iteration, self.total) if self.iteration else "at work"
        measured = self.steps.measure and self.iteration and math.isfinite(self.value)
        value = f", {self.steps.measure} {self.value:.3g}" if measured else ""
        spent = f", {_duration(seconds)}"
        rest = "" if left is None else f", about {_duration(left)} left"
        bar = "" if left is None else f"{_bar(seconds / (seconds + left))} "
        lines = [
            f"{name} {bar}{step}{value}{spent}{rest}",
            f"{name} {step}{value}{spent}{rest}",
            f"{name} {step}{value}{rest or spent}",
            f"{name} {step}{rest or spent}",
        ]
        return next((line for line in lines if room is None or len(line) <= room), lines[-1][:room])

    def seconds_left(self, seconds: float) -> float | None:
        """Return how long the fit will go on at this pace, or None where that is not known."""
        limit = None if self.max_seconds is None else max(0.0, self.max_seconds - seconds)
        paces = [left for left in (self._until_total(seconds), self._until_goal(seconds), limit) if left is not None]
        return min(paces) if paces else None

    def _until_total(self, seconds: float) -> float | None:
        if self.total is None or self.begun is None or not self.begun[1] < self.iteration <= self.total:
            return None
        began, first = self.begun
        return (seconds - began) * (self.total - self.iteration) / (self.iteration - first)

    def _until_goal(self, seconds: float) -> float | None:
        """Return the time until the number reaches its goal if it goes on falling at the same rate (in logarithms)."""
        if self.goal is None or not (self.goal < self.value < math.inf) or self.goal <= 0.0:
            return None
        if self.first is None:
            self.first = (seconds, self.value)
        began, start = self.first
        fallen = math.log(start / self.value)
        if fallen <= 0.0:
            return None
        return (seconds - began) * math.log(self.value / self.goal) / fallen

    def draw(self) -> None:
        """Write the line over the last one."""
        room = None if self.in_notebook else shutil.get_terminal_size().columns - 1
        text = self.text(self.seconds, room)
        _write("\r" + text.ljust(self.width))
        self.width = len(text)

    def close(self, finished: bool) -> None:
        """End the line: it stays as the record of a fit that finished, and is wiped after an error."""
        with _watcher.lock:
            _watcher.line = None
        if self.width and finished:
            text = self.text(self.seconds).split(", about ")[0]
            _write("\r" + text.ljust(self.width) + "\n")
        elif self.width:
            _write("\r" + " " * self.width + "\r")


class _Watcher:
    """The one thread that looks at the fit in progress."""

    def __init__(self) -> None:
        self.lock = threading.Lock()  # so that nothing is drawn after a line was closed
        self.line: Line | None = None
        self.is_awake = False

    def watch(self, line: Line) -> None:
        """Look at this fit until it is closed."""
        with self.lock:
            self.line = line
            asleep = not self.is_awake
            self.is_awake = True
        if asleep:
            Background(self._work, name="learnable progress", daemon=True)

    def _work(self) -> None:
        idle = 0
        while True:
            time.sleep(_TICK)
            with self.lock:
                idle = 0 if self.line is not None else idle + 1
                if self.line is not None:
                    self.line.look()
                elif idle >= _IDLE:
                    self.is_awake = False
                    return


_watcher = _Watcher()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_watcher.__init__)  # type: ignore[misc]  # a child has no such thread


def open_line(estimator: Any, max_seconds: float | None) -> Line | None:
    """Return the line of a fit that begins, or None if it would not be seen."""
    outer = _watcher.line
    if outer is not None:
        if outer.steps.unit == _MODELS.unit:
            outer.step(outer.iteration + 1, math.nan)
        return None
    if not is_visible():
        return None
    if getattr(estimator, "verbose", 0) or "_skl_callbacks" in vars(estimator):
        return None  # it reports by itself
    line = Line(estimator, max_seconds, sys._getframe(1))
    _watcher.watch(line)
    return line


def shows_progress(fit: Callable[..., R]) -> Callable[..., R]:
    """Let a fit that is no `Estimator.fit` show how far it is; decorates the method."""

    @wraps(fit)
    def shown(self: Any, *args: Any, **params: Any) -> R:
        line = open_line(self, None)
        if line is None:
            return fit(self, *args, **params)
        try:
            result = fit(self, *args, **params)
        except BaseException:
            line.close(finished=False)
            raise
        line.close(finished=True)
        return result

    return shown


def is_visible() -> bool:
    """Tell whether a person may be looking: the main thread of the main process, with a terminal or a notebook."""
    in_charge = on_main_thread() and multiprocessing.current_process().name == "MainProcess"
    return in_charge and has_screen() and wants_progress()


def is_part(caller: FrameType | None) -> bool:
    """Tell from the call stack whether a fit is part of a search, a cross-validation or another model's fit.

    `caller` is the frame of the fit itself. The same object's own methods, such as `fit_predict`, and pipelines, which
    fit each step once, are no such thing.
    """
    own = None if caller is None else caller.f_locals.get("self")
    while caller is not None:
        module = str(caller.f_globals.get("__name__", ""))
        passes = module.startswith(_PASSAGES) or module in _SINGLE or caller.f_locals.get("self") is own
        if module.startswith(_LARGER) and not passes:
            return True
        caller = caller.f_back
    return False


def _number(estimator: Any, name: str | None) -> float | None:
    """Return the value of a parameter if it is a positive number."""
    value: Any = None if name is None else getattr(estimator, name, None)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if value > 0 else None


def _count(unit: str, done: int, total: float | None) -> str:
    return f"{unit} {done:,}" if total is None else f"{unit} {done:,} of {total:,.0f}"


def _bar(share: float) -> str:
    full = min(_WIDTH, max(0, round(_WIDTH * share)))
    return "━" * full + "─" * (_WIDTH - full)


def _duration(seconds: float) -> str:
    if seconds < 60.0:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _write(text: str) -> None:
    """Write to stderr; a stream that is closed must not end a fit, and one that lacks the characters gets others."""
    try:
        stream = stderr()
        encoding = getattr(stream, "encoding", None) or "utf-8"
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except (OSError, ValueError, AttributeError):
        pass
