"""Compiled control problems: one step from random states is Gymnasium's."""

import gymnasium
import numpy as np
import pytest

from learnable.core.errors import DataError, ParameterError
from learnable.decisions.rl import deep
from learnable.decisions.rl.deep import _physics
from learnable.decisions.rl.deep.worlds import _NO_TABLE

PROBLEMS = {
    "CartPole-v1": (deep.CartPole(), [2.5, 3.0, 0.22, 3.0]),
    "Acrobot-v1": (deep.Acrobot(), [np.pi, np.pi, 2 * np.pi, 4.5 * np.pi]),
    "MountainCar-v0": (deep.MountainCar(), [0.9, 0.07]),
    "Pendulum-v1": (deep.Pendulum(), [4.0, 8.0]),
}


def draw_states(name, n, rng):
    env, width = PROBLEMS[name]
    states = np.zeros((n, 4))
    states[:, : len(width)] = rng.uniform(-1.0, 1.0, (n, len(width))) * width
    if name == "MountainCar-v0":
        states[:, 0] -= 0.3
    actions = rng.integers(env.n_actions, size=n).astype(float) if env.n_actions else rng.uniform(-3, 3, n)
    return states, actions


def gymnasium_step(env, state, action, n_actions):
    env.state = np.array(state)
    env.steps_beyond_terminated = None
    observation, reward, terminated, _, _ = env.step(int(action) if n_actions else np.array([action]))
    return np.array(env.state, dtype=float), observation, float(reward), terminated


def worst_difference(name, n, scale=1.0):
    ours, width = PROBLEMS[name]
    states, actions = draw_states(name, n, np.random.default_rng(0))
    states *= scale
    after = states.copy()
    rewards = np.zeros(n)
    ended = np.zeros(n, dtype=bool)
    streams = np.ones((n, 4), dtype=np.uint64)
    _physics.advance_many(ours.code, _NO_TABLE, ours.n_actions, actions, streams, after, rewards, ended)
    env = gymnasium.make(name).unwrapped
    env.reset(seed=0)
    worst = 0.0
    for i in range(n):
        state, observation, reward, terminated = gymnasium_step(
            env, states[i, : len(width)], actions[i], ours.n_actions
        )
        worst = max(worst, np.abs(state - after[i, : len(width)]).max(), abs(reward - rewards[i]))
        assert terminated == ended[i]
        if i < 200:
            assert np.allclose(ours.observe(after[i]), observation, rtol=0, atol=1e-6)
    return worst, ended.mean()


@pytest.mark.parametrize("name", PROBLEMS)
def test_one_step_is_gymnasiums(name):
    worst, share = worst_difference(name, 3000)
    assert worst <= 1e-12
    assert name == "Pendulum-v1" or 0.0 < share < 1.0, "both ends of the rule were met"


@pytest.mark.long
@pytest.mark.parametrize("name", PROBLEMS)
def test_one_step_is_gymnasiums_from_many_states(name):
    worst, _ = worst_difference(name, 100_000)
    assert worst <= 1e-12


def test_at_its_greatest_speeds_acrobot_differs_by_what_rounding_of_the_state_changes():
    """At 9π radians a second one rounding of the state moves Gymnasium's own step by some 1e-12."""
    ours, _ = PROBLEMS["Acrobot-v1"]
    rng = np.random.default_rng(1)
    states = rng.uniform(-1.0, 1.0, (2000, 4)) * [np.pi, np.pi, 4 * np.pi, 9 * np.pi]
    env = gymnasium.make("Acrobot-v1").unwrapped
    env.reset(seed=0)
    for state in states:
        there, _, _, _ = gymnasium_step(env, state, 2, 3)
        here = ours.step(state, 2)[0]
        apart = np.abs(there - here)
        assert np.minimum(apart, np.abs(apart - 2 * np.pi)).max() <= 1e-11


def test_starts_have_gymnasiums_range():
    starts = np.array([deep.CartPole().reset(seed) for seed in range(300)])
    assert np.abs(starts).max() <= 0.05
    assert np.allclose(starts.std(axis=0), 0.1 / np.sqrt(12), rtol=0.15)
    cars = np.array([deep.MountainCar().reset(seed) for seed in range(300)])
    assert (cars[:, 0] >= -0.6).all()
    assert (cars[:, 0] <= -0.4).all()
    assert (cars[:, 1] == 0.0).all()


def test_wrong_actions_and_limits_are_refused():
    with pytest.raises(DataError, match="CartPole: actions are 0 to 1; got 2"):
        deep.CartPole().step(np.zeros(4), 2)
    with pytest.raises(ParameterError, match="max_steps must be an integer >= 1"):
        deep.CartPole(max_steps=0)
