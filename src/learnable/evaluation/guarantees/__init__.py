"""What can be proven about a fitted model: bounds on its risk, rows needed, and the theorem behind it."""

from ...core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
