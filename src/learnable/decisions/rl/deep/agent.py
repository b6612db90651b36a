"""What every deep agent is: act, observe, update, until the steps or the time are used up.

    agent = DQN().learn(env, steps=50_000)      # goes on where it was, if it has learned before
    agent.evaluate(env, episodes=100)           # fresh episodes, with an interval
    ln.save(agent, "agent.safetensors")         # networks, optimiser, replay, ε and random streams

Learning alternates between a block of steps, played by the current policy, and updates from it. Every `eval_every`
steps the policy is measured in episodes apart, without exploration; the best one so far is kept and is the one that
acts. A subclass says how steps are chosen (`_policy`) and what is learned from a block (`_absorb`).

The whole state is the dict `memory` of arrays, which sessions change in place: an agent that is saved, loaded and
learns on takes the same steps as one that never stopped, to the bit. Compiled environments are part of the state. A
Gymnasium environment is brought back by playing the episode under way again from its seed; where it does not repeat
itself, and in vector environments, a new episode begins.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from ....core import (
    MAX_SECONDS,
    N_JOBS,
    AnyArray,
    Boolean,
    Certificate,
    DataError,
    Loadable,
    Matches,
    Nothing,
    Number,
    Options,
    ParameterError,
    Rule,
    check_parameters,
    hook,
    law,
    laws,
    one_thread_blas,
    optional,
    passes,
    resolve_n_jobs,
    run_tasks,
)
from ....neural.optimisers import Optimiser
from ..._random import make_streams
from ...chunks import Clock
from .loop import MOVES, STEPS, Diverged, Run, Session, new_block
from .networks import UNIT_CODES
from .results import Evaluation, SeedSweep, Training, sweep
from .worlds import CompiledWorld, World, as_world

#: Updates between two looks at the size of the parameters, and the size at which learning has diverged: weights of a
#: network that works are of the order of one.
_MOVES_PER_LOOK = 16
_LARGEST_PARAMETER = 1e6
_WIDTHS = Matches(
    lambda v: isinstance(v, (tuple, list)) and len(v) > 0 and all(type(w) is int and w > 0 for w in v),
    "a tuple of positive integers",
)


@dataclass(eq=False)
class DeepAgent(Loadable):
    """Base of the agents; not to be used directly.

    Parameters
    ----------
    gamma : float
        Discount γ.
    learning_rate : float
        Of the optimiser.
    hidden : tuple of int
        Widths of the hidden layers.
    activation : {"relu", "tanh"}
        Units between the layers.
    n_envs : int
        Copies of the environment that are played side by side.
    max_gradient_norm : float
        Longer gradients are shortened to it.
    normalise_observations : bool
        Whether observations are centred and scaled by their running moments.
    normalise_rewards : bool
        Whether rewards are divided by the running deviation of discounted returns.
    dtype : {"float32", "float64"}
        Of the networks.
    tol : float
        Where the process is known, what the policy may lose, proven by one backup, for the certificate to hold.
    random_state : int or None
        Seed of the networks, of exploration and of the environments.
    """

    gamma: float = 0.99
    learning_rate: float = 1e-3
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "relu"
    n_envs: int = 1
    max_gradient_norm: float = 10.0
    normalise_observations: bool = False
    normalise_rewards: bool = False
    dtype: str = "float32"
    tol: float = 0.1
    random_state: int | None = 0
    memory: Any = field(default=None, repr=False)
    certificate_: Any = field(default=None, repr=False)

    _saves_alone: ClassVar[bool] = True
    #: Whether blocks are whole episodes.
    _whole: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.hidden = tuple(self.hidden) if isinstance(self.hidden, list) else self.hidden
        self._check()

    # What a subclass defines.

    _networks = hook(
        "(memory) → tuple[Network, Network | None]: the network that acts, and the one that values states, if another."
    )

    _start = hook("(memory, world, rng) → None: Add the arrays that learning starts from to the memory.")
    _policy = hook("(memory, which) → PolicyArrays: Return the policy of `theta` ('last') or of `best`.")
    _parts = hook("(memory, gradient) → Any: Open tapes on the memory.")
    _rule = hook("() → Any: Return the optimiser's update rule.")
    _rows = hook("(world) → int: Return the rows of a block.")
    _absorb = hook("(session) → None: Learn from the block.")

    def _rules(self) -> dict[str, Rule]:
        """Return the ranges of the parameters."""
        positive = Number(low=0.0, low_open=True)
        return {
            "gamma": Number(low=0.0, high=1.0),
            "learning_rate": positive,
            "hidden": _WIDTHS,
            "activation": Options(*UNIT_CODES),
            "n_envs": Number(low=1, integer=True),
            "max_gradient_norm": positive,
            "normalise_observations": Boolean(),
            "normalise_rewards": Boolean(),
            "dtype": Options("float32", "float64"),
            "tol": Number(low=0.0),
            "random_state": optional(Number(low=0, integer=True)),
        }

    # What all agents use.

    def learn(
        self,
        env: Any,
        steps: int | None = None,
        *,
        max_seconds: float | None = None,
        eval_every: int | None = 5000,
        eval_episodes: int = 10,
        eval_env: Any = None,
        target: float | None = None,
        max_episode_steps: int = 10_000,
        progress: Callable[[dict[str, Any]], None] | bool | None = None,
    ) -> Training:
        """Learn, from scratch or on from where the last call ended.

        Parameters
        ----------
        env : environment
            Compiled (`CartPole()` …), a table, an MDP, a Gymnasium environment, a list of these, a vector environment,
            or a function that makes one.
        steps : int, optional
            Steps of this call, over all copies together; rounded up to whole blocks.
        max_seconds : float, optional
            After this time no further block is begun.
        eval_every : int, optional
            Steps between two evaluations; None: none, and the last policy is the one that is kept.
        eval_episodes : int
            Episodes of an evaluation.
        eval_env : environment, optional
            Where evaluations are played; by default another copy of `env`. Where none can be made, the last 20 episodes
            of learning are judged instead, exploration included.
        target : float, optional
            Mean return of an evaluation that is enough.
        max_episode_steps : int
            Longer episodes are cut off (truncated), so that environments that never end do no harm.
        progress : bool or function, optional
            True prints a line per evaluation; a function gets a dict with step, return, loss and steps per second.

        Returns
        -------
        Training
            Episodes, evaluations and why it ended.
        """
        self._check()
        self._check_call(steps, max_seconds, eval_every, eval_episodes, target, max_episode_steps)
        clock = Clock(max_seconds)
        with one_thread_blas(), np.errstate(over="ignore", invalid="ignore"):  # what is not finite ends the run
            world = as_world(env, self.n_envs, max_episode_steps)
            judge = world if eval_env is None else as_world(eval_env, 1, max_episode_steps)
            session = self._open(world)
            run = Run(self, session, judge, clock, eval_every, eval_episodes, target, progress)
            try:
                run.go(math.inf if steps is None else int(session.memory["counts"][STEPS]) + steps)
            finally:
                run.close()
        return run.result()

    def learn_many(
        self,
        env: Any,
        seeds: int = 10,
        *,
        steps: int | None = None,
        test_episodes: int = 100,
        n_jobs: int | None = None,
        level: float = 0.95,
        **settings: Any,
    ) -> SeedSweep:
        """Learn from scratch once per seed; report the interquartile mean over seeds with a bootstrap interval.

        Parameters
        ----------
        env : environment
            As in `learn`; each run makes its own copy, so that it must be compiled, known to Gymnasium, or a function.
        seeds : int
            Independent runs, with random_state, random_state + 1, …
        steps : int, optional
            Steps of each.
        test_episodes : int
            Fresh episodes by which each run's policy is judged.
        n_jobs : int, optional
            Threads; results have the same bits for any number.
        level : float
            Probability of the interval.
        **settings
            Of `learn`.
        """
        inside = Number(low=0.0, high=1.0, low_open=True, high_open=True)
        whole = Number(low=1, integer=True)
        given = {"seeds": seeds, "test_episodes": test_episodes, "n_jobs": n_jobs, "level": level}
        rules = {"seeds": whole, "test_episodes": whole, "n_jobs": N_JOBS, "level": inside}
        check_parameters(type(self).__name__, given, rules)
        first = 0 if self.random_state is None else self.random_state
        agents = [
            dataclasses.replace(self, random_state=first + i, memory=None, certificate_=None) for i in range(seeds)
        ]
        makers = [_maker(env) for _ in range(seeds)]

        def one(i: int) -> tuple[Training, float]:
            world = makers[i]()
            run = agents[i].learn(world, steps, **settings)
            limit = settings.get("max_episode_steps", 10_000)
            found = agents[i].evaluate(world, test_episodes, max_episode_steps=limit)
            return run, found.mean

        pairs = run_tasks(one, seeds, resolve_n_jobs(n_jobs))
        runs = [run for run, _ in pairs]
        numbers = np.arange(first, first + seeds)
        return sweep(type(self).__name__, numbers, runs, agents, [score for _, score in pairs], level)

    def evaluate(
        self,
        env: Any,
        episodes: int = 100,
        *,
        random_state: int = 1,
        greedy: bool = True,
        which: str = "best",
        max_episode_steps: int = 10_000,
        level: float = 0.95,
    ) -> Evaluation:
        """Play fresh episodes with the policy that was kept, or with the last one.

        Parameters
        ----------
        env : environment
            As in `learn`.
        episodes : int
            How many.
        random_state : int
            Seed of their starts; not the one of any evaluation during learning.
        greedy : bool
            Whether the most probable action is taken, or one is drawn.
        which : {"best", "last"}
            The policy.
        max_episode_steps : int
            Longer episodes are cut off.
        level : float
            Probability of the interval.
        """
        memory = self._learned()
        world = as_world(env, 1, max_episode_steps)
        _check_world(type(self).__name__, memory, world)
        seed = int(np.random.SeedSequence(random_state, spawn_key=(11,)).generate_state(1)[0])
        found = world.evaluate(self._policy(memory, which), episodes, seed, greedy, self.gamma)
        if found is None:
            raise DataError(f"{world.name}: cannot be made a second time; pass a function that makes it.")
        return Evaluation(*found, level)

    def act(self, observation: Any, *, which: str = "best") -> Any:
        """Return the greedy action for one observation, a row of numbers as the network sees it."""
        from ._play_kernels import choose_many

        memory = self._learned()
        policy = self._policy(memory, which)
        X = np.ascontiguousarray(np.asarray(observation, dtype=policy.theta.dtype).reshape(1, -1))
        if X.shape[1] != len(policy.centre) or not np.isfinite(X).all():
            raise DataError(
                f"{type(self).__name__}: an observation is {len(policy.centre)} finite numbers; got {observation!r}."
            )
        drawn = np.zeros((1, len(policy.low)), dtype=X.dtype)
        sent = np.zeros((1, len(policy.low)))
        choose_many(policy, X, 0.0, True, np.ones(4, dtype=np.uint64), drawn, sent)
        return int(sent[0, 0]) if self._n_actions(memory) else sent[0]

    @property
    def steps(self) -> int:
        """Steps of the environment in all calls of `learn`."""
        return 0 if self.memory is None else int(self.memory["counts"][STEPS])

    def copy(self) -> Self:
        """Return an agent that goes on from the same memory, apart from this one."""
        memory = None if self.memory is None else {name: array.copy() for name, array in self.memory.items()}
        return dataclasses.replace(self, memory=memory)

    def _learned(self) -> dict[str, AnyArray]:
        if self.memory is None:
            raise DataError(f"{type(self).__name__}: has learned nothing yet; call learn.")
        found: dict[str, AnyArray] = self.memory
        return found

    @staticmethod
    def _n_actions(memory: dict[str, AnyArray]) -> int:
        return int(memory["sizes"][1])

    def _open(self, world: World) -> Session:
        """Return a session on the memory, which is made if there is none."""
        if self.memory is None:
            self.memory = self._new_memory(world)
            world.begin(self.memory["world_seed"])
        else:
            _check_world(type(self).__name__, self.memory, world)
            self._check_memory(world)
            stored = {k.removeprefix("world_"): v for k, v in self.memory.items() if k.startswith("world_")}
            stored.pop("seed")
            world.resume(stored)
        memory = self.memory
        gradient = np.zeros_like(memory["theta"])
        optimiser = Optimiser(self._rule(), memory["theta"], 0)
        optimiser.v = memory["v"]
        optimiser.r = memory["r"]
        optimiser.t = int(memory["counts"][MOVES])
        parts = self._parts(memory, gradient)
        block = new_block(self._rows(world), world, memory["theta"].dtype)
        return Session(world, memory, self._policy(memory, "last"), block, optimiser, parts)

    def _check_memory(self, world: World) -> None:
        """Raise an error where the parameters were changed so that the memory no longer fits: loops check no bounds."""
        owner = type(self).__name__
        try:
            fits = self._is_sound(self.memory)
        except (AttributeError, KeyError, IndexError, TypeError, ValueError):
            fits = False
        if not fits:
            raise DataError(f"{owner}: its memory does not fit its parameters, which were changed; make a new agent.")
        if self.memory["running"].shape != (world.n,):
            raise DataError(
                f"{owner}: learned in {len(self.memory['running'])} copies of its environment and cannot go on in "
                f"{world.n}; keep n_envs, or make a new agent."
            )

    def _new_memory(self, world: World) -> dict[str, AnyArray]:
        seed = self.random_state
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        streams = make_streams(seed, 3, purpose=7)
        d = world.n_features
        memory: dict[str, AnyArray] = {
            "sizes": np.array([d, world.n_actions, world.width], dtype=np.int64),
            "low": np.array(world.low, dtype=np.float64),
            "high": np.array(world.high, dtype=np.float64),
            "seed": np.array([seed], dtype=np.int64),
            "rng": streams[0].copy(),
            "sample_rng": streams[1].copy(),
            "world_seed": streams[2].copy(),
            "counts": np.zeros(3, dtype=np.int64),
            "schedule": np.array([0.0, 0.0, 0.0, 1.0]),
            "centre": np.zeros(d),
            "scale": np.zeros(d),
            "moments": np.zeros((2, d)),
            "seen": np.zeros(1),
            "running": np.zeros(world.n),
            "return_moments": np.zeros(3),
            "best_score": np.array([-np.inf, 0.0]),
            "episodes": np.zeros((0, 3)),
            "evaluations": np.zeros((0, 4)),
        }
        if self.normalise_observations:
            memory["scale"][:] = 1.0
        self._start(memory, world, np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(8,))))
        memory["v"] = np.zeros_like(memory["theta"])
        memory["r"] = np.zeros_like(memory["theta"])
        memory["best"] = memory["theta"].copy()
        memory["best_centre"] = memory["centre"].copy()
        memory["best_scale"] = memory["scale"].copy()
        return memory

    def _step(self, session: Session, gradient: AnyArray, rate: float) -> None:
        """Shorten the gradient and make one step of the optimiser."""
        from ....neural._optimiser_kernels import couple, norm_of

        session.norm = float(norm_of(gradient))
        if not math.isfinite(session.norm):
            raise Diverged(f"the gradient is not finite after {session.optimiser.t} updates")
        if session.norm > self.max_gradient_norm:
            couple(session.optimiser.theta, gradient, 0, self.max_gradient_norm / session.norm, 0.0, math.inf)
        session.optimiser.step(gradient, rate)
        if session.optimiser.t % _MOVES_PER_LOOK == 0:
            largest = float(np.abs(session.optimiser.theta).max())
            if not largest <= _LARGEST_PARAMETER:
                raise Diverged(f"parameters reach {largest:.3g} after {session.optimiser.t} updates")

    def _reward_scale(self, memory: dict[str, AnyArray]) -> float:
        """Return what rewards are multiplied with."""
        count, _, squares = memory["return_moments"]
        if not self.normalise_rewards or count < 2.0 or squares <= 0.0:
            return 1.0
        return 1.0 / (math.sqrt(squares / count) + 1e-8)

    def _certify(self, world: World, run: Training) -> Certificate:
        """Return what is proven: for a known process with γ < 1, what the policy loses at most in any state."""
        nothing = Certificate("none", math.nan, self.tol, n_iter=run.steps, seconds=run.seconds)
        process = world.exact_process(self.gamma) if isinstance(world, CompiledWorld) else None
        if process is None or self.gamma >= 1.0:
            return nothing
        values, actions = self._greedy_table(self._learned())
        loss = _most_lost(process, self.gamma, values, actions)
        return Certificate(
            "bellman", loss, self.tol, bound=loss, n_iter=run.steps, seconds=run.seconds,
            fingerprint=process.fingerprint,
        )  # fmt: skip

    def _greedy_table(self, memory: dict[str, AnyArray]) -> tuple[AnyArray, AnyArray]:
        """Return the network's value and the greedy action of every state of a table."""
        rows = np.eye(int(memory["sizes"][0]))
        values = self.state_values(rows)
        actions = np.array([self.act(row) for row in rows])
        return values, actions

    def state_values(self, observations: Any, *, which: str = "best") -> AnyArray:
        """Return what the network expects from each observation on, discounted."""
        raise TypeError(f"{type(self).__name__} does not define state_values")

    def _seen_rows(self, memory: dict[str, AnyArray], observations: Any, which: str) -> AnyArray:
        """Return observations as the network sees them."""
        prefix = "best_" if which == "best" else ""
        X = np.atleast_2d(np.asarray(observations, dtype=np.float64))
        if X.ndim != 2 or X.shape[1] != int(memory["sizes"][0]) or not np.isfinite(X).all():
            raise DataError(
                f"{type(self).__name__}: observations must be finite rows of {int(memory['sizes'][0])} numbers; got an "
                f"array of shape {X.shape}."
            )
        scale = memory[f"{prefix}scale"]
        near = np.clip((X - memory[f"{prefix}centre"]) * scale, -10.0, 10.0)
        return np.where(scale != 0.0, near, X)

    def _check(self) -> None:
        rules = self._rules()
        check_parameters(type(self).__name__, {name: getattr(self, name) for name in rules}, rules)

    def _check_call(self, steps: Any, max_seconds: Any, eval_every: Any, episodes: Any, target: Any, most: Any) -> None:
        owner = type(self).__name__
        whole = Number(low=1, integer=True)
        given = {
            "steps": steps, "max_seconds": max_seconds, "eval_every": eval_every, "eval_episodes": episodes,
            "target": target, "max_episode_steps": most,
        }  # fmt: skip
        rules = {
            "steps": optional(whole), "max_seconds": MAX_SECONDS, "eval_every": optional(whole), "eval_episodes": whole,
            "target": Number() | Nothing(), "max_episode_steps": whole,
        }  # fmt: skip
        check_parameters(owner, given, rules)
        if steps is None and max_seconds is None:
            raise ParameterError(f"{owner}: learn needs steps or max_seconds; got neither.")
        if target is not None and eval_every is None:
            raise ParameterError(f"{owner}: a target is looked at in evaluations; set eval_every.")

    _laws = laws(
        law(
            "the memory of a {owner} does not fit together",
            lambda agent: passes(agent._check) and (agent.memory is None or agent._is_sound(agent.memory)),
        ),
    )

    def _is_sound(self, memory: dict[str, AnyArray]) -> bool:
        """Tell whether the arrays fit together: compiled loops do not check bounds."""
        d, n_actions, width = (int(size) for size in memory["sizes"])
        network, values = self._networks(memory)
        p = memory["theta"].size
        sound = d >= 1 and n_actions >= 0 and width >= 1 and (n_actions == 0 or width == 1)
        sound &= network.n_inputs == d and p >= network.n_parameters + (values.n_parameters if values else 0)
        for name in ("theta", "v", "r", "best"):
            sound &= memory[name].shape == (p,) and memory[name].dtype == np.dtype(self.dtype)
            sound &= bool(np.isfinite(memory[name]).all())
        for name in ("centre", "scale", "best_centre", "best_scale"):
            sound &= memory[name].shape == (d,) and memory[name].dtype == np.float64
            sound &= bool(np.isfinite(memory[name]).all())
        for name in ("rng", "sample_rng", "world_seed"):
            sound &= memory[name].shape == (4,) and memory[name].dtype == np.uint64
        sound &= (
            memory["counts"].shape == (3,)
            and memory["counts"].dtype == np.int64
            and bool((memory["counts"] >= 0).all())
        )
        sound &= memory["schedule"].shape == (4,) and memory["schedule"].dtype == np.float64
        sound &= bool(memory["schedule"][3] > 0.0) and memory["low"].shape == memory["high"].shape == (width,)
        sound &= memory["moments"].shape == (2, d) and memory["seen"].shape == (1,)
        sound &= memory["return_moments"].shape == (3,) and memory["running"].ndim == 1
        sound &= memory["episodes"].shape[1:] == (3,) and memory["evaluations"].shape[1:] == (4,)
        return bool(sound and memory["best_score"].shape == (2,) and memory["seed"].shape == (1,))


