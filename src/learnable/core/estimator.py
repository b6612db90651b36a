"""One fit: the base of every estimator, the clock and the stop flag of a fit, and the certificate that it leaves.

`Estimator` is scikit-learn's contract, plus a certificate, plus all-or-nothing fits.

A model writes `_parameters` (the ranges of its arguments), `_door` (what data it takes) and `_fit(table, run)`, which
sets the fitted attributes and returns a `Certificate`. Everything around that is here.
"""

from __future__ import annotations

import inspect
import math
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning

from .declare import Declared, Rule, check_parameters, hook
from .errors import ParameterError
from .registry import resolve

if TYPE_CHECKING:
    from .progress import Line

# --------------------------------------------------------------------------------------------------------------------
# The certificate.

Kind = Literal["closed-form", "gap", "stationarity", "ascent", "greedy", "chain", "bellman", "none"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)

_SENTENCES: Final[dict[str, str]] = {
    "closed-form": "the defining equations hold to a relative residual of {value:.2g}",
    "gap": "at most {value:.2g} (relative) above the optimum",
    "stationarity": "the optimality conditions hold up to {value:.2g}",
    "ascent": "one more step would raise the objective by {value:.2g} (relative); a local optimum",
    "greedy": "no split or step falls short of the best of its candidates by more than {value:.2g}",
    "chain": "the worst of (R-hat − 1)/0.01 and 400/ESS over all parameters is {value:.2g}",
    "bellman": "one more backup changes values by {value:.2g}",
    "none": "nothing is proven",
}


