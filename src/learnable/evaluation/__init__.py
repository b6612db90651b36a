"""Risk estimates and what can be said from them: splits, intervals, ties, curves, bias and variance, importance."""

from ..core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
