r"""Contextual bandits with linear rewards: LinUCB and linear Thompson sampling.

The reward of arm a in context x is xᵀθ_a plus noise (one θ per arm, `shared=False`), or x_aᵀθ where each arm has
features of its own (`shared=True`). With A = λI + Σ xxᵀ and b = Σ r x the estimate is θ̂ = A⁻¹b, and

- `LinUCB` plays the greatest $x^\top \hat\theta_a + \alpha \sqrt{x^\top A_a^{-1} x}$,
- `LinearThompson` the greatest $x^\top \tilde\theta_a$ with $\tilde\theta_a \sim N(\hat\theta_a, v^2 A_a^{-1})$, the
  posterior of Bayesian linear regression.

Reference: L. Li et al., A contextual-bandit approach to personalized news article recommendation, WWW 2010; S. Agrawal
and N. Goyal, Thompson sampling for contextual bandits with linear payoffs, ICML 2013.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from ...core import AnyArray, DataError, hook, law, laws
from .._random import normal
from ._kernels import COUNT, ROUND, SUM
from .policy import MOST_PENDING, Policy, require

#: Draws that estimate the probability of each arm where arms share θ.
_DRAWS = 4000


@dataclass(eq=False, repr=False)
class _Linear(Policy):
    """What both linear policies share: the estimate and its uncertainty."""

    n_features: int = 1
    ridge: float = 1.0
    shared: bool = False

    def act(self, context: Any = None) -> int:
        """Return the arm to play in a context: an array of shape (n_features,), or (n_arms, n_features) if shared."""
        x = self._contexts(context)
        scores = np.where(self.active, self._scores(x), -np.inf)
        chosen = int(np.argmax(scores))
        self._remember(chosen, self._certainty())
        self.state["contexts"] = np.vstack([self.state["contexts"][-MOST_PENDING + 1 :], x[chosen]])
        return chosen

    def update(self, arm: int, reward: float, id: int | None = None, *, cost: float = 0.0, context: Any = None) -> None:
        """Learn what an arm earned; the context is that of the decision, or the one that is given."""
        number = self._arm("update", arm)
        value = self._reward(reward, number)
        x = self._context_of(number, id) if context is None else self._contexts(context)[number]
        if context is None:
            self._forget(number, id)
        at = 0 if self.shared else number
        inverse = self.state["inverse"][at]
        u = inverse @ x
        inverse -= np.outer(u, u) / (1.0 + x @ u)  # Sherman and Morrison
        self.state["moment"][at] += value * x
        self.state["arms"][COUNT, number] += 1.0
        self.state["arms"][SUM, number] += value
        self.state["meta"][ROUND] += 1.0

    @property
    def coefficients(self) -> AnyArray:
        """θ̂, one row per arm, or one row if it is shared."""
        return np.einsum("aij,aj->ai", self.state["inverse"], self.state["moment"])

    def add_arm(self) -> int:
        """Add an arm about which nothing is known."""
        if not self.shared:
            self.state["inverse"] = np.concatenate([self.state["inverse"], self._prior()[None]])
            self.state["moment"] = np.vstack([self.state["moment"], np.zeros(self.n_features)])
        return super().add_arm()

    _scores = hook("(x) → AnyArray")

    def _certainty(self) -> float:
        return 1.0

    def _moments(self, x: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return mean and standard deviation (over σ) of the reward of each arm in a context."""
        inverse = self.state["inverse"]
        theta = self.coefficients
        if self.shared:
            inverse = inverse[[0] * self.n_arms]
            theta = theta[[0] * self.n_arms]
        mean = (x * theta).sum(axis=1)
        variance = np.einsum("ai,aij,aj->a", x, inverse, x)
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def _contexts(self, context: Any) -> AnyArray:
        owner = type(self).__name__
        if context is None:
            raise DataError(f"{owner}: needs a context; pass act(context) with {self.n_features} numbers.")
        x = np.asarray(context, dtype=np.float64)
        if not self.shared and x.shape == (self.n_features,):
            x = np.broadcast_to(x, (self.n_arms, self.n_features))
        if x.shape != (self.n_arms, self.n_features) or not np.isfinite(x).all():
            shape = (self.n_arms, self.n_features) if self.shared else (self.n_features,)
            raise DataError(f"{owner}: a context must be finite numbers of shape {shape}; got shape {x.shape}.")
        return x

    def _context_of(self, arm: int, id: int | None) -> AnyArray:
        return np.array(self.state["contexts"][self._place(arm, id)])

    def _forget(self, arm: int, id: int | None) -> None:
        at = self._place(arm, id)
        self.state["pending"] = np.delete(self.state["pending"], at, axis=0)
        self.state["contexts"] = np.delete(self.state["contexts"], at, axis=0)

    def _place(self, arm: int, id: int | None) -> int:
        pending = self.state["pending"]
        hits = np.flatnonzero((pending[:, 1] == arm) & ((pending[:, 0] == id) if id is not None else True))
        if len(hits) == 0:
            decision = "" if id is None else f" from decision {id}"
            raise DataError(
                f"{type(self).__name__}: no reward of arm {arm} is awaited{decision}; "
                "pass the context with update(arm, reward, context=…)."
            )
        return int(hits[-1])

    def _prior(self) -> AnyArray:
        return np.asarray(np.eye(self.n_features) / self.ridge)

    def _new_state(self, rng: AnyArray) -> dict[str, AnyArray]:
        n_models = 1 if self.shared else self.n_arms
        state = super()._new_state(rng)
        state["inverse"] = np.tile(self._prior(), (n_models, 1, 1))
        state["moment"] = np.zeros((n_models, self.n_features))
        state["contexts"] = np.zeros((0, self.n_features))
        return state

    def _check(self) -> None:
        require(self, "n_features", self.n_features, 1)
        require(self, "ridge", self.ridge, 0.0, low_open=True)

    _laws = laws(
        law(
            "inverse and moment of a {owner} must be finite, of one shape per model and feature",
            lambda policy: all(
                policy.state[name].shape == (1 if policy.shared else policy.n_arms, *(policy.n_features,) * rank)
                and np.isfinite(policy.state[name]).all()
                for name, rank in (("inverse", 2), ("moment", 1))
            ),
        ),
        law(
            "contexts of a {owner} must be finite, one row per pending pull",
            lambda policy: (
                policy.state["contexts"].shape == (len(policy.state["pending"]), policy.n_features)
                and np.isfinite(policy.state["contexts"]).all()
            ),
        ),
    )


