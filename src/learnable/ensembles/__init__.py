"""Ensembles: many models, each fitted to rows or weights of its own, and their vote or mean."""

from ..core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
