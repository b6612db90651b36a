"""Deep reinforcement learning against Stable-Baselines3, at its own default settings, which both sides get.

All contenders of a row make the same number of steps with the same networks, batches and updates, so that the ratio of
times is that of environment steps per second. The rows `…_compiled` set our compiled environment against the same of
Gymnasium: what somebody gains who changes the library. Torch gets one thread: with networks of this size it is the
faster setting. The quality is the mean return of ten greedy episodes of the last policy, played here in Gymnasium;
after so few steps it is shown and not compared. The rows `…_to_475` stop at an evaluation of 475 or more; with the
score they show the median over the seeds of the processor's seconds. By these, one thread each, Stable-Baselines3 2.9
took on CartPole (8,192 steps) 14, 21 and 22 times as long as our DQN, A2C and PPO, compiled 34, 44 and 39; on Acrobot
(4,096 steps) 10, 14 and 13, compiled 37, 47 and 38; to 475 on CartPole 9.9, compiled 28.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from .harness import OURS, Row

PEER = "Stable-Baselines3"


class Job(NamedTuple):
    env: str
    steps: int


#: name -> (our agent, its settings; the peer's class and settings). Equal pairs of settings stand in one line.
SETTINGS: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "dqn": (
        "DQN",
        {"double": False, "learning_rate": 1e-4, "batch_size": 32, "train_every": 4, "gradient_steps": 1,
         "learning_starts": 100, "target_every": 10_000, "buffer_size": 100_000, "huber": 1.0},
        "DQN",
        {"learning_rate": 1e-4, "batch_size": 32, "train_freq": 4, "gradient_steps": 1,
         "learning_starts": 100, "target_update_interval": 10_000, "buffer_size": 100_000},
    ),
    "a2c": (
        "ActorCritic",
        {"learning_rate": 7e-4, "n_steps": 5, "n_envs": 1, "trace": 1.0},
        "A2C",
        {"learning_rate": 7e-4, "n_steps": 5, "gae_lambda": 1.0},
    ),
    "ppo": (
        "ActorCritic",
        {"clip": 0.2, "learning_rate": 3e-4, "n_steps": 2048, "n_envs": 1, "epochs": 10, "batch_size": 64},
        "PPO",
        {"clip_range": 0.2, "learning_rate": 3e-4, "n_steps": 2048, "n_epochs": 10, "batch_size": 64},
    ),
}  # fmt: skip


def job(env: str, steps: int) -> Callable[[bool], Job]:
    return lambda quick: Job(env, 2048 if quick else steps)


def ours(name: str, compiled: bool) -> Callable[[Job], Any]:
    def learn(data: Job) -> SimpleNamespace:
        import gymnasium

        from learnable import decisions
        from learnable.decisions.rl import deep

        cls, settings, _, _ = SETTINGS[name]
        agent = getattr(decisions, cls)(random_state=0, **settings)
        env = getattr(deep, data.env.partition("-")[0])() if compiled else gymnasium.make(data.env)
        agent.learn(env, data.steps, eval_every=None)
        return SimpleNamespace(act=lambda observation: agent.act(observation, which="last"))

    return learn


def peer(name: str) -> Callable[[Job], Any]:
    def learn(data: Job) -> SimpleNamespace:
        import stable_baselines3
        import torch

        torch.set_num_threads(1)
        _, _, cls, settings = SETTINGS[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = getattr(stable_baselines3, cls)("MlpPolicy", data.env, device="cpu", seed=0, **settings)
            model.learn(data.steps)
        return SimpleNamespace(act=lambda observation: int(model.predict(observation, deterministic=True)[0]))

    return learn


def returns(found: Any, data: Job) -> dict[str, float]:
    """Return what the last policy earns, played in Gymnasium."""
    import gymnasium

    if not hasattr(found, "act"):
        return {"minus_return": -float(found.score), "median_cpu_seconds": found.seconds}
    env = gymnasium.make(data.env)
    earned = []
    for seed in range(10):
        observation, _ = env.reset(seed=1000 + seed)
        total = 0.0
        over = False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(found.act(observation))
            total += float(reward)
            over = terminated or truncated
        earned.append(total)
    return {"minus_return": -float(np.mean(earned))}


#: Settings of PPO that solve CartPole, for both sides: the defaults of our agent.
_SOLVES = {"clip": 0.2, "learning_rate": 1e-3, "n_steps": 128, "n_envs": 8, "epochs": 10, "batch_size": 128}


def ours_to_475(compiled: bool) -> Callable[[Any], Any]:
    def learn(data: Job) -> SimpleNamespace:
        import gymnasium

        from learnable.decisions import ActorCritic
        from learnable.decisions.rl import deep

        def one(seed: int) -> float:
            env = deep.CartPole() if compiled else gymnasium.make("CartPole-v1")
            agent = ActorCritic(random_state=seed, **_SOLVES)
            return float(agent.learn(env, 200_000, target=475.0, eval_every=4096).best_score)

        return _over_seeds(one, data)

    return learn


def peer_seed_to_475(seed: int) -> float:
    """Return the mean return at which the peer stopped."""
    import gymnasium
    import stable_baselines3
    import torch
    from stable_baselines3.common.callbacks import EvalCallback, StopTrainingOnRewardThreshold
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.monitor import Monitor

    torch.set_num_threads(1)
    stop = StopTrainingOnRewardThreshold(475.0)
    watch = EvalCallback(
        Monitor(gymnasium.make("CartPole-v1")),
        callback_on_new_best=stop,
        eval_freq=512,
        n_eval_episodes=10,
        verbose=0,
    )
    model = stable_baselines3.PPO(
        "MlpPolicy", make_vec_env("CartPole-v1", 8, seed=seed), device="cpu", seed=seed, clip_range=0.2,
        learning_rate=1e-3, n_steps=128, n_epochs=10, batch_size=128,
    )  # fmt: skip
    model.learn(200_000, callback=watch)
    return float(watch.best_mean_reward)


def peer_to_475(data: Job) -> SimpleNamespace:
    return _over_seeds(peer_seed_to_475, data)


def _over_seeds(learn: Callable[[int], float], data: Job) -> SimpleNamespace:
    """Return the median score over the seeds, and the median of the processor's seconds that a seed took."""
    scores = []
    seconds = []
    for seed in range(data.steps):
        start = time.process_time()
        scores.append(learn(seed))
        seconds.append(time.process_time() - start)
    return SimpleNamespace(score=float(np.median(scores)), seconds=float(np.median(seconds)))


