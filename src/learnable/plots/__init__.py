"""Small SVG figures: arrays in, an SVG string out, in the colours of the text around it."""

from ..core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
