"""What every bandit policy is: `act` says an arm and its probability, `update` learns from the reward.

    arm = policy.act()
    policy.update(arm, reward)

Rewards that come late are given with the number of the decision: `policy.act()` sets `policy.last_id`, and
`policy.update(arm, reward, id=…)` learns from it whenever it arrives, with the probability that the arm had when it was
played. Arms may be added and taken away at any time. The whole state is a handful of arrays, the random stream
included: `ln.save` and `ln.load` go on exactly where they were.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from ...core import (
    RANDOM_STATE,
    AnyArray,
    DataError,
    Loadable,
    Number,
    ParameterError,
    check_parameters,
    law,
    laws,
)
from .._random import make_streams
from ._kernels import ACTIVE, CHANCE, COMMITTED, COST, COUNT, ROUND, SUM, WEIGHT, act, update

_ROWS = 6
_NO_RING = np.zeros((2, 0))
#: Decisions whose rewards are awaited at the same time; beyond it the oldest is given up.
MOST_PENDING = 10_000


@dataclass(eq=False, repr=False)
class Policy(Loadable):
    """Base of the policies; not to be used directly.

    Parameters
    ----------
    n_arms : int
        Number of arms k.
    random_state : int, Generator or None
        Seed of the policy's own stream.
    state : dict, optional
        The state of a policy that goes on; made by the policy itself.

    Examples
    --------
    >>> from learnable.decisions.bandits import UCB
    >>> policy = UCB(2)
    >>> policy.act(), policy.last_id, policy.last_propensity
    (0, 0, 1.0)
    """

    n_arms: int
    random_state: Any = None
    state: Any = None

    #: The policy's number in the kernels.
    code: ClassVar[int] = -1
    #: Whether every decision has a known set of probabilities without an integral.
    mixes: ClassVar[bool] = False
    #: Lowest and highest reward that the policy's proofs allow; None if any.
    reward_range: ClassVar[tuple[float, float] | None] = None
    _saves_alone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_parameters(owner, {"n_arms": self.n_arms}, {"n_arms": Number(low=1, integer=True)})
        if self.state is None:
            check_parameters(owner, {"random_state": self.random_state}, {"random_state": RANDOM_STATE})
            self._check()
            self.state = self._new_state(make_streams(self.random_state, 1, purpose=1)[0])
        else:
            self._check()
        if not isinstance(self.random_state, (int, np.integer, type(None))):
            self.random_state = None  # its stream is in the state now

    def act(self, context: Any = None) -> int:
        """Return the arm to play; `last_id` and `last_propensity` tell the decision's number and probability."""
        state = self.state
        arms = state["arms"]
        meta = state["meta"]
        if not arms[ACTIVE].any():
            raise DataError(f"{type(self).__name__}: there is no arm left to play; call add_arm.")
        chosen = int(act(self.code, state["par"], self._scheduled(), state["rng"], arms, meta))
        self._remember(chosen, arms[CHANCE, chosen])
        return chosen

    def update(self, arm: int, reward: float, id: int | None = None, *, cost: float = 0.0) -> None:
        """Learn what an arm earned.

        Parameters
        ----------
        arm : int
            The arm that was played.
        reward : float
            What it earned.
        id : int, optional
            The number of the decision, `last_id`, for rewards that come late; without it the last decision for this arm
            is meant. Up to 10,000 decisions can wait for their rewards.
        cost : float
            What playing it cost, for policies with a budget.
        """
        number = self._arm("update", arm)
        value = self._reward(reward, number)
        chance = self._recall(number, id)
        state = self.state
        ring = state.get("ring", _NO_RING)
        update(self.code, state["par"], state["arms"], state["meta"], ring, number, value, chance, float(cost))

    @property
    def last_id(self) -> int:
        """The number of the last decision."""
        return int(self.state["next_id"][0]) - 1

    @property
    def last_propensity(self) -> float:
        """The probability with which the last arm was played."""
        pending = self.state["pending"]
        if len(pending) == 0 or pending[-1, 0] != self.last_id:
            raise DataError(f"{type(self).__name__}: there is no decision whose reward is still awaited; call act.")
        chance = float(pending[-1, 2])
        return self._chance_of(int(pending[-1, 1])) if np.isnan(chance) else chance

    def propensities(self, context: Any = None) -> AnyArray:
        """Return the probability of every arm in the next decision, without taking it."""
        arms = self.state["arms"].copy()
        meta = self.state["meta"].copy()
        par = self.state["par"].copy()
        rng = self.state["rng"].copy()
        act(self.code, par, self._scheduled(), rng, arms, meta)
        return np.asarray(arms[CHANCE])

    @property
    def counts(self) -> AnyArray:
        """How often each arm was learned from; with forgetting, how much of it is remembered."""
        return np.array(self.state["arms"][COUNT])

    @property
    def means(self) -> AnyArray:
        """The mean reward of each arm so far; NaN before its first."""
        arms = self.state["arms"]
        return np.divide(arms[SUM], arms[COUNT], out=np.full(self.n_arms, np.nan), where=arms[COUNT] > 0)

    @property
    def rounds(self) -> int:
        """Rewards learned from."""
        return int(self.state["meta"][ROUND])

    @property
    def active(self) -> AnyArray:
        """Which arms may be played."""
        return np.array(self.state["arms"][ACTIVE] > 0.0)

    def add_arm(self) -> int:
        """Add an arm about which nothing is known yet; return its number."""
        new = np.zeros((_ROWS, 1))
        new[ACTIVE] = 1.0
        weights = self.state["arms"][WEIGHT, self.active]
        new[WEIGHT] = weights.max() if len(weights) else 0.0
        self.state["arms"] = np.ascontiguousarray(np.hstack([self.state["arms"], new]))
        self.n_arms += 1
        return self.n_arms - 1

    def remove_arm(self, arm: int) -> None:
        """Never play an arm again; its number stays its own."""
        self.state["arms"][ACTIVE, self._arm("remove_arm", arm)] = 0.0

    def restart(self, random_state: Any = None) -> Self:
        """Return a policy of the same settings that has learned nothing."""
        settings = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("state", "random_state")}
        return type(self)(**settings, random_state=random_state)

    def schedule(self, horizon: int) -> AnyArray:
        """Return β_t or ε_t for the rounds 1 … horizon; zeros for policies without one."""
        return np.zeros(1)

    def parameters(self, horizon: int | None = None) -> AnyArray:
        """Return the numbers that the compiled policy reads."""
        return np.zeros(4)

    def __repr__(self) -> str:
        shown = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.name not in ("state", "random_state")]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _check(self) -> None:
        """Raise ParameterError unless the settings make sense."""

    def _ring_size(self) -> int:
        """Return how many rounds are remembered one by one."""
        return 0

    def _new_state(self, rng: AnyArray) -> dict[str, AnyArray]:
        arms = np.zeros((_ROWS, self.n_arms))
        arms[ACTIVE] = 1.0
        meta = np.zeros(4)
        meta[COMMITTED] = -1.0
        state = {"arms": arms, "meta": meta, "rng": np.array(rng, dtype=np.uint64), "par": self.parameters()}
        state |= {"pending": np.zeros((0, 3)), "next_id": np.zeros(1, dtype=np.int64)}
        if self._ring_size():
            state["ring"] = np.full((2, self._ring_size()), -1.0)
        return state

    def _scheduled(self) -> float:
        """Return β_t or ε_t of the next round."""
        return float(self.schedule(self.rounds + 1)[-1])

    def _remember(self, arm: int, chance: float) -> None:
        row = np.array([[float(self.state["next_id"][0]), float(arm), float(chance)]])
        self.state["pending"] = np.vstack([self.state["pending"][-MOST_PENDING + 1 :], row])
        self.state["next_id"][0] += 1

    def _recall(self, arm: int, id: int | None) -> float:
        """Return the probability with which an arm was played, and forget the decision."""
        pending = self.state["pending"]
        if id is None:
            hits = np.flatnonzero(pending[:, 1] == arm)[-1:] if len(pending) else np.zeros(0, dtype=int)
        else:
            hits = np.flatnonzero(pending[:, 0] == id)
            if len(hits) == 0:
                raise DataError(
                    f"{type(self).__name__}: no reward of decision {id!r} is awaited; it was given already, or the "
                    "number is wrong."
                )
            if pending[hits[0], 1] != arm:
                raise DataError(
                    f"{type(self).__name__}: decision {id} played arm {int(pending[hits[0], 1])}, not arm {arm}."
                )
        if len(hits) == 0:  # a reward of an arm that this policy did not play
            return 1.0
        chance = float(pending[hits[0], 2])
        self.state["pending"] = np.delete(pending, hits, axis=0)
        return chance

    def _chance_of(self, arm: int) -> float:
        return float(self.propensities()[arm])

    def _arm(self, where: str, arm: Any) -> int:
        if not isinstance(arm, (int, np.integer)) or isinstance(arm, bool) or not 0 <= arm < self.n_arms:
            raise DataError(f"{type(self).__name__}: {where} needs an arm from 0 to {self.n_arms - 1}; got {arm!r}.")
        return int(arm)

    def _reward(self, reward: Any, arm: int) -> float:
        value = float(reward)
        low, high = self.reward_range or (-np.inf, np.inf)
        if not np.isfinite(value) or not low <= value <= high:
            rule = "a finite number" if self.reward_range is None else f"a number from {low:g} to {high:g}"
            raise DataError(
                f"{type(self).__name__}: the reward of arm {arm} must be {rule}; got {value!r}. Rescale the rewards."
            )
        return value

    _laws = laws(
        law(
            "the state of a {owner} does not fit together",
            lambda policy: policy._is_sound(policy.state, policy.state.get("ring", _NO_RING)),
        ),
    )

    def _is_sound(self, state: Any, ring: Any) -> bool:
        """Tell whether the arrays of a loaded policy fit together."""
        return bool(
            state["arms"].shape == (_ROWS, self.n_arms)
            and state["meta"].shape == (4,)
            and state["rng"].shape == (4,)
            and state["rng"].dtype == np.uint64
            and state["rng"].any()
            and state["par"].shape == self.parameters().shape
            and state["pending"].ndim == 2
            and state["pending"].shape[1] == 3
            and ring.shape == (2, self._ring_size())
            and np.isin(state["arms"][ACTIVE], (0.0, 1.0)).all()
            and np.isfinite(state["arms"][[COUNT, SUM, WEIGHT, COST]]).all()
            and -1.0 <= state["meta"][COMMITTED] < self.n_arms
            and 0.0 <= state["meta"][2] <= max(self._ring_size() - 1, 0)
            and (ring[0] < self.n_arms).all()
        )


def require(owner: object, name: str, value: Any, low: float, high: float = np.inf, *, low_open: bool = False) -> None:
    """Raise ParameterError unless a number is within a range."""
    rule = Number(low=low, high=high, low_open=low_open)
    if not rule.allows(value):
        raise ParameterError(f"{type(owner).__name__}: {name} must be {rule.phrase}; got {value!r}.")
