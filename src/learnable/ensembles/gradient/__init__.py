"""Gradient boosting of trees: any loss, first and second order, exact splits or histograms."""

from ...core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
