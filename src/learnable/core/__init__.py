"""The ground floor: estimator base, certificates, parameters, errors, model files, threads, kernels, registry."""

from .lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
