r"""Solvers of discounted processes, and the doors to those with γ = 1.

Every solver ends with one backup of its values v. From d = Tv − v follow bounds on V* and on what the returned policy
loses (`solution`), and only these decide when to stop. What differs is how v gets there:

| solver | one iteration |
|---|---|
| `value_iteration` | v ← Tv, for all states at once (Jacobi), in turn (Gauss–Seidel) or by urgency (prioritised) |
| `policy_iteration` | v ← V^π exactly, then π greedy for v; ends after finitely many steps, since V^π rises |
| `modified_policy_iteration` | v ← T_π^m v with few m, then π greedy: sweeps of one action per state are cheap |
| `linear_program` | min Σv subject to v ≥ r + γPv, for every pair |

Reference: M. Puterman, Markov Decision Processes, 1994, chapter 6; E. Porteus, Some bounds for discounted sequential
decision processes, Management Science 18, 1971.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from ...core import MAX_ITER, MAX_SECONDS, N_JOBS, TOLERANCE, AnyArray, DataError, Options, check_parameters
from ...solvers.conic.quadratic import linear_program as solve_program
from . import episodic
from ._kernels import gauss_seidel, prioritised
from .model import MDP
from .solution import MDPSolution, spread_of, two_sided, warn_unless_proven
from .sweeps import Clock, PolicyRows, Sweeps, places, rounding_of

_LIMITS: Final = {"tol": TOLERANCE, "max_iter": MAX_ITER, "max_seconds": MAX_SECONDS, "n_jobs": N_JOBS}
#: Sweeps of one policy end when their span is this share of the last backup's. On 10⁵ random states of 5 actions and 10
#: successors, which mix at once, .1 took 0.095 s of processor time, .03 0.105 s and .01 0.11 s.
_ENOUGH: Final = 0.1
_MOST_SWEEPS: Final = 100
#: Share of states with a new action from which the policy is not swept but improved again.
_MANY: Final = 0.3
_REMEDY: Final = "raise max_iter or tol, or use policy_iteration"


def modified_policy_iteration(
    mdp: MDP,
    *,
    tol: float = 1e-6,
    max_iter: int = 100_000,
    max_seconds: float | None = None,
    n_jobs: int | None = None,
    start: Any = None,
) -> MDPSolution:
    """Alternate one backup over all actions with cheap sweeps of the greedy policy; the default for large processes.

    Parameters
    ----------
    mdp : MDP
        The process.
    tol : float
        What the policy may lose in any state, in units of the reward.
    max_iter : int
        Most backups.
    max_seconds : float, optional
        Time limit.
    n_jobs : int, optional
        Threads; results have the same bits for any number.
    start : array of shape (n_states,), optional
        First values; zero by default.

    Returns
    -------
    MDPSolution
        Policy, values, bounds and certificate. A `ConvergenceWarning` says if it stopped before `tol`.

    Examples
    --------
    >>> from learnable.decisions.mdp import modified_policy_iteration
    >>> from learnable.decisions.mdp.problems import car_rental
    >>> modified_policy_iteration(car_rental()).values.max().round(3)
    np.float64(636.99)
    """
    owner = "modified_policy_iteration"
    clock, v = _begin(owner, mdp, tol, max_iter, max_seconds, n_jobs, start)
    sweeps = Sweeps(mdp, n_jobs, tie=_tie(mdp))
    chosen = np.full(mdp.n_states, -1, dtype=np.int64)
    enough = 0.25 * tol * (1.0 - mdp.gamma)  # a span that leaves room for the last backup's
    rows: PolicyRows | None = None  # of the chosen pairs, or of an earlier policy
    for iteration in range(1, max_iter + 1):
        before = chosen.copy()
        fresh = rows is not None and np.array_equal(rows.chosen, chosen)
        Tv = sweeps.best(v, chosen, rows if fresh else None)
        span = _measure(mdp, v, Tv)
        if _is_enough(mdp, span, tol, v) or iteration == max_iter or clock.is_over:
            break
        v = Tv
        changed = float(np.mean(before != chosen))
        if changed > _MANY:
            continue
        if rows is None or not fresh or changed > 0.0:
            rows = sweeps.rows_of(chosen, last=rows)
        # A backup that changes no action has most likely found the best policy: its values are what is left to do, and
        # backups on the way there would only confirm it (two of eight on 10⁵ random states, a tenth of the time).
        goal = enough if changed == 0.0 else max(_ENOUGH * span, enough)
        for _ in range(_MOST_SWEEPS):
            further = sweeps.follow(v, rows)
            left = _measure(mdp, v, further)
            v = further
            if left <= goal:
                break
    return _finish(owner, mdp, sweeps, v, Tv, chosen, tol, iteration, clock)


def value_iteration(
    mdp: MDP,
    *,
    order: str = "jacobi",
    tol: float = 1e-6,
    max_iter: int = 100_000,
    max_seconds: float | None = None,
    n_jobs: int | None = None,
    start: Any = None,
) -> MDPSolution:
    """Apply v ← Tv until the bounds meet.

    Parameters
    ----------
    mdp : MDP
        The process.
    order : {"jacobi", "gauss-seidel", "prioritised"}
        All states at once from the old values; in turn, each from the newest; or always the state whose value may be
        off most, which pays where few states matter.
    tol, max_iter, max_seconds, n_jobs, start
        As for `modified_policy_iteration`; only Jacobi sweeps use several threads.

    Returns
    -------
    MDPSolution
        Policy, values, bounds and certificate.

    Examples
    --------
    >>> from learnable.decisions.mdp import value_iteration
    >>> from learnable.decisions.mdp.problems import frozen_lake
    >>> value_iteration(frozen_lake(gamma=0.99)).values[0].round(5)
    np.float64(0.54203)
    """
    owner = "value_iteration"
    clock, v = _begin(owner, mdp, tol, max_iter, max_seconds, n_jobs, start)
    check_parameters(owner, {"order": order}, {"order": Options("jacobi", "gauss-seidel", "prioritised")})
    sweeps = Sweeps(mdp, n_jobs)
    chosen = np.full(mdp.n_states, -1, dtype=np.int64)
    urgent = _Urgent(mdp) if order == "prioritised" else None
    threshold = np.inf
    for iteration in range(1, max_iter + 1):
        Tv = sweeps.best(v, chosen)
        span = _measure(mdp, v, Tv)
        if _is_enough(mdp, span, tol, v) or iteration == max_iter or clock.is_over:
            break
        if order == "jacobi":
            v = Tv
        elif urgent is None:
            v = v.copy()
            gauss_seidel(mdp.pair_start, *places(mdp.P), mdp.reward, mdp.gamma, v, chosen)
        else:
            threshold = min(threshold, float(abs(Tv - v).max())) / 10.0
            v = urgent.run(v, abs(Tv - v), threshold, chosen)
    return _finish(owner, mdp, sweeps, v, Tv, chosen, tol, iteration, clock)


def policy_iteration(
    mdp: MDP,
    *,
    tol: float = 1e-6,
    max_iter: int = 1_000,
    max_seconds: float | None = None,
    n_jobs: int | None = None,
    policy: Any = None,
) -> MDPSolution:
    """Evaluate the policy exactly and make it greedy, until it stays as it is.

    The values rise in every step, so that no policy comes twice; an action is given up only for one that is better
    beyond rounding, so that ties never cycle.

    Parameters
    ----------
    mdp : MDP
        The process. With γ = 1 the first policy is one that surely ends.
    tol, max_iter, max_seconds, n_jobs
        As for `modified_policy_iteration`.
    policy : array of int of shape (n_states,), optional
        The first policy; greedy for zero values by default.

    Returns
    -------
    MDPSolution
        Policy, values, bounds and certificate.
    """
    owner = "policy_iteration"
    clock, v = _begin(owner, mdp, tol, max_iter, max_seconds, n_jobs, None)
    if mdp.gamma == 1.0:
        first = None if policy is None else mdp.pairs_of(policy)
        return episodic.iterate_policies(owner, mdp, first, tol, max_iter, clock, n_jobs)
    sweeps = Sweeps(mdp, n_jobs, tie=_tie(mdp))
    if policy is None:
        chosen = np.full(mdp.n_states, -1, dtype=np.int64)
        v = sweeps.best(v, chosen)
    else:
        chosen = mdp.pairs_of(policy)
    finest = 0.05 * tol * (1.0 - mdp.gamma)
    accuracy = max(finest, 1e-4)
    for iteration in range(1, max_iter + 1):
        v = sweeps.solve(chosen, v, max(accuracy, rounding_of(mdp, v)))
        before = chosen.copy()
        Tv = sweeps.best(v, chosen)
        span = _measure(mdp, v, Tv)
        same = accuracy <= finest and np.array_equal(before, chosen)
        accuracy = max(finest, 1e-3 * span)  # values of a policy that is about to change need few digits
        if same or _is_enough(mdp, span, tol, v) or iteration == max_iter or clock.is_over:
            break
    return _finish(owner, mdp, sweeps, v, Tv, chosen, tol, iteration, clock)


def linear_program(mdp: MDP, *, tol: float = 1e-6, max_seconds: float | None = None) -> MDPSolution:
    """Solve min Σ v(s) subject to v(s) ≥ r(s, a) + γ Σ p(s' | s, a) v(s') for every pair.

    Parameters
    ----------
    mdp : MDP
        The process, with γ < 1.
    tol : float
        What the policy may lose.
    max_seconds : float, optional
        Time limit.
    """
    owner = "linear_program"
    clock, _ = _begin(owner, mdp, tol, 1, max_seconds, None, None)
    if mdp.gamma == 1.0:
        raise DataError("linear_program: gamma must be below 1; use policy_iteration, which solves processes that end.")
    rows = np.arange(mdp.n_pairs)
    own = sp.csr_array((np.ones(mdp.n_pairs), (rows, mdp.pair_state)), shape=mdp.P.shape)
    found = solve_program(np.ones(mdp.n_states), mdp.gamma * mdp.P - own, -mdp.reward, max_seconds=max_seconds)
    chosen = np.full(mdp.n_states, -1, dtype=np.int64)
    sweeps = Sweeps(mdp, None, tie=_tie(mdp))
    v = np.asarray(found.x, dtype=np.float64)
    Tv = sweeps.best(v, chosen)
    return _finish(owner, mdp, sweeps, v, Tv, chosen, tol, 1, clock)


class _Urgent:
    """States by urgency, for prioritised sweeps."""

    def __init__(self, mdp: MDP) -> None:
        self.mdp = mdp
        n = mdp.n_states
        # The largest probability of s' under any action of s bounds how much a change at s' can matter at s.
        row = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.P.indptr))
        key = mdp.P.indices.astype(np.int64) * n + mdp.pair_state[row]
        order = np.lexsort((-mdp.P.data, key))
        key = key[order]
        p = mdp.P.data[order]
        first = np.concatenate([[True], key[1:] != key[:-1]]) if len(key) else np.zeros(0, dtype=bool)
        key = key[first]
        p = p[first]
        self._start = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(np.bincount(key // n, minlength=n), out=self._start[1:])
        self._state = key % n
        self._p = p

    def run(self, v: AnyArray, change: AnyArray, threshold: float, chosen: AnyArray) -> AnyArray:
        """Return values whose urgency is at most a threshold, from values whose backup changes them by `change`."""
        mdp = self.mdp
        urgency = change.copy()
        heap = np.argsort(-urgency, kind="stable")
        place = np.empty_like(heap)
        place[heap] = np.arange(len(heap))
        v = v.copy()
        most = 20 * mdp.n_states + 1000  # then a full backup looks again at every state
        prioritised(
            mdp.pair_start, *places(mdp.P), mdp.reward, mdp.gamma,
            self._start, self._state, self._p, v, chosen, heap, place, urgency, threshold, most,
        )  # fmt: skip
        return v


def _begin(
    owner: str, mdp: MDP, tol: float, max_iter: int, max_seconds: float | None, n_jobs: int | None, start: Any
) -> tuple[Clock, AnyArray]:
    if not isinstance(mdp, MDP):
        raise DataError(f"{owner}: needs an MDP; got a {type(mdp).__name__}.")
    limits = {"tol": tol, "max_iter": max_iter, "max_seconds": max_seconds, "n_jobs": n_jobs}
    check_parameters(owner, limits, _LIMITS)
    clock = Clock(max_seconds)
    if mdp.gamma == 1.0:
        episodic.check_ends(owner, mdp)
    if start is None:
        return clock, np.zeros(mdp.n_states)
    v = np.array(start, dtype=np.float64)
    if v.shape != (mdp.n_states,) or not np.isfinite(v).all():
        raise DataError(f"{owner}: start must be {mdp.n_states} finite values, one per state.")
    return clock, v


def _tie(mdp: MDP) -> float:
    """Return a difference of action values that rounding can make: it must not decide between actions."""
    reach = 1.0 if mdp.gamma == 1.0 else min(1.0 / (1.0 - mdp.gamma), 1e4)
    return 16 * np.finfo(float).eps * float(abs(mdp.reward).max(initial=0.0)) * reach


def _measure(mdp: MDP, v: AnyArray, Tv: AnyArray) -> float:
    """Return the span of Tv − v with a discount, its size without one."""
    if mdp.gamma == 1.0:
        return float(abs(Tv - v).max())
    low, high = spread_of(Tv - v, mdp.can_end)
    return high - low


def _is_enough(mdp: MDP, span: float, tol: float, v: AnyArray) -> bool:
    if mdp.gamma < 1.0:
        return mdp.gamma / (1.0 - mdp.gamma) * span <= tol
    return span <= max(1e-3 * tol, rounding_of(mdp, v))  # bounds are proven afterwards, and have to be narrow


def _finish(
    owner: str,
    mdp: MDP,
    sweeps: Sweeps,
    v: AnyArray,
    Tv: AnyArray,
    chosen: AnyArray,
    tol: float,
    n_iter: int,
    clock: Clock,
) -> MDPSolution:
    """Return the solution, with bounds from the last backup."""
    if mdp.gamma == 1.0:
        solution = episodic.prove(owner, mdp, v, chosen, tol, n_iter, clock, sweeps.n_jobs)
    else:
        settings: dict[str, Any] = {"tolerance": tol, "n_iter": n_iter, "seconds": clock.seconds}
        solution = two_sided(owner, "discounted", mdp, v, Tv, chosen, settings)
    warn_unless_proven(owner, solution.certificate_, _REMEDY)
    return solution
