"""Thompson sampling with any conjugate pair of `learnable.probability`, in Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import AnyArray, DataError, ParameterError
from ...probability import conjugate as pairs
from ...probability.conjugate import Conjugate
from .._random import uniform
from ._kernels import CHANCE, COUNT, ROUND, SUM
from .policy import Policy

#: Draws that estimate the probability of each arm.
_DRAWS = 4000


@dataclass(eq=False, repr=False)
class PosteriorSampling(Policy):
    """Draw a member of the family from each arm's posterior and play the arm whose mean is greatest.

    Parameters
    ----------
    prior : Conjugate, or tuple (name, parameters)
        A pair of one real observation, such as `NormalInverseGamma`; it is kept as its name and numbers.

    Examples
    --------
    >>> from learnable.probability import NormalInverseGamma
    >>> policy = PosteriorSampling(2, prior=NormalInverseGamma(), random_state=0)
    >>> for reward in (0.3, 1.2, 0.1):
    ...     policy.update(policy.act(), reward)
    >>> policy.rounds
    3
    """

    prior: Any = None

    def act(self, context: Any = None) -> int:
        """Return the arm to play."""
        if not self.active.any():
            raise DataError("PosteriorSampling: there is no arm left to play; call add_arm.")
        means = self._draw_means(1, int(uniform(self.state["rng"]) * 2**53))[0]
        chosen = int(np.argmax(np.where(self.active, means, -np.inf)))
        self._remember(chosen, np.nan)
        return chosen

    def update(self, arm: int, reward: float, id: int | None = None, *, cost: float = 0.0) -> None:
        """Learn what an arm earned."""
        number = self._arm("update", arm)
        value = self._reward(reward, number)
        self._recall(number, id)
        after = self.posterior(number).update([value])
        self.state["posterior"][number] = [float(x) for x in after.parameters.values()]
        self.state["arms"][COUNT, number] += 1.0
        self.state["arms"][SUM, number] += value
        self.state["meta"][ROUND] += 1.0

    def posterior(self, arm: int) -> Conjugate:
        """Return what is known about an arm."""
        name, names, _ = self._settings()
        values = self.state["posterior"][self._arm("posterior", arm)]
        made: Conjugate = getattr(pairs, name)(**dict(zip(names, values.tolist(), strict=True)))
        return made

    def propensities(self, context: Any = None) -> AnyArray:
        """Return the share of 4,000 draws in which each arm was best."""
        means = np.where(self.active, self._draw_means(_DRAWS, 0), -np.inf)
        return np.bincount(means.argmax(axis=1), minlength=self.n_arms) / _DRAWS

    def add_arm(self) -> int:
        """Add an arm with the prior."""
        self.state["posterior"] = np.vstack([self.state["posterior"], self._settings()[2]])
        return super().add_arm()

    def _draw_means(self, size: int, seed: int) -> AnyArray:
        generator = np.random.default_rng(seed)
        drawn = [self.posterior(arm).sample((size,), generator).mean for arm in range(self.n_arms)]
        return np.column_stack([np.broadcast_to(np.asarray(mean), (size,)) for mean in drawn])

    def _settings(self) -> tuple[str, list[str], list[float]]:
        name, numbers = self.prior
        return name, list(numbers), [float(value) for value in numbers.values()]

    def _new_state(self, rng: AnyArray) -> dict[str, AnyArray]:
        state = super()._new_state(rng)
        state["arms"][CHANCE] = np.nan
        state["posterior"] = np.tile(self._settings()[2], (self.n_arms, 1))
        return state

    def _check(self) -> None:
        if isinstance(self.prior, Conjugate):
            if any(np.ndim(value) for value in self.prior.parameters.values()):
                raise ParameterError("PosteriorSampling: prior must be one pair of one real observation, not an array.")
            numbers = {name: float(np.asarray(value)) for name, value in self.prior.parameters.items()}
            self.prior = (type(self.prior).__name__, numbers)
        known = isinstance(self.prior, (tuple, list)) and len(self.prior) == 2 and self.prior[0] in dir(pairs)
        if not known:
            raise ParameterError(f"PosteriorSampling: prior must be a conjugate pair; got {self.prior!r}.")
