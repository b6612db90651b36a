"""Worlds of Gymnasium's environments: single ones that are stepped in turn, and vector environments.

`terminated` ends an episode for good; `truncated` only cuts it off, and what would have followed still counts. A vector
environment that resets on the next step makes a step that is none: it is marked invalid and never learned from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core import AnyArray, DataError
from ..._random import uniform
from ._play_kernels import Block, PolicyArrays, choose_many, finish
from .worlds import World


class Encoder:
    """Observations of a Gymnasium space as rows of numbers.

    Boxes are flattened, discrete numbers become one-hot rows, dicts and tuples of these stand side by side (dicts in
    the order of their keys).

    Examples
    --------
    >>> import gymnasium, numpy as np
    >>> from learnable.decisions.rl.deep import Encoder
    >>> space = gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(3), "b": gymnasium.spaces.Box(-1, 1, (2,))})
    >>> Encoder(space).row({"a": 1, "b": np.array([0.5, -0.5])})
    array([ 0. ,  1. ,  0. ,  0.5, -0.5])
    """

    def __init__(self, space: Any, name: str = "the environment") -> None:
        self.name = name
        self._writers: list[Callable[[Any, AnyArray], None]] = []
        self.width = 0
        self._add(space, lambda observation: observation)
        if self.width == 0:
            raise DataError(f"{name}: its observations are empty; nothing can be learned from them.")

    def _add(self, space: Any, get: Callable[[Any], Any]) -> None:
        kind = type(space).__name__
        if kind == "Dict":
            for key in sorted(space.spaces):
                self._add(space.spaces[key], _inside(get, key))
        elif kind == "Tuple":
            for i, part in enumerate(space.spaces):
                self._add(part, _inside(get, i))
        elif kind in ("Box", "MultiBinary"):
            self._add_numbers(tuple(space.shape), get)
        elif kind == "Discrete":
            self._add_codes(np.array([int(space.n)]), int(space.start), get)
        elif kind == "MultiDiscrete":
            self._add_codes(np.asarray(space.nvec).reshape(-1), 0, get)
        else:
            raise DataError(
                f"{self.name}: observations of the space {kind} are not supported; wrap the environment so that they "
                "are Box, Discrete, MultiDiscrete, MultiBinary, or a Dict or Tuple of those."
            )

    def _add_numbers(self, shape: tuple[int, ...], get: Callable[[Any], Any]) -> None:
        size = int(np.prod(shape))
        first = self.width
        last = first + size

        def write(observation: Any, out: AnyArray) -> None:
            part = np.asarray(get(observation))
            if part.shape != shape:
                raise DataError(
                    f"{self.name}: an observation has the shape {part.shape}, but its space says {shape}; the "
                    "environment has to keep to its space."
                )
            out[first:last] = part.reshape(-1)

        self._writers.append(write)
        self.width = last

    def _add_codes(self, sizes: AnyArray, start: int, get: Callable[[Any], Any]) -> None:
        first = self.width
        last = first + int(sizes.sum())
        offsets = first + np.concatenate([[0], np.cumsum(sizes)[:-1]])

        def write(observation: Any, out: AnyArray) -> None:
            codes = np.asarray(get(observation)).reshape(-1) - start
            if codes.shape != sizes.shape or (codes < 0).any() or (codes >= sizes).any():
                raise DataError(f"{self.name}: the observation {get(observation)!r} is outside of its space.")
            out[first:last] = 0.0
            out[offsets + codes.astype(np.int64)] = 1.0

        self._writers.append(write)
        self.width = last

    def write(self, observation: Any, out: AnyArray) -> None:
        """Write one observation to a row."""
        for writer in self._writers:
            writer(observation, out)

    def row(self, observation: Any) -> AnyArray:
        """Return one observation as a row."""
        out = np.empty(self.width)
        self.write(observation, out)
        return out


class Actions:
    """What an action space takes: numbers from `start` on, or vectors within bounds."""

    def __init__(self, space: Any, name: str) -> None:
        kind = type(space).__name__
        if kind == "Discrete":
            self.n = int(space.n)
            self.start = int(space.start)
            self.low = np.zeros(1)
            self.high = np.zeros(1)
        elif kind == "Box":
            self.n = 0
            self.start = 0
            self.low = np.asarray(space.low, dtype=np.float64).reshape(-1)
            self.high = np.asarray(space.high, dtype=np.float64).reshape(-1)
        else:
            raise DataError(f"{name}: actions of the space {kind} are not supported; wrap it to be Discrete or Box.")
        self.shape = () if kind == "Discrete" else tuple(space.shape)
        self.dtype = space.dtype

    def form(self, sent: AnyArray) -> Any:
        """Return one action as the environment takes it."""
        if self.n:
            return int(sent[0]) + self.start
        return sent.reshape(self.shape).astype(self.dtype)


class GymWorld(World):
    """Single environments, stepped in turn.

    Every episode is reset with a seed drawn from the world's own stream, and its actions are remembered: an environment
    that is made anew is brought to where the old one was by playing them again.
    """

    def __init__(self, envs: list[Any], limit: int, make: Callable[[], Any] | None) -> None:
        self.envs = envs
        self.n = len(envs)
        self.limit = limit
        self.name = name_of(envs[0])
        self._make = make
        self._apart: Any = None
        self.encoder = Encoder(envs[0].observation_space, self.name)
        self.n_features = self.encoder.width
        self.actions = Actions(envs[0].action_space, self.name)
        self.n_actions = self.actions.n
        self.low = self.actions.low
        self.high = self.actions.high
        self.obs = np.zeros((self.n, self.n_features))
        self.clock = np.zeros(self.n, dtype=np.int64)
        self.earned = np.zeros(self.n)
        self.seeds = np.zeros(self.n, dtype=np.int64)
        self.rng = np.ones(4, dtype=np.uint64)
        self.played: list[list[AnyArray]] = [[] for _ in envs]

    def begin(self, stream: AnyArray) -> None:
        """Begin an episode in every copy."""
        self.rng[:] = stream
        for e in range(self.n):
            self._reset(e)

    def _reset(self, e: int) -> None:
        self.seeds[e] = int(uniform(self.rng) * 2**31)
        self.played[e] = []
        self.clock[e] = 0
        self.earned[e] = 0.0
        observation, _ = guarded(self.name, "reset", self.envs[e].reset, seed=int(self.seeds[e]))
        self.encoder.write(observation, self.obs[e])

    def collect(self, policy: PolicyArrays, schedule: AnyArray, whole: bool, rng: AnyArray, block: Block) -> None:
        """Choose for all copies at once, step each of them."""
        T = len(block.obs)
        sent = np.empty((self.n, self.width))
        block.count[0] = 0
        block.count[1] = T
        over = np.zeros(self.n, dtype=bool)
        for t in range(T):
            if whole and over.all():
                block.count[1] = t
                return
            block.obs[t] = self.obs
            share = min(schedule[0] / schedule[3], 1.0)
            epsilon = schedule[1] + share * (schedule[2] - schedule[1])
            choose_many(policy, block.obs[t], epsilon, False, rng, block.action[t], sent)
            for e in range(self.n):
                block.valid[t, e] = not over[e]
                block.terminated[t, e] = False
                block.truncated[t, e] = False
                if over[e]:
                    continue
                schedule[0] += 1.0
                self._step(t, e, sent[e], block)
                over[e] = whole and (block.terminated[t, e] or block.truncated[t, e])

    def _step(self, t: int, e: int, sent: AnyArray, block: Block) -> None:
        self.played[e].append(sent.copy())
        action = self.actions.form(sent)
        found = guarded(self.name, "step", self.envs[e].step, action)
        observation, reward, terminated, truncated, _ = found
        self.encoder.write(observation, self.obs[e])
        block.next_obs[t, e] = self.obs[e]
        gain = float(reward)
        self.clock[e] += 1
        self.earned[e] += gain
        block.reward[t, e] = gain
        block.terminated[t, e] = bool(terminated)
        cut = bool(truncated) or self.clock[e] >= self.limit
        block.truncated[t, e] = cut and not terminated
        if terminated or cut:
            finish(self.earned, self.clock, e, t, block)
            self._reset(e)

    def evaluate(
        self, policy: PolicyArrays, episodes: int, seed: Any, greedy: bool, gamma: float
    ) -> tuple[AnyArray, AnyArray, AnyArray] | None:
        """Play episodes in an environment of their own; None if there is no way to make one."""
        if self._apart is None:
            if self._make is None:
                return None
            self._apart = self._make()
        rng = np.random.default_rng(seed)
        stream = rng.integers(1, 2**63, size=4, dtype=np.uint64)
        obs = np.zeros((1, self.n_features), dtype=policy.theta.dtype)
        drawn = np.zeros((1, self.width), dtype=policy.theta.dtype)
        sent = np.empty((1, self.width))
        returns = np.zeros(episodes)
        lengths = np.zeros(episodes, dtype=np.int64)
        discounted = np.zeros(episodes)
        for i in range(episodes):
            start = int(rng.integers(2**31))
            observation, _ = guarded(self.name, "reset", self._apart.reset, seed=start)
            over = False
            while not over:
                self.encoder.write(observation, obs[0])
                choose_many(policy, obs, 0.0, greedy, stream, drawn, sent)
                action = self.actions.form(sent[0])
                found = guarded(self.name, "step", self._apart.step, action)
                observation, reward, terminated, truncated, _ = found
                returns[i] += float(reward)
                discounted[i] += gamma ** int(lengths[i]) * float(reward)
                lengths[i] += 1
                over = bool(terminated or truncated) or lengths[i] >= self.limit
        return returns, lengths, discounted

    def state(self) -> dict[str, AnyArray]:
        """Return seeds and actions of the episodes that are under way, and the stream of seeds."""
        longest = max(len(one) for one in self.played)
        actions = np.zeros((self.n, longest, self.width))
        for e, one in enumerate(self.played):
            for i, sent in enumerate(one):
                actions[e, i] = sent
        names = {"clock": self.clock, "earned": self.earned, "seeds": self.seeds, "rng": self.rng, "obs": self.obs}
        return {name: array.copy() for name, array in names.items()} | {"actions": actions}

    def resume(self, state: dict[str, AnyArray]) -> None:
        """Play the episodes under way again; where the environment does not repeat itself, begin new ones."""
        known = {"clock": self.clock, "earned": self.earned, "seeds": self.seeds, "rng": self.rng, "obs": self.obs}
        fits = all(n in state and state[n].shape == x.shape and state[n].dtype == x.dtype for n, x in known.items())
        actions = state.get("actions", np.zeros(0))
        if not fits or actions.ndim != 3 or actions.shape[::2] != (self.n, self.width):
            raise DataError(f"{self.name}: the agent learned in another environment, or in another number of copies.")
        self.rng[:] = state["rng"]
        for e in range(self.n):
            n_played = int(state["clock"][e])
            seed = int(state["seeds"][e])
            try:
                is_back = self._replay(e, seed, actions[e, :n_played], state["obs"][e])
            except DataError:  # the episode is the one in which the environment failed
                is_back = False
            if not is_back:
                self._reset(e)
                continue
            self.seeds[e] = seed
            self.clock[e] = n_played
            self.earned[e] = state["earned"][e]
            self.played[e] = list(actions[e, :n_played])

    def _replay(self, e: int, seed: int, actions: AnyArray, wanted: AnyArray) -> bool:
        """Play the actions of an episode again; tell whether that leads to the same observation."""
        observation, _ = guarded(self.name, "reset", self.envs[e].reset, seed=seed)
        for sent in actions:
            found = guarded(self.name, "step", self.envs[e].step, self.actions.form(sent))
            observation = found[0]
            if found[2] or found[3]:
                return False
        self.encoder.write(observation, self.obs[e])
        return bool(np.array_equal(self.obs[e], wanted))


class VectorWorld(GymWorld):
    """A vector environment of Gymnasium, whatever its way to reset."""

    def __init__(self, env: Any, limit: int) -> None:
        self.vector = env
        super().__init__([_Single(env)] * int(env.num_envs), limit, None)
        self.mode = str(getattr(env.metadata.get("autoreset_mode"), "name", "NEXT_STEP"))
        self.resetting = np.zeros(self.n, dtype=bool)

    def begin(self, stream: AnyArray) -> None:
        """Reset all at once."""
        self.rng[:] = stream
        seed = int(uniform(self.rng) * 2**31)
        observations, _ = guarded(self.name, "reset", self.vector.reset, seed=seed)
        self._read(observations)
        self.clock[:] = 0
        self.earned[:] = 0.0
        self.resetting[:] = False

    def _read(self, observations: Any) -> None:
        for e in range(self.n):
            self.encoder.write(_part(observations, e), self.obs[e])

    def collect(self, policy: PolicyArrays, schedule: AnyArray, whole: bool, rng: AnyArray, block: Block) -> None:
        """Step all at once; steps that only reset are invalid."""
        if whole:
            raise DataError(f"{self.name}: whole episodes need single environments; pass a list of them or a maker.")
        T = len(block.obs)
        sent = np.empty((self.n, self.width))
        block.count[0] = 0
        block.count[1] = T
        for t in range(T):
            block.obs[t] = self.obs
            share = min(schedule[0] / schedule[3], 1.0)
            epsilon = schedule[1] + share * (schedule[2] - schedule[1])
            choose_many(policy, block.obs[t], epsilon, False, rng, block.action[t], sent)
            given = [self.actions.form(row) for row in sent]
            found = guarded(self.name, "step", self.vector.step, np.array(given))
            self._absorb(t, found, block)
            schedule[0] += float(block.valid[t].sum())

    def _absorb(self, t: int, found: Any, block: Block) -> None:
        observations, rewards, terminated, truncated, info = found
        self._read(observations)
        block.next_obs[t] = self.obs
        ended = np.asarray(terminated, dtype=bool) | np.asarray(truncated, dtype=bool)
        block.valid[t] = ~self.resetting
        block.terminated[t] = np.asarray(terminated, dtype=bool) & ~self.resetting
        block.truncated[t] = np.asarray(truncated, dtype=bool) & ~block.terminated[t] & ~self.resetting
        for e in range(self.n):
            if self.resetting[e]:
                block.reward[t, e] = 0.0
                continue
            block.reward[t, e] = float(rewards[e])
            self.clock[e] += 1
            self.earned[e] += float(rewards[e])
            if ended[e]:
                if self.mode == "SAME_STEP":
                    self.encoder.write(_part(info["final_obs"], e), block.next_obs[t, e])
                finish(self.earned, self.clock, e, t, block)
        if self.mode == "NEXT_STEP":
            self.resetting = ended & ~self.resetting
        elif self.mode == "DISABLED" and ended.any():
            observations, _ = self.vector.reset(options={"reset_mask": ended})
            self._read(observations)

    def state(self) -> dict[str, AnyArray]:
        """Return the stream of seeds: a vector environment cannot be brought back to where it was."""
        return {"rng": self.rng.copy(), "obs": self.obs.copy()}

    def resume(self, state: dict[str, AnyArray]) -> None:
        """Begin new episodes."""
        if state["obs"].shape != self.obs.shape:
            raise DataError(f"{self.name}: the agent learned in another environment, or in another number of copies.")
        self.begin(state["rng"])


class _Single:
    """The spaces of one copy of a vector environment."""

    def __init__(self, env: Any) -> None:
        self.observation_space = env.single_observation_space
        self.action_space = env.single_action_space
        self.spec = env.spec


def gym_world(env: Any, n: int, limit: int) -> World:
    """Return a world of a Gymnasium environment, a list of them, a vector environment, or a function that makes one."""
    if hasattr(env, "num_envs") and hasattr(env, "single_observation_space"):
        return VectorWorld(env, limit)
    if isinstance(env, (list, tuple)) and env:
        envs = [one() if callable(one) and not hasattr(one, "reset") else one for one in env]
        return GymWorld(envs, limit, _remaker(envs[0]))
    if hasattr(env, "reset") and hasattr(env, "observation_space"):
        make = _remaker(env)
        if n > 1 and make is None:
            raise DataError(
                f"{name_of(env)}: this environment cannot be copied; pass a function that makes it, a list of {n} of "
                "them, or n_envs=1."
            )
        return GymWorld([env, *(make() for _ in range(n - 1))] if make else [env], limit, make)
    if callable(env):
        return GymWorld([env() for _ in range(n)], limit, env)
    raise DataError(
        f"deep: needs an environment of learnable or Gymnasium, a list of them, or a function that makes one; got a "
        f"{type(env).__name__}."
    )


def name_of(env: Any) -> str:
    """Return the name of an environment for messages."""
    spec = getattr(env, "spec", None)
    return str(spec.id) if spec is not None else type(env).__name__


def guarded(name: str, what: str, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call an environment; what it raises becomes an error that names it."""
    try:
        return call(*args, **options)
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"{name}: its {what} raised {type(error).__name__}: {error}") from error


def _remaker(env: Any) -> Callable[[], Any] | None:
    """Return a function that makes another such environment; None if Gymnasium does not know how."""
    spec = getattr(env, "spec", None)
    if spec is None:
        return None

    def make() -> Any:
        import gymnasium

        return gymnasium.make(spec)

    return make


def _inside(get: Callable[[Any], Any], key: Any) -> Callable[[Any], Any]:
    """Return a function that takes one part of what `get` finds."""
    return lambda observation: get(observation)[key]


def _part(observations: Any, e: int) -> Any:
    """Return the observation of one copy out of those of all."""
    if isinstance(observations, dict):
        return {key: _part(value, e) for key, value in observations.items()}
    if isinstance(observations, tuple):
        return tuple(_part(value, e) for value in observations)
    return observations[e]
