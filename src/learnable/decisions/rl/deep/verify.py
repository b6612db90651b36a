"""Re-derive what a deep agent's policy may lose in a process that is known, from its parameters alone.

The networks are evaluated state by state with matrix products of NumPy, from the flat vector in the file; one backup of
the values then bounds the loss of the greedy policy, as for a solution of the process.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ....core import DataError, Recheck
from ...mdp.verify import _action_values, _fingerprint


def policy(agent: Any, env: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Check the policy of an agent against the table or process that it learned in."""
    mdp = env if hasattr(env, "pair_start") else None
    if mdp is None:
        if not hasattr(env, "mdp"):
            raise DataError(f"verify: an agent is checked against its table or MDP; got a {type(env).__name__}.")
        mdp = env.mdp(agent.gamma)
    memory = agent.memory
    n = mdp.n_states
    if int(memory["sizes"][0]) != n:
        raise DataError(f"verify: the agent knows {int(memory['sizes'][0])} states and the process has {n}.")
    values, actions = _read_off(agent, memory, np.eye(n))
    Q = _action_values(mdp, values, agent.gamma)
    best = Q.max(axis=1)
    own = Q[np.arange(n), actions]
    met = _met(mdp)
    rise = (best - values)[met].max()
    fall = (own - values)[met].min()
    if (mdp.stop > 0.0).any():
        rise = max(rise, 0.0)
        fall = min(fall, 0.0)
    loss = float((best - own)[met].max() + agent.gamma / (1.0 - agent.gamma) * (rise - fall))
    scale = abs(mdp.reward).max(initial=0.0) + abs(values).max(initial=0.0)
    rounding = 64.0 * np.finfo(memory["best"].dtype).eps * float(scale) / (1.0 - agent.gamma)
    return Recheck(loss, rounding, _fingerprint(mdp), bound=loss)


def _met(mdp: Any) -> Any:
    """Return which states can be met from the start; no step leads out of them, so that bounds hold among them."""
    met = np.ones(mdp.n_states, dtype=bool) if mdp.start is None else mdp.start > 0.0
    state = np.repeat(np.arange(mdp.n_states), np.diff(mdp.pair_start))
    while True:
        grown = met | (mdp.P.T @ met[state].astype(float) > 0.0)
        if (grown == met).all():
            return met
        met = grown


def _read_off(agent: Any, memory: Any, states: Any) -> tuple[Any, Any]:
    """Return value and greedy action of every state."""
    theta = np.asarray(memory["best"], dtype=np.float64)
    scale = memory["best_scale"]
    near = np.clip((states - memory["best_centre"]) * scale, -10.0, 10.0)
    X = np.where(scale != 0.0, near, states)
    n_actions = int(memory["sizes"][1])
    count, _, squares = memory["return_moments"]
    unit = 1.0
    if agent.normalise_rewards and count >= 2.0 and squares > 0.0:
        unit = np.sqrt(squares / count) + 1e-8
    if hasattr(agent, "dueling"):
        z, _ = _outputs(agent, theta, X, n_actions + int(agent.dueling))
        if agent.dueling:
            z = z[:, :1] + z[:, 1:] - z[:, 1:].mean(axis=1, keepdims=True)
        return unit * z.max(axis=1), z.argmax(axis=1)
    z, used = _outputs(agent, theta, X, n_actions)
    v, _ = _outputs(agent, theta[used:], X, 1)
    return unit * v[:, 0], z.argmax(axis=1)


def _outputs(agent: Any, theta: Any, X: Any, n_outputs: int) -> tuple[Any, int]:
    """Return the outputs of a network and the number of its parameters: all weights, then all biases."""
    widths = [X.shape[1], *agent.hidden, n_outputs]
    bias = sum(a * b for a, b in pairwise(widths))
    weight = 0
    for k, (a, b) in enumerate(pairwise(widths)):
        X = X @ theta[weight : weight + a * b].reshape(a, b) + theta[bias : bias + b]
        weight += a * b
        bias += b
        if k < len(widths) - 2:
            X = np.tanh(X) if agent.activation == "tanh" else np.maximum(X, 0.0)
    return X, bias
