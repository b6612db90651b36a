"""Sampling: Gibbs, Metropolis–Hastings, Hamiltonian Monte Carlo and NUTS, with chains that can be checked."""

from ..core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