@dataclass(eq=False, repr=False)
class LinUCB(_Linear):
    """Play the arm whose estimated reward, plus α times its uncertainty, is greatest.

    Parameters
    ----------
    n_features : int
        Length d of a context.
    alpha : float
        Width α of the confidence bound.
    ridge : float
        λ, the penalty of the estimate.
    shared : bool
        Whether all arms share one θ and have features of their own.

    Examples
    --------
    >>> policy = LinUCB(2, n_features=2, alpha=0.5)
    >>> for x, rewards in (([1, 0], [1.0, 0.0]), ([0, 1], [0.0, 1.0]), ([0, 1], [0.0, 1.0])):
    ...     arm = policy.act(x)
    ...     policy.update(arm, rewards[arm])
    >>> policy.act([1, 0]), policy.act([0, 1])
    (0, 1)
    """

    alpha: float = 1.0

    def propensities(self, context: Any = None) -> AnyArray:
        """Return one for the arm that would be played."""
        scores = np.where(self.active, self._scores(self._contexts(context)), -np.inf)
        return np.asarray(np.eye(self.n_arms)[int(np.argmax(scores))])

    def _scores(self, x: AnyArray) -> AnyArray:
        mean, spread = self._moments(x)
        return np.asarray(mean + self.alpha * spread)

    def _check(self) -> None:
        super()._check()
        require(self, "alpha", self.alpha, 0.0)