@dataclass(frozen=True)
class Certificate:
    """An immutable record of what a fit proves about itself.

    It is a claim that a stranger can re-check from the model and the data alone (`learnable.verify`). `value` and
    `tolerance` are in the units of the estimator's `tol`, and `holds` is `value <= tolerance`.

    | kind           | what `value` is                                                         |
    |----------------|-------------------------------------------------------------------------|
    | `closed-form`  | relative residual of the equations that define the solution             |
    | `gap`          | (P − D) / max(D, 1e-8·P₀): the optimum is at most this far below        |
    | `stationarity` | relative norm of the gradient, or of the KKT residual                   |
    | `ascent`       | relative rise of one more EM step                                       |
    | `greedy`       | by how much a split or step falls short of the best of its candidates   |
    | `chain`        | the worst of (R-hat − 1)/0.01 and 400/ESS; above 1 if a draw diverged   |
    | `bellman`      | what the policy loses at most in any state; without a bound, the residual of one backup |
    | `none`         | nothing is proven                                                       |

    Attributes
    ----------
    kind : str
        Which claim is made; see the table.
    value : float
        The claim's number, in the units of `tolerance`.
    tolerance : float
        What `value` had to reach.
    bound : float or None
        Upper bound on (P − optimum)/max(optimum, 1e-8·P₀); of kind `bellman` on the loss itself, in units of the
        reward. None where nothing is proven.
    n_iter : int
        Iterations, or passes over the data, that were spent.
    seconds : float
        Wall-clock time of the fit.
    fingerprint : str
        64-bit checksum of the training data, the same whatever the order of the rows and the container.
    by_construction : bool
        Whether the method cannot give another value, so that the fit measured nothing; `verify` measures it.
    n_rows : int
        Rows of positive weight that were fitted; 0 where that is not known.

    Examples
    --------
    >>> from learnable.core import Certificate
    >>> Certificate("gap", 3.1e-7, 1e-6, bound=3.1e-7, n_iter=7)
    gap: at most 3.1e-07 (relative) above the optimum; tolerance 1e-06; 7 iterations
    """

    kind: Kind
    value: float
    tolerance: float
    bound: float | None = None
    n_iter: int = 1
    seconds: float = 0.0
    fingerprint: str = ""
    by_construction: bool = field(default=False, metadata={"left_out": False})
    n_rows: int = field(default=0, metadata={"left_out": 0})

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ParameterError(f"Certificate: kind must be one of {', '.join(KINDS)}; got {self.kind!r}.")

    @property
    def holds(self) -> bool:
        """Whether the claim reaches its tolerance (never for `none`, never for NaN)."""
        return self.kind != "none" and self.value <= self.tolerance

    @property
    def sentence(self) -> str:
        """The claim in words."""
        claim = _SENTENCES[self.kind].format(value=self.value)
        if self.by_construction:
            claim += ", by construction"
        if self.kind == "stationarity" and self.bound is not None and math.isfinite(self.bound):
            claim += f", at most {self.bound:.2g} (relative) above the optimum"
        if self.kind == "bellman" and self.bound is not None:
            claim = f"values are proven to within {self.bound:.2g} in every state"
        return claim

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON types (an infinite or undefined value becomes None)."""
        record = asdict(self)
        for key in ("value", "tolerance", "bound"):
            if record[key] is not None and not math.isfinite(record[key]):
                record[key] = None
        return record | {"holds": self.holds, "sentence": self.sentence}

    def __repr__(self) -> str:
        if self.kind == "none":
            return "none: nothing is proven"
        verdict = "" if self.holds else "DOES NOT HOLD; "
        steps = "1 iteration" if self.n_iter == 1 else f"{self.n_iter} iterations"
        return f"{self.kind}: {verdict}{self.sentence}; tolerance {self.tolerance:.2g}; {steps}"


# --------------------------------------------------------------------------------------------------------------------
# One fit in progress: its clock, its stop flag and its callbacks.
#
# Solvers see only a function, `progress(iteration, value) -> stop`; kernels see only the flag's array. Everything a
# user can attach to a fit (a progress bar, a time limit, Ctrl-C) arrives through these two.


#: What a solver calls once an iteration, with the value it drives to zero; True means: stop and return the best so far.
Progress = Callable[[int, float], bool]
#: What it calls just before that with the point it has reached.
Observer = Callable[[Any], None]


def no_progress(iteration: int, value: float) -> bool:
    """Observe nothing and never stop: the default of every solver."""
    return False


class Watched:
    """A progress function that remembers whether it said stop.

    Examples
    --------
    >>> watched = Watched(lambda iteration, value: iteration >= 2)
    >>> watched(1, 0.5), watched(2, 0.4), watched.stopped
    (False, True, True)
    """

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.stopped = False

    def __call__(self, iteration: int, value: float) -> bool:
        """Report one iteration."""
        self.stopped = self.progress(iteration, value)
        return self.stopped


def unobserved(x: Any) -> None:
    """Look at no point: the default of every solver."""


def never() -> bool:
    """Never stop: the default of loops inside an iteration."""
    return False


class StopFlag:
    """A flag that another thread may raise and a `nogil` kernel may poll through `array[0] != 0`.

    Examples
    --------
    >>> flag = StopFlag()
    >>> flag.raise_()
    >>> flag.raised
    True
    """

    def __init__(self) -> None:
        self.array: NDArray[np.int64] = np.zeros(1, dtype=np.int64)

    def raise_(self) -> None:
        """Ask all work that polls the flag to stop."""
        self.array[0] = 1

    @property
    def raised(self) -> bool:
        """Whether the fit was asked to stop."""
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
        self.max_seconds = max_seconds
        self.previous = estimator
        self._estimator = estimator
        self._context = context
        self._data = data
        self._state: Callable[[], dict[str, Any]] | None = None  # fitted attributes after the last iteration
        self._started = time.perf_counter()
        self._deadline = None if max_seconds is None else self._started + max_seconds
        self.line: Line | None = None  # where a person sees how far the fit is
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
        """Whether the deadline has passed; the caller then has to stop."""
        passed = self._deadline is not None and time.perf_counter() > self._deadline
        self.told_to_stop |= passed
        return passed

    @property
    def seconds_left(self) -> float | None:
        """Time until the deadline; None without one."""
        return None if self._deadline is None else self._deadline - time.perf_counter()

    def should_stop(self) -> bool:
        """Tell whether the time is up or the flag is raised, for loops inside an iteration."""
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
        if self.line is not None:
            self.line.step(iteration, value)
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


class _Certified:
    """What every fit sets. It stands in a plain class, where type checkers do not take it for an argument."""

    certificate_: Certificate
    #: Whether the last fit was told to stop because `max_seconds` had passed; not saved.
    _told_to_stop: bool = False


class Estimator(CallbackSupportMixin, _Certified, Declared):
    """Base class; not to be used directly."""

    _parameters: ClassVar[Mapping[str, Rule]]
    #: The door: reads (estimator, X, y, sample_weight) into a table. `learnable.data` provides it.
    _door: ClassVar[Callable[..., Any]]
    #: What to do when the certificate does not hold; completes the warning.
    _remedy: ClassVar[str] = "raise max_iter, or scale the columns of X"
    #: Whether a fit reports steps although it has no `max_iter`.
    _iterates: ClassVar[bool] = False

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse array, dataframe or list of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,) or (n_samples, n_targets), or str
            Targets; with a dataframe, the name of a column.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights of the rows; with a dataframe, the name of a column. A row of weight zero is left out.

        Returns
        -------
        self
            The fitted estimator. If the fit fails or is interrupted, the estimator stays as it was.
        """
        given = {name: getattr(self, name) for name in self._parameters}
        check_parameters(type(self).__name__, given, self._parameters)
        draft = self._draft()
        # How many iterations an iterative model will take is not known (None); a closed form has no subtasks.
        iterates = self._iterates or hasattr(self, "max_iter") or hasattr(self, "n_estimators")
        context = self._init_callback_context(max_subtasks=None if iterates else 0) if _is_observed(self) else None
        if context is not None:
            context.call_on_fit_task_begin(estimator=self)
        limits = getattr(self, "max_seconds", None), getattr(self, "n_jobs", None)
        run = Run(self, context, *limits, (X, y, sample_weight))
        if has_screen():
            from .progress import open_line

            run.line = open_line(self, run.max_seconds)
        try:
            table = type(self)._door(draft, X, y, sample_weight, run)
            certificate = draft._fit(table, run)
        except BaseException:
            if run.line is not None:
                run.line.close(finished=False)
            raise
        if run.line is not None:
            run.line.close(finished=True)
        draft.certificate_ = replace(
            certificate, seconds=run.seconds, fingerprint=table.fingerprint, n_rows=_rows_of(table)
        )
        if run.told_to_stop:
            draft._told_to_stop = True
        draft._warn_unless_certificate_holds()
        for name in _fitted_names(self):
            delattr(self, name)
        self.__dict__.update(draft.__dict__)
        if context is not None:
            context.call_on_fit_task_end(estimator=self)
        return self

    def _draft(self) -> Self:
        """Return an unfitted twin that shares the parameters: an error or Ctrl-C leaves `self` untouched."""
        twin = object.__new__(type(self))
        fitted = _fitted_names(self)
        twin.__dict__.update({name: value for name, value in vars(self).items() if name not in fitted})
        return twin

    _fit = hook("(table, run) → Certificate")

    def _html_repr(self) -> str:
        """Return the card that notebooks show; scikit-learn's own hook for it."""
        return str(resolve("learnable.report.card:card")(self))

    def _warn_unless_certificate_holds(self) -> None:
        certificate = self.certificate_
        if certificate.kind != "none" and not certificate.holds:
            warnings.warn(
                f"{type(self).__name__}: stopped after {certificate.n_iter} iterations at {certificate.kind} "
                f"{certificate.value:.3g}, above the tolerance {certificate.tolerance:.3g}; {self._remedy}.",
                ConvergenceWarning,
                stacklevel=3,
            )


