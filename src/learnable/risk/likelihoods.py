"""What a linear model says about itself to those who want its whole posterior: likelihood, and prior by its penalty.

A model shows it by a method `_likelihood(sum_of_weights)`; nothing else is needed of it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

Family = Literal["normal", "student_t", "bernoulli", "categorical", "poisson", "gamma"]


class LinearLikelihood(NamedTuple):
    """p(y | b + xᵀw) and the precision of the normal prior on w that the penalty stands for."""

    family: Family
    precision: float = 0.0  #: of each coefficient; 0 is a flat prior
    in_units_of_noise: bool = False  #: whether the prior's variance is the noise's, φ, over the precision


class ShowsLikelihood(Protocol):
    """A model whose penalised objective is a negative log posterior."""

    def _likelihood(self, sum_of_weights: float) -> LinearLikelihood:
        """Return likelihood and prior, given the sum of the weights of the rows."""
        ...
