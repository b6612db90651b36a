"""One offline HTML page from the record of a comparison or from one fitted model, and cards for notebooks."""

from ..core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