def _is_observed(estimator: BaseEstimator) -> bool:
    """Tell whether callbacks are set, on the estimator or on one that it is part of; otherwise no context is made."""
    members = vars(estimator)
    return "_skl_callbacks" in members or "_parent_callback_ctx" in members


def has_screen() -> bool:
    """Tell whether stderr is a terminal or a notebook, where a person may see how far a fit is."""
    stream = stderr()
    try:
        return stream is not None and (stream.isatty() or is_notebook(stream))
    except ValueError:  # closed
        return False


def stderr() -> Any:
    """Return the stream on which a person sees how far a fit is; None where there is none."""
    return sys.stderr


def is_notebook(stream: Any) -> bool:
    """Tell whether what is written to a stream appears below a notebook's cell."""
    return type(stream).__module__.startswith("ipykernel")


def _rows_of(table: Any) -> int:
    """Return the number of rows of what a door has read; 0 where it does not say."""
    counted = getattr(table, "n_rows", None)
    if counted is None:
        arrays: list[Any] = [getattr(table, name, None) for name in ("X", "y")]
        counted = next((array.shape[0] for array in arrays if hasattr(array, "shape")), 0)
    return int(counted)


def _fitted_names(estimator: BaseEstimator) -> list[str]:
    names = [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]
    return [*names, "_told_to_stop"] if "_told_to_stop" in vars(estimator) else names
