"""Support vector machines: classes, tubes, one class; their paths, probabilities and reports."""

from ...core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
