"""Many models, one table: a fair race, each in a process of its own, and one plain record of it."""

from ...core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
