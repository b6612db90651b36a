"""The laboratory: scenes that step through the library's own solvers and models, one picture at a time."""

from ..core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
