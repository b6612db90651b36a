r"""Dirichlet prior of the probabilities of K categories, and counts of them.

$$ p \sim \mathrm{Dir}(\alpha), \quad x \mid p \sim \mathrm{Mult}(n, p) \quad\Longrightarrow\quad
   p \mid x \sim \mathrm{Dir}(\alpha + x). $$

The next category is k with probability $\alpha_k/\sum_j \alpha_j$: a prior with equal α is additive smoothing.
Where the observations are codes 0, …, K - 1 instead of vectors of counts, it is the Dirichlet–categorical pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ...core.errors import DataError
from ..base import Array, RandomState, Size, require_positive
from ..beta import Beta
from ..categorical import Categorical, Multinomial
from ..compound import DirichletMultinomialCounts
from ..counting import is_count
from ..dirichlet import Dirichlet
from .base import Conjugate, no_mode, refuse

_LEAST = 1e-300


class _DirichletPair(Conjugate):
    """What the two Dirichlet pairs share."""

    _event_ranks: ClassVar[Mapping[str, int]] = {"alpha": 1}
    _unknown = ("p",)

    def __init__(self, alpha: ArrayLike) -> None:
        self._store(alpha=alpha)
        require_positive(self, alpha=self.alpha)

    @property
    def alpha(self) -> Array:
        """The concentrations α."""
        return self._parameters["alpha"]

    @property
    def n_categories(self) -> int:
        """The number K of categories."""
        return int(self.alpha.shape[-1])

    def _absorb(self, weight: Array, total: Array) -> Self:
        if np.any(total < 0.0):
            raise DataError(f"{type(self).__name__}: statistics must be counts >= 0, got {float(np.min(total))!r}.")
        return type(self)(self.alpha + total)

    def marginal(self, name: str | None = None) -> Dirichlet:
        """Return the Dirichlet distribution of p."""
        self._name(name)
        return Dirichlet(self.alpha)

    def logpdf(self, member: Any) -> Array:
        """Return the log-density of p at a member of the family."""
        return self.marginal().logpdf(member.p)

    def _centre(self) -> Array:
        p = np.maximum(self.marginal().mean, _LEAST)
        return p / p.sum(axis=-1, keepdims=True)

    def _mode(self) -> Array:
        excess = self.alpha - 1.0
        if np.any(excess < 0.0) or not np.all(excess.sum(axis=-1) > 0.0):
            raise no_mode(self, "every alpha >= 1, not all equal to 1")
        return excess / excess.sum(axis=-1, keepdims=True)

    def _interval_of(self, name: str, level: float) -> tuple[Array, Array]:
        # Each entry of p has a Beta distribution.
        total = self.alpha.sum(axis=-1, keepdims=True)
        rest = np.maximum(total - self.alpha, np.finfo(float).tiny)
        return Beta(self.alpha, rest).interval(level)


class DirichletMultinomial(_DirichletPair):
    """A Dirichlet prior of the probabilities of K categories, for vectors of counts; or an array of them.

    Parameters
    ----------
    alpha : array of shape (..., K)
        How often each category was seen in advance, as it were; > 0. 1 is flat.

    Examples
    --------
    >>> posterior = DirichletMultinomial([1.0, 1.0, 1.0]).update([[3, 0, 1], [2, 1, 0]])
    >>> posterior.alpha
    array([6., 2., 2.])
    >>> posterior.map()
    Multinomial(n=1.0, p=[0.7143, 0.1429, 0.1429])
    >>> posterior.predictive(n=2).pmf([2, 0, 0])
    np.float64(0.3818)
    """

    _rank = 1

    def _require_support(self, x: Array) -> None:
        if x.shape[-1] != self.n_categories:
            raise DataError(
                f"{type(self).__name__}: an observation must have {self.n_categories} counts, got {x.shape[-1]}."
            )
        refuse(self, x, is_count(x), "vectors of whole numbers >= 0")

    def _learn(self, x: Array, w: Array) -> Self:
        return self._absorb(np.asarray(w.sum()), np.tensordot(w, x, axes=1))

    def log_marginal_likelihood(self, data: ArrayLike, weights: ArrayLike | None = None) -> Array:
        """Return the log-evidence of vectors of counts, each given its sum."""
        x, w = self._read(data, weights)
        posterior = self._learn(x, w)
        p = posterior._centre()
        likelihood = np.tensordot(w, np.atleast_1d(Multinomial(x.sum(axis=-1), p).logpmf(x)), axes=1)
        return (likelihood + self.marginal().logpdf(p) - posterior.marginal().logpdf(p))[()]  # type: ignore[no-any-return]

    def _member(self) -> Multinomial:
        return Multinomial(1.0, self._centre())

    def predictive(self, n: ArrayLike = 1) -> Any:
        """Return the distribution of the counts in the next n draws."""
        if np.all(np.asarray(n) == 1):
            return Multinomial(1.0, self.marginal().mean)
        return DirichletMultinomialCounts(n, self.alpha)

    def map(self) -> Multinomial:
        """Return the member with p = (α - 1)/Σ(α - 1), for one draw."""
        return Multinomial(1.0, self._mode())

    def sample(self, size: Size = (), random_state: RandomState = None) -> Multinomial:
        """Draw members, as an array of distributions of shape `size`, then the batch's."""
        return Multinomial(1.0, self.marginal().sample(size, random_state))


class DirichletCategorical(_DirichletPair):
    """A Dirichlet prior of the probabilities of K categories, for codes 0, …, K - 1; or an array of them.

    Parameters
    ----------
    alpha : array of shape (..., K)
        How often each category was seen in advance, as it were; > 0. 1 is flat.

    Examples
    --------
    >>> posterior = DirichletCategorical([1.0, 1.0, 1.0]).update([0, 0, 2])
    >>> posterior.predictive().p
    array([0.5   , 0.1667, 0.3333])
    """

    def _require_support(self, x: Array) -> None:
        inside = is_count(x) & (x < self.n_categories)
        refuse(self, x, inside, f"whole numbers from 0 to {self.n_categories - 1}")

    def _learn(self, x: Array, w: Array) -> Self:
        if x.ndim == 1:
            total = np.bincount(x.astype(np.intp), w, self.n_categories).astype(np.float64)
        else:
            total = np.stack([np.tensordot(w, x == k, axes=1) for k in range(self.n_categories)], axis=-1)
        return self._absorb(np.asarray(w.sum()), total)

    def _member(self) -> Categorical:
        return Categorical(self._centre())

    def predictive(self) -> Categorical:
        """Return the distribution of the next category."""
        return Categorical(self.marginal().mean)

    def map(self) -> Categorical:
        """Return the member with p = (α - 1)/Σ(α - 1)."""
        return Categorical(self._mode())

    def sample(self, size: Size = (), random_state: RandomState = None) -> Categorical:
        """Draw members, as an array of distributions of shape `size`, then the batch's."""
        return Categorical(self.marginal().sample(size, random_state))
