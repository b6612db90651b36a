r"""Processes that end: γ = 1, so that values are plain expected sums (stochastic shortest paths).

A policy is proper if it surely ends. Where it does not, it stays for ever in an *end component*: states and actions
that lead nowhere else. Values are defined and solvers converge if

(a) there is no end component: every policy is proper; or
(b) every action of an end component costs: staying for ever is infinitely bad; or
(c) no reward is negative, and those of end components are zero: staying for ever earns nothing more.

Otherwise the error names a state and an action. Policy iteration starts from a proper policy, and strict improvement
keeps it proper. Bounds are two tables that one backup checks: T·upper ≤ upper, hence V* ≤ upper (not provable from one
backup in floats in case (c), where the certificate is the residual alone), and T_π·lower ≥ lower, hence lower ≤ V^π.
They are found by solving once more with every reward raised, and lowered, by a little.

Reference: D. Bertsekas and J. Tsitsiklis, An analysis of stochastic shortest path problems, Math. Oper. Res. 16, 1991;
L. de Alfaro, Formal verification of probabilistic systems, 1997 (end components).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

from ...core import AnyArray, Certificate, DataError
from .model import MDP
from .solution import MDPSolution, warn_unless_proven
from .sweeps import Clock, Sweeps, rounding_of


def end_component_pairs(mdp: MDP) -> AnyArray:
    """Tell which pairs are part of an end component, where a policy can stay for ever.

    Pairs that may leave the component of their state, or end, are taken away until none does.
    """
    alive = mdp.stop == 0.0
    row = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.P.indptr))
    from_state = mdp.pair_state[row]
    while True:
        kept = alive[row]
        graph = sp.coo_array(
            (np.ones(kept.sum()), (from_state[kept], mdp.P.indices[kept])), shape=(mdp.n_states, mdp.n_states)
        ).tocsr()
        _, label = connected_components(graph, directed=True, connection="strong")
        has_pair = np.bincount(mdp.pair_state[alive], minlength=mdp.n_states) > 0
        leaves = (label[from_state] != label[mdp.P.indices]) | ~has_pair[mdp.P.indices]
        gone = np.bincount(row[leaves], minlength=mdp.n_pairs) > 0
        still = alive & ~gone
        if still.sum() == alive.sum():
            return alive
        alive = still


def check_ends(owner: str, mdp: MDP) -> None:
    """Raise a DataError unless one of the three cases of the module's text holds."""
    inside = end_component_pairs(mdp)
    reach = proper_policy(mdp) >= 0
    if not reach.all():
        s = int(np.argmin(reach))
        raise DataError(
            f"{owner}: with gamma = 1 the process must be able to end, and from state {s} no policy ends it; use "
            "gamma < 1, a horizon (backward_induction), or average_reward."
        )
    if not inside.any() or (mdp.reward[inside] < 0.0).all():
        return
    if (mdp.reward >= 0.0).all() and (mdp.reward[inside] == 0.0).all():
        return
    bad = inside & (mdp.reward >= 0.0)
    k = int(np.argmax(np.where(bad, mdp.reward, -np.inf)))
    raise DataError(
        f"{owner}: with gamma = 1 the values are not defined: a policy can stay for ever in state {mdp.pair_state[k]} "
        f"with action {mdp.pair_action[k]}, which earns {mdp.reward[k]:g}; use gamma < 1, a horizon "
        "(backward_induction), or mark terminal states."
    )


def proper_policy(mdp: MDP) -> AnyArray:
    """Return the pairs of a policy that ends from every state: always one that may come nearer to an end."""
    chosen = np.full(mdp.n_states, -1, dtype=np.int64)
    row = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.P.indptr))
    state = mdp.pair_state
    good = mdp.stop > 0.0
    while True:
        new = good & (chosen[state] < 0)
        if not new.any():
            return chosen
        at = np.flatnonzero(new)[::-1]
        chosen[state[at]] = at  # the first such pair of each state
        towards = chosen[mdp.P.indices] >= 0
        good = np.bincount(row[towards], minlength=mdp.n_pairs) > 0


