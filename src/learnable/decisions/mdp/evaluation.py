"""Policy evaluation and improvement: V^π exactly or by sweeps, and the policy that is greedy for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core import MAX_ITER, N_JOBS, TOLERANCE, AnyArray, Certificate, DataError, Options, check_parameters
from .episodic import is_proper
from .model import MDP
from .solution import PolicyValues, warn_unless_proven
from .sweeps import Sweeps, rounding_of


def policy_evaluation(
    mdp: MDP,
    policy: Any,
    *,
    method: str = "exact",
    tol: float = 1e-6,
    max_iter: int = 100_000,
    n_jobs: int | None = None,
) -> PolicyValues:
    """Return the values of a policy.

    Parameters
    ----------
    mdp : MDP
        The process.
    policy : array of int of shape (n_states,), or array of shape (n_states, n_actions)
        An action per state, or probabilities of actions.
    method : {"exact", "iterative"}
        Solve (I − γP_π)v = r_π, or repeat v ← r_π + γP_π v.
    tol : float
        How far any value may be off.
    max_iter : int
        Most sweeps of the iterative method.
    n_jobs : int, optional
        Threads.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.decisions.mdp import policy_evaluation
    >>> from learnable.decisions.mdp.problems import cliff_walking
    >>> up_right_down = np.array(([1] * 11 + [2]) + 2 * ([0] * 11 + [2]) + [0] * 12)
    >>> policy_evaluation(cliff_walking(), up_right_down).values[36]
    np.float64(-17.0)
    """
    limits = {"tol": tol, "max_iter": max_iter, "method": method, "n_jobs": n_jobs}
    rules = {"tol": TOLERANCE, "max_iter": MAX_ITER, "method": Options("exact", "iterative"), "n_jobs": N_JOBS}
    check_parameters("policy_evaluation", limits, rules)
    chain, chosen = _chain_of(mdp, policy)
    if mdp.gamma == 1.0 and not is_proper(chain, chosen):
        raise DataError(
            "policy_evaluation: with gamma = 1 a policy has values only if it surely ends, and this one can go on for "
            "ever; use gamma < 1."
        )
    sweeps = Sweeps(chain, n_jobs)
    reach = _reach(chain, chosen, sweeps)
    v = np.zeros(mdp.n_states)
    rows = sweeps.rows_of(chosen)
    n_iter = 1
    if method == "exact":
        v = sweeps.solve(chosen, v, max(0.1 * tol * (1.0 - mdp.gamma), rounding_of(chain, v)))
    else:
        for sweep in range(1, max_iter + 1):
            n_iter = sweep
            further = sweeps.follow(v, rows)
            change = float(abs(further - v).max())
            v = further
            if change * reach <= tol:
                break
    error = float(abs(sweeps.follow(v, rows) - v).max()) * reach
    certificate = Certificate("bellman", error, tol, bound=error, n_iter=n_iter, fingerprint=mdp.fingerprint)
    warn_unless_proven("policy_evaluation", certificate, "raise max_iter, or use method='exact'")
    return PolicyValues(v, mdp.action_values(v), certificate)


def policy_improvement(mdp: MDP, values: Any, policy: Any = None) -> AnyArray:
    """Return the policy that is greedy for values; actions of `policy` stay where none is better beyond rounding."""
    v = np.asarray(values, dtype=np.float64)
    if v.shape != (mdp.n_states,) or not np.isfinite(v).all():
        raise DataError(f"policy_improvement: values must be {mdp.n_states} finite numbers.")
    chosen = np.full(mdp.n_states, -1, dtype=np.int64) if policy is None else mdp.pairs_of(policy)
    Sweeps(mdp, tie=4.0 * rounding_of(mdp, v)).best(v, chosen)
    return mdp.pair_action[chosen]


def _chain_of(mdp: MDP, policy: Any) -> tuple[MDP, AnyArray]:
    """Return a process and the pairs of it that a policy takes; a mixed policy becomes a process of one action."""
    given = np.asarray(policy)
    if given.ndim == 1:
        return mdp, mdp.pairs_of(given)
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (mdp.n_states, mdp.n_actions):
        raise DataError(
            f"policy_evaluation: a mixed policy has shape {(mdp.n_states, mdp.n_actions)}; got {weights.shape}."
        )
    w = weights[mdp.pair_state, mdp.pair_action]
    total = np.bincount(mdp.pair_state, weights=w, minlength=mdp.n_states)
    if not (weights >= 0).all() or (abs(total - 1.0) > 1e-8).any():
        s = int(np.argmax(abs(total - 1.0)))
        raise DataError(f"policy_evaluation: probabilities of the actions of state {s} sum to {total[s]:g}, not to 1.")
    M = sp.csr_array((w, (mdp.pair_state, np.arange(mdp.n_pairs))), shape=(mdp.n_states, mdp.n_pairs))
    n = np.arange(mdp.n_states)
    chain = MDP.from_pairs(n, np.zeros_like(n), M @ mdp.P, M @ mdp.reward, mdp.gamma, stop=M @ mdp.stop)
    return chain, n


def _reach(chain: MDP, chosen: AnyArray, sweeps: Sweeps) -> float:
    """Return how much a residual can add up to: 1/(1−γ), or the longest expected number of steps to the end."""
    if chain.gamma < 1.0:
        return 1.0 / (1.0 - chain.gamma)
    steps = sweeps.solve(chosen, np.zeros(chain.n_states), 1e-6, np.ones(chain.n_pairs))
    return float(steps.max())
