r"""Tabular learners of action values, from steps alone.

| learner | target of Q(s, a) after the step (s, a, r, s') |
|---|---|
| `QLearning` | r + γ max_b Q(s', b) |
| `Sarsa` | r + γ Q(s', a') with the action a' that is taken next |
| `ExpectedSarsa` | r + γ Σ_b π(b given s') Q(s', b) |
| `DoubleQLearning` | r + γ Q₂(s', argmax_b Q₁(s', b)), and the same with the tables exchanged |
| `NStepSarsa` | n rewards, then γⁿ Q |
| `SarsaLambda` | all of these at once, weighted by λ (eligibility traces) |
| `DynaQ` | as Q-learning, and again for remembered steps |
| `MonteCarlo` | the whole return, of first or of every visit |
| `OffPolicyMonteCarlo` | the return of the greedy policy, from another's, weighted by importance |

After a step that ends the episode nothing follows; after one at which it is cut off the value of the next state does.

Reference: R. Sutton and A. Barto, Reinforcement Learning, 2018, chapters 5 to 8; H. van Hasselt, Double Q-learning,
2010.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ...core import (
    MAX_SECONDS,
    N_JOBS,
    AnyArray,
    DataError,
    Loadable,
    Number,
    Options,
    ParameterError,
    StopFlag,
    check_parameters,
    law,
    laws,
)
from .._random import make_streams
from ..chunks import Clock, over_ranges
from . import _kernels as k
from .environments import GymEnvironment, TableEnvironment, as_environment
from .results import Learned, summarise

#: Episodes of one compiled call: between calls Ctrl-C is answered.
_CHUNK = 500
_EXPLORERS = {"epsilon": k.EPSILON, "softmax": k.SOFTMAX, "ucb": k.UCB}


@dataclass(eq=False)
class TabularLearner(Loadable):
    """Base of the learners; not to be used directly.

    Parameters
    ----------
    gamma : float
        Discount γ.
    alpha : float
        Step size α.
    alpha_decay : float
        If positive, the step is N(s, a)^(−ω) with this ω instead of α; between ½ and 1 the values converge.
    exploration : {"epsilon", "softmax", "ucb"}
        Greedy with probability 1 − ε; actions in proportion to exp(Q/τ) (probability matching); or the greatest
        Q + c √(log t/N).
    explore : float
        ε, τ or c.
    epsilon_decay : float
        ε after i episodes is ε/(1 + decay · i).
    initial : float
        First action values; high ones (optimistic starts) make even a greedy learner try everything.
    """

    gamma: float = 1.0
    alpha: float = 0.1
    alpha_decay: float = 0.0
    exploration: str = "epsilon"
    explore: float = 0.1
    epsilon_decay: float = 0.0
    initial: float = 0.0
    memory: Any = field(default=None, repr=False)

    code: ClassVar[int] = -1
    #: Whether whole episodes are kept.
    _keeps_episodes: ClassVar[bool] = False
    _saves_alone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check()

    def learn(
        self,
        env: Any,
        episodes: int,
        *,
        seeds: int = 20,
        random_state: Any = 0,
        n_jobs: int | None = None,
        level: float = 0.95,
        max_seconds: float | None = None,
    ) -> Learned:
        """Learn from scratch, once per seed.

        Parameters
        ----------
        env : TableEnvironment, MDP or Gymnasium environment
            Tables and processes are played in compiled loops, Gymnasium's environments step by step.
        episodes : int
            Episodes per seed.
        seeds : int
            Independent runs; their interquartile mean and a bootstrap interval are reported.
        random_state : int or None
            Seed of the seeds.
        n_jobs : int, optional
            Threads; results have the same bits for any number.
        level : float
            Probability of the interval.
        max_seconds : float, optional
            After this time no further batch of 500 episodes is begun; results are of as many episodes as all seeds
            have.

        Returns
        -------
        Learned
            Action values, policies and returns of every seed; where the process is known, the exact value of what was
            learned.
        """
        self._check()
        owner = type(self).__name__
        whole = Number(low=1, integer=True)
        inside = Number(low=0.0, high=1.0, low_open=True, high_open=True)
        given = {"episodes": episodes, "seeds": seeds, "n_jobs": n_jobs, "level": level}
        rules = {"episodes": whole, "seeds": whole, "n_jobs": N_JOBS, "level": inside, "max_seconds": MAX_SECONDS}
        check_parameters(owner, given | {"max_seconds": max_seconds}, rules)
        clock = Clock(max_seconds)
        world = as_environment(env)
        streams = make_streams(random_state, seeds, purpose=3)
        noise = make_streams(random_state, seeds, purpose=4)
        memories = [self._new_memory(world, streams[i]) for i in range(seeds)]
        earned = np.zeros((seeds, episodes))
        lengths = np.zeros((seeds, episodes), dtype=np.int64)
        if isinstance(world, GymEnvironment):
            for i in range(seeds):
                self._play_gym(world, memories[i], int(noise[i, 0] >> np.uint64(33)), earned[i], lengths[i], clock)
        else:
            self._play_compiled(world, memories, noise, earned, lengths, n_jobs, clock)
        done = int((lengths > 0).sum(axis=1).min())  # all, unless the time was up
        earned = earned[:, :done]
        lengths = lengths[:, :done]
        self.memory = memories[-1]
        Q = np.array([self._values(memory) for memory in memories])
        return summarise(owner, world, self.gamma, Q, earned, lengths, level, random_state)

    def go_on(self, env: Any, episodes: int, random_state: Any = 0) -> tuple[AnyArray, AnyArray]:
        """Learn on with the memory of the last seed, or from scratch; return returns and lengths of the episodes."""
        world = as_environment(env)
        if self.memory is None:
            self.memory = self._new_memory(world, make_streams(random_state, 1, purpose=3)[0])
        if self.memory["Q"].shape[1:] != (world.n_states, world.n_actions):
            raise DataError(f"{type(self).__name__}: learned in another environment; make a new learner.")
        earned = np.zeros(episodes)
        lengths = np.zeros(episodes, dtype=np.int64)
        noise = make_streams(random_state, 1, purpose=4)
        if isinstance(world, GymEnvironment):
            self._play_gym(world, self.memory, int(noise[0, 0] >> np.uint64(33)), earned, lengths, Clock(None))
        else:
            self._play_compiled(world, [self.memory], noise, earned[None], lengths[None], 1, Clock(None))
        return earned, lengths

    @property
    def action_values(self) -> AnyArray:
        """Q of the last seed."""
        if self.memory is None:
            raise DataError(f"{type(self).__name__}: has learned nothing yet; call learn.")
        return self._values(self.memory)

    def _values(self, memory: dict[str, AnyArray]) -> AnyArray:
        return np.array(memory["Q"][0])

    def _numbers(self) -> AnyArray:
        """Return what the compiled learner reads."""
        par = np.zeros(9)
        par[k.ALPHA] = self.alpha
        par[k.GAMMA] = self.gamma
        par[k.EXPLORE] = self.explore
        par[k.DECAY] = self.epsilon_decay
        par[k.OMEGA] = self.alpha_decay
        return par

    def _new_memory(self, world: Any, rng: AnyArray) -> dict[str, AnyArray]:
        S = world.n_states
        A = world.n_actions
        length = world.max_steps + 1 if self._keeps_episodes else 1
        memory = {
            "Q": np.full((2, S, A), float(self.initial)),
            "N": np.zeros((2, S, A)),
            "E": np.zeros((S, A)) if self.code in (k.SARSA_LAMBDA, k.MONTE_CARLO) else np.zeros((1, 1)),
            "path": np.zeros((5, max(length, A))),
            "meta": np.zeros(4),
            "rng": np.array(rng, dtype=np.uint64),
            "seen": np.zeros(S * A + 1 if self.code == k.DYNA_Q else 1, dtype=np.int64),
            "model": np.full((3, S, A) if self.code == k.DYNA_Q else (3, 1, 1), -1.0),
        }
        if self.code != k.DOUBLE_Q:
            memory["Q"][1] = 0.0
        return memory

    def _play_compiled(
        self,
        world: TableEnvironment,
        memories: list[Any],
        noise: AnyArray,
        earned: AnyArray,
        lengths: AnyArray,
        n_jobs: Any,
        clock: Clock,
    ) -> None:
        par = self._numbers()
        explore = _EXPLORERS[self.exploration]
        flag = StopFlag()

        def work(lo: int, hi: int) -> None:
            for i in range(lo, hi):
                m = memories[i]
                for at in range(0, earned.shape[1], _CHUNK):
                    if at > 0 and clock.is_over:
                        break
                    k.episodes(
                        self.code, explore, par, m["Q"], m["N"], m["E"], m["model"], m["seen"], m["path"], m["meta"],
                        world.allowed, world.first, world.cum, world.to, world.gain, world.ends, world.start,
                        world.max_steps, m["rng"], noise[i], earned[i, at : at + _CHUNK], lengths[i, at : at + _CHUNK],
                        flag.array,
                    )  # fmt: skip

        try:
            over_ranges(work, len(memories), n_jobs, 1)
        except BaseException:
            flag.raise_()
            raise

    def _play_gym(
        self,
        world: GymEnvironment,
        m: dict[str, AnyArray],
        seed: int,
        earned: AnyArray,
        lengths: AnyArray,
        clock: Clock,
    ) -> None:
        """Play a Gymnasium environment with the same decisions as the compiled loop."""
        par = self._numbers()
        explore = _EXPLORERS[self.exploration]
        p = np.zeros(world.n_actions)
        arrays = (m["Q"], m["N"], m["E"], m["model"], m["seen"], m["path"], m["meta"], world.allowed)
        for episode in range(len(earned)):
            if episode > 0 and clock.is_over:
                return
            observation, _ = world.env.reset(seed=seed if episode == 0 else None)
            s = world.code(observation)
            a = int(k.begin(explore, par, m["Q"], m["N"], world.allowed, m["path"], m["meta"], s, p, m["rng"]))
            over = False
            n = 0
            while not over:
                observation, reward, terminated, truncated, _ = world.env.step(a)
                s2 = world.code(observation)
                value = world.check(s, a, reward)
                n += 1
                cut = bool(truncated or n >= world.max_steps) and not terminated
                over = bool(terminated) or cut
                a = int(
                    k.observe(self.code, explore, par, *arrays, s, a, value, s2, bool(terminated), cut, p, m["rng"])
                )
                s = s2
                earned[episode] += value
            lengths[episode] = n

    def _check(self) -> None:
        owner = type(self).__name__
        positive = Number(low=0.0, low_open=True)
        rules = {
            "gamma": Number(low=0.0, high=1.0),
            "alpha": Number(low=0.0, high=1.0),
            "alpha_decay": Number(low=0.0, high=1.0),
            "exploration": Options(*_EXPLORERS),
            "explore": positive if self.exploration == "softmax" else Number(low=0.0),
            "epsilon_decay": Number(low=0.0),
            "initial": Number(),
        }
        check_parameters(owner, {name: getattr(self, name) for name in rules}, rules)
        if self.exploration == "epsilon" and self.explore > 1.0:
            raise ParameterError(f"{owner}: explore must be an epsilon of at most 1; got {self.explore!r}.")

    _laws = laws(
        law(
            "the memory of a {owner} does not fit together",
            lambda learner: learner.memory is None or learner._is_sound(**learner.memory),
        ),
    )

    def _is_sound(
        self, Q: Any, N: Any, rng: Any, meta: Any, path: Any, E: Any, model: Any, seen: Any, **_: Any
    ) -> bool:
        """Tell whether the arrays of a loaded memory fit together."""
        n_pairs = Q.shape[1] * Q.shape[2]
        traced = self.code in (k.SARSA_LAMBDA, k.MONTE_CARLO)
        dyna = self.code == k.DYNA_Q
        return bool(
            Q.ndim == 3
            and Q.shape[0] == 2
            and N.shape == Q.shape
            and np.isfinite(Q).all()
            and (N >= 0).all()
            and rng.shape == (4,)
            and rng.dtype == np.uint64
            and meta.shape == (4,)
            and path.shape[0] == 5
            and path.shape[1] >= Q.shape[2]
            and E.shape == (Q.shape[1:] if traced else (1, 1))
            and model.shape == (3, *(Q.shape[1:] if dyna else (1, 1)))
            and seen.shape == ((n_pairs + 1) if dyna else 1,)
            and (seen >= 0).all()
            and (seen <= n_pairs).all()
            and (model[0] < Q.shape[1]).all()
        )


@dataclass(eq=False)
class QLearning(TabularLearner):
    """Learn the best values whatever is tried (Watkins 1989).

    Examples
    --------
    >>> from learnable.decisions import rl
    >>> learned = rl.QLearning(alpha=0.5).learn(rl.CliffWalking(), 500, seeds=5)
    >>> learned.policy_values.round(1)  # the greedy policy walks along the edge: −13, exactly
    array([-13., -13., -13., -13., -13.])
    """

    code: ClassVar[int] = k.Q_LEARNING


@dataclass(eq=False)
class Sarsa(TabularLearner):
    """Learn the values of the policy that explores (Rummery and Niranjan 1994).

    Examples
    --------
    >>> from learnable.decisions import rl
    >>> learned = rl.Sarsa(alpha=0.3).learn(rl.GridWorld(["S..G"]), 200, seeds=5)
    >>> learned.mean
    -3.0
    """

    code: ClassVar[int] = k.SARSA


@dataclass(eq=False)
class ExpectedSarsa(TabularLearner):
    """As SARSA, with the mean over the next action instead of a draw: the same target, less noise.

    Examples
    --------
    >>> from learnable.decisions import rl
    >>> learned = rl.ExpectedSarsa(alpha=0.3).learn(rl.GridWorld(["S..G"]), 200, seeds=5)
    >>> learned.mean
    -3.0
    """

    code: ClassVar[int] = k.EXPECTED_SARSA


@dataclass(eq=False)
class DoubleQLearning(TabularLearner):
    """Two tables: one says which action is best, the other what it is worth, so that noise does not look like value.

    Examples
    --------
    >>> from learnable.decisions import rl
    >>> learned = rl.DoubleQLearning(alpha=0.3).learn(rl.GridWorld(["S..G"]), 200, seeds=5)
    >>> learned.mean
    -3.0
    """

    code: ClassVar[int] = k.DOUBLE_Q

    def _values(self, memory: dict[str, AnyArray]) -> AnyArray:
        return np.asarray(memory["Q"].mean(axis=0))


@dataclass(eq=False)
class NStepSarsa(TabularLearner):
    """SARSA with n rewards before the bootstrap.

    Examples
    --------
    >>> from learnable.decisions import rl
    >>> learned = rl.NStepSarsa(alpha=0.3, n_steps=3).learn(rl.GridWorld(["S..G"]), 200, seeds=5)
    >>> learned.mean
    -3.0
    """

    n_steps: int = 4
    code: ClassVar[int] = k.N_STEP_SARSA
    _keeps_episodes: ClassVar[bool] = True

    def _numbers(self) -> AnyArray:
        par = super()._numbers()
        par[k.STEPS] = self.n_steps
        return par

    def _check(self) -> None:
        super()._check()
        check_parameters("NStepSarsa", {"n_steps": self.n_steps}, {"n_steps": Number(low=1, integer=True)})


@dataclass(eq=False)
class SarsaLambda(TabularLearner):
    """SARSA(λ) with accumulating or replacing traces.

    Examples
    --------
    >>> from learnable.decisions import rl
    >>> learned = rl.SarsaLambda(alpha=0.3, trace=0.5).learn(rl.GridWorld(["S..G"]), 200, seeds=5)
    >>> learned.mean
    -3.0
    """

    trace: float = 0.9
    replacing: bool = False
    code: ClassVar[int] = k.SARSA_LAMBDA

    def _numbers(self) -> AnyArray:
        par = super()._numbers()
        par[k.LAMBDA] = self.trace
        par[k.REPLACING] = float(self.replacing)
        return par

    def _check(self) -> None:
        super()._check()
        check_parameters("SarsaLambda", {"trace": self.trace}, {"trace": Number(low=0.0, high=1.0)})


@dataclass(eq=False)
class DynaQ(TabularLearner):
    """Q-learning that also learns from remembered steps, `planning` of them per real one (Sutton 1990).

    Examples
    --------
    >>> from learnable.decisions import rl
    >>> learned = rl.DynaQ(alpha=0.3, planning=5).learn(rl.GridWorld(["S..G"]), 200, seeds=5)
    >>> learned.mean
    -3.0
    """

    planning: int = 10
    code: ClassVar[int] = k.DYNA_Q

    def _numbers(self) -> AnyArray:
        par = super()._numbers()
        par[k.STEPS] = self.planning
        return par

    def _check(self) -> None:
        super()._check()
        check_parameters("DynaQ", {"planning": self.planning}, {"planning": Number(low=0, integer=True)})


@dataclass(eq=False)
class MonteCarlo(TabularLearner):
    """Learn from whole returns: means over first or every visit, or steps of α if α is positive.

    Examples
    --------
    >>> from learnable.decisions import rl
    >>> learned = rl.MonteCarlo(explore=0.3, initial=-50.0).learn(rl.GridWorld(["S..G"]), 200, seeds=5)
    >>> learned.mean
    -3.0
    """

    alpha: float = 0.0
    first_visit: bool = True
    code: ClassVar[int] = k.MONTE_CARLO
    _keeps_episodes: ClassVar[bool] = True

    def _numbers(self) -> AnyArray:
        par = super()._numbers()
        par[k.FIRST] = float(self.first_visit)
        return par


@dataclass(eq=False)
class OffPolicyMonteCarlo(TabularLearner):
    """Learn the greedy policy's values from episodes that explore, weighted by importance (weighted, not ordinary).

    Examples
    --------
    >>> from learnable.decisions import rl
    >>> learned = rl.OffPolicyMonteCarlo(explore=0.3, initial=-50.0).learn(rl.GridWorld(["S..G"]), 200, seeds=5)
    >>> learned.mean
    -3.0
    """

    code: ClassVar[int] = k.OFF_POLICY_MONTE_CARLO
    _keeps_episodes: ClassVar[bool] = True