def _most_lost(process: Any, gamma: float, values: AnyArray, actions: AnyArray) -> float:
    """Return what a policy loses at most in any state that can be met, from one backup of any values."""
    Q = np.full((process.n_states, process.n_actions), -np.inf)
    Q[process.pair_state, process.pair_action] = process.reward + gamma * (process.P @ values)
    best = Q.max(axis=1)
    own = Q[np.arange(process.n_states), actions]
    met = _reachable(process)
    rise = float((best - values)[met].max())
    fall = float((own - values)[met].min())
    if process.can_end:  # the end is one more state, of which nothing changes
        rise = max(rise, 0.0)
        fall = min(fall, 0.0)
    return float((best - own)[met].max() + gamma / (1.0 - gamma) * (rise - fall))


def _reachable(process: Any) -> AnyArray:
    """Return which states can be met from the start, by any actions."""
    met: AnyArray = np.ones(process.n_states, dtype=bool) if process.start is None else process.start > 0.0
    while True:
        grown = met | (np.asarray(process.P.T @ met[process.pair_state].astype(float)) > 0.0)
        if np.array_equal(grown, met):
            return met
        met = grown


def _check_world(owner: str, memory: dict[str, AnyArray], world: World) -> None:
    """Raise an error where an agent meets an environment of other sizes than it learned in."""
    here = (world.n_features, world.n_actions, world.width)
    learned = tuple(int(size) for size in memory["sizes"])
    if here != learned:
        raise DataError(
            f"{owner}: learned from observations of width {learned[0]} with {learned[1]} actions (0: vectors), but "
            f"{world.name} has {here[0]} and {here[1]}; make a new agent."
        )


def _maker(env: Any) -> Callable[[], Any]:
    """Return a function that gives each run an environment of its own."""
    if hasattr(env, "reset") and hasattr(env, "observation_space"):
        from .gym_worlds import _remaker, name_of

        make = _remaker(env)
        if make is None:
            raise DataError(f"{name_of(env)}: cannot be made a second time; pass a function that makes it.")
        return make
    if isinstance(env, (list, tuple)) or hasattr(env, "num_envs"):
        raise DataError("learn_many: each seed needs environments of its own; pass a function that makes one.")
    return lambda: env