def is_proper(mdp: MDP, chosen: AnyArray) -> bool:
    """Tell whether every state reaches an end with positive probability, hence surely."""
    P = mdp.P[chosen]
    n = mdp.n_states
    ending = np.flatnonzero(mdp.stop[chosen] > 0.0)
    backwards = sp.vstack([P.T, sp.csr_array((1, n))])
    backwards = sp.csr_array(sp.hstack([backwards, sp.csr_array((n + 1, 1))])).tolil()
    backwards[n, ending] = 1.0
    found = breadth_first_order(sp.csr_array(backwards), n, directed=True, return_predecessors=False)
    return len(found) == n + 1


def iterate_policies(
    owner: str, mdp: MDP, first: AnyArray | None, tol: float, max_iter: int, clock: Clock, n_jobs: int | None
) -> MDPSolution:
    """Do policy iteration from a proper policy, and prove the result."""
    if first is not None and not is_proper(mdp, first):
        raise DataError(f"{owner}: with gamma = 1 the first policy must surely end; leave it out to start from one.")
    chosen = proper_policy(mdp) if first is None else first
    chosen, v, n_iter = _improve(mdp, chosen, mdp.reward, max_iter, clock, n_jobs)
    solution = prove(owner, mdp, v, chosen, tol, n_iter, clock, n_jobs)
    warn_unless_proven(owner, solution.certificate_, "raise max_iter or tol")
    return solution


def prove(
    owner: str, mdp: MDP, v: AnyArray, chosen: AnyArray, tol: float, n_iter: int, clock: Clock, n_jobs: int | None
) -> MDPSolution:
    """Return the solution with bounds, or with the residual alone where one backup cannot prove bounds."""
    inside = end_component_pairs(mdp)
    sweeps = Sweeps(mdp, n_jobs)
    slack = 8.0 * rounding_of(mdp, v)
    free = inside.any() and not (mdp.reward[inside] + slack < 0.0).all()
    settings: dict[str, Any] = {
        "tolerance": tol,
        "n_iter": n_iter,
        "seconds": clock.seconds,
        "fingerprint": mdp.fingerprint,
    }
    nothing = np.full(mdp.n_states, np.nan)
    policy = mdp.pair_action[chosen]
    if free or not is_proper(mdp, chosen):
        own = sweeps.follow(v, sweeps.rows_of(chosen))
        residual = float(max(abs(sweeps.best(v, chosen.copy()) - v).max(), abs(own - v).max()))
        certificate = Certificate("bellman", residual, **settings)
        return MDPSolution(v, policy, nothing, nothing, "residual", owner, certificate)
    lower = sweeps.solve(chosen, v, slack / 4.0, mdp.reward - slack)
    _, upper, _ = _improve(mdp, chosen.copy(), mdp.reward + slack, 100, clock, n_jobs)
    loss = float((upper - lower).max())
    certificate = Certificate("bellman", loss, bound=loss, **settings)
    return MDPSolution((lower + upper) / 2.0, policy, lower, upper, "episodic", owner, certificate)


def _improve(
    mdp: MDP, chosen: AnyArray, reward: AnyArray, max_iter: int, clock: Clock, n_jobs: int | None
) -> tuple[AnyArray, AnyArray, int]:
    """Return the pairs, the values and the number of steps of policy iteration from a proper policy."""
    v = np.zeros(mdp.n_states)
    problem = mdp.with_rewards(reward)
    for iteration in range(1, max_iter + 1):
        v = Sweeps(problem, n_jobs).solve(chosen, v, rounding_of(problem, v))
        before = chosen.copy()
        Sweeps(problem, n_jobs, tie=4.0 * rounding_of(problem, v)).best(v, chosen)
        if np.array_equal(before, chosen) or clock.is_over:
            return before, v, iteration
    return before, v, max_iter
