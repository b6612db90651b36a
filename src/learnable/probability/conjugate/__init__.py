"""Conjugate pairs: priors whose posteriors are of the same form, so that learning is adding."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
