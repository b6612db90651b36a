"""Any convex loss with any convex penalty, in the forms of Tikhonov, Ivanov and Phillips."""

from ...core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
