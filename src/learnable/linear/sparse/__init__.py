"""Squared loss with an L1 part: lasso, elastic net, groups of targets, paths and cross-validated forms."""

from ...core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
