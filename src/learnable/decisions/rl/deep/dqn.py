r"""Deep Q-learning: the targets of Q-learning, a network instead of a table.

$$ \min_\theta \; E\,\bigl[ w \, h\bigl( Q_\theta(s,a) - (r + \gamma \max_b Q_{\bar\theta}(s',b)) \bigr) \bigr], $$

over steps (s, a, r, s') that are drawn from a memory (replay), with targets from a network θ̄ that is a copy of θ, made
every `target_every` steps, and h Huber's loss. After a terminated step the target is r alone; after a truncated one
(a time limit) what follows still counts.

| option | what changes |
|---|---|
| `double=True` | the action b is the online network's: r + γ Q_θ̄(s', argmax_b Q_θ(s', b)); less overestimation |
| `dueling=True` | Q = V + A − mean A |
| `n_steps=n` | n rewards before the bootstrap (not corrected for exploration in between) |
| `prioritised=True` | steps are drawn in proportion to (error + 1e-6)^α, weighted by (N·p)^(−β) |

References: V. Mnih et al., Nature 2015; H. van Hasselt, A. Guez and D. Silver, AAAI 2016 (double); Z. Wang et al., ICML
2016 (dueling); T. Schaul et al., ICLR 2016 (prioritised).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....core import AnyArray, Boolean, DataError, Number, Rule
from ....neural.network import Network
from ....solvers.lab.first_order import Adam
from . import _replay_kernels as replay_kernels
from ._play_kernels import FAR, VALUES, PolicyArrays
from ._update_kernels import scale_rows, td_targets, value_loss
from .agent import DeepAgent
from .loop import STEPS, Diverged, Session
from .networks import build, outputs_in_double, policy_arrays
from .worlds import World

#: Added to errors, so that no step has the priority zero.
_LEAST_ERROR = 1e-6
_REPLAY = ("obs", "next_obs", "action", "reward", "terminated", "truncated", "valid", "meta", "tree", "top")


@dataclass
class _Parts:
    """Tapes and scratch of one session."""

    online: Any
    ahead: Any  # the online network on next observations, for double DQN
    target: Any
    replay: replay_kernels.Replay
    batch: replay_kernels.Batch
    seen: AnyArray
    seen_next: AnyArray
    goal: AnyArray
    error: AnyArray
    slope: AnyArray
    gradient: AnyArray


@dataclass(eq=False)
class DQN(DeepAgent):
    """Deep Q-network; with `double` (the default) double DQN.

    Parameters
    ----------
    double, dueling, prioritised : bool
        See the table above.
    n_steps : int
        Rewards before the bootstrap.
    batch_size : int
        Steps of one update.
    buffer_size : int
        Steps that are remembered.
    train_every : int
        Steps of each copy of the environment between two rounds of updates.
    gradient_steps : int
        Updates of a round.
    learning_starts : int
        Steps that are only collected.
    target_every : int
        Steps between two copies of the network to the target network.
    epsilon, final_epsilon : float
        Probability of a random action, at the start and at the end.
    epsilon_steps : int
        Steps between the two; ε falls in a straight line.
    huber : float
        Errors beyond this size count linearly. The usual 1 lets the many steps that go on outvote the few that end an
        episode: on CartPole, with a target network of 100 steps, values reached 1,000 where 100 is the most.
    alpha, beta : float
        Exponents of priorities and of their correction; β rises to 1 over `beta_steps`.
    beta_steps : int
        Steps over which it does.

    Memory of a run is O(buffer_size · n_features) besides the networks. The other parameters are those of every deep
    agent: gamma, learning_rate, hidden, activation, n_envs, max_gradient_norm, normalise_observations,
    normalise_rewards, dtype, tol, random_state.

    Examples
    --------
    >>> from learnable.decisions import DQN
    >>> from learnable.decisions.rl import deep
    >>> agent = DQN(random_state=0)
    >>> run = agent.learn(deep.CartPole(), steps=6000, eval_every=2000)
    >>> run.steps, run.stopped, len(run.evaluations)
    (6000, 'steps', 4)
    >>> agent.act([0.0, 0.0, 0.1, 0.5]) in (0, 1)
    True
    """

    learning_rate: float = 1e-3
    double: bool = True
    dueling: bool = False
    prioritised: bool = False
    n_steps: int = 1
    batch_size: int = 64
    buffer_size: int = 50_000
    train_every: int = 4
    gradient_steps: int = 1
    learning_starts: int = 1000
    target_every: int = 250
    epsilon: float = 1.0
    final_epsilon: float = 0.05
    epsilon_steps: int = 10_000
    huber: float = 100.0
    alpha: float = 0.6
    beta: float = 0.4
    beta_steps: int = 100_000

    def _rules(self) -> dict[str, Rule]:
        whole = Number(low=1, integer=True)
        share = Number(low=0.0, high=1.0)
        positive = Number(low=0.0, low_open=True)
        flags = dict.fromkeys(("double", "dueling", "prioritised"), Boolean())
        counts = ("n_steps", "batch_size", "buffer_size", "train_every", "gradient_steps", "target_every")
        steps = ("epsilon_steps", "beta_steps")
        shares = ("epsilon", "final_epsilon", "alpha", "beta")
        return (
            super()._rules()
            | flags
            | dict.fromkeys(counts + steps, whole)
            | dict.fromkeys(shares, share)
            | {"learning_starts": Number(low=0, integer=True), "huber": positive}
        )

    def _networks(self, memory: dict[str, AnyArray]) -> tuple[Network, None]:
        d, n_actions, _ = (int(size) for size in memory["sizes"])
        return build(d, self.hidden, self.activation, n_actions, self.dtype, self.dueling), None

    def _start(self, memory: dict[str, AnyArray], world: World, rng: np.random.Generator) -> None:
        if world.n_actions == 0:
            raise DataError(
                f"DQN: {world.name} takes vectors as actions; DQN chooses among numbered actions. Use ActorCritic."
            )
        network, _ = self._networks(memory)
        memory["theta"] = network.start(rng, init="uniform")
        memory["target"] = memory["theta"].copy()
        memory["schedule"][1:] = (self.epsilon, self.final_epsilon, float(self.epsilon_steps))
        rows = -(-self.buffer_size // world.n)
        n = world.n
        d = world.n_features
        leaves = 1 << (rows * n - 1).bit_length() if self.prioritised else 0
        arrays = {
            "obs": np.zeros((rows, n, d), dtype=self.dtype),
            "next_obs": np.zeros((rows, n, d), dtype=self.dtype),
            "action": np.zeros((rows, n), dtype=np.int64),
            "reward": np.zeros((rows, n)),
            "terminated": np.zeros((rows, n), dtype=bool),
            "truncated": np.zeros((rows, n), dtype=bool),
            "valid": np.zeros((rows, n), dtype=bool),
            "meta": np.zeros(2, dtype=np.int64),
            "tree": np.zeros(max(2 * leaves, 1)),
            "top": np.ones(1),
        }
        memory.update({f"replay_{name}": array for name, array in arrays.items()})

    def _policy(self, memory: dict[str, AnyArray], which: str) -> PolicyArrays:
        prefix = "best_" if which == "best" else ""
        network, _ = self._networks(memory)
        theta = memory["best" if which == "best" else "theta"]
        centre = memory[f"{prefix}centre"]
        scale = memory[f"{prefix}scale"]
        none = np.zeros(1)
        skip = int(self.dueling)
        return policy_arrays(VALUES, self.activation, network, theta, centre, scale, none, none, none, skip)

    def _rule(self) -> Adam:
        return Adam()

    def _rows(self, world: World) -> int:
        return self.train_every

    def _parts(self, memory: dict[str, AnyArray], gradient: AnyArray) -> _Parts:
        network, _ = self._networks(memory)
        B = self.batch_size
        d = network.n_inputs
        dtype = network.dtype
        replay = replay_kernels.Replay(*(memory[f"replay_{name}"] for name in _REPLAY))
        batch = replay_kernels.Batch(
            obs=np.zeros((B, d), dtype=dtype),
            next_obs=np.zeros((B, d), dtype=dtype),
            action=np.zeros(B, dtype=np.int64),
            reward=np.zeros(B),
            discount=np.zeros(B),
            weight=np.ones(B),
            place=np.zeros(B, dtype=np.int64),
        )
        return _Parts(
            online=network.open(memory["theta"], B, training=True, gradient=gradient),
            ahead=network.open(memory["theta"], B) if self.double else None,
            target=network.open(memory["target"], B),
            replay=replay,
            batch=batch,
            seen=np.zeros((B, d), dtype=dtype) if self.normalise_observations else batch.obs,
            seen_next=np.zeros((B, d), dtype=dtype) if self.normalise_observations else batch.next_obs,
            goal=np.zeros(B),
            error=np.zeros(B),
            slope=np.zeros((B, network.n_outputs), dtype=dtype),
            gradient=gradient,
        )

    def _absorb(self, session: Session) -> None:
        memory = session.memory
        parts = session.parts
        rows = int(session.block.count[1])
        replay_kernels.push(session.block, rows, parts.replay)
        steps = int(memory["counts"][STEPS])
        if steps < self.learning_starts:
            return
        for _ in range(self.gradient_steps):
            session.losses.append(self._update(session))
        if len(session.losses) > 1000:
            del session.losses[:-100]
        made = rows * session.world.n
        if steps // self.target_every != (steps - made) // self.target_every:
            np.copyto(memory["target"], memory["theta"])

    def _update(self, session: Session) -> float:
        """Draw a batch, form targets, make one step; return the loss."""
        p = session.parts
        memory = session.memory
        batch = p.batch
        steps = int(memory["counts"][STEPS])
        beta = self.beta + min(steps / self.beta_steps, 1.0) * (1.0 - self.beta)
        replay_kernels.draw(p.replay, self.n_steps, self.gamma, beta, memory["sample_rng"], batch)
        if self.normalise_observations:
            scale_rows(batch.obs, memory["centre"], memory["scale"], FAR, p.seen)
            scale_rows(batch.next_obs, memory["centre"], memory["scale"], FAR, p.seen_next)
        judge = p.target.forward(p.seen_next)
        chooser = p.ahead.forward(p.seen_next) if self.double else judge
        td_targets(batch.reward, batch.discount, chooser, judge, self._reward_scale(memory), p.goal)
        z = p.online.forward(p.seen)
        loss = float(value_loss(z, batch.action, p.goal, batch.weight, self.huber, p.slope, p.error))
        if not np.isfinite(loss):
            raise Diverged(f"the loss is {loss!r} after {session.optimiser.t} updates")
        p.online.backward(p.slope)
        self._step(session, p.gradient, self.learning_rate)
        if self.prioritised:
            replay_kernels.set_priorities(p.replay, batch.place, p.error, self.alpha, _LEAST_ERROR)
        return loss

    def action_values(self, observations: Any, *, which: str = "best") -> AnyArray:
        """Return Q of each action for rows of observations, in the units of the rewards."""
        memory = self._learned()
        network, _ = self._networks(memory)
        theta = memory["best" if which == "best" else "theta"]
        found = outputs_in_double(network, theta, self._seen_rows(memory, observations, which))
        return found / self._reward_scale(memory)

    def state_values(self, observations: Any, *, which: str = "best") -> AnyArray:
        """Return max_a Q for rows of observations."""
        return self.action_values(observations, which=which).max(axis=1)

    def _is_sound(self, memory: dict[str, AnyArray]) -> bool:
        replay = replay_kernels.Replay(*(memory[f"replay_{name}"] for name in _REPLAY))
        C, n, d = replay.obs.shape
        d_known, n_actions, _ = (int(size) for size in memory["sizes"])
        sound = super()._is_sound(memory) and n_actions >= 1 and d == d_known and n >= 1 and C >= 1
        sound &= memory["theta"].size == self._networks(memory)[0].n_parameters
        sound &= replay.next_obs.shape == (C, n, d) and replay.obs.dtype == replay.next_obs.dtype == self.dtype
        for part, kind in zip(replay[2:7], (np.int64, np.float64, bool, bool, bool), strict=True):
            sound &= part.shape == (C, n) and part.dtype == kind
        sound &= bool((replay.action >= 0).all() and (replay.action < n_actions).all())
        sound &= bool(np.isfinite(replay.obs).all() and np.isfinite(replay.next_obs).all())
        sound &= bool(np.isfinite(replay.reward).all() and memory["running"].shape == (n,))
        sound &= replay.meta.shape == (2,) and replay.meta.dtype == np.int64
        sound &= 0 <= int(replay.meta[0]) < C and 0 <= int(replay.meta[1]) <= C
        sound &= memory["target"].shape == memory["theta"].shape and memory["target"].dtype == memory["theta"].dtype
        sound &= bool(np.isfinite(memory["target"]).all()) and replay.top.shape == (1,)
        leaves = 1 << (C * n - 1).bit_length() if self.prioritised else 0
        sound &= replay.tree.shape == (max(2 * leaves, 1),) and replay.tree.dtype == np.float64
        return bool(sound and (replay.tree >= 0.0).all() and _sums_agree(replay.tree))


def _sums_agree(tree: AnyArray) -> bool:
    """Tell whether every node is the sum of its two children: a draw that trusts another sum could leave the tree."""
    half = len(tree) // 2
    if half < 1:
        return True
    return bool(
        np.isfinite(tree).all() and np.array_equal(tree[1:half], tree[2 : 2 * half : 2] + tree[3 : 2 * half : 2])
    )
