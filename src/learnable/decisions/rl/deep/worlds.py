"""Compiled environments of continuous states, and the form in which agents play any environment: a `World`.

A world is n copies of one environment. `collect` fills a `Block` with steps, `evaluate` plays whole episodes apart from
learning, `state` is what a file needs to go on exactly. Worlds of Gymnasium's environments are in `gym_worlds`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....core import AnyArray, DataError, ParameterError
from ..._random import make_streams
from ...mdp.model import MDP
from ..environments import TableEnvironment, from_mdp
from . import _physics as physics
from ._play_kernels import Block, PolicyArrays, WorldArrays, begin_all, play_out, roll

#: Largest number of a state: angles are brought back by full turns, one at a time.
_FARTHEST = 1e6
_NO_TABLE = physics.StepArrays(
    first=np.zeros(2, dtype=np.int64),
    cum=np.ones(1),
    to=np.zeros(1, dtype=np.int64),
    gain=np.zeros(1),
    ends=np.zeros(1, dtype=bool),
    start=np.ones(1),
)


@dataclass(frozen=True)
class ControlEnvironment:
    """A control problem whose steps are compiled.

    Parameters
    ----------
    name : str
        For messages.
    code : int
        Its number in the compiled kernels.
    n_features : int
        Width of an observation.
    n_actions : int
        Number of actions; 0 where the action is a number.
    bounds : tuple of float
        Least and greatest action where the action is a number.
    max_steps : int
        Steps after which an episode is cut off (truncated).

    Examples
    --------
    >>> from learnable.decisions.rl import deep
    >>> pole = deep.CartPole()
    >>> state = pole.reset(seed=0)
    >>> state, reward, terminated = pole.step(state, 1)
    >>> len(state), reward, terminated
    (4, 1.0, False)
    """

    name: str
    code: int
    n_features: int
    n_actions: int
    bounds: tuple[float, float]
    max_steps: int

    def reset(self, seed: int) -> AnyArray:
        """Return a first state."""
        state = np.zeros(physics.STATE_WIDTH)
        physics.begin_state(self.code, _NO_TABLE, make_streams(seed, 1)[0], state)
        return state

    def step(self, state: Any, action: float) -> tuple[AnyArray, float, bool]:
        """Return next state, reward and whether the episode terminated; the state that is passed stays as it is."""
        after = np.zeros(physics.STATE_WIDTH)
        given = np.asarray(state, dtype=np.float64)
        after[: len(given)] = given
        if not np.abs(after).max() <= _FARTHEST:
            raise DataError(f"{self.name}: a state is finite numbers of at most {_FARTHEST:g}; got {state!r}.")
        if self.n_actions and (action != int(action) or not 0 <= action < self.n_actions):
            raise DataError(f"{self.name}: actions are 0 to {self.n_actions - 1}; got {action!r}.")
        rng = np.ones(4, dtype=np.uint64)  # these steps draw nothing
        reward, done = physics.advance(self.code, _NO_TABLE, float(action), self.n_actions, rng, after)
        return after, float(reward), bool(done)

    def observe(self, state: Any) -> AnyArray:
        """Return what an agent sees in a state."""
        out = np.empty(self.n_features)
        physics.observe_state(self.code, np.asarray(state, dtype=np.float64), out)
        return out


def CartPole(max_steps: int = 500) -> ControlEnvironment:  # noqa: N802
    """Return the pole on a cart: 1 per step until it falls, at most 500 (Gymnasium's CartPole-v1)."""
    return _control("CartPole", physics.CART_POLE, 4, 2, max_steps)


def Acrobot(max_steps: int = 500) -> ControlEnvironment:  # noqa: N802
    """Return the two-link pendulum that has to swing up: −1 per step, at most 500 (Acrobot-v1)."""
    return _control("Acrobot", physics.ACROBOT, 6, 3, max_steps)


def MountainCar(max_steps: int = 200) -> ControlEnvironment:  # noqa: N802
    """Return the car that has to swing up a hill: −1 per step, at most 200 (MountainCar-v0)."""
    return _control("MountainCar", physics.MOUNTAIN_CAR, 2, 3, max_steps)


def Pendulum(max_steps: int = 200) -> ControlEnvironment:  # noqa: N802
    """Return the pendulum to hold upright by a torque between −2 and 2; it never terminates (Pendulum-v1)."""
    return _control("Pendulum", physics.PENDULUM, 3, 0, max_steps)


def _control(name: str, code: int, n_features: int, n_actions: int, max_steps: int) -> ControlEnvironment:
    if int(max_steps) < 1:
        raise ParameterError(f"{name}: max_steps must be an integer >= 1; got {max_steps!r}.")
    return ControlEnvironment(name, code, n_features, n_actions, (-2.0, 2.0), int(max_steps))


class World:
    """What agents play: n copies of an environment.

    Attributes
    ----------
    name : str
        For messages.
    n : int
        Copies.
    n_features : int
        Width of an observation as the network sees it.
    n_actions : int
        Number of actions; 0 where actions are vectors.
    low, high : arrays
        Bounds of vector actions; one number, unused, where actions are numbered.
    """

    name: str
    n: int
    n_features: int
    n_actions: int
    low: AnyArray
    high: AnyArray
    #: Whether observations and rewards come from outside and have to be looked at.
    is_foreign: bool = True

    @property
    def width(self) -> int:
        """Numbers of one action."""
        return 1 if self.n_actions else len(self.low)

    def begin(self, stream: AnyArray) -> None:
        """Begin an episode in every copy, from this stream of random numbers (4,)."""
        raise TypeError(f"{type(self).__name__} does not define begin")

    def collect(self, policy: PolicyArrays, schedule: AnyArray, whole: bool, rng: AnyArray, block: Block) -> None:
        """Play for the rows of a block; with `whole`, one episode per copy."""
        raise TypeError(f"{type(self).__name__} does not define collect")

    def evaluate(
        self, policy: PolicyArrays, episodes: int, seed: Any, greedy: bool, gamma: float
    ) -> tuple[AnyArray, AnyArray, AnyArray] | None:
        """Return returns, lengths and discounted returns of fresh episodes; None where there is no second copy."""
        raise TypeError(f"{type(self).__name__} does not define evaluate")

    def state(self) -> dict[str, AnyArray]:
        """Return what is needed to go on from here."""
        raise TypeError(f"{type(self).__name__} does not define state")

    def resume(self, state: dict[str, AnyArray]) -> None:
        """Go on from a state."""
        raise TypeError(f"{type(self).__name__} does not define resume")


class CompiledWorld(World):
    """Copies of a compiled environment."""

    is_foreign = False

    def __init__(self, env: ControlEnvironment | TableEnvironment, n: int, limit: int) -> None:
        self.env = env
        self.name = env.name
        self.n = n
        self.n_actions = env.n_actions
        self.low = np.zeros(1)
        self.high = np.zeros(1)
        self.limit = min(env.max_steps, limit)
        if isinstance(env, TableEnvironment):
            self.code = physics.TABLE
            self.n_features = env.n_states
            self.table = physics.StepArrays(env.first, env.cum, env.to, env.gain, env.ends, env.start)
            if not env.allowed.all():
                raise DataError(f"{env.name}: deep agents need every action in every state; some are missing.")
        else:
            self.code = env.code
            self.n_features = env.n_features
            self.table = _NO_TABLE
            if not env.n_actions:
                self.low = np.array([env.bounds[0]])
                self.high = np.array([env.bounds[1]])
        self.arrays = self._copies(n)

    def _copies(self, n: int) -> WorldArrays:
        return WorldArrays(
            code=self.code,
            n_actions=self.n_actions,
            limit=self.limit,
            table=self.table,
            state=np.zeros((n, physics.STATE_WIDTH)),
            clock=np.zeros(n, dtype=np.int64),
            earned=np.zeros(n),
            rng=np.ones((n, 4), dtype=np.uint64),
        )

    def begin(self, stream: AnyArray) -> None:
        """Begin an episode in every copy."""
        seed = int(stream[0] >> np.uint64(1))
        self.arrays.rng[:] = make_streams(seed, self.n, purpose=5)
        begin_all(self.arrays)

    def collect(self, policy: PolicyArrays, schedule: AnyArray, whole: bool, rng: AnyArray, block: Block) -> None:
        """Play in one compiled loop."""
        roll(policy, self.arrays, schedule, whole, rng, block)

    def evaluate(
        self, policy: PolicyArrays, episodes: int, seed: Any, greedy: bool, gamma: float
    ) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Play episodes in copies of their own."""
        copies = self._copies(episodes)
        copies.rng[:] = make_streams(seed, episodes, purpose=5)
        rng = make_streams(seed, 1, purpose=6)[0]
        returns = np.zeros(episodes)
        lengths = np.zeros(episodes, dtype=np.int64)
        discounted = np.zeros(episodes)
        obs = np.zeros(self.n_features, dtype=policy.theta.dtype)
        action = np.zeros(self.width, dtype=policy.theta.dtype)
        play_out(policy, copies, greedy, rng, obs, action, returns, lengths, discounted, gamma)
        return returns, lengths, discounted

    def state(self) -> dict[str, AnyArray]:
        """Return states, clocks, rewards so far and streams."""
        a = self.arrays
        return {"state": a.state, "clock": a.clock, "earned": a.earned, "rng": a.rng}

    def resume(self, state: dict[str, AnyArray]) -> None:
        """Copy them back."""
        for name, array in self.state().items():
            if name not in state or state[name].shape != array.shape or state[name].dtype != array.dtype:
                raise DataError(
                    f"{self.name}: the agent learned in another environment, or in another number of copies."
                )
        if not np.abs(state["state"]).max() <= _FARTHEST or (state["clock"] < 0).any():
            raise DataError(f"{self.name}: the agent's memory has states that no environment is in.")
        if self.code == physics.TABLE and not np.isin(state["state"][:, 0], np.arange(self.n_features)).all():
            raise DataError(f"{self.name}: the agent's memory has states that this environment does not have.")
        for name, array in self.state().items():
            array[:] = state[name]

    def exact_process(self, gamma: float) -> MDP | None:
        """Return the process behind a table; None for the others."""
        return self.env.mdp(gamma) if isinstance(self.env, TableEnvironment) else None


def as_world(env: Any, n: int, limit: int) -> World:
    """Return n copies of an environment: compiled, a table, an MDP, Gymnasium's, a list of these, or a maker."""
    if isinstance(env, World):
        return env
    if isinstance(env, MDP):
        env = from_mdp(env)
    if isinstance(env, (ControlEnvironment, TableEnvironment)):
        return CompiledWorld(env, n, limit)
    from .gym_worlds import gym_world

    return gym_world(env, n, limit)
