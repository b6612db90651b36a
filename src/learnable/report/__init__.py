"""One offline HTML page from the record of a comparison or from one fitted model, and cards for notebooks."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
