"""Least squares on few columns: best subsets with a proof, steps forward and backward, stagewise and LARS paths."""

from ...core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
