"""Re-derive what a solution of a process claims, from the process alone: one backup in NumPy and SciPy."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from ...core import DataError, Recheck


def bellman(solution: Any, mdp: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Check values, bounds and policy of an `MDPSolution`; the value is what the policy may lose."""
    if not hasattr(mdp, "pair_start"):
        raise DataError(f"verify: a solution is checked against its MDP; got a {type(mdp).__name__}.")
    n = mdp.n_states
    if np.shape(solution.values)[-1] != n:
        raise DataError(f"verify: the solution has {np.shape(solution.values)[-1]} states and the process {n}.")
    fingerprint = _fingerprint(mdp)
    scale = abs(mdp.reward).max(initial=0.0) + abs(solution.values).max(initial=0.0)
    rounding = (np.diff(mdp.P.indptr).max(initial=1) + 4) * np.finfo(float).eps * scale
    check = {
        "discounted": _discounted,
        "robust": _robust,
        "episodic": _episodic,
        "residual": _residual,
        "horizon": _horizon,
        "average": _average,
    }[solution.proof]
    value, reach = check(solution, mdp, rounding)
    return Recheck(value, 16.0 * reach * rounding, fingerprint, bound=value)


def _discounted(solution: Any, mdp: Any, rounding: float) -> tuple[float, float]:
    v = solution.values
    return _two_sided(solution, mdp, v, _action_values(mdp, v), rounding)


def _two_sided(solution: Any, mdp: Any, v: Any, Q: Any, rounding: float) -> tuple[float, float]:
    """Return the loss that follows from the values of actions, having compared the bounds with those recorded."""
    best = Q.max(axis=1)
    own = Q[np.arange(mdp.n_states), solution.policy]
    factor = mdp.gamma / (1.0 - mdp.gamma)
    rise = (best - v).max()
    fall = (own - v).min()
    off = 0.0
    if (mdp.stop > 0.0).any():  # the end is one more state, of which nothing changes
        rise = max(rise, 0.0)
        fall = min(fall, 0.0)
    else:
        off = abs(rise + fall) * factor / 2.0  # v is in the middle of its bounds
    upper = best + factor * rise
    lower = own + factor * fall
    reach = 1.0 / (1.0 - mdp.gamma)
    off = max(off, abs(upper - solution.upper).max(), abs(lower - solution.lower).max())
    if off > 16.0 * reach * rounding + 0.01 * solution.certificate_.value:
        return float("inf"), reach
    return float((upper - lower).max()), reach


def _robust(solution: Any, mdp: Any, rounding: float) -> tuple[float, float]:
    v = solution.values
    state = np.repeat(np.arange(mdp.n_states), np.diff(mdp.pair_start))
    Q = np.full((mdp.n_states, mdp.n_actions), -np.inf)
    for k in range(len(mdp.reward)):
        a = mdp.P.indptr[k]
        b = mdp.P.indptr[k + 1]
        worth = np.append(v[mdp.P.indices[a:b]], 0.0)
        mass = np.append(mdp.P.data[a:b], mdp.stop[k])
        worth = worth[mass > 0.0]
        mass = mass[mass > 0.0]
        order = np.argsort(worth)  # the worst first; it gains what the best ones lose
        worth = worth[order]
        mass = mass[order]
        left = min(solution.radius[k] / 2.0, 1.0 - mass[0])
        mass[0] += left
        for i in range(len(mass) - 1, 0, -1):
            taken = min(mass[i], left)
            mass[i] -= taken
            left -= taken
        Q[state[k], mdp.pair_action[k]] = mdp.reward[k] + mdp.gamma * mass @ worth
    return _two_sided(solution, mdp, v, Q, rounding)


def _episodic(solution: Any, mdp: Any, rounding: float) -> tuple[float, float]:
    """Check T·upper ≤ upper, T_π·lower ≥ lower, that π surely ends, and that staying for ever costs."""
    rows = np.arange(mdp.n_states)
    over = (_action_values(mdp, solution.upper).max(axis=1) - solution.upper).max()
    under = (solution.lower - _action_values(mdp, solution.lower)[rows, solution.policy]).max()
    middle = abs((solution.lower + solution.upper) / 2.0 - solution.values).max()
    if over > 0.0 or under > 0.0 or middle > 16.0 * rounding:
        return float("inf"), 1.0
    if not _ends(mdp, solution.policy) or not _staying_costs(mdp):
        return float("inf"), 1.0
    return float((solution.upper - solution.lower).max()), 1.0


