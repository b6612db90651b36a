r"""Policy gradients: a network draws the action, and what followed makes it more or less likely.

$$ \nabla J = E\Bigl[ \sum_t A_t \, \nabla \log \pi_\theta(a_t \mid s_t) \Bigr], $$

with the advantage A of an action. Any baseline that does not depend on the action leaves the mean of the gradient and
may lower its variance.

| agent | advantage |
|---|---|
| `Reinforce(baseline=False)` | the return G of the rest of the episode |
| `Reinforce()` | G − V(s) |
| `ActorCritic()` (A2C) | Σ (γλ)ᵏ δ of the next `n_steps` steps, δ = r + γV(s') − V(s) |
| `ActorCritic(clip=0.2)` (PPO) | the same; several epochs over a block, the ratio π/π_old clipped to 1 ± 0.2 |

Value network and policy are two networks over one flat vector; the loss is

    policy loss + value_weight · mean (V − G)² − entropy · mean entropy.

Actions are numbers (softmax), or vectors: normal with means from the network and free deviations, clipped to the bounds
of the environment, or, with `squash`, put through tanh and stretched to them.

References: R. Williams, 1992; V. Mnih et al., ICML 2016 (A3C); J. Schulman et al., ICLR 2016 (GAE) and 2017 (PPO).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ....core import AnyArray, Boolean, DataError, Number, Rule, hook, optional
from ....neural.network import Network
from ....solvers.lab.first_order import Adam, RMSprop
from . import _update_kernels as k
from ._play_kernels import FAR, GAUSSIAN, SOFTMAX, SQUASHED, PolicyArrays
from .agent import DeepAgent
from .loop import Diverged, Session
from .networks import build, outputs_in_double, policy_arrays, start_small
from .worlds import World

#: Gain of the last layer of a policy at the start: small, so that all actions are about equally likely.
_POLICY_GAIN = 0.01
#: Sizes of batches whose arrays are kept open.
_MOST_TAPES = 32
#: Of the advantages' standard deviation, so that equal ones do no harm.
_LEAST_SPREAD = 1e-8


class _Parts:
    """Networks, the views of one flat vector and its gradient, and tapes by size of batch."""

    def __init__(self, agent: PolicyGradientAgent, memory: dict[str, AnyArray], gradient: AnyArray) -> None:
        self.actor, self.critic = agent._networks(memory)
        p = self.actor.n_parameters
        q = self.critic.n_parameters
        theta = memory["theta"]
        self.theta_actor = theta[:p]
        self.theta_critic = theta[p : p + q]
        self.log_std = theta[p + q :]
        self.gradient = gradient
        self.gradient_actor = gradient[:p]
        self.gradient_critic = gradient[p : p + q]
        self.gradient_std = gradient[p + q :]
        self._tapes: dict[int, Any] = {}

    def tapes(self, n: int) -> tuple[Any, Any, AnyArray, AnyArray]:
        """Return tapes of actor and critic for n rows, and room for the slopes of their outputs."""
        if n not in self._tapes:
            if len(self._tapes) >= _MOST_TAPES:
                self._tapes.clear()
            self._tapes[n] = (
                self.actor.open(self.theta_actor, n, training=True, gradient=self.gradient_actor),
                self.critic.open(self.theta_critic, n, training=True, gradient=self.gradient_critic),
                np.zeros((n, self.actor.n_outputs), dtype=self.actor.dtype),
                np.zeros((n, 1), dtype=self.actor.dtype),
            )
        found: tuple[Any, Any, AnyArray, AnyArray] = self._tapes[n]
        return found


@dataclass(eq=False)
class PolicyGradientAgent(DeepAgent):
    """Base of `Reinforce` and `ActorCritic`; not to be used directly."""

    activation: str = "tanh"
    n_envs: int = 8
    max_gradient_norm: float = 0.5
    entropy: float = 0.0
    value_weight: float = 0.5
    squash: bool = False
    initial_std: float = 1.0

    def _rules(self) -> dict[str, Rule]:
        free = Number(low=0.0)
        own = {"entropy": free, "value_weight": free, "squash": Boolean()}
        return super()._rules() | own | {"initial_std": Number(low=0.0, low_open=True)}

    @property
    def _uses_values(self) -> bool:
        return True

    _settings = hook(
        "() → tuple[float, int, int | None, float, bool]: λ, epochs, rows of a batch (None: all), clip (0: none), and "
        "whether advantages are standardised."
    )

    def _networks(self, memory: dict[str, AnyArray]) -> tuple[Network, Network]:
        d, n_actions, width = (int(size) for size in memory["sizes"])
        actor = build(d, self.hidden, self.activation, n_actions or width, self.dtype)
        return actor, build(d, self.hidden, self.activation, 1, self.dtype)

    def _start(self, memory: dict[str, AnyArray], world: World, rng: np.random.Generator) -> None:
        if self.squash and world.n_actions == 0 and not np.isfinite(memory["high"] - memory["low"]).all():
            raise DataError(f"{type(self).__name__}: squash needs actions with finite bounds; {world.name} has none.")
        actor, critic = self._networks(memory)
        first = actor.start(rng, init="orthogonal")
        start_small(actor, first, _POLICY_GAIN)
        second = critic.start(rng, init="orthogonal")
        start_small(critic, second, 1.0)
        spread = np.full(0 if world.n_actions else world.width, math.log(self.initial_std), dtype=self.dtype)
        memory["theta"] = np.concatenate([first, second, spread])

    def _policy(self, memory: dict[str, AnyArray], which: str) -> PolicyArrays:
        prefix = "best_" if which == "best" else ""
        theta = memory["best" if which == "best" else "theta"]
        actor, critic = self._networks(memory)
        p = actor.n_parameters
        numbered = self._n_actions(memory) > 0
        kind = SQUASHED if self.squash else GAUSSIAN
        centre = memory[f"{prefix}centre"]
        scale = memory[f"{prefix}scale"]
        log_std = theta[p + critic.n_parameters :]
        if numbered:
            kind = SOFTMAX
            log_std = np.zeros(1, dtype=theta.dtype)
        low = memory["low"]
        high = memory["high"]
        return policy_arrays(kind, self.activation, actor, theta[:p], centre, scale, log_std, low, high)

    def _parts(self, memory: dict[str, AnyArray], gradient: AnyArray) -> _Parts:
        return _Parts(self, memory, gradient)

    def _absorb(self, session: Session) -> None:
        """Estimate advantages, then make one or several passes over the block."""
        _, epochs, batch, clip, standardise = self._settings()
        parts = session.parts
        memory = session.memory
        X, action, advantage, target = self._estimate(session)
        n = len(X)
        if n == 0:
            return
        old = self._log_probabilities(parts, X, action) if clip > 0.0 else np.zeros(n)
        order = np.arange(n)
        size = n if batch is None else min(batch, n)
        rate = self.learning_rate
        for _ in range(epochs):
            if size < n:
                k.shuffle(order, memory["sample_rng"])
            for first in range(0, n, size):
                rows = order[first : first + size] if size < n else slice(None)
                A = advantage[rows]
                if standardise and len(A) > 1:
                    A = (A - A.mean()) / (A.std() + _LEAST_SPREAD)
                loss = self._gradient(parts, X[rows], action[rows], A, target[rows], old[rows], clip)
                session.losses.append(loss)
                self._step(session, parts.gradient, rate)
        if len(session.losses) > 1000:
            del session.losses[:-100]

    def _estimate(self, session: Session) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
        """Return the rows that count: observations as the networks see them, actions, advantages and value targets."""
        trace = self._settings()[0]
        block = session.block
        memory = session.memory
        rows = int(block.count[1])
        n = session.world.n
        d = block.obs.shape[2]
        seen = np.empty((rows * n, d), dtype=block.obs.dtype)
        k.scale_rows(block.obs[:rows].reshape(-1, d), memory["centre"], memory["scale"], FAR, seen)
        value = np.zeros((rows, n))
        follows = np.zeros((rows, n))
        if self._uses_values:
            value[:] = self._values(session.parts, seen).reshape(rows, n)
            follows[:-1] = value[1:]
            cut = block.truncated[:rows].copy()
            cut[-1] |= block.valid[rows - 1] & ~block.terminated[rows - 1]
            after = block.next_obs[:rows][cut]
            if len(after):
                scaled = np.empty_like(after)
                k.scale_rows(after, memory["centre"], memory["scale"], FAR, scaled)
                follows[cut] = self._values(session.parts, scaled)
        advantage = np.empty((rows, n))
        scale = self._reward_scale(memory)
        k.advantages(
            block.reward[:rows], value, follows, block.terminated[:rows], block.truncated[:rows], block.valid[:rows],
            self.gamma, trace, scale, advantage,
        )  # fmt: skip
        target = (advantage + value).reshape(-1)
        action = block.action[:rows].reshape(rows * n, -1)
        valid = block.valid[:rows].reshape(-1)
        if valid.all():
            return seen, action, advantage.reshape(-1), target
        return seen[valid], action[valid], advantage.reshape(-1)[valid], target[valid]

    def _values(self, parts: _Parts, X: AnyArray) -> AnyArray:
        _, critic, _, _ = parts.tapes(len(X))
        return np.array(critic.forward(np.ascontiguousarray(X))[:, 0], dtype=np.float64)

    def _log_probabilities(self, parts: _Parts, X: AnyArray, action: AnyArray) -> AnyArray:
        actor, _, _, _ = parts.tapes(len(X))
        z = actor.forward(X)
        out = np.empty(len(X))
        if len(parts.log_std):
            k.log_gaussian(z, parts.log_std, action, out)
        else:
            k.log_softmax(z, action, out)
        return out

    def _gradient(
        self,
        parts: _Parts,
        X: AnyArray,
        action: AnyArray,
        advantage: AnyArray,
        target: AnyArray,
        old: AnyArray,
        clip: float,
    ) -> float:
        """Write the gradient of the loss over some rows to `parts.gradient`; return the loss."""
        actor, critic, slope, value_slope = parts.tapes(len(X))
        stats = np.zeros(4)
        z = actor.forward(X)
        if len(parts.log_std):
            k.gaussian_policy_loss(
                z, parts.log_std, action, advantage, old, clip, self.entropy, slope, parts.gradient_std, stats
            )
        else:
            k.softmax_policy_loss(z, action, advantage, old, clip, self.entropy, slope, stats)
        actor.backward(slope)
        loss = float(stats[k.LOSS] - self.entropy * stats[k.ENTROPY]) / len(X)
        if self._uses_values:
            v = critic.forward(X)
            loss += self.value_weight * float(k.squared_loss(v, target, self.value_weight, value_slope))
            critic.backward(value_slope)
        else:
            parts.gradient_critic[:] = 0.0
        if not math.isfinite(loss):
            raise Diverged(f"the loss is {loss!r}")
        return loss

    def state_values(self, observations: Any, *, which: str = "best") -> AnyArray:
        """Return V for rows of observations, in the units of the rewards."""
        memory = self._learned()
        actor, critic = self._networks(memory)
        theta = memory["best" if which == "best" else "theta"]
        p = actor.n_parameters
        X = self._seen_rows(memory, observations, which)
        found = outputs_in_double(critic, theta[p : p + critic.n_parameters], X)[:, 0]
        return found / self._reward_scale(memory)

    def action_probabilities(self, observations: Any, *, which: str = "best") -> AnyArray:
        """Return the probability of each action for rows of observations."""
        memory = self._learned()
        if not self._n_actions(memory):
            raise DataError(f"{type(self).__name__}: actions are vectors; their law is normal. Use action_means.")
        z = self._outputs(memory, observations, which)
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return np.asarray(e / e.sum(axis=1, keepdims=True))

    def action_means(self, observations: Any, *, which: str = "best") -> AnyArray:
        """Return the means of vector actions, before they are clipped or squashed."""
        return self._outputs(self._learned(), observations, which)

    def _outputs(self, memory: dict[str, AnyArray], observations: Any, which: str) -> AnyArray:
        actor, _ = self._networks(memory)
        theta = memory["best" if which == "best" else "theta"]
        X = self._seen_rows(memory, observations, which)
        return outputs_in_double(actor, theta[: actor.n_parameters], X)

    def _is_sound(self, memory: dict[str, AnyArray]) -> bool:
        actor, critic = self._networks(memory)
        _, n_actions, width = (int(size) for size in memory["sizes"])
        free = 0 if n_actions else width
        return super()._is_sound(memory) and memory["theta"].size == actor.n_parameters + critic.n_parameters + free


@dataclass(eq=False)
class ActorCritic(PolicyGradientAgent):
    """Advantage actor–critic (A2C); with `clip`, proximal policy optimisation (PPO).

    Parameters
    ----------
    clip : float, optional
        ε of PPO: the ratio of new and old probability counts within 1 ± ε only. None: one step per block (A2C).
    n_steps : int, optional
        Steps of each copy of the environment in a block; None: 8, or 128 with `clip`.
    trace : float
        λ of the generalised advantage: 1 is Monte Carlo (with the value at the end of the block), 0 is TD.
    epochs : int, optional
        Passes over a block; None: 1, or 10 with `clip`.
    batch_size : int, optional
        Rows of one update; None: the whole block, or 128 with `clip`.
    entropy : float
        Weight of the entropy: more of it explores longer.
    value_weight : float
        Weight of the value network's squared error.
    squash : bool
        Whether vector actions go through tanh to their bounds instead of being clipped to them.
    initial_std : float
        Standard deviation of vector actions at the start.

    The other parameters are those of every deep agent: gamma, learning_rate, hidden, activation, n_envs,
    max_gradient_norm, normalise_observations, normalise_rewards, dtype, tol, random_state.

    Examples
    --------
    >>> from learnable.decisions import ActorCritic
    >>> from learnable.decisions.rl import deep
    >>> ppo = ActorCritic(clip=0.2, random_state=0)
    >>> run = ppo.learn(deep.CartPole(), steps=8192, eval_every=4096)
    >>> run.steps, bool(run.best_score > 20.0)
    (8192, True)
    """

    learning_rate: float = 1e-3
    clip: float | None = None
    n_steps: int | None = None
    trace: float = 0.95
    epochs: int | None = None
    batch_size: int | None = None

    def _rules(self) -> dict[str, Rule]:
        whole = optional(Number(low=1, integer=True))
        inside = Number(low=0.0, high=1.0, low_open=True, high_open=True)
        own = {"clip": optional(inside), "trace": Number(low=0.0, high=1.0)}
        return super()._rules() | own | dict.fromkeys(("n_steps", "epochs", "batch_size"), whole)

    def _settings(self) -> tuple[float, int, int | None, float, bool]:
        if self.clip is None:
            return self.trace, self.epochs or 1, self.batch_size, 0.0, False
        return self.trace, self.epochs or 10, self.batch_size or 128, self.clip, True

    def _rule(self) -> Any:
        return RMSprop(rho=0.99, delta=1e-5) if self.clip is None else Adam(delta=1e-5)

    def _rows(self, world: World) -> int:
        return self.n_steps or (8 if self.clip is None else 128)


@dataclass(eq=False)
class Reinforce(PolicyGradientAgent):
    """Monte Carlo policy gradient: whole episodes, one step per `n_envs` of them.

    Parameters
    ----------
    baseline : bool
        Whether a value network is subtracted from the returns.
    standardise : bool
        Whether the advantages of a block are centred and divided by their deviation.

    The others are those of `ActorCritic` and of every deep agent. An episode that is truncated counts what its end
    is worth with a baseline, and what it has earned without.

    Examples
    --------
    >>> from learnable.decisions import Reinforce
    >>> from learnable.decisions.rl import deep
    >>> agent = Reinforce(random_state=0)
    >>> run = agent.learn(deep.CartPole(), steps=5000, eval_every=1000)
    >>> bool(run.best_score > 20.0)
    True
    """

    learning_rate: float = 1e-2
    n_envs: int = 16
    baseline: bool = True
    standardise: bool = True

    _whole: ClassVar[bool] = True

    def _rules(self) -> dict[str, Rule]:
        return super()._rules() | {"baseline": Boolean(), "standardise": Boolean()}

    @property
    def _uses_values(self) -> bool:
        return self.baseline

    def _settings(self) -> tuple[float, int, int | None, float, bool]:
        return 1.0, 1, None, 0.0, self.standardise

    def _rule(self) -> Adam:
        return Adam()

    def _rows(self, world: World) -> int:
        return int(getattr(world, "limit", 10_000))
