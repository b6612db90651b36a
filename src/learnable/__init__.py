"""learnable: machine learning you can check.

    >>> import learnable as ln
    >>> model = ln.Ridge(alpha=1.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> model.certificate_.holds
    True

Names are loaded on first use: `import learnable` is cheap.
"""

from .core.lazy import attach as _attach

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = _attach(__name__, __file__)