def _residual(solution: Any, mdp: Any, rounding: float) -> tuple[float, float]:
    Q = _action_values(mdp, solution.values)
    own = Q[np.arange(mdp.n_states), solution.policy]
    return float(max(abs(Q.max(axis=1) - solution.values).max(), abs(own - solution.values).max())), 1.0


def _horizon(solution: Any, mdp: Any, rounding: float) -> tuple[float, float]:
    worst = 0.0
    rows = np.arange(mdp.n_states)
    for t in range(len(solution.policy)):
        Q = _action_values(mdp, solution.values[t + 1])
        worst = max(worst, abs(Q.max(axis=1) - solution.values[t]).max())
        worst = max(worst, abs(Q[rows, solution.policy[t]] - solution.values[t]).max())
    off = max(abs(solution.lower - solution.values).max(), abs(solution.upper - solution.values).max())
    return float(max(worst, off)), float(len(solution.policy))


def _average(solution: Any, mdp: Any, rounding: float) -> tuple[float, float]:
    v = solution.values
    Q = _action_values(mdp, v, gamma=1.0)
    high = (Q.max(axis=1) - v).max()
    low = (Q[np.arange(mdp.n_states), solution.policy] - v).min()
    gain_off = abs((low + high) / 2.0 - solution.gain)
    off = max(abs(solution.lower - low).max(), abs(solution.upper - high).max(), gain_off)
    if off > 16.0 * rounding + 0.01 * solution.certificate_.value or (mdp.stop > 0.0).any():
        return float("inf"), 1.0
    return float(high - low), 1.0


def _action_values(mdp: Any, v: Any, gamma: float | None = None) -> Any:
    q = mdp.reward + (mdp.gamma if gamma is None else gamma) * (mdp.P @ v)
    table = np.full((mdp.n_states, mdp.n_actions), -np.inf)
    table[np.repeat(np.arange(mdp.n_states), np.diff(mdp.pair_start)), mdp.pair_action] = q
    return table


def _ends(mdp: Any, policy: Any) -> bool:
    """Tell whether every state reaches an end under a policy, by growing the set that does."""
    state = np.repeat(np.arange(mdp.n_states), np.diff(mdp.pair_start))
    taken = mdp.pair_action == policy[state]
    done = np.zeros(mdp.n_states, dtype=bool)
    while True:
        hopeful = taken & ((mdp.stop > 0.0) | ((mdp.P @ done.astype(float)) > 0.0))
        grown = done.copy()
        grown[state[hopeful]] = True
        if (grown == done).all():
            return bool(done.all())
        done = grown


def _staying_costs(mdp: Any) -> bool:
    """Tell whether no set of states can be stayed in for ever with actions of which one costs nothing.

    The greatest set of states that can be stayed in, and the pairs that stay in it, contain every end component.
    """
    state = np.repeat(np.arange(mdp.n_states), np.diff(mdp.pair_start))
    inside = np.ones(mdp.n_states, dtype=bool)
    while True:
        stays = (mdp.stop == 0.0) & ((mdp.P @ (~inside).astype(float)) == 0.0) & inside[state]
        shrunk = np.zeros(mdp.n_states, dtype=bool)
        shrunk[state[stays]] = True
        if (shrunk == inside).all():
            break
        inside = shrunk
    # A pair of the set may lead to states that never come back to it: then it is in no end component and may earn.
    earning = stays & (mdp.reward >= 0.0)
    return not any(_returns(mdp, state, stays, k) for k in np.flatnonzero(earning).tolist())


def _returns(mdp: Any, state: Any, stays: Any, k: int) -> bool:
    """Tell whether all successors of a pair can come back to its state by pairs that stay."""
    back = np.zeros(mdp.n_states, dtype=bool)
    back[state[k]] = True
    while True:
        hopeful = stays & ((mdp.P @ back.astype(float)) > 0.0)
        grown = back.copy()
        grown[state[hopeful]] = True
        if (grown == back).all():
            break
        back = grown
    return bool(back[mdp.P.indices[mdp.P.indptr[k] : mdp.P.indptr[k + 1]]].all())


def _fingerprint(mdp: Any) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for part in (mdp.pair_start, mdp.pair_action, mdp.reward, mdp.P.indptr, mdp.P.indices, mdp.P.data, mdp.stop):
        digest.update(np.ascontiguousarray(part).tobytes())
    digest.update(np.array([mdp.gamma]).tobytes())
    return digest.hexdigest()
