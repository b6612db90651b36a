"""Ensembles: many models, each fitted to rows or weights of its own, and their vote or mean."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
