"""Spectral methods: principal components, scaling of distances, embeddings of manifolds, spectral clustering."""

from ..core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
