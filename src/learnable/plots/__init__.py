"""Small SVG figures: arrays in, an SVG string out, in the colours of the text around it."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
