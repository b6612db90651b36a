r"""Expectation–maximisation: one driver for k-means, mixtures, experts and hidden Markov models.

The E-step replaces what is hidden by its expectation and leaves a few arrays, the expected sufficient statistics;
they add, so they are summed over blocks in memory, in files or on Dask. The M-step maximises

$$ F(q, \theta) = \sum_i \mathbb{E}_{q_i}[\log p(x_i, z_i \mid \theta)] + H(q_i) + \log p(\theta) $$

over θ; the E-step has maximised it over q, where it equals the objective log p(x | θ) + log p(θ). So the objective
never falls. It is computed in every pass, and a fall beyond rounding is an error: it means that a step is wrong.

The driver stops when a step raises the objective by no more than `tol`, and returns the parameters *before* that
step: then what one more step would bring, the certificate's value, is known without another pass.

References: A. Dempster, N. Laird and D. Rubin, Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39
(1977), 1–38; R. Neal and G. Hinton, A view of the EM algorithm that justifies incremental, sparse, and other variants
(1998); R. Varadhan and C. Roland, Simple and globally convergent methods for accelerating the convergence of any EM
algorithm, Scand. J. Statist. 35 (2008), 335–353 (the extrapolation).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core import AscentError, LostRowsError, ParameterError, Progress, StopFlag, no_progress
from ..data.blocks import map_reduce

P = TypeVar("P")

#: Arrays that add over blocks of rows.
Statistics = tuple[Any, ...]

#: A step may lower the objective by this share of its size and call it rounding.
_ROUNDING = 1e-10


class EMProblem(Protocol[P]):
    """What a model states of itself; on Dask, `expectation` travels, so the problem must pickle."""

    def expectation(self, block: Any, parameters: P) -> tuple[Statistics, float]:
        """Return the expected statistics of a block of rows and its share of the log-likelihood (or of its bound)."""

    def maximisation(self, statistics: Statistics, parameters: P) -> P:
        """Return the parameters that maximise the expected log-likelihood plus `log_prior`."""

    def log_prior(self, parameters: P) -> float:
        """Return what is added once to the sum over the blocks; zero without a prior."""


class EMResult(NamedTuple, Generic[P]):
    """The best of the restarts."""

    parameters: P
    bound: float  #: the objective at `parameters`
    rise: float  #: what one more step adds to it; infinite if the time was up before one
    n_iter: int  #: M-steps that led to `parameters`
    history: NDArray[np.float64]  #: (n_iter + 1,) the objective after each step, from the start on
    converged: bool
    start: int  #: which of the starts it came from
    bounds: NDArray[np.float64]  #: (n_starts,) the objective reached from each start


@dataclass
class _Climb(Generic[P]):
    """One restart in progress."""

    parameters: P  # where the next E-step is taken
    points: list[P] = field(default_factory=list)  # where the last two were
    history: list[float] = field(default_factory=list)
    cycle: list[P] = field(default_factory=list)  # the points that an extrapolation starts from
    fallback: P | None = None  # where to go on if an extrapolated point is worse
    is_step: bool = False  # whether the last point came by a plain step from the one before
    done: bool = False
    converged: bool = False

    @property
    def rise(self) -> float:
        """What the last step brought; infinite if it was none."""
        return self.history[-1] - self.history[-2] if self.is_step else math.inf


def em(
    problem: EMProblem[P],
    blocks: Any,
    starts: Sequence[P],
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
    n_jobs: int | None = None,
    flag: StopFlag | None = None,
    progress: Progress = no_progress,
    settled: Callable[[P, P, float, float], bool] | None = None,
    rounding: float = 0.0,
    pack: Callable[[P], NDArray[np.float64]] | None = None,
    unpack: Callable[[NDArray[np.float64]], P | None] | None = None,
    owner: str = "em",
) -> EMResult[P]:
    """Climb from every start, side by side, and return the best.

    Parameters
    ----------
    problem : EMProblem
        The two steps.
    blocks : source of blocks
        What `data.map_reduce` runs over. One pass serves all starts.
    starts : sequence of parameters
        One for each restart.
    tol : float
        A step that adds no more to the objective ends its climb.
    max_iter : int
        M-steps, for each start.
    n_jobs, flag, progress
        As in `data.map_reduce`; `progress(iteration, objective)` is told the best objective so far.
    settled : function, optional
        Asked instead of `tol` whether a step ends the climb: a function of the parameters before and after it, of the
        rise and of the objective.
    rounding : float
        By how much the objective may be off, besides 1e-10 of its size: for sums of terms that cancel.
    pack, unpack : functions, optional
        Between parameters and a vector without constraints (`unpack` may return None where there are no parameters).
        With them, every two steps are extrapolated (SQUAREM), and the point is kept only if the objective is no lower
        there.
    owner : str
        Whose name errors begin with.

    Raises
    ------
    AscentError
        If a step lowers the objective by more than rounding: one of the two steps does not do what it should.

    Examples
    --------
    Two coins, tossed ten times in each of five rounds, and nobody knows which coin was taken:

    >>> import numpy as np
    >>> class Coins:
    ...     def expectation(self, heads, p):
    ...         log_joint = heads[:, None] * np.log(p) + (10 - heads[:, None]) * np.log(1 - p) + np.log(0.5)
    ...         log_total = np.logaddexp(*log_joint.T)
    ...         r = np.exp(log_joint - log_total[:, None])
    ...         return (r.sum(0), r.T @ heads), log_total.sum()
    ...     def maximisation(self, statistics, p):
    ...         rounds, heads = statistics
    ...         return heads / (10 * rounds)
    ...     def log_prior(self, p):
    ...         return 0.0
    >>> em(Coins(), [np.array([5.0, 9.0, 8.0, 4.0, 7.0])], [np.array([0.6, 0.5])]).parameters.round(2)
    array([0.8 , 0.52])
    """
    if not starts:
        raise ParameterError("em: starts must hold at least one set of parameters; got none.")
    climbs = [_Climb(start) for start in starts]
    ends = settled or (lambda before, after, rise, objective: rise <= tol)
    for iteration in itertools.count(1):
        active = [climb for climb in climbs if not climb.done]
        expectation = partial(_expect, problem, [climb.parameters for climb in active])
        try:
            expected = map_reduce(blocks, expectation, _merge, n_jobs=n_jobs, flag=flag)
        except LostRowsError as error:
            error.kept = max(climbs, key=_reached).parameters
            raise
        for climb, (statistics, likelihood) in zip(active, expected, strict=True):
            _advance(problem, climb, statistics, likelihood, ends, max_iter, rounding, pack, unpack, owner)
        best = max(climb.history[-1] for climb in climbs)
        if progress(iteration, best) or all(climb.done for climb in climbs):
            break
    return _best_of(climbs)


def _reached(climb: _Climb[Any]) -> float:
    return climb.history[-1] if climb.history else -math.inf


def em_in_time(
    problem: EMProblem[P], blocks: Any, starts: Iterable[P], should_stop: Callable[[], bool] | None, **options: Any
) -> EMResult[P]:
    """Climb from every start as `em` does; with `should_stop`, one after the other until it says True.

    Parameters
    ----------
    problem, blocks, options
        As in `em`.
    starts : iterable of parameters
        Drawn when they are needed.
    should_stop : function or None
        Asked after each climb; None climbs from all starts side by side, so that one pass serves them all.
    """
    if should_stop is None:
        return em(problem, blocks, list(starts), **options)
    found: list[EMResult[P]] = []
    for start in starts:
        found.append(em(problem, blocks, [start], **options))
        if should_stop():
            break
    bounds = np.array([each.bound for each in found])
    number = int(bounds.argmax())
    return found[number]._replace(start=number, bounds=bounds)


def _expect(problem: Any, parameters: list[Any], block: Any) -> list[tuple[Statistics, float]]:
    return [problem.expectation(block, each) for each in parameters]


def _merge(a: list[Any], b: list[Any]) -> list[Any]:
    return [
        (tuple(x + y for x, y in zip(s, t, strict=True)), float(p) + float(q))
        for (s, p), (t, q) in zip(a, b, strict=True)
    ]


def _advance(
    problem: Any,
    climb: _Climb[Any],
    statistics: Statistics,
    likelihood: float,
    ends: Callable[[Any, Any, float, float], bool],
    max_iter: int,
    rounding: float,
    pack: Any,
    unpack: Any,
    owner: str,
) -> None:
    """Take the M-step of one climb, knowing what the E-step found at its parameters."""
    point = climb.parameters
    objective = float(likelihood) + problem.log_prior(climb.parameters)
    fallback = climb.fallback
    climb.fallback = None
    if fallback is not None and not objective >= climb.history[-1]:  # an extrapolation counts only if it is no worse
        climb.parameters = fallback
        return
    climb.is_step = fallback is None and bool(climb.history)
    _require_ascent(owner, climb.history, objective, rounding)
    climb.history.append(objective)
    climb.points = [*climb.points[-1:], point]
    n_steps = len(climb.history) - 1
    if climb.is_step:
        climb.converged = n_steps > 1 and ends(climb.points[0], point, climb.rise, objective)
        climb.done = climb.converged or n_steps > max_iter
        if climb.done:
            return
    climb.parameters = problem.maximisation(statistics, point)
    climb.cycle.append(point)
    if pack is not None and len(climb.cycle) == 2:
        p0, p1, p2 = (pack(each) for each in (*climb.cycle, climb.parameters))
        extrapolated = _extrapolate(p0, p1, p2, unpack)
        climb.cycle = []
        if extrapolated is not None:
            climb.fallback = climb.parameters
            climb.parameters = extrapolated
    elif pack is None:
        climb.cycle = []


def _extrapolate(p0: Any, p1: Any, p2: Any, unpack: Any) -> Any:
    """Return the point that two steps of a geometric sequence lead to, or None (Varadhan and Roland, scheme S3)."""
    r = p1 - p0
    v = p2 - 2 * p1 + p0
    bend = float(np.linalg.norm(v))
    stride = float(np.linalg.norm(r)) / bend if bend > 0 else 0.0
    if not 1.0 < stride < 1e6:
        return None
    return unpack(p0 + 2 * stride * r + stride * stride * v)


def _require_ascent(owner: str, history: list[float], objective: float, rounding: float) -> None:
    if math.isnan(objective):
        raise AscentError(
            f"{owner}: the objective is not a number after step {len(history)}: squares of X over- or underflow. "
            "Divide the columns of X by their spread."
        )
    if history and objective < history[-1] - _ROUNDING * (abs(history[-1]) + abs(objective)) - rounding:
        raise AscentError(
            f"{owner}: step {len(history)} lowered the objective from {history[-1]:.12g} to {objective:.12g}; "
            "an E- or M-step that maximises what it should cannot do that."
        )


def _best_of(climbs: list[_Climb[Any]]) -> EMResult[Any]:
    """Return the point before the last step of the best climb, whose rise is known; the last point without a step."""
    steps = [1 if climb.is_step else 0 for climb in climbs]
    reached = np.array([climb.history[-1 - step] for climb, step in zip(climbs, steps, strict=True)])
    number = int(reached.argmax())
    climb = climbs[number]
    step = steps[number]
    history = np.array(climb.history[: len(climb.history) - step])
    return EMResult(
        climb.points[-1 - step],
        float(history[-1]),
        climb.rise,
        len(history) - 1,
        history,
        climb.converged,
        number,
        reached,
    )
