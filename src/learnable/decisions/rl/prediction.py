"""Values of a given policy from its own episodes, or from those of another."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import AnyArray, DataError, Number, Options, ParameterError, check_parameters
from .._random import make_streams
from . import _kernels as k
from .environments import TableEnvironment, as_environment

_METHODS = {"td": 0, "n-step": 1, "monte carlo": 2, "weighted importance": 3, "ordinary importance": 4}


def predict_values(
    env: Any,
    policy: Any,
    episodes: int,
    *,
    method: str = "td",
    gamma: float = 1.0,
    alpha: float = 0.1,
    alpha_decay: float = 0.0,
    trace: float = 0.0,
    n_steps: int = 1,
    first_visit: bool = True,
    behaviour: Any = None,
    initial: Any = 0.0,
    random_state: Any = 0,
) -> AnyArray:
    """Estimate V^π from simulated episodes.

    Parameters
    ----------
    env : TableEnvironment or MDP
        Where episodes are played.
    policy : array of int of shape (n_states,), or array of shape (n_states, n_actions)
        π: an action per state, or probabilities.
    episodes : int
        How many.
    method : {"td", "n-step", "monte carlo", "weighted importance", "ordinary importance"}
        TD(0), or TD(λ) with `trace` > 0; n-step TD; means of returns; or returns of another policy, weighted by
        importance.
    gamma : float
        Discount.
    alpha, alpha_decay : float
        Step of TD, or ω of steps N(s)^(−ω); Monte Carlo takes means with alpha = 0.
    trace : float
        λ.
    n_steps : int
        n.
    first_visit : bool
        Whether Monte Carlo counts the first visit of an episode alone.
    behaviour : array, optional
        The policy that is followed, for importance weights; π by default.
    initial : float or array
        First values.
    random_state : int or None
        Seed.

    Returns
    -------
    array of shape (n_states,)
        Estimates.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.decisions import rl
    >>> walk = rl.GridWorld(["G....G"], step_reward=0.0, rewards={"G": 1.0})
    >>> right = np.tile([0.0, 0.5, 0.0, 0.5], (6, 1))
    >>> rl.predict_values(walk, right, 200, method="monte carlo", alpha=0.0).round()
    array([0., 1., 1., 1., 1., 0.])
    """
    world = as_environment(env)
    if not isinstance(world, TableEnvironment):
        raise DataError("predict_values: needs a table or an MDP; make one with TableEnvironment.")
    given = {"episodes": episodes, "method": method, "gamma": gamma, "alpha": alpha, "trace": trace, "n_steps": n_steps}
    unit = Number(low=0.0, high=1.0)
    whole = Number(low=1, integer=True)
    rules = {"episodes": whole, "method": Options(*_METHODS), "gamma": unit, "alpha": unit, "trace": unit}
    rules |= {"n_steps": whole, "alpha_decay": unit}
    check_parameters("predict_values", given | {"alpha_decay": alpha_decay}, rules)
    target = _probabilities(world, policy, "policy")
    follows = target if behaviour is None else _probabilities(world, behaviour, "behaviour")
    if behaviour is not None and "importance" not in method:
        raise ParameterError(f"predict_values: behaviour needs importance weights; method is {method!r}.")
    missing = (target > 0.0) & (follows == 0.0)
    if missing.any():
        s, a = np.argwhere(missing)[0]
        raise DataError(
            f"predict_values: the policy takes action {a} in state {s} and the behaviour never does: no overlap."
        )
    par = np.zeros(9)
    par[[k.ALPHA, k.GAMMA, k.OMEGA]] = (0.0 if _METHODS[method] >= 3 else alpha, gamma, alpha_decay)
    par[[k.LAMBDA, k.STEPS, k.FIRST]] = (trace, n_steps, float(first_visit))
    V = np.full(world.n_states, 0.0) + np.asarray(initial, dtype=np.float64)
    noise = make_streams(random_state, 1, purpose=5)[0]
    counts, marks = np.zeros((2, world.n_states))
    k.predict(
        _METHODS[method], par, V, counts, marks, np.zeros((3, world.max_steps + 1)), target, follows,
        world.first, world.cum, world.to, world.gain, world.ends, world.start, world.max_steps, noise, episodes,
    )  # fmt: skip
    return V


def _probabilities(world: TableEnvironment, policy: Any, name: str) -> AnyArray:
    given = np.asarray(policy)
    if given.ndim == 1:
        given = np.eye(world.n_actions)[given]
    table = np.ascontiguousarray(given, dtype=np.float64)
    if table.shape != (world.n_states, world.n_actions):
        wanted = (world.n_states, world.n_actions)
        raise DataError(f"predict_values: {name} must have shape {wanted}; got {table.shape}.")
    table = np.where(world.allowed, table, 0.0)
    total = table.sum(axis=1)
    if not (table >= 0.0).all() or (abs(total - 1.0) > 1e-8).any():
        s = int(np.argmax(abs(total - 1.0)))
        raise DataError(f"predict_values: the probabilities of {name} in state {s} sum to {total[s]:g}, not to 1.")
    return np.ascontiguousarray(table / total[:, None])
