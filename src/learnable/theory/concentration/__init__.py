"""Inequalities, one object each: tail, radius, sample size, assumptions, statement and source."""

from ...core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
