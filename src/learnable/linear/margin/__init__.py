"""Losses of the margin and of a tube: linear support vector machines and the perceptron."""

from ...core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
