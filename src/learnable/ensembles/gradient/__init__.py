"""Gradient boosting of trees: any loss, first and second order, exact splits or histograms."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
