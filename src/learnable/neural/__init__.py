"""Neural networks on one flat vector of parameters: layers, training, models, and reports of how gradients flow."""

from ..core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
