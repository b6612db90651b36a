"""Environments of finitely many states: compiled tables, and any discrete environment of Gymnasium."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...core import AnyArray, DataError
from ..mdp.model import MDP
from ..tables import (
    StepTable,
    blackjack_table,
    car_rental_table,
    cliff_walking_table,
    frozen_lake_table,
    gambler_table,
    grid_table,
    taxi_table,
)


class TableEnvironment:
    """An environment whose steps are a table; learners play it in compiled loops.

    Parameters
    ----------
    table : StepTable
        Every possible step.
    max_steps : int
        An episode that takes longer is cut off; learners then still count on what would have followed.
    name : str
        For messages.

    Examples
    --------
    >>> from learnable.decisions import rl
    >>> env = rl.CliffWalking()
    >>> env.reset(0.5), env.step(36, 0, 0.5)
    (36, (24, -1.0, False))
    """

    def __init__(self, table: StepTable, *, max_steps: int = 10_000, name: str = "table") -> None:
        self.table = table
        self.name = name
        self.max_steps = int(max_steps)
        if self.max_steps < 1:
            raise DataError(f"TableEnvironment: max_steps must be at least 1; got {max_steps!r}.")
        self.n_states = len(table.start)
        self.n_actions = int(table.action.max()) + 1
        order = np.lexsort((table.state * self.n_actions + table.action,))  # stable: rows of a pair keep their order
        pair = (table.state * self.n_actions + table.action)[order]
        counts = np.bincount(pair, minlength=self.n_states * self.n_actions)
        self.first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.allowed = (counts > 0).reshape(self.n_states, self.n_actions)
        self.cum = _cumulate(table.probability[order], pair)
        self.to = np.ascontiguousarray(table.next_state[order], dtype=np.int64)
        self.gain = np.ascontiguousarray(table.reward[order], dtype=np.float64)
        self.ends = np.ascontiguousarray(table.terminal[order], dtype=bool)
        self.start = np.ascontiguousarray(table.start, dtype=np.float64)
        self._check()

    def reset(self, u: float) -> int:
        """Return the first state that a number u in [0, 1) picks."""
        return int(np.argmax(np.cumsum(self.start) > u))

    def step(self, state: int, action: int, u: float) -> tuple[int, float, bool]:
        """Return next state, reward and whether the episode ended, as a number u in [0, 1) picks them."""
        from ._kernels import step

        if not self.allowed[state, action]:
            raise DataError(f"{self.name}: there is no action {action} in state {state}.")
        row = step(self.first, self.cum, self.n_actions, state, action, u)
        return int(self.to[row]), float(self.gain[row]), bool(self.ends[row])

    def mdp(self, gamma: float) -> MDP:
        """Return the process behind the environment."""
        t = self.table
        return MDP.from_table(
            t.state, t.action, t.probability, t.next_state, t.reward, gamma, terminal=t.terminal,
            n_states=self.n_states, start=t.start,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"{self.name}({self.n_states} states, {self.n_actions} actions)"

    def _check(self) -> None:
        bad = ~np.isfinite(self.table.reward)
        if bad.any():
            at = int(np.argmax(bad))
            raise DataError(
                f"{self.name}: state {self.table.state[at]}, action {self.table.action[at]} earns "
                f"{float(self.table.reward[at])!r}; rewards must be finite."
            )
        empty = ~self.allowed.any(axis=1)
        if empty.any():
            raise DataError(f"{self.name}: state {int(np.argmax(empty))} has no action.")
        self.mdp(0.5)  # probabilities that do not sum to one are refused there


class GymEnvironment:
    """Any Gymnasium environment of discrete states and actions, played step by step.

    Parameters
    ----------
    env : gymnasium.Env
        With `Discrete` observations and actions, or a `Tuple` of `Discrete` observations (Blackjack).

    Examples
    --------
    >>> import importlib.util
    >>> if importlib.util.find_spec("gymnasium"):  # the extra `rl`
    ...     import gymnasium
    ...     assert GymEnvironment(gymnasium.make("Taxi-v4")).n_states == 500
    """

    def __init__(self, env: Any) -> None:
        self.env = env
        self.name = str(getattr(env, "spec", None) and env.spec.id) or type(env).__name__
        self.n_actions = _size(env.action_space, "actions")
        space = env.observation_space
        parts = getattr(space, "spaces", None)
        self._shape = tuple(_size(part, "observations") for part in parts) if parts is not None else None
        self.n_states = int(np.prod(self._shape)) if self._shape else _size(space, "observations")
        self.allowed = np.ones((self.n_states, self.n_actions), dtype=bool)
        self.max_steps = 100_000

    def code(self, observation: Any) -> int:
        """Return the number of a state."""
        if self._shape is not None:
            return int(np.ravel_multi_index(tuple(int(part) for part in observation), self._shape))
        return int(observation)

    @cached_property
    def has_table(self) -> bool:
        """Whether the environment tells its transitions, so that values can be computed exactly."""
        return getattr(getattr(self.env, "unwrapped", self.env), "P", None) is not None

    def mdp(self, gamma: float) -> MDP:
        """Return the process behind the environment, if it tells it."""
        return MDP.from_gymnasium(self.env, gamma)

    def check(self, state: int, action: int, reward: Any) -> float:
        """Return a reward as a number, or raise an error that names state and action."""
        value = float(reward)
        if not np.isfinite(value):
            raise DataError(f"{self.name}: state {state}, action {action} earned {value!r}; rewards must be finite.")
        return value

    def __repr__(self) -> str:
        return f"GymEnvironment({self.name})"


def as_environment(env: Any) -> Any:
    """Return an environment of ours; an MDP becomes a table that earns expected rewards."""
    if isinstance(env, (TableEnvironment, GymEnvironment)):
        return env
    if isinstance(env, MDP):
        return from_mdp(env)
    if hasattr(env, "reset") and hasattr(env, "observation_space"):
        return GymEnvironment(env)
    raise DataError(f"rl: needs an environment of learnable or Gymnasium, or an MDP; got a {type(env).__name__}.")


def from_mdp(mdp: MDP) -> TableEnvironment:
    """Return an environment with the transitions of a process, in which every step earns its expected reward."""
    row = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.P.indptr))
    ending = np.flatnonzero(mdp.stop > 0.0)
    pairs = np.concatenate([row, ending])
    start = np.full(mdp.n_states, 1.0 / mdp.n_states) if mdp.start is None else mdp.start
    table = StepTable(
        state=mdp.pair_state[pairs],
        action=mdp.pair_action[pairs],
        probability=np.concatenate([mdp.P.data, mdp.stop[ending]]),
        next_state=np.concatenate([mdp.P.indices.astype(np.int64), mdp.pair_state[ending]]),
        reward=mdp.reward[pairs],
        terminal=np.concatenate([np.zeros(len(row), dtype=bool), np.ones(len(ending), dtype=bool)]),
        start=start,
    )
    return TableEnvironment(table, name="MDP")


def FrozenLake(layout: str | Sequence[str] = "4x4", slippery: bool = True) -> TableEnvironment:  # noqa: N802
    """Return FrozenLake; episodes are cut off after 100 steps, or 200 on the large lake, as Gymnasium's are."""
    limit = 200 if layout == "8x8" else 100
    return TableEnvironment(frozen_lake_table(layout, slippery), max_steps=limit, name="FrozenLake")


