"""Decisions: act, observe, update. Bandits, Markov decision processes, tabular and deep reinforcement learning."""

from ..core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
