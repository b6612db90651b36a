"""Models made of models: tables as they come, and the choice of a parameter."""

from ..core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
