"""Losses V(y, z): what a score z costs when the truth is y. One class a formula, over arrays of samples."""

from ...core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