def row(name: str, env: str, steps: int, compiled: bool) -> Row:
    short = env.partition("-")[0].lower()
    end = "_compiled" if compiled else ""
    title = {"dqn": "DQN", "a2c": "A2C", "ppo": "PPO"}[name]
    return Row(
        name=f"{name}_{short}{end}",
        job=f"{title} on {env}, Stable-Baselines3's defaults" + (", our environment compiled" if compiled else ""),
        size=f"{steps:,} steps",
        make_data=job(env, steps),
        contenders={OURS: ours(name, compiled), PEER: peer(name)},
        quality=returns,
        targets={PEER: 10.0 if compiled else 3.0},
        compared=None,
    )


ROWS = [
    row(name, env, steps, compiled)
    for env, steps in (("CartPole-v1", 20_480), ("Acrobot-v1", 10_240))
    for name in SETTINGS
    for compiled in (False, True)
] + [
    Row(
        name=f"ppo_to_475{'_compiled' if compiled else ''}",
        job="PPO on CartPole until ten episodes earn 475" + (", our environment compiled" if compiled else ""),
        size="5 seeds",
        make_data=lambda quick: Job("CartPole-v1", 1 if quick else 5),
        contenders={OURS: ours_to_475(compiled), PEER: peer_to_475},
        quality=returns,
        targets={PEER: 10.0 if compiled else 3.0},
        compared=None,
        limits={"minus_return": -475.0},
    )
    for compiled in (False, True)
]