@dataclass(eq=False, repr=False)
class LinearThompson(_Linear):
    """Draw θ from its posterior and play the arm that is best for it.

    Parameters
    ----------
    n_features : int
        Length d of a context.
    scale : float
        v: the noise of rewards, or more to explore more.
    ridge : float
        λ: θ has the prior N(0, v²/λ I).
    shared : bool
        Whether all arms share one θ and have features of their own.

    Examples
    --------
    >>> policy = LinearThompson(2, n_features=1, scale=0.1, random_state=0)
    >>> for _ in range(20):
    ...     arm = policy.act([1.0])
    ...     policy.update(arm, [0.0, 1.0][arm])
    >>> policy.propensities([1.0]).round(2)
    array([0., 1.])
    """

    scale: float = 1.0

    def propensities(self, context: Any = None) -> AnyArray:
        """Return the probability that each arm is best: by quadrature, or by 4,000 draws where arms share θ."""
        x = self._contexts(context)
        mean, spread = self._moments(x)
        if self.shared:
            root = np.linalg.cholesky(self.state["inverse"][0])
            draws = np.random.default_rng(int(self.state["rng"][0])).normal(size=(_DRAWS, self.n_features))
            scores = mean + self.scale * draws @ (x @ root).T
            scores[:, ~self.active] = -np.inf
            return np.bincount(scores.argmax(axis=1), minlength=self.n_arms) / _DRAWS
        nodes, weights = np.polynomial.legendre.leggauss(128)
        levels = stats.norm.ppf((nodes + 1.0) / 2.0)
        found = np.zeros(self.n_arms)
        active = np.flatnonzero(self.active)
        width = np.maximum(self.scale * spread, 1e-300)
        for a in active:
            at = mean[a] + width[a] * levels
            others = [stats.norm.cdf((at - mean[b]) / width[b]) for b in active if b != a]
            found[a] = weights @ np.prod(others, axis=0) / 2.0 if others else 1.0
        return np.asarray(found / found.sum())

    def _scores(self, x: AnyArray) -> AnyArray:
        rng = self.state["rng"]
        scores = np.empty(self.n_arms)
        theta = self.coefficients
        drawn = None
        for a in range(self.n_arms):
            at = 0 if self.shared else a
            if drawn is None or not self.shared:
                z = np.array([normal(rng) for _ in range(self.n_features)])
                drawn = theta[at] + self.scale * np.linalg.cholesky(self.state["inverse"][at]) @ z
            scores[a] = x[a] @ drawn
        return scores

    def _certainty(self) -> float:
        return float("nan")

    def _chance_of(self, arm: int) -> float:
        context = self.state["contexts"][-1]
        return float(self.propensities(context)[arm]) if not self.shared else float("nan")

    def _check(self) -> None:
        super()._check()
        require(self, "scale", self.scale, 0.0, low_open=True)


def simulate_linear(
    policy: Any, coefficients: Any, horizon: int, replications: int = 20, *, noise: float = 1.0, random_state: Any = 0
) -> AnyArray:
    """Return the pseudo-regret, of shape (replications, horizon), of a linear policy among arms with known θ_a.

    Contexts are standard normal; the reward of arm a is xᵀθ_a plus normal noise.

    Parameters
    ----------
    policy : LinUCB or LinearThompson
        Its settings are used, with `shared=False`.
    coefficients : array of shape (n_arms, n_features)
        θ.
    horizon, replications : int
        Rounds, and how often they are played.
    noise : float
        Standard deviation of the noise.
    random_state : int or None
        Seed.
    """
    theta = np.asarray(coefficients, dtype=np.float64)
    if policy.shared or theta.shape != (policy.n_arms, policy.n_features):
        raise DataError(f"simulate_linear: needs θ of shape {(policy.n_arms, policy.n_features)} and shared=False.")
    regret = np.zeros((replications, horizon))
    for rep, seeds in enumerate(np.random.SeedSequence(random_state).spawn(replications)):
        rng = np.random.default_rng(seeds)
        player = policy.restart(rng)
        contexts = rng.normal(size=(horizon, policy.n_features))
        noises = noise * rng.normal(size=horizon)
        for t in range(horizon):
            means = theta @ contexts[t]
            arm = player.act(contexts[t])
            player.update(arm, means[arm] + noises[t])
            regret[rep, t] = means.max() - means[arm]
    return np.cumsum(regret, axis=1)
