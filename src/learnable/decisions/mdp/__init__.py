"""Markov decision processes: models, solvers with proven bounds, pictures."""

from ...core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
