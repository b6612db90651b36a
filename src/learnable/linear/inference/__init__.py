"""What a sample says about the coefficients of a likelihood model: standard errors, tests, intervals, influence."""

from ...core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
