"""Clusters and mixtures: k-means, Gaussian mixtures, and how many components there are."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
