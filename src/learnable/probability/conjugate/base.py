r"""What every conjugate pair can do.

A prior π(θ) is conjugate to a family of likelihoods p(x | θ) if the posterior

$$ \pi(\theta \mid x_1, …, x_n) \propto \pi(\theta) \prod_i p(x_i \mid \theta)^{w_i} $$

is of the same form. For an exponential family it needs the data only through the total weight $W = \sum_i w_i$ and the
sum $\sum_i w_i t(x_i)$, so that updating twice equals updating once with all the data.

The marginal likelihood comes from Bayes' rule read backwards (the candidate's formula of Besag, 1989):

$$ p(x) = \frac{p(x \mid \theta)\, \pi(\theta)}{\pi(\theta \mid x)} \quad\text{for every } \theta. $$

At a θ in the middle of the posterior each of the three factors is computed to all its digits, where the textbook's
quotient of normalising constants loses nine of them at counts of 10⁹.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ...core.errors import DataError, ParameterError
from ..base import Array, Distribution, Frozen, RandomState, Size, Univariate

#: The total weight, of shape (...), and the weighted sum of t(x), of shape (..., S); both add over blocks.
Statistics: TypeAlias = tuple[ArrayLike, ArrayLike]


class Conjugate(Frozen):
    """A prior, or an array of priors, of the parameters of a family; its posteriors are of the same class.

    `map` and `sample` return members of that family: what is most probable, and what might be true.
    """

    #: How many trailing axes one observation has.
    _rank: ClassVar[int] = 0
    #: The parameters that have a distribution, in the family's own terms.
    _unknown: ClassVar[tuple[str, ...]] = ()

    def update(
        self, data: ArrayLike | None = None, weights: ArrayLike | None = None, *, statistics: Statistics | None = None
    ) -> Self:
        """Return the posterior after the data.

        Parameters
        ----------
        data : array of shape (n, ...), optional
            Observations along the first axis; the other axes broadcast against the batch. There may be none.
        weights : array of shape (n,), optional
            Non-negative; a weight of 2 counts as the same observation twice.
        statistics : tuple of array, optional
            Instead of data: their total weight and the weighted sum of t(x), as the family's `sum_statistic` gives
            them; those of several blocks add.
        """
        if (data is None) == (statistics is None):
            raise ParameterError(f"{type(self).__name__}: update needs either data or statistics, got both or neither.")
        if statistics is None:
            return self._learn(*self._read(data, weights))
        weight, total = (np.asarray(part, dtype=np.float64) for part in statistics)
        if not (np.all(weight >= 0.0) and np.all(np.isfinite(weight)) and np.all(np.isfinite(total))):
            raise DataError(f"{type(self).__name__}: statistics must be finite, with a weight >= 0, got {weight!s}.")
        return self._absorb(weight, total)

    def _learn(self, x: Array, w: Array) -> Self:
        """Return the posterior after checked data."""
        member = self._member()
        statistic = member.sufficient_statistic(x)
        return self._absorb(np.asarray(w.sum()), np.tensordot(w, statistic, axes=1))

    @abstractmethod
    def _absorb(self, weight: Array, total: Array) -> Self:
        """Return the posterior after observations of a total weight and a sum of t(x)."""

    @abstractmethod
    def _member(self) -> Any:
        """Return the member of the family in the middle of this distribution, for candidate's formula and t(x)."""

    @abstractmethod
    def logpdf(self, member: Any) -> Array:
        """Return the log-density of this prior or posterior at a member of the family."""

    @abstractmethod
    def predictive(self) -> Distribution:
        """Return the distribution of the next observation, the parameters integrated out."""

    @abstractmethod
    def map(self) -> Any:
        """Return the most probable member of the family; an error where the density has no single maximum."""

    @abstractmethod
    def sample(self, size: Size = (), random_state: RandomState = None) -> Any:
        """Draw members of the family, as an array of distributions of shape `size`, then the batch's."""

    @abstractmethod
    def marginal(self, name: str | None = None) -> Any:
        """Return the distribution of one unknown parameter, by its name; of the first one if left out."""

    def interval(self, level: float = 0.95) -> Any:
        """Return credible intervals (lower, upper), equal-tailed, of probability `level`.

        A pair with one unknown number or vector gives one interval; with several, a dict of them by name.
        """
        intervals = {name: self._interval_of(name, level) for name in self._unknown}
        return intervals if len(intervals) > 1 else intervals[self._unknown[0]]

    def _interval_of(self, name: str, level: float) -> tuple[Array, Array]:
        marginal: Univariate = self.marginal(name)
        return marginal.interval(level)

    def log_marginal_likelihood(self, data: ArrayLike, weights: ArrayLike | None = None) -> Array:
        """Return the logarithm of the probability of the data, the parameters integrated out: the evidence.

        Parameters
        ----------
        data : array of shape (n, ...)
            As for `update`.
        weights : array of shape (n,), optional
            Powers of the likelihoods, as for `update`.
        """
        x, w = self._read(data, weights)
        posterior = self._learn(x, w)
        member = posterior._member()
        likelihood = np.tensordot(w, np.atleast_1d(member.logpdf(x)), axes=1) if len(w) else 0.0
        return (likelihood + self.logpdf(member) - posterior.logpdf(member))[()]  # type: ignore[no-any-return]

    def _name(self, name: str | None) -> str:
        """Return the name of an unknown parameter, checked."""
        if name is None:
            return self._unknown[0]
        if name not in self._unknown:
            raise ParameterError(
                f"{type(self).__name__}: name must be one of {', '.join(self._unknown)}, got {name!r}."
            )
        return name

    def _read(self, data: ArrayLike | None, weights: ArrayLike | None) -> tuple[Array, Array]:
        """Return checked observations of positive weight along the first axis, and their weights."""
        owner = type(self).__name__
        x = np.asarray(data, dtype=np.float64)
        if x.ndim == self._rank:
            x = x[None]  # one observation
        if x.ndim < self._rank:
            raise DataError(f"{owner}: an observation has {self._rank} axes, got data of shape {x.shape}.")
        n_batch = len(self.batch_shape)
        if x.ndim > 1 + self._rank:
            rest = x.shape[1 : x.ndim - self._rank]
            try:
                np.broadcast_shapes(rest, self.batch_shape)
            except ValueError:
                raise DataError(
                    f"{owner}: the axes {rest} of the data do not broadcast against the {n_batch} of the priors, "
                    f"{self.batch_shape}."
                ) from None
        w = np.ones(x.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
        if w.shape != x.shape[:1]:
            raise DataError(f"{owner}: weights must have one entry an observation, shape {x.shape[:1]}, got {w.shape}.")
        if not np.all((w >= 0.0) & np.isfinite(w)):
            raise DataError(f"{owner}: weights must be finite and >= 0, got {w!s}.")
        if not np.all(w > 0.0):
            x = x[w > 0.0]
            w = w[w > 0.0]
        if not np.all(np.isfinite(x)):
            raise DataError(f"{owner}: observations must be finite, got NaN or infinity; give them weight 0.")
        # Observations have the batch's axes behind their number, so that they broadcast against the members.
        missing = n_batch - (x.ndim - 1 - self._rank)
        if missing > 0:
            x = x.reshape(x.shape[0], *(1,) * missing, *x.shape[1:])
        self._require_support(x)
        return x, w

    def _require_support(self, x: Array) -> None:
        """Raise a DataError about an observation that is impossible under every member of the family."""


def refuse(owner: object, x: Array, inside: Any, rule: str) -> None:
    """Raise a DataError about the first observation for which the rule does not hold."""
    if not np.all(inside):
        x, inside = np.broadcast_arrays(x, inside)
        raise DataError(f"{type(owner).__name__}: observations must be {rule}, got {float(x[~inside][0])!r}.")


def no_mode(owner: object, rule: str) -> ParameterError:
    """Return the error of a density without a single maximum."""
    return ParameterError(f"{type(owner).__name__}: map needs {rule}: the density has no single greatest value.")
