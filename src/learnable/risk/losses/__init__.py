"""Losses V(y, z): what a score z costs when the truth is y. One class a formula, over arrays of samples."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
