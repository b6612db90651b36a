"""Deep reinforcement learning on the networks of `learnable.neural`: DQN, REINFORCE, actor–critic, PPO."""

from ....core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
