"""Kernel machines: support vectors, kernel ridge and logistic regression, Gaussian processes, kernel features."""

from ..core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
