"""Small decisions of every kind, so that all kernels are compiled, cached on disk and loaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def small_decisions() -> Iterator[tuple[str, Any]]:
    """Solve, simulate and learn a little; yield what was done and numbers that do not depend on the processor.

    Examples
    --------
    >>> from learnable.decisions.warm import small_decisions
    >>> next(small_decisions())[0]
    'processes'
    """
    from . import bandits, rl
    from .mdp import modified_policy_iteration, policy_iteration, problems, robust_value_iteration, value_iteration

    lake = problems.frozen_lake(gamma=0.9)
    solved = [policy_iteration(lake), modified_policy_iteration(lake), robust_value_iteration(lake, 0.1)]
    solved += [value_iteration(lake, order=order) for order in ("gauss-seidel", "prioritised")]
    yield "processes", [solution.values.round(4) for solution in solved]
    bandits.simulate(bandits.UCB(2), bandits.stochastic([0.2, 0.8]), 10, 2)
    policy = bandits.UCB(2)
    policy.update(policy.act(), 1.0)
    lucb = bandits.LUCB(2)
    for arm in (0, 1):
        lucb.update(arm, float(arm))
    yield "bandits", [policy.means[0], float(lucb.done)]
    world = rl.GridWorld(["S.G"])
    rl.QLearning().learn(world, 5, seeds=1)
    values = rl.predict_values(world, [1, 1, 1], 5, method="monte carlo", alpha=0.0)
    yield "reinforcement learning", values
    yield "deep reinforcement learning", _small_agents()


def _small_agents() -> list[float]:
    """Let each deep agent learn for a moment; return how many steps each made, the same on every processor."""
    from .rl import deep

    agents = [
        (deep.DQN(learning_starts=8, batch_size=8, buffer_size=64, prioritised=True, normalise_observations=True), 16),
        (deep.DQN(learning_starts=8, batch_size=8, buffer_size=64), 16),
        (deep.ActorCritic(normalise_observations=True, normalise_rewards=True), 64),
        (deep.ActorCritic(clip=0.2, n_steps=8, batch_size=32), 64),
    ]
    steps = []
    for agent, n in agents:
        agent.learn(deep.CartPole(), n, eval_every=n, eval_episodes=1)
        steps.append(float(agent.steps))
    turning = deep.ActorCritic(clip=0.2, n_steps=8, batch_size=32, squash=True)
    turning.learn(deep.Pendulum(), 64, eval_every=None)
    turning.act([1.0, 0.0, 0.0])
    return [*steps, float(turning.steps)]
