"""Many models, one table: a fair race, each in a process of its own, and one plain record of it."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
