"""Several arms at once: semi-bandits with any oracle, and the identification of the best m arms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core import AnyArray, DataError, ParameterError
from ._kernels import ACTIVE, COUNT, ROUND, SUM, kl_bounds
from .environments import Environment
from .policy import Policy, require


@dataclass(eq=False, repr=False)
class CombinatorialUCB(Policy):
    """Play a set of arms each round and see the reward of each (semi-bandit): CombUCB1.

    Parameters
    ----------
    m : int
        Size of a set, for the default oracle, which takes the m greatest indices.
    oracle : function of an array of shape (n_arms,), optional
        Returns the set of arms, as indices, whose sum of indices is greatest: a matching, a path, a spanning tree.
    sigma : float
        Deviations of rewards are σ-subgaussian.

    Examples
    --------
    >>> policy = CombinatorialUCB(3, m=2)
    >>> for _ in range(3):
    ...     arms = policy.act_set()
    ...     policy.update_set(arms, [0.2, 0.5])
    >>> policy.rounds
    3

    References
    ----------
    B. Kveton et al., Tight regret bounds for stochastic combinatorial semi-bandits, AISTATS 2015.
    """

    m: int = 1
    oracle: Any = None
    sigma: float = 0.5
    code: ClassVar[int] = -1

    def act(self, context: Any = None) -> int:
        """Refuse: a set is played; use `act_set`."""
        raise DataError("CombinatorialUCB: plays sets of arms; call act_set and update_set.")

    def act_set(self) -> AnyArray:
        """Return the set of arms to play, as sorted indices."""
        arms = self.state["arms"]
        t = self.rounds + 1
        count = np.maximum(arms[COUNT], 1e-300)
        bonus = np.sqrt(6.0 * self.sigma**2 * math.log(max(t, 2)) / count)  # √(1.5 log t/N) for rewards in [0, 1]
        index = np.where(arms[COUNT] > 0.0, arms[SUM] / count + bonus, 1e12)
        index = np.where(arms[ACTIVE] > 0.0, index, -1e12)
        if self.oracle is None:
            chosen = np.argsort(-index, kind="stable")[: self.m]
        else:
            chosen = np.asarray(self.oracle(index.copy()))
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or len(set(chosen.tolist())) != len(chosen):
            raise DataError(f"CombinatorialUCB: the oracle must return different arms as integers; got {chosen!r}.")
        if len(chosen) == 0 or chosen.min() < 0 or chosen.max() >= self.n_arms:
            raise DataError(f"CombinatorialUCB: the oracle must return arms from 0 to {self.n_arms - 1}.")
        return np.sort(chosen)

    def update_set(self, arms: Any, rewards: Any) -> None:
        """Learn what each arm of a set earned."""
        numbers = [self._arm("update_set", arm) for arm in np.asarray(arms).tolist()]
        values = [self._reward(reward, arm) for arm, reward in zip(numbers, rewards, strict=True)]
        self.state["arms"][COUNT, numbers] += 1.0
        self.state["arms"][SUM, numbers] += values
        self.state["meta"][ROUND] += 1.0

    def propensities(self, context: Any = None) -> AnyArray:
        """Return one for the arms of the next set, zero for the others."""
        found = np.zeros(self.n_arms)
        found[self.act_set()] = 1.0
        return found

    def _check(self) -> None:
        require(self, "m", self.m, 1, self.n_arms)
        if self.oracle is not None and not callable(self.oracle):
            raise ParameterError(f"CombinatorialUCB: oracle must be a function of an array; got {self.oracle!r}.")


@dataclass(eq=False, repr=False)
class SuccessiveRejects(Policy):
    """Find the best m arms within a budget of rounds: play all equally, reject or accept one arm per phase.

    With m = 1 it rejects the worst arm of each phase (Audibert, Bubeck and Munos 2010); with more it accepts or rejects
    the arm whose gap to the boundary is greatest (Bubeck, Wang and Viswanathan 2013).

    Parameters
    ----------
    m : int
        How many arms are sought.
    budget : int
        Rounds n; at least the number of arms.

    Examples
    --------
    >>> policy = SuccessiveRejects(3, budget=30)
    >>> while not policy.done:
    ...     arm = policy.act()
    ...     policy.update(arm, [0.1, 0.9, 0.2][arm])
    >>> policy.recommend()
    array([1])
    """

    m: int = 1
    budget: int = 1000

    def act(self, context: Any = None) -> int:
        """Return the next arm of the phase."""
        if self.done:
            raise DataError("SuccessiveRejects: the budget is spent; call recommend.")
        undecided = np.flatnonzero(self.state["arms"][ACTIVE] > 0.0)
        chosen = int(undecided[np.argmin(self.state["arms"][COUNT, undecided])])
        self._remember(chosen, 1.0)
        return chosen

    def update(self, arm: int, reward: float, id: int | None = None, *, cost: float = 0.0) -> None:
        """Learn a reward; at the end of a phase decide about one arm."""
        number = self._arm("update", arm)
        value = self._reward(reward, number)
        self._recall(number, id)
        arms = self.state["arms"]
        arms[COUNT, number] += 1.0
        arms[SUM, number] += value
        self.state["meta"][ROUND] += 1.0
        while not self.done and arms[COUNT, arms[ACTIVE] > 0.0].min() >= self._phase_length():
            self._decide()

    @property
    def done(self) -> bool:
        """Whether all arms are decided."""
        return int((self.state["arms"][ACTIVE] > 0.0).sum()) == 0

    def recommend(self) -> AnyArray:
        """Return the best m arms as far as is known."""
        accepted = np.flatnonzero(self.state["accepted"] > 0)
        undecided = np.flatnonzero(self.state["arms"][ACTIVE] > 0.0)
        order = undecided[np.argsort(-np.nan_to_num(self.means[undecided]), kind="stable")]
        return np.sort(np.concatenate([accepted, order[: self.m - len(accepted)]]).astype(np.int64))

    def _phase_length(self) -> int:
        """Return n_j = ⌈(n − k)/(loḡ(k)(k + 1 − j))⌉, with loḡ(k) = ½ + Σ_{i=2}^k 1/i."""
        k = self.n_arms
        phase = k - int((self.state["arms"][ACTIVE] > 0.0).sum()) + 1
        log_bar = 0.5 + sum(1.0 / i for i in range(2, k + 1))
        return max(math.ceil((self.budget - k) / (log_bar * (k + 1 - phase))), 1)

    def _decide(self) -> None:
        arms = self.state["arms"]
        undecided = np.flatnonzero(arms[ACTIVE] > 0.0)
        wanted = self.m - int(self.state["accepted"].sum())
        order = undecided[np.argsort(-self.means[undecided], kind="stable")]
        if wanted == 0 or wanted == len(order):
            self.state["accepted"][order] = float(wanted > 0)
            arms[ACTIVE, order] = 0.0
            return
        means = self.means[order]
        best_gap = means[0] - means[wanted]
        worst_gap = means[wanted - 1] - means[-1]
        accept = best_gap > worst_gap and self.m > 1
        decided = order[0] if accept else order[-1]
        self.state["accepted"][decided] = float(accept)
        arms[ACTIVE, decided] = 0.0
        if arms[ACTIVE].sum() == self.m - self.state["accepted"].sum():
            self._decide()

    def _new_state(self, rng: AnyArray) -> dict[str, AnyArray]:
        return super()._new_state(rng) | {"accepted": np.zeros(self.n_arms)}

    def _check(self) -> None:
        require(self, "m", self.m, 1, max(self.n_arms - 1, 1))
        require(self, "budget", self.budget, self.n_arms)


@dataclass(eq=False, repr=False)
class LUCB(Policy):
    """Find m arms that are, with probability 1 − δ, within ε of the best m: play the two arms that could be mistaken.

    Bernoulli rewards use the divergence (KL-LUCB), others Hoeffding's bound for σ-subgaussian rewards.

    Examples
    --------
    >>> policy = LUCB(2, delta=0.1)
    >>> while not policy.done:
    ...     arm = policy.act()
    ...     policy.update(arm, [0.0, 1.0][arm])
    >>> policy.recommend()
    array([1])

    References
    ----------
    S. Kalyanakrishnan et al., PAC subset selection in stochastic multi-armed bandits, ICML 2012; E. Kaufmann and
    S. Kalyanakrishnan, Information complexity in bandit subset selection, COLT 2013.
    """

    m: int = 1
    delta: float = 0.05
    epsilon: float = 0.0
    sigma: float = 0.5
    bernoulli: bool = True

    def act(self, context: Any = None) -> int:
        """Return the arm to play: first each once, then in turn the two that are hardest to tell apart."""
        count = self.state["arms"][COUNT]
        if (count == 0.0).any():
            chosen = int(np.argmax(count == 0.0))
        else:
            pair = self._doubtful()[:2]
            chosen = pair[0] if count[pair[0]] <= count[pair[1]] else pair[1]
        self._remember(chosen, 1.0)
        return chosen

    def update(self, arm: int, reward: float, id: int | None = None, *, cost: float = 0.0) -> None:
        """Learn a reward."""
        number = self._arm("update", arm)
        value = self._reward(reward, number)
        if self.bernoulli and not 0.0 <= value <= 1.0:
            raise DataError(f"LUCB: rewards must be in [0, 1]; got {value!r} of arm {arm}; set bernoulli=False.")
        self._recall(number, id)
        self.state["arms"][COUNT, number] += 1.0
        self.state["arms"][SUM, number] += value
        self.state["meta"][ROUND] += 1.0

    @property
    def done(self) -> bool:
        """Whether the bounds of the best m arms and of the others are apart."""
        if (self.state["arms"][COUNT] == 0.0).any():
            return False
        gap = self._doubtful()[2]
        return gap <= self.epsilon

    def recommend(self) -> AnyArray:
        """Return the m arms of the greatest means."""
        return np.sort(np.argsort(-np.nan_to_num(self.means, nan=-np.inf), kind="stable")[: self.m])

    def _bounds(self) -> tuple[AnyArray, AnyArray]:
        count = self.state["arms"][COUNT]
        mean = self.means
        t = max(self.rounds, 1)
        rate = math.log(405.5 * self.n_arms * t**1.1 / self.delta)  # k₁ = 405.5, α = 1.1 (Kaufmann and Kalyanakrishnan)
        rate += math.log(max(rate, math.e))
        if not self.bernoulli:
            half = np.sqrt(2.0 * self.sigma**2 * rate / count)
            return mean - half, mean + half
        low, high = np.empty((2, self.n_arms))
        kl_bounds(mean, count, rate, low, high)
        return low, high

    def _doubtful(self) -> tuple[int, int, float]:
        """Return the weakest of the best m arms, the strongest of the others, and how far their bounds overlap."""
        known = vars(self).get("_known")
        if known is not None and known[0] == self.rounds:
            return known[1]  # type: ignore[no-any-return]
        low, high = self._bounds()
        order = np.argsort(-self.means, kind="stable")
        best = order[: self.m]
        rest = order[self.m :]
        weakest = int(best[np.argmin(low[best])])
        strongest = int(rest[np.argmax(high[rest])])
        found = (weakest, strongest, float(high[strongest] - low[weakest]))
        self._known = (self.rounds, found)
        return found

    def _check(self) -> None:
        require(self, "m", self.m, 1, max(self.n_arms - 1, 1))
        require(self, "delta", self.delta, 0.0, 1.0, low_open=True)
        require(self, "epsilon", self.epsilon, 0.0)
        require(self, "sigma", self.sigma, 0.0, low_open=True)


class Identification(NamedTuple):
    """How well a policy finds the best arms."""

    error: float  #: share of replications whose recommendation is wrong by more than ε
    rounds: AnyArray  #: (replications,) rounds until it recommended
    recommended: AnyArray  #: (replications, m)


def identify(
    policy: Any, environment: Environment, replications: int = 100, *, most_rounds: int = 10**6, random_state: Any = 0
) -> Identification:
    """Play `SuccessiveRejects` or `LUCB` until they recommend, many times.

    Parameters
    ----------
    policy : SuccessiveRejects or LUCB
        Its settings are used.
    environment : Environment
        Random rewards.
    replications : int
        How often.
    most_rounds : int
        A replication that takes longer recommends what it has.
    random_state : int or None
        Seed.
    """
    if not environment.laws:
        raise DataError("identify: needs random rewards; make the environment with `stochastic`.")
    means = environment.means[0]
    allowed = getattr(policy, "epsilon", 0.0)
    worst_of_best = np.sort(means)[::-1][policy.m - 1]
    rounds = np.zeros(replications, dtype=np.int64)
    found = np.zeros((replications, policy.m), dtype=np.int64)
    wrong = 0
    for rep, seed in enumerate(np.random.SeedSequence(random_state).spawn(replications)):
        rng = np.random.default_rng(seed)
        player = policy.restart(rng)
        draw = _drawer(environment, rng)
        while not player.done and player.rounds < most_rounds:
            arm = player.act()
            player.update(arm, draw(arm))
        rounds[rep] = player.rounds
        found[rep] = player.recommend()
        wrong += bool((means[found[rep]] < worst_of_best - allowed - 1e-12).any())
    return Identification(wrong / replications, rounds, found)


def _drawer(environment: Environment, rng: np.random.Generator) -> Callable[[int], float]:
    means = environment.means[0]
    sigma = environment.sigma
    if environment.kind == "bernoulli":
        return lambda arm: float(rng.random() < means[arm])
    if environment.kind == "normal":
        return lambda arm: float(means[arm] + sigma[arm] * rng.normal())
    return lambda arm: float(environment.laws[arm].sample((), rng))
