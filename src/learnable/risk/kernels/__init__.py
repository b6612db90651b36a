"""Mercer kernels k(x, z): small immutable objects that add and multiply, and the functions of their spaces."""

from ...core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
