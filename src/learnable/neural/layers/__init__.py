"""Layers: forward and backward over preallocated arrays, parameters in one flat vector."""

from ...core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
