"""The loop of a deep agent: play a block, learn from it, measure the policy from time to time, keep the best one.

What an environment does wrong becomes an error that names the step; learning that leaves the finite numbers ends with a
warning. In both cases the best policy so far stays.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ....core import AnyArray, DataError
from ....neural.optimisers import Optimiser
from ...chunks import Clock
from ._play_kernels import Block, PolicyArrays
from ._update_kernels import add_moments, add_return_moments, first_bad
from .results import Training
from .worlds import World

# Places of `counts`.
STEPS = 0  # of the environment
MOVES = 1  # of the optimiser
EVALUATIONS = 2
#: Rewards beyond this size, in absolute value, are told apart: steps of 1e-3 need 1e5 of them to reach such values.
_LARGE_REWARD = 1e4


@dataclass
class Session:
    """What one call of `learn` works with: networks, arrays opened on the memory, the world."""

    world: World
    memory: dict[str, AnyArray]
    policy: PolicyArrays
    block: Block
    optimiser: Optimiser
    parts: Any  # of the subclass: tapes and scratch
    norm: float = 0.0  # of the last gradient
    losses: list[float] = field(default_factory=list)
    largest: float = 0.0  # reward so far, in absolute value


class Diverged(Exception):  # noqa: N818  it is caught by the loop of `learn`
    """Learning that left the finite numbers."""


class Run:
    """The loop of one call of `learn`."""

    def __init__(
        self,
        agent: Any,
        session: Session,
        judge: World,
        clock: Clock,
        eval_every: int | None,
        eval_episodes: int,
        target: float | None,
        progress: Any,
    ) -> None:
        self.agent = agent
        self.session = session
        self.judge = judge
        self.clock = clock
        self.eval_every = eval_every
        self.eval_episodes = eval_episodes
        self.target = target
        self.progress = _print_line if progress is True else progress
        self.counts = session.memory["counts"]
        self.first_step = int(self.counts[STEPS])
        self.ended: list[AnyArray] = []
        self.evaluations: list[AnyArray] = []
        self.stopped = "interrupted"
        self.note = ""
        self.reached = -math.inf

    def go(self, goal: float) -> None:
        """Play and learn until the goal or the end of the time."""
        if self.eval_every is not None and len(self.session.memory["evaluations"]) == 0:
            self._evaluate()  # so that there is a best policy from the start
        next_look = self._next_look()
        while True:
            steps = int(self.counts[STEPS])
            if steps >= goal:
                self.stopped = "steps"
            elif self.clock.is_over:
                self.stopped = "time"
            elif self.target is not None and self.reached >= self.target:
                self.stopped = "target"
            else:
                try:
                    self._round()
                except Diverged as error:
                    self._retreat(str(error))
                    return
                if self.counts[STEPS] >= next_look:
                    self._evaluate()
                    next_look = self._next_look()
                continue
            return

    def _next_look(self) -> float:
        if self.eval_every is None:
            return math.inf
        return (int(self.counts[STEPS]) // self.eval_every + 1) * self.eval_every

    def _round(self) -> None:
        """Play one block and learn from it."""
        s = self.session
        memory = s.memory
        s.world.collect(s.policy, memory["schedule"], self.agent._whole, memory["rng"], s.block)
        rows = int(s.block.count[1])
        if s.world.is_foreign:
            self._look_at(rows)
        before = int(self.counts[STEPS])
        n_ended = int(s.block.count[0])
        if n_ended:
            ends = s.block.ends[:n_ended]
            self.ended.append(np.column_stack([before + (ends[:, 2] + 1) * s.world.n, ends[:, 0], ends[:, 1]]))
        self.counts[STEPS] = int(memory["schedule"][0])
        if self.agent.normalise_observations:
            add_moments(s.block.obs, s.block.valid, rows, memory["seen"], memory["moments"][0], memory["moments"][1])
            memory["centre"][:] = memory["moments"][0]
            spread = np.sqrt(memory["moments"][1] / max(memory["seen"][0], 1.0))
            memory["scale"][:] = 1.0 / np.maximum(spread, 1e-6)
        if self.agent.normalise_rewards:
            add_return_moments(s.block, rows, self.agent.gamma, memory["running"], memory["return_moments"])
        self.agent._absorb(s)
        self.counts[MOVES] = s.optimiser.t

    def _look_at(self, rows: int) -> None:
        """Raise an error that names the first number that is none, before anything is learned from it."""
        s = self.session
        at = int(first_bad(s.block, rows))
        name = s.world.name
        if at >= 0:
            t, e = divmod(at, s.world.n)
            what = "reward" if not math.isfinite(s.block.reward[t, e]) else "observation"
            value = float(s.block.reward[t, e]) if what == "reward" else s.block.next_obs[t, e].tolist()
            raise DataError(
                f"{type(self.agent).__name__}: {name} returned the {what} {value!r} at step "
                f"{int(self.counts[STEPS]) + at}; observations and rewards must be finite. {self._kept()}"
            )
        largest = float(np.abs(s.block.reward[:rows]).max(initial=0.0))
        if largest > max(_LARGE_REWARD, s.largest) and not self.agent.normalise_rewards:
            if s.largest <= _LARGE_REWARD:
                warnings.warn(
                    f"{type(self.agent).__name__}: {name} gives rewards of {largest:.3g}; networks learn values near 1 "
                    "best. Set normalise_rewards=True, or divide them.",
                    ConvergenceWarning,
                    stacklevel=5,
                )
            s.largest = largest

    def _kept(self) -> str:
        score, step = self.session.memory["best_score"]
        if not math.isfinite(score):
            return "No policy was evaluated before."
        return f"The best policy so far is kept: return {score:.4g}, step {int(step)}."

    def _evaluate(self) -> None:
        s = self.session
        memory = s.memory
        number = int(self.counts[EVALUATIONS])
        seed = int(np.random.SeedSequence(int(memory["seed"][0]), spawn_key=(9, number)).generate_state(1)[0])
        found = self.judge.evaluate(s.policy, self.eval_episodes, seed, True, self.agent.gamma)
        returns = found[0] if found is not None else self._recent_returns()
        if returns is None:
            return
        self.counts[EVALUATIONS] += 1
        mean = float(returns.mean())
        step = int(self.counts[STEPS])
        self.reached = mean
        self.evaluations.append(np.array([[step, mean, returns.std(), len(returns)]]))
        if mean >= memory["best_score"][0]:  # of equal ones the later: it has seen more
            self._keep(mean)
        if self.progress:
            self.progress(self._report(mean))

    def _recent_returns(self) -> AnyArray | None:
        rows = np.concatenate([self.session.memory["episodes"], *self.ended])[-20:]
        return rows[:, 1] if len(rows) else None

    def _keep(self, score: float) -> None:
        memory = self.session.memory
        memory["best"][:] = memory["theta"]
        memory["best_centre"][:] = memory["centre"]
        memory["best_scale"][:] = memory["scale"]
        memory["best_score"][:] = (score, float(self.counts[STEPS]))

    def _report(self, mean: float) -> dict[str, Any]:
        s = self.session
        loss = float(np.mean(s.losses[-100:])) if s.losses else math.nan
        rate = (int(self.counts[STEPS]) - self.first_step) / max(self.clock.seconds, 1e-9)
        return {
            "agent": type(self.agent).__name__,
            "step": int(self.counts[STEPS]),
            "return": mean,
            "best": float(s.memory["best_score"][0]),
            "loss": loss,
            "gradient_norm": s.norm,
            "steps_per_second": rate,
        }

    def _retreat(self, reason: str) -> None:
        """Go back to the best policy and say so."""
        memory = self.session.memory
        self.stopped = "diverged"
        memory["theta"][:] = memory["best"]
        memory["v"][:] = 0.0
        memory["r"][:] = 0.0
        self.session.optimiser.t = 0
        if "target" in memory:
            memory["target"][:] = memory["best"]
        self.note = f"diverged: {reason}; {self._kept()}"
        warnings.warn(
            f"{type(self.agent).__name__}: learning {self.note} Use a smaller learning_rate than "
            f"{self.agent.learning_rate:g}, or normalise_rewards=True.",
            ConvergenceWarning,
            stacklevel=4,
        )

    def close(self) -> None:
        """Write to the memory what is kept outside of it during a run."""
        memory = self.session.memory
        self.counts[MOVES] = self.session.optimiser.t
        memory["episodes"] = np.concatenate([memory["episodes"], *self.ended])
        memory["evaluations"] = np.concatenate([memory["evaluations"], *self.evaluations])
        if not len(memory["evaluations"]):
            self._keep(-math.inf)
        for name, array in self.session.world.state().items():
            memory[f"world_{name}"] = array.copy()

    def result(self) -> Training:
        """Return what happened, and certify what was learned."""
        seconds = self.clock.seconds
        steps = int(self.counts[STEPS])
        memory = self.session.memory
        n_ended = sum(len(part) for part in self.ended)
        training = Training(
            agent=type(self.agent).__name__,
            steps=steps,
            seconds=seconds,
            steps_per_second=(steps - self.first_step) / max(seconds, 1e-9),
            stopped=self.stopped,
            episodes=memory["episodes"][len(memory["episodes"]) - n_ended :],
            evaluations=np.concatenate([np.zeros((0, 4)), *self.evaluations]),
            best_score=float(memory["best_score"][0]),
            best_step=int(memory["best_score"][1]),
            note=self.note,
        )
        self.agent.certificate_ = self.agent._certify(self.session.world, training)
        return training


def new_block(T: int, world: World, dtype: Any) -> Block:
    """Return an empty block for T rows of a world."""
    n = world.n
    return Block(
        obs=np.zeros((T, n, world.n_features), dtype=dtype),
        next_obs=np.zeros((T, n, world.n_features), dtype=dtype),
        action=np.zeros((T, n, world.width), dtype=dtype),
        reward=np.zeros((T, n)),
        terminated=np.zeros((T, n), dtype=bool),
        truncated=np.zeros((T, n), dtype=bool),
        valid=np.zeros((T, n), dtype=bool),
        ends=np.zeros((T * n, 3)),
        count=np.zeros(2, dtype=np.int64),
    )


def _print_line(report: dict[str, Any]) -> None:
    print(
        f"{report['agent']}: step {report['step']:,}, return {report['return']:.4g} (best {report['best']:.4g}), "
        f"loss {report['loss']:.3g}, {report['steps_per_second']:,.0f} steps/s",
        flush=True,
    )
