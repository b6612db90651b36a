"""Models made of models: tables as they come, and the choice of a parameter."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
