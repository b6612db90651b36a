"""Kernel machines: support vectors, kernel ridge and logistic regression, Gaussian processes, kernel features."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
