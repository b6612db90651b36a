"""Finite horizons by backward induction, and average rewards by relative value iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import MAX_ITER, MAX_SECONDS, N_JOBS, TOLERANCE, Certificate, DataError, Number, check_parameters
from .model import MDP
from .solution import MDPSolution, warn_unless_proven
from .sweeps import Clock, Sweeps, rounding_of

#: Share of staying put that is mixed into every step, so that a periodic chain settles too; it does not change gains.
_LAZY = 0.05


def backward_induction(mdp: MDP, horizon: int, *, final: Any = None, n_jobs: int | None = None) -> MDPSolution:
    """Return the best policy for a fixed number of steps, which may depend on the step.

    Parameters
    ----------
    mdp : MDP
        The process; any γ up to 1.
    horizon : int
        Number of steps H.
    final : array of shape (n_states,), optional
        What each state is worth after the last step; zero by default.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    MDPSolution
        `values[t]` and `policy[t]` for t steps already taken; exact, so that both bounds are the values.

    Examples
    --------
    >>> from learnable.decisions.mdp import backward_induction
    >>> from learnable.decisions.mdp.problems import frozen_lake
    >>> backward_induction(frozen_lake(gamma=1.0), 100).values[0, 0].round(6)
    np.float64(0.74419)
    """
    check_parameters("backward_induction", {"horizon": horizon}, {"horizon": Number(low=1, integer=True)})
    clock = Clock(None)
    values = np.zeros((horizon + 1, mdp.n_states))
    if final is not None:
        values[horizon] = final
        if not np.isfinite(values[horizon]).all():
            raise DataError("backward_induction: final values must be finite.")
    policy = np.empty((horizon, mdp.n_states), dtype=np.int64)
    sweeps = Sweeps(mdp, n_jobs)
    for t in range(horizon - 1, -1, -1):
        chosen = np.full(mdp.n_states, -1, dtype=np.int64)
        values[t] = sweeps.best(values[t + 1], chosen)
        policy[t] = mdp.pair_action[chosen]
    certificate = Certificate(
        "bellman", 0.0, horizon * rounding_of(mdp, values), bound=0.0, n_iter=horizon, seconds=clock.seconds,
        fingerprint=mdp.fingerprint,
    )  # fmt: skip
    return MDPSolution(values, policy, values.copy(), values.copy(), "horizon", "backward_induction", certificate)


def average_reward(
    mdp: MDP,
    *,
    tol: float = 1e-6,
    max_iter: int = 1_000_000,
    max_seconds: float | None = None,
    n_jobs: int | None = None,
) -> MDPSolution:
    r"""Maximise the reward per step in the long run.

    For any values v and d = Tv − v (without discount), the policy that is greedy for v earns at least min d per step,
    from every state, and no policy earns more than max d from any: the two meet where all states reach each other.

    Parameters
    ----------
    mdp : MDP
        A process that never ends; its γ is not used.
    tol : float
        What the policy may lose per step.
    max_iter, max_seconds, n_jobs
        Limits and threads.

    Returns
    -------
    MDPSolution
        `gain` is the reward per step, `values` the bias relative to state 0; `lower` and `upper` bound the gain.
    """
    limits = {"tol": tol, "max_iter": max_iter, "max_seconds": max_seconds, "n_jobs": n_jobs}
    rules = {"tol": TOLERANCE, "max_iter": MAX_ITER, "max_seconds": MAX_SECONDS, "n_jobs": N_JOBS}
    check_parameters("average_reward", limits, rules)
    if (mdp.stop > 0.0).any():
        k = int(np.argmax(mdp.stop > 0.0))
        raise DataError(
            f"average_reward: state {mdp.pair_state[k]}, action {mdp.pair_action[k]} can end the process, after which "
            "nothing is earned; use gamma < 1, or let it start again."
        )
    clock = Clock(max_seconds)
    endless = mdp.with_gamma(1.0)
    sweeps = Sweeps(endless, n_jobs)
    v = np.zeros(mdp.n_states)
    chosen = np.full(mdp.n_states, -1, dtype=np.int64)
    for n_iter in range(1, max_iter + 1):
        Tv = sweeps.best(v, chosen)
        d = Tv - v
        if d.max() - d.min() <= tol or n_iter == max_iter or clock.is_over:
            break
        v = _LAZY * v + (1.0 - _LAZY) * Tv
        v -= v[0]
    low = float(d.min())
    high = float(d.max())
    certificate = Certificate(
        "bellman", high - low, tol, bound=high - low, n_iter=n_iter, seconds=clock.seconds, fingerprint=mdp.fingerprint
    )
    warn_unless_proven("average_reward", certificate, "some states may not reach each other; use gamma < 1")
    ends = np.full(mdp.n_states, low), np.full(mdp.n_states, high)
    return MDPSolution(
        v - v[0], mdp.pair_action[chosen], *ends, "average", "average_reward", certificate, gain=(low + high) / 2.0
    )
