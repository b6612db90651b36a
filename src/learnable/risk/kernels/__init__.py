"""Mercer kernels k(x, z): small immutable objects that add and multiply, and the functions of their spaces."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
