"""The page about an agent: values against what followed, words, pictures."""

import numpy as np
import pytest

from learnable.core.errors import DataError
from learnable.decisions import DQN, ActorCritic
from learnable.decisions.rl import deep


@pytest.fixture(scope="module")
def short_pole():
    return deep.CartPole(max_steps=400)


@pytest.fixture(scope="module")
def agent(short_pole):
    found = DQN(hidden=(16,), gamma=0.9, learning_starts=64, target_every=50)
    found.learn(short_pole, 1500, eval_every=500, eval_episodes=3)
    return found


def test_values_are_set_against_what_followed(agent, short_pole):
    found = deep.diagnose(agent, short_pole, episodes=4)
    assert found.predicted.shape == found.realised.shape
    assert np.isclose(found.bias, (found.predicted - found.realised).mean())
    assert found.realised.min() >= 1.0
    assert found.realised.max() <= 10.0, "of one per step nothing can earn more than 1/(1 − γ)"
    assert len(found.layers) == 2
    assert all(layer.gradient > 0.0 for layer in found.layers)
    assert "values are" in str(found)


def test_exact_values_have_no_bias():
    """With γ = 0 the value of a step is its reward: a network that has learned it is told so."""
    agent = ActorCritic(gamma=0.0, hidden=(8,), learning_rate=5e-3)
    agent.learn(deep.CartPole(), 4000, eval_every=None)
    found = deep.diagnose(agent, deep.CartPole(), episodes=2)
    assert abs(found.bias) < 0.05
    assert np.isnan(found.explained)
    assert found.words()[0].startswith("values are true on average")


def test_the_ends_of_truncated_episodes_are_not_judged():
    agent = ActorCritic(gamma=0.99, hidden=(8,))
    agent.learn(deep.Pendulum(max_steps=200), 512, eval_every=None)
    with pytest.raises(DataError, match="cut off before its returns were known"):
        deep.diagnose(agent, deep.Pendulum(max_steps=200), episodes=2)
    longer = deep.diagnose(agent, deep.Pendulum(max_steps=350), episodes=2)
    assert len(longer.realised) == 2 * (350 - 299 + 1)  # 0.99²⁹⁹ is the first power below a twentieth


def test_the_page_has_words_pictures_and_the_table(agent, short_pole, tmp_path):
    found = deep.diagnose(agent, short_pole, episodes=2)
    found.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page.count("<svg") == 2
    assert all(said in page for said in found.words())
    assert page.count("<tr>") == 1 + len(found.layers)


@pytest.mark.parametrize("env", [deep.CartPole(), deep.Acrobot(), deep.MountainCar(), deep.Pendulum()])
def test_every_control_problem_has_a_picture(env):
    figure = deep.draw_state(env, env.reset(0), title="here")
    assert figure.startswith("<svg")
    assert "here" in figure
    assert figure != deep.draw_state(env, env.step(env.step(env.reset(0), 1)[0], 1)[0], title="here")


def test_an_episode_moves(agent, short_pole):
    figure = deep.animate_episode(agent, short_pole, most_frames=5, every=1)
    assert figure.count("<animate") == 5
    with pytest.raises(DataError, match="needs a compiled control problem"):
        deep.animate_episode(agent, object())
