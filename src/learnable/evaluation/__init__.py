"""Risk estimates and what can be said from them: splits, intervals, ties, curves, bias and variance, importance."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
