"""Where policies are tried: rewards that are random, chosen by an adversary, drifting, corrupted, late, or costly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core import AnyArray, DataError
from ...probability import Bernoulli, Distribution, Normal, Univariate
from . import _kernels as k


@dataclass(frozen=True, eq=False)
class Environment:
    """Arms and what they earn; made by `stochastic`, `drifting` and `adversarial`.

    Attributes
    ----------
    kind : str
        "bernoulli", "normal", "table" (rewards are given), or "family" (any distribution, drawn by NumPy).
    means : array of shape (1 or T, k)
        Mean rewards, or the rewards themselves.
    sigma : array of shape (k,)
        Standard deviations of normal rewards.
    laws : tuple of Distribution
        The arms' distributions where they are known.
    corruption : array of shape (T or 0, k)
        What an adversary adds to the rewards that the policy sees.
    costs : array of shape (k,)
        What a round of each arm costs.
    budget : float
        What may be spent in all.
    delay : float
        Rounds until a reward is seen; with `random_delay` the mean of a geometric law.
    random_delay : bool
        Whether delays are random.
    """

    kind: str
    means: AnyArray
    sigma: AnyArray
    laws: tuple[Any, ...] = ()
    corruption: AnyArray = field(default_factory=lambda: np.zeros((0, 1)))
    costs: AnyArray = field(default_factory=lambda: np.zeros(0))
    budget: float = np.inf
    delay: float = 0.0
    random_delay: bool = False

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return int(self.means.shape[1])

    @property
    def is_stationary(self) -> bool:
        """Whether the laws of the rewards stay as they are."""
        return self.kind != "table" and len(self.means) == 1

    @property
    def gaps(self) -> AnyArray:
        """Δ_a, what an arm earns less than the best one; of a stationary environment."""
        mean = self.means[0]
        return np.asarray(mean.max() - mean)

    @property
    def corruption_budget(self) -> float:
        """The most that an adversary can have changed: Σ_t max_a of the changes."""
        return float(abs(self.corruption).max(axis=1, initial=0.0).sum())

    @property
    def code(self) -> int:
        """The environment's number in the kernels."""
        return {"bernoulli": k.BERNOULLI, "normal": k.NORMAL}.get(self.kind, k.TABLE)

    def rewards(self, horizon: int, rng: np.random.Generator) -> AnyArray:
        """Draw the rewards of all arms for all rounds of one replication."""
        drawn = [np.asarray(law.sample((horizon,), rng), dtype=np.float64) for law in self.laws]
        return np.ascontiguousarray(np.column_stack(drawn))

    def with_corruption(self, changes: Any) -> Environment:
        """Return the environment with changes of shape (T, k) to the rewards that policies see."""
        table = np.ascontiguousarray(changes, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != self.n_arms or not np.isfinite(table).all():
            raise DataError(
                f"Environment: changes must be finite, of shape (rounds, {self.n_arms}); got {table.shape}."
            )
        return self._with(corruption=table)

    def with_budget(self, budget: float, costs: Any) -> Environment:
        """Return the environment in which a round of arm a costs `costs[a]` and play ends with the budget."""
        prices = np.asarray(costs, dtype=np.float64)
        if prices.shape != (self.n_arms,) or not (prices > 0.0).all() or not budget > 0.0:
            raise DataError(f"Environment: needs {self.n_arms} positive costs and a positive budget.")
        return self._with(costs=prices, budget=float(budget))

    def with_delay(self, delay: float, *, random: bool = False) -> Environment:
        """Return the environment in which rewards are seen `delay` rounds late, or so late on average."""
        if not (delay >= 0.0 and np.isfinite(delay)):
            raise DataError(f"Environment: delay must be a number >= 0; got {delay!r}.")
        return self._with(delay=float(delay), random_delay=random)

    def _with(self, **changes: Any) -> Environment:
        from dataclasses import replace

        return replace(self, **changes)


def stochastic(arms: Any, *, sigma: Any = None) -> Environment:
    """Return arms whose rewards are independent draws.

    Parameters
    ----------
    arms : sequence of float, or of distributions
        Probabilities of success (Bernoulli rewards); with `sigma`, means of normal rewards; or any distributions of
        `learnable.probability`, one per arm.
    sigma : float or array, optional
        Standard deviations of normal rewards.

    Examples
    --------
    >>> from learnable.decisions.bandits import stochastic
    >>> from learnable.probability import Exponential
    >>> stochastic([0.2, 0.5]).kind, stochastic([0.0, 1.0], sigma=1.0).kind
    ('bernoulli', 'normal')
    >>> stochastic([Exponential(1.0), Exponential(2.0)]).gaps
    array([0. , 0.5])
    """
    given = list(arms)
    if not given:
        raise DataError("stochastic: there must be at least one arm.")
    if isinstance(given[0], Distribution):
        return _from_laws(given)
    means = np.asarray(given, dtype=np.float64)[None]
    if means.ndim != 2 or not np.isfinite(means).all():
        raise DataError("stochastic: arms must be finite numbers or distributions.")
    if sigma is not None:
        spread = np.broadcast_to(np.asarray(sigma, dtype=np.float64), means.shape[1:]).copy()
        if not (spread > 0.0).all():
            raise DataError(f"stochastic: sigma must be positive; got {sigma!r}.")
        return Environment("normal", means, spread, tuple(Normal(m, s) for m, s in zip(means[0], spread, strict=True)))
    if not ((means >= 0.0) & (means <= 1.0)).all():
        raise DataError(f"stochastic: probabilities must be in [0, 1]; got {given}; for normal rewards give sigma.")
    return Environment("bernoulli", means, np.full(means.shape[1], 0.5), tuple(Bernoulli(p) for p in means[0]))


def drifting(means: Any, *, sigma: float | None = None) -> Environment:
    """Return arms whose means follow a table of shape (rounds, arms): Bernoulli rewards, or normal ones with sigma."""
    table = np.ascontiguousarray(means, dtype=np.float64)
    if table.ndim != 2 or len(table) < 2 or not np.isfinite(table).all():
        raise DataError(f"drifting: means must be a finite table of shape (rounds, arms); got {table.shape}.")
    if sigma is None and not ((table >= 0.0) & (table <= 1.0)).all():
        raise DataError("drifting: probabilities must be in [0, 1]; for normal rewards give sigma.")
    spread = np.full(table.shape[1], 0.5 if sigma is None else sigma)
    return Environment("bernoulli" if sigma is None else "normal", table, spread)


def adversarial(rewards: Any) -> Environment:
    """Return arms whose rewards are a table of shape (rounds, arms), fixed in advance, with values in [0, 1]."""
    table = np.ascontiguousarray(rewards, dtype=np.float64)
    if table.ndim != 2 or not ((table >= 0.0) & (table <= 1.0)).all():
        raise DataError("adversarial: rewards must be a table of shape (rounds, arms) with values in [0, 1].")
    return Environment("table", table, np.zeros(table.shape[1]))


def _from_laws(laws: list[Any]) -> Environment:
    if not all(isinstance(law, Univariate) and law.batch_shape == () for law in laws):
        raise DataError("stochastic: arms must be single distributions of one real number each.")
    means = np.array([[float(law.mean) for law in laws]])
    spread = np.array([float(law.std) for law in laws])
    if not np.isfinite(means).all():
        raise DataError("stochastic: every arm must have a finite mean.")
    if all(type(law) is Bernoulli for law in laws):
        return Environment("bernoulli", means, spread, tuple(laws))
    if all(type(law) is Normal for law in laws):
        return Environment("normal", means, spread, tuple(laws))
    return Environment("family", means, spread, tuple(laws))
