"""Conjugate pairs: priors whose posteriors are of the same form, so that learning is adding."""

from ...core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
