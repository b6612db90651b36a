"""Learning theory, numbers in, numbers out: concentration, VC classes, covering numbers, Rademacher averages, PAC."""

from ..core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
