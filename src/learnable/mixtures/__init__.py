"""Clusters and mixtures: k-means, Gaussian mixtures, and how many components there are."""

from ..core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
