"""Proposals for Metropolis–Hastings: how the next point is suggested, and the ratio that makes the chain reversible.

A proposal has `propose(x, rng) → (x′, log q(x | x′) − log q(x′ | x))`. Every proposal alone leaves the target
invariant; so do a random choice among several (`MixtureOf`) and one after the other (`CycleOf`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ParameterError

Array = NDArray[np.float64]
Rng = np.random.Generator


class Proposal:
    """Base of all proposals."""

    def propose(self, x: Array, rng: Rng) -> tuple[Array, float]:
        """Return a point and log q(x | x′) − log q(x′ | x)."""
        raise TypeError(f"{type(self).__name__} does not define propose")


@dataclass(frozen=True)
class RandomWalk(Proposal):
    """A normal step: x′ = x + Sz. Scale and covariance are adapted to a target acceptance during warm-up, then frozen.

    Attributes
    ----------
    scale : float, array of shape (d,) or (d, d)
        The first step: a standard deviation, one for each coordinate, or a covariance matrix.
    adapt : bool
        Whether to adapt.
    target : float or None
        Acceptance to adapt to; None is 0.44 in one dimension and 0.234 in several (Gelman, Gilks and Roberts 1997).
    """

    scale: Any = 1.0
    adapt: bool = True
    target: float | None = None

    def factor(self, d: int) -> Array:
        """Return the first S, lower triangular."""
        scale = np.asarray(self.scale, dtype=np.float64)
        if not np.isfinite(scale).all() or scale.ndim > 2 or (scale.ndim and scale.shape[0] != d):
            raise ParameterError(f"RandomWalk: scale must be a number, {d} numbers or a {d} × {d} covariance matrix.")
        if scale.ndim == 2:
            try:
                return np.asarray(np.linalg.cholesky(scale), dtype=np.float64)
            except np.linalg.LinAlgError:
                raise ParameterError("RandomWalk: the covariance matrix must be positive definite.") from None
        if not (scale > 0).all():
            raise ParameterError(f"RandomWalk: scale must be positive; got {self.scale!r}.")
        return np.diag(np.broadcast_to(scale, (d,)).astype(np.float64))

    def aim(self, d: int) -> float:
        """Return the acceptance to adapt to."""
        if self.target is not None:
            return self.target
        return 0.44 if d == 1 else 0.234

    def propose(self, x: Array, rng: Rng) -> tuple[Array, float]:
        """Return x + Sz with the first S."""
        return x + self.factor(len(x)) @ rng.standard_normal(len(x)), 0.0


@dataclass(frozen=True)
class Independence(Proposal):
    """Points of a fixed distribution, whatever x: `sample(random_state=…)` and `logpdf(x)` as in `probability`.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.probability import Normal
    >>> from learnable.sampling import Independence
    >>> point, ratio = Independence(Normal(0, 2)).propose(np.zeros(1), np.random.default_rng(0))
    >>> ratio > 0  # from the mode to a less likely point
    True
    """

    distribution: Any

    def propose(self, x: Array, rng: Rng) -> tuple[Array, float]:
        """Return a draw and log q(x) − log q(x′)."""
        new = np.asarray(self.distribution.sample(random_state=rng), dtype=np.float64).reshape(x.shape)
        return new, self._log_density(x) - self._log_density(new)

    def _log_density(self, x: Array) -> float:
        rank = len(getattr(self.distribution, "event_shape", ()))
        point = x[0] if not rank and x.size == 1 else x
        return float(np.sum(self.distribution.logpdf(point)))


@dataclass(frozen=True)
class Custom(Proposal):
    """Any function `(x, rng) → (x′, log ratio)`; a function that returns x′ alone is taken for symmetric.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.sampling import Custom
    >>> step = Custom(lambda x, rng: x + 1.0)
    >>> step.propose(np.zeros(1), np.random.default_rng(0))
    (array([1.]), 0.0)
    """

    function: Callable[[Array, Rng], Any]

    def propose(self, x: Array, rng: Rng) -> tuple[Array, float]:
        """Return what the function suggests."""
        found = self.function(x.copy(), rng)
        point, ratio = found if isinstance(found, tuple) else (found, 0.0)
        new = np.asarray(point, dtype=np.float64)
        if new.shape != x.shape:
            raise ParameterError(f"metropolis_hastings: the proposal must keep the shape {x.shape}; got {new.shape}.")
        return new, float(ratio)


@dataclass(frozen=True)
class Conditional(Proposal):
    """Gibbs as Metropolis–Hastings: one coordinate from its full conditional, which is always accepted.

    q(x′ | x) = p(xᵢ′ | x₋ᵢ), so that the ratio p(x′)q(x | x′)/(p(x)q(x′ | x)) is 1.

    Attributes
    ----------
    place : int
        The coordinate.
    conditional : callable
        x ↦ a univariate distribution: that of coordinate `place` given the others.
    """

    place: int
    conditional: Callable[[Array], Any]

    def propose(self, x: Array, rng: Rng) -> tuple[Array, float]:
        """Return x with a new coordinate."""
        distribution = self.conditional(x)
        new = x.copy()
        new[self.place] = float(distribution.sample(random_state=rng))
        return new, float(distribution.logpdf(x[self.place]) - distribution.logpdf(new[self.place]))


class MixtureOf(Proposal):
    """One of several proposals, chosen at random with fixed probabilities in each step.

    The ratio is that of the chosen proposal: a mixture of reversible kernels is reversible.

    Examples
    --------
    >>> from learnable.sampling import MixtureOf, RandomWalk
    >>> MixtureOf([RandomWalk(0.1), RandomWalk(10.0)], [3, 1]).weights
    array([0.75, 0.25])
    """

    def __init__(self, proposals: Sequence[Any], weights: Sequence[float] | None = None) -> None:
        self.proposals = [as_proposal(one) for one in proposals]
        given = np.ones(len(self.proposals)) if weights is None else np.asarray(weights, dtype=np.float64)
        if len(given) != len(self.proposals) or not len(given) or (given < 0).any() or not given.sum() > 0:
            raise ParameterError("MixtureOf: weights must be one number of at least 0 for each proposal.")
        self.weights = given / given.sum()

    def propose(self, x: Array, rng: Rng) -> tuple[Array, float]:
        """Return what the chosen proposal suggests."""
        return self.proposals[int(rng.choice(len(self.proposals), p=self.weights))].propose(x, rng)


class CycleOf(Proposal):
    """Several proposals, one after the other in every step, each accepted or rejected by itself.

    Examples
    --------
    >>> from learnable.sampling import CycleOf, RandomWalk
    >>> len(CycleOf([RandomWalk(0.1), RandomWalk(10.0)]).proposals)
    2
    """

    def __init__(self, proposals: Sequence[Any]) -> None:
        self.proposals = [as_proposal(one) for one in proposals]
        if not self.proposals:
            raise ParameterError("CycleOf: pass at least one proposal.")

    def propose(self, x: Array, rng: Rng) -> tuple[Array, float]:
        """Refuse: a cycle is several proposals."""
        raise ParameterError("CycleOf: a cycle suggests no single point; metropolis_hastings takes its parts in turn.")


def as_proposal(given: Any) -> Proposal:
    """Return what a user passed as a proposal: one, a function, a number (scale of a random walk) or None."""
    if isinstance(given, Proposal):
        return given
    if given is None:
        return RandomWalk()
    if isinstance(given, (int, float)) and not isinstance(given, bool) and math.isfinite(given):
        return RandomWalk(scale=float(given))
    if callable(given):
        return Custom(given)
    if hasattr(given, "sample") and hasattr(given, "logpdf"):
        return Independence(given)
    raise ParameterError(f"metropolis_hastings: proposal must be a Proposal, a function or a scale; got {given!r}.")