def CliffWalking() -> TableEnvironment:  # noqa: N802
    """Return CliffWalking."""
    return TableEnvironment(cliff_walking_table(), name="CliffWalking")


def Taxi() -> TableEnvironment:  # noqa: N802
    """Return Taxi; episodes are cut off after 200 steps, as Gymnasium's are."""
    return TableEnvironment(taxi_table(), max_steps=200, name="Taxi")


def Blackjack(sab: bool = True, natural: bool = False) -> TableEnvironment:  # noqa: N802
    """Return blackjack; unlike Gymnasium's, the state tells whether 21 is a natural."""
    return TableEnvironment(blackjack_table(sab, natural), name="Blackjack")


def Gambler(p_heads: float = 0.4, goal: int = 100) -> TableEnvironment:  # noqa: N802
    """Return the gambler's problem; it starts with any capital."""
    return TableEnvironment(gambler_table(p_heads, goal), name="Gambler")


def CarRental(max_steps: int = 100) -> TableEnvironment:  # noqa: N802
    """Return Jack's car rental, which never ends by itself: episodes are cut off."""
    return TableEnvironment(car_rental_table(), max_steps=max_steps, name="CarRental")


def GridWorld(lines: Sequence[str], *, max_steps: int = 1000, **rules: Any) -> TableEnvironment:  # noqa: N802
    """Return a world of fields; `rules` are `step_reward`, `rewards` and `slip`."""
    return TableEnvironment(grid_table(lines, **rules), max_steps=max_steps, name="GridWorld")


def _size(space: Any, what: str) -> int:
    size = getattr(space, "n", None)
    if size is None or int(getattr(space, "start", 0)) != 0:
        raise DataError(f"rl: the {what} must be a Discrete space that starts at 0; got {space}.")
    return int(size)


def _cumulate(probability: AnyArray, pair: AnyArray) -> AnyArray:
    """Return cumulated probabilities within each pair, added in the order of the rows."""
    out = np.empty(len(probability))
    total = 0.0
    before = -1
    for i, (p, at) in enumerate(zip(probability.tolist(), pair.tolist(), strict=True)):
        total = p if at != before else total + p
        before = at
        out[i] = total
    return out
